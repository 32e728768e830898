"""Chats of published workflows: a visitor without an account converses with a workflow, as its publisher.

    message ─▶ a session of the publisher ─▶ one execution for each message ─▶ its answer, streamed
               └ a signed name: its holder can read the conversation with the link, and continue it

A visitor never answers gates: they ask the people of this server. Until one of them answers, the visitor sees that the
workflow waits, but not the question. Errors, reasoning and the names of nodes are not shown either.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Final, cast

from typing_extensions import TypedDict

from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.subjects import is_conversational
from pointsman.chat.adapter import AnswerFailed, ChatDelta, ChatRequest, StreamedAnswer, start_turn
from pointsman.chat.formatting import output_text, spoken_messages
from pointsman.context import AppContext
from pointsman.executions.children import view_of
from pointsman.executions.inputs import text_field
from pointsman.executions.views import ExecutionView
from pointsman.store.records import ExecutionQuery
from pointsman.triggers.publications import (
    ENDED,
    NotPublished,
    Publication,
    RunStatus,
    not_published,
    signed_name,
    signed_part,
    startable_definition,
)
from pointsman.values import Json, JsonObject

TRIGGER: Final = "chat-page"
"""Kind of the trigger of its executions."""
PREFIX: Final = "visitor-"
"""Begins the names of the sessions, so that no signed name of a run is one."""
TURNS_MAX: Final = 50
"""A visitor reads at most this many turns, the newest."""


class ChatPageView(TypedDict):
    """A published chat, for visitors."""

    title: str
    text: str
    greeting: str
    suggestions: list[str]
    """Messages to send with one click."""
    login: bool
    """Whether visitors must be logged in."""


class VisitorTurn(TypedDict):
    """A message of a visitor and its answer."""

    message: str
    answer: str
    """Empty until the turn has completed."""
    status: RunStatus
    waiting: bool
    """Whether it waits for a person."""


class VisitorConversation(TypedDict):
    """The conversation of a visitor."""

    turns: list[VisitorTurn]
    """Oldest first; at most 50."""


class VisitorAnswer:
    """The answer to a message of a visitor, while it is produced."""

    def __init__(self, conversation: str, answer: StreamedAnswer) -> None:
        self.conversation = conversation
        """Signed name of the conversation."""
        self.answer = answer

    @property
    def execution(self) -> str:
        return self.answer.execution.id

    async def pieces(self) -> AsyncIterator[ChatDelta]:
        """Yield the words of the answer, and silences. Failures end the answer: `turn` has the status."""
        try:
            async for piece in self.answer.pieces():
                if piece.kind != "thought":
                    yield piece
        except AnswerFailed:
            return


async def chat_page_view(app: AppContext, publication: Publication) -> ChatPageView:
    """Return the chat for visitors. Raises `NotPublished` if it is not published, or if the workflow is gone or
    switched off."""
    if not publication.chat:
        raise not_published()
    workflow = await startable_definition(app, publication)
    return {
        "title": publication.title or str(workflow.name or workflow.id),
        "text": publication.text,
        "greeting": publication.greeting,
        "suggestions": [*publication.suggestions],
        "login": publication.login,
    }


async def send_message(
    app: AppContext, publisher: Caller, publication: Publication, message: str, *, conversation: str | None, key: str
) -> VisitorAnswer:
    """Start a turn for a message, in a new conversation or in the one of this signed name. Repeated calls with one
    `key` start one turn. Raises `NotPublished`, `SessionBusy` while the previous turn runs or waits, and the errors of
    `start_as`."""
    definition = await startable_definition(app, publication)
    session = f"{PREFIX}{secrets.token_hex(16)}" if conversation is None else _session(publication, conversation)
    request = ChatRequest(publication.workflow, [{"role": "user", "content": message}], session=session)
    trigger: JsonObject = {"kind": TRIGGER, "id": publication.workflow}
    try:
        answer = await start_turn(
            app, publisher, request, definition, trigger=trigger, key=f"chat {publication.token} {key}"
        )
    except NotAllowed:
        raise _unknown_conversation() from None  # It belongs to a former publisher.
    answer.asks = False
    return VisitorAnswer(signed_name(publication, session), answer)


async def conversation_for_visitor(app: AppContext, publication: Publication, conversation: str) -> VisitorConversation:
    """Return a conversation by its signed name. Raises `NotPublished` for a name that this publication did not sign."""
    session = _session(publication, conversation)
    definition = await startable_definition(app, publication)
    field = text_field(definition, definition.input_schema)
    newest = await app.store.executions.list(ExecutionQuery(session=session, limit=TURNS_MAX))
    is_spoken = is_conversational(definition)
    views = [await view_of(app, one.execution) for one in reversed(newest) if one.parent is None]
    return {"turns": [_turn(view, field, is_spoken=is_spoken) for view in views]}


def _session(publication: Publication, conversation: str) -> str:
    session = signed_part(publication, conversation)
    if session is None or not session.startswith(PREFIX):
        raise _unknown_conversation()
    return session


def _unknown_conversation() -> NotPublished:
    return NotPublished("this conversation was not started here", hint="Start a new conversation.")


def _turn(view: ExecutionView, field: str, *, is_spoken: bool) -> VisitorTurn:
    status = cast("RunStatus", view["status"] if view["status"] in ENDED else "running")
    given = view["input"].get(field) if isinstance(view["input"], dict) else None
    return {
        "message": given if isinstance(given, str) else "",
        "answer": _answer(view, is_spoken=is_spoken) if status == "completed" else "",
        "status": status,
        "waiting": bool(view["waiting"]),
    }


def _answer(view: ExecutionView, *, is_spoken: bool) -> str:
    """Return what the agents of a conversational workflow wrote in this turn, else the output."""
    state = view["state"]
    messages = spoken_messages(state.get("messages")) if is_spoken and isinstance(state, dict) else []
    last_turn: list[str] = []
    for message in reversed(cast("list[dict[str, Json]]", messages)):
        if message["role"] == "user":
            break
        last_turn.insert(0, str(message["content"]))
    if last_turn:
        return "\n\n".join(last_turn)
    return "" if view["output"] is None else output_text(view["output"])
