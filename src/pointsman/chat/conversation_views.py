"""JSON view of a conversation: its messages, and the executions that are its turns."""

from __future__ import annotations

from typing import Final

from typing_extensions import TypedDict

from pointsman.auth.subjects import check_session, unknown_session
from pointsman.context import AppContext
from pointsman.executions.lists import ExecutionEntry, summary_view
from pointsman.executions.session_turns import finish_last_turn, open_turn
from pointsman.store.records import ExecutionQuery
from pointsman.values import Json

TURNS_MAX: Final = 200


class ConversationView(TypedDict):
    """A conversation: its messages and its turns."""

    sessionId: str
    closed: bool
    messages: list[Json]
    """Oldest first."""
    executions: list[ExecutionEntry]
    """Its turns, newest first; at most 200."""
    openTurn: str | None
    """The turn that is running or waiting."""


async def conversation_view(app: AppContext, session: str) -> ConversationView:
    """Return the messages and turns of a session. Raises `UnknownSession`, and `InputInvalid` for an invalid session
    name."""
    check_session(session)
    turns = await app.store.executions.list(ExecutionQuery(session=session, limit=TURNS_MAX))
    if not turns:
        raise unknown_session(session)
    await finish_last_turn(app.runtime, session)
    said = await app.store.sessions.load(session)
    return {
        "sessionId": session,
        "closed": said.closed,
        "messages": [*said.messages],
        "executions": [summary_view(one) for one in turns],
        "openTurn": await open_turn(app.runtime, session),
    }
