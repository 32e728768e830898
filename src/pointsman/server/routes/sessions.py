"""Operations on conversations: list, read, rename, delete."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Query, Response
from pydantic import Field

from pointsman.chat.conversations import TITLE_CHARS_MAX, ConversationEntry, ConversationList, ConversationView
from pointsman.chat.verbs import ConversationVerbs
from pointsman.chat.workflows import ChatWorkflowPage
from pointsman.executions.deletion import DeletedExecutions
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import NAMES_MAX, After, IfMatch, Limit, Of, Words
from pointsman.server.schemas.answers import ENTRY, EXECUTION_ID, answers, example
from pointsman.server.schemas.requests import Body, sample

router = Operations(tags=["sessions"])


CONVERSATION: Final[ConversationEntry] = {
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

SessionId = Annotated[str, Path(min_length=1, max_length=500, description="The session's id.")]


example(ConversationEntry, CONVERSATION)
example(ConversationList, {"sessions": [CONVERSATION], "next": None})
example(
    ChatWorkflowPage,
    {
        "workflows": [
            {
                "id": "talk",
                "revision": 1,
                "name": "Talk",
                "names": None,
                "description": None,
                "version": None,
                "dialect": "native",
                "builtIn": False,
                "createdAt": 1_763_700_000.0,
                "author": "ada",
                "digest": "9f86d081884c7d65",
                "enabled": True,
                "tags": [],
                "published": None,
                "label": None,
                "folder": "",
                "conversational": True,
                "field": "message",
                "files": [],
            }
        ],
        "next": None,
    },
)
example(
    ConversationView,
    {
        "sessionId": "s1",
        "closed": False,
        "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good morning."}],
        "executions": [ENTRY],
        "openTurn": None,
    },
)
example(DeletedExecutions, {"deleted": [EXECUTION_ID]})


class TitleBody(Body):
    """A title."""

    model_config = sample(title="Contacts")
    title: str = Field(
        max_length=TITLE_CHARS_MAX * 2, description="The title; empty: the beginning of the first message."
    )


@router.get(
    "/api/chat/workflows",
    verb=ConversationVerbs.workflows,
    responses=answers(ChatWorkflowPage),
    summary="List workflows to chat with",
)
async def list_chat_workflows(
    *,
    session: CallerSession,
    search: Words = "",
    id: Annotated[
        list[str] | None, Query(max_length=NAMES_MAX, description="Only conversations with these ids.")
    ] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Workflows that the caller may see and that accept a text, by name:

    conversational ones, and those with one required field. With `search`, only workflows with all these words in id,
    name, description or tags.
    """
    return JsonReply(await session.conversations.workflows(search=search, ids=id, after=after, limit=limit))


@router.get(
    "/api/sessions",
    verb=ConversationVerbs.list,
    responses=answers(ConversationList, "position-invalid"),
    summary="List conversations",
)
async def list_(
    *,
    session: CallerSession,
    everyone: Annotated[
        bool, Query(description="Include the conversations of all people. Requires the role admin.")
    ] = False,
    workflow: Of = None,
    q: Annotated[
        str | None,
        Query(max_length=1000, description="Only conversations with all these words in a turn or in the title."),
    ] = None,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the previous page.")] = None,
    limit: Limit = 50,
) -> Response:
    """Conversations that the caller started. A search finds turns that have ended, on one page."""
    if q is not None:
        search_page = await session.conversations.search(q, everyone=everyone, limit=limit)
        return JsonReply({"sessions": search_page, "next": None})
    page = await session.conversations.list(everyone=everyone, workflow=workflow, before=before, limit=limit)
    return JsonReply(page)


@router.get(
    "/api/sessions/{id}",
    verb=ConversationVerbs.get,
    responses=answers(ConversationView, "unknown-session"),
    summary="Read a conversation",
)
async def read(session: CallerSession, id: SessionId) -> Response:
    """Allowed for the person who started it, and for admins."""
    return JsonReply(await session.conversations.get(id))


@router.patch(
    "/api/sessions/{id}",
    verb=ConversationVerbs.rename,
    responses=answers(ConversationEntry, "unknown-session", "input-invalid", "revision-moved", body=True),
    summary="Set the title of a conversation",
)
async def rename(session: CallerSession, id: SessionId, body: TitleBody, if_match: IfMatch = None) -> Response:
    """Allowed for the person who started it, and for admins.

    The list of conversations contains the `etag` of the title.
    """
    renamed = await session.conversations.rename(id, body.title, match=if_match)
    return JsonReply(renamed, headers={"etag": renamed["etag"]})


@router.delete(
    "/api/sessions/{id}",
    verb=ConversationVerbs.delete,
    responses=answers(DeletedExecutions, "unknown-session", "execution-unfinished"),
    summary="Delete a conversation",
)
async def delete(session: CallerSession, id: SessionId) -> Response:
    """Delete a conversation permanently:

    its messages, executions and memory. All its executions must have ended. Allowed for the person who started it, and
    for admins.
    """
    return JsonReply({"deleted": await session.conversations.delete(id)})
