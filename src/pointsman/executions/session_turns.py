"""Session turns: each turn is one execution; the messages of a completed turn are added to its session.

    message ─▶ closed? a turn in progress? ─▶ the next turn, named by its position in the conversation
                                                 │ completed: its messages are added to the session
                                                 └ failed, cancelled: the conversation stays as it was

The id follows from the session and the number of its messages: of two callers that send a message at the same moment,
one starts the turn and the other gets `SessionBusy`. No lock is needed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

from pointsman.engine.state import ENDED, ExecutionState
from pointsman.errors import CallerError
from pointsman.executions.ids import id_for_key
from pointsman.runtime.local import LocalRuntime
from pointsman.store.api import Store
from pointsman.store.errors import SessionClosed, SessionMoved
from pointsman.store.records import ExecutionQuery
from pointsman.values import ExecutionId, Json

LOOKED_AT: Final = 50
"""Sub-workflows belong to the session too; the turn in progress, or the last one, is among this many executions."""
UNFINISHED: Final = frozenset({"pending", "running", "waiting", "paused", "interrupted"})


class SessionBusy(CallerError):
    """A turn of this conversation is in progress. The new message was not accepted."""

    code: ClassVar[str] = "session-busy"


class SessionTurn(NamedTuple):
    """The id of the next turn, and the messages before it."""

    name: ExecutionId
    history: tuple[Json, ...]


async def next_turn(runtime: LocalRuntime, session: str, *, prefix: str = "exec-") -> SessionTurn:
    """Return the next turn. `prefix`: of its id. Raises `SessionClosed`, `SessionBusy`."""
    await finish_last_turn(runtime, session)
    said = await runtime.store.sessions.load(session)
    if said.closed:
        raise closed(session)
    under_way = await open_turn(runtime, session)
    if under_way is not None:
        raise busy(session, under_way)
    tried = 0
    while True:
        name = id_for_key("turn", f"{session}|{len(said.messages)}|{tried}", prefix=prefix)
        if not await runtime.journal.last(name):
            return SessionTurn(name, said.messages)
        if (await runtime.load(name)).status not in ENDED:
            raise busy(session, name)
        tried += 1


async def open_turn(runtime: LocalRuntime, session: str) -> ExecutionId | None:
    """Return the turn that has not ended."""
    query = ExecutionQuery(session=session, statuses=UNFINISHED, limit=LOOKED_AT)
    for one in await runtime.store.executions.list(query):
        if one.parent is None and is_turn(await runtime.load(one.execution)):
            return one.execution
    return None


def is_turn(state: ExecutionState) -> bool:
    """Return whether the execution is a turn: executions that only share a session's memory add no messages to it."""
    return (
        state.setup.session is not None
        and state.setup.parent is None
        and isinstance(state.setup.options.get("history"), int)
    )


def busy(session: str, execution: ExecutionId) -> SessionBusy:
    return SessionBusy(
        f"in the conversation {session!r} a turn is under way: {execution}",
        hint=f"Wait until it ends, answer what it asks, or end it: pointsman cancel {execution}",
    )


def closed(session: str) -> SessionClosed:
    return SessionClosed(
        f"the conversation {session!r} has ended",
        hint="Reopen it (`pointsman chat --reopen`), or start another one.",
    )


async def finish_last_turn(runtime: LocalRuntime, session: str) -> None:
    """Save the last completed turn, if its process died before adding its messages to the session."""
    ended = ExecutionQuery(session=session, statuses=frozenset({"completed"}), limit=LOOKED_AT)
    for one in await runtime.store.executions.list(ended):
        state = await runtime.load(one.execution)
        if not is_turn(state):
            continue
        said, before = await runtime.store.sessions.load(session), state.setup.options["history"]
        if isinstance(before, int) and len(said.messages) <= before:
            with suppress(SessionMoved, SessionClosed):  # another turn was faster
                await save_turn(runtime.store, state)
        return


async def save_turn(store: Store, state: ExecutionState) -> None:
    """Add the messages of a completed turn to its session, and close it if the turn says so. Idempotent, so it can be
    repeated after a crash."""
    if not is_turn(state) or state.status != "completed":
        return
    known = state.setup.options["history"]
    messages = state.root.data.root.get("messages")
    if state.setup.session is None or not isinstance(known, int) or not isinstance(messages, list):
        return
    await store.sessions.append(state.setup.session, tuple(messages[known:]), after=known)
    if state.outcome.closes_session:
        await store.sessions.close(state.setup.session)
