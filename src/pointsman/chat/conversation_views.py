"""A conversation as JSON: what was said in it, and the executions that are its turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pointsman.executions.inputs import check_session
from pointsman.executions.lists import summary_view
from pointsman.operations.deletion import unknown_session
from pointsman.store.records import ExecutionQuery
from pointsman.values import JsonObject

if TYPE_CHECKING:
    from pointsman.app import Pointsman

TURNS_MAX: Final = 200


async def conversation_view(app: Pointsman, session: str) -> JsonObject:
    """Its messages and its turns. Raises `UnknownSession`, and `InputInvalid` for what cannot be the name of one."""
    check_session(session)
    turns = await app.executions(ExecutionQuery(session=session, limit=TURNS_MAX))
    if not turns:
        raise unknown_session(session)
    said = await app.storage.conversation(session)
    return {
        "sessionId": session,
        "closed": said.closed,
        "messages": [*said.messages],
        "executions": [summary_view(one) for one in turns],
        "openTurn": await app.storage.open_turn(session),
    }
