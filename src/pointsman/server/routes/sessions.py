"""Operations on conversations: list, read, rename, delete."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.auth.policy import must_see_session
from pointsman.chat.conversation_views import conversation_view
from pointsman.chat.conversations import (
    TITLE_CHARS_MAX,
    conversations_page,
    entitle,
    found_conversations,
    title_mark,
)
from pointsman.chat.workflows import speakers_page
from pointsman.etags import moved
from pointsman.executions.lists import ExecutionEntry
from pointsman.server.context import CurrentCaller, CurrentServer
from pointsman.server.if_match import etag_of, held
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import ETAG, NAMES_MAX, After, IfMatch, Limit, Of, Operator, Words
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, Body, JsonValue, sample
from pointsman.server.schemas.responses import ENTRY, Status
from pointsman.values import JsonObject

router = Operations(tags=["sessions"])

CONVERSATION: Final[JsonObject] = {
    "sessionId": "s1",
    "workflowId": "talk",
    "title": "How do I import contacts?",
    "named": False,
    "status": "completed",
    "executionId": EXECUTION_ID,
    "startedAt": 1_763_700_000.0,
    "updatedAt": 1_763_700_004.0,
    "owner": "ada",
    "etag": '"0b1f6c0ad1e2c3d4"',
}

Session = Annotated[str, Path(min_length=1, max_length=500, description="The session's id.")]


class ConversationEntry(Answer):
    """A conversation in a list."""

    model_config = sample(**CONVERSATION)
    session_id: str
    workflow_id: str = Field(description="The one it was begun with.")
    title: str = Field(description="The one it was given, else what was said first; may be empty.")
    named: bool = Field(description="Somebody gave it its title.")
    status: Status = Field(description="Of its last turn.")
    execution_id: str = Field(description="Its last turn.")
    started_at: float = Field(description="When its last turn began.")
    updated_at: float
    owner: str | None = Field(description="Who began it.")
    etag: str = Field(description=f"Its title's. {ETAG}")


class ConversationList(Answer):
    """Conversations; the one in which something was said last comes first."""

    model_config = sample(sessions=[CONVERSATION], next=None)
    sessions: list[ConversationEntry]
    next: str | None = Field(description="The `before` of the next page; null: there is none.")


class TitleBody(Body):
    """A title."""

    model_config = sample(title="Contacts")
    title: str = Field(max_length=TITLE_CHARS_MAX * 2, description="Empty: it is called by what was said first again.")


class SpeakerAnswer(Answer):
    """A workflow that one can talk to."""

    model_config = sample(
        id="talk",
        name="Talk",
        description="Answers questions.",
        conversational=True,
        field="message",
        files=["picture"],
    )
    id: str
    name: str | dict[str, str]
    description: str | dict[str, str] | None
    conversational: bool = Field(description="It knows what was said before.")
    field: str = Field(description="The field of its input that a message is.")
    files: list[str] = Field(description="Fields of its input that take files.")


class SpeakerList(Answer):
    """Workflows that one can talk to."""

    model_config = sample(
        workflows=[
            {"id": "talk", "name": "Talk", "description": None, "conversational": True, "field": "message", "files": []}
        ],
        next=None,
    )
    workflows: list[SpeakerAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class SessionAnswer(Answer):
    """A conversation: what was said in it, and its turns."""

    model_config = sample(
        sessionId="s1",
        closed=False,
        messages=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning."}],
        executions=[ENTRY],
        openTurn=None,
    )
    session_id: str
    closed: bool
    messages: list[JsonValue] = Field(description="Oldest first.")
    executions: list[ExecutionEntry] = Field(description="Its turns, newest first; at most 200.")
    open_turn: str | None = Field(description="The turn that is under way, or waits for somebody.")


class DeletedAnswer(Answer):
    """What is gone."""

    model_config = sample(deleted=[EXECUTION_ID])
    deleted: list[str]


@router.get("/api/chat/workflows", responses=answers(SpeakerList), summary="List whom one can talk to")
async def speaking(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    search: Words = "",
    id: Annotated[list[str] | None, Query(max_length=NAMES_MAX, description="Only these.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """The workflows that the caller may see and that take a text, by name: conversational ones, and those with one
    required field. With `search` only those with all these words in id, name, description or tags."""
    page = await speakers_page(desk.app.context, caller, words=search, ids=id, after=after, limit=limit)
    return JsonReply({"workflows": [*page.entries], "next": page.next})


@router.get("/api/sessions", responses=answers(ConversationList, "place-invalid"), summary="List conversations")
async def list_(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    everyone: Annotated[bool, Query(description="Not only the caller's. For admins.")] = False,
    workflow: Of = None,
    q: Annotated[
        str | None, Query(max_length=1000, description="Only those with all these words in a turn, or in the title.")
    ] = None,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the page before.")] = None,
    limit: Limit = 50,
) -> Response:
    """Those that the caller began, on whichever way. A search finds turns that have ended, on one page."""
    if everyone:
        caller.must_have("admin", "see the conversations of others")
    if q is not None:
        found = await found_conversations(desk.app.context, caller, q, everyone=everyone, limit=limit)
        return JsonReply({"sessions": [_entry(one) for one in found], "next": None})
    page = await conversations_page(
        desk.app.context, caller, everyone=everyone, workflow=workflow, before=before, limit=limit
    )
    return JsonReply({"sessions": [_entry(one) for one in page.conversations], "next": page.next})


@router.get("/api/sessions/{id}", responses=answers(SessionAnswer, "unknown-session"), summary="Read a conversation")
async def read(desk: CurrentServer, caller: CurrentCaller, id: Session) -> Response:
    """For whoever began it, and for admins."""
    await must_see_session(desk.app.context, caller, id)
    return JsonReply(await conversation_view(desk.app.context, id))


@router.patch(
    "/api/sessions/{id}",
    responses=answers(ConversationEntry, "unknown-session", "input-invalid", "revision-moved", body=True),
    summary="Give a conversation a title",
)
async def rename(
    desk: CurrentServer, caller: Operator, id: Session, body: TitleBody, if_match: IfMatch = None
) -> Response:
    """For whoever began it, and for admins. `etag` in a list of conversations is that of its title."""
    await must_see_session(desk.app.context, caller, id)
    mark = await title_mark(desk.app.context, id)
    after = held(if_match, etag_of(mark), mark, moved(f"the title of {id!r}"))
    told = _entry(await entitle(desk.app.context, caller, id, body.title, after=after))
    return JsonReply(told, headers={"etag": str(told["etag"])})


@router.delete(
    "/api/sessions/{id}",
    responses=answers(DeletedAnswer, "unknown-session", "execution-unfinished"),
    summary="Delete a conversation",
)
async def delete(desk: CurrentServer, caller: Operator, id: Session) -> Response:
    """For good: what was said, its executions, and what it remembered. All its executions must have ended. For whoever
    began it, and for admins."""
    await must_see_session(desk.app.context, caller, id)
    return JsonReply({"deleted": [*await desk.app.storage.delete_session(id)]})


def _entry(conversation: JsonObject) -> JsonObject:
    return {
        **{name: said for name, said in conversation.items() if name != "mark"},
        "etag": etag_of(str(conversation["mark"])),
    }
