"""JSON view of a conversation: its messages, and the executions that are its turns."""

from __future__ import annotations

from typing import Final

from pointsman.auth.subjects import check_session, unknown_session
from pointsman.context import AppContext
from pointsman.executions.lists import summary_view
from pointsman.executions.session_turns import finish_last_turn, open_turn
from pointsman.store.records import ExecutionQuery
from pointsman.values import JsonObject, json_of

TURNS_MAX: Final = 200


async def conversation_view(app: AppContext, session: str) -> JsonObject:
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
        "executions": [json_of(summary_view(one)) for one in turns],
        "openTurn": await open_turn(app.runtime, session),
    }
