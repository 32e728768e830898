"""Turns: each is one execution; what was said in one that completed belongs to its session.

    message ─▶ closed? a turn under way? ─▶ the next turn, under the name of its place in the conversation
                                                │ completed: what was said joins the session
                                                └ failed, cancelled: the conversation is as it was

The name follows from the session and what was said so far: of two who say something at the same moment one begins the
turn, and the other is told so. Nothing is locked.
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
"""Sub-workflows are of the session too; a turn under way, or the last one, is among so many executions."""
UNFINISHED: Final = frozenset({"pending", "running", "waiting", "paused", "interrupted"})


class SessionBusy(CallerError):
    """A turn of this conversation is under way. What was said now was not taken."""

    code: ClassVar[str] = "session-busy"


class SessionTurn(NamedTuple):
    """Where a conversation goes on."""

    name: ExecutionId
    history: tuple[Json, ...]


async def next_turn(runtime: LocalRuntime, session: str, *, prefix: str = "exec-") -> SessionTurn:
    """`prefix`: how its name begins. Raises `SessionClosed`, `SessionBusy`."""
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
    """The turn that has not ended."""
    query = ExecutionQuery(session=session, statuses=UNFINISHED, limit=LOOKED_AT)
    for one in await runtime.store.executions.list(query):
        if one.parent is None and is_turn(await runtime.load(one.execution)):
            return one.execution
    return None


def is_turn(state: ExecutionState) -> bool:
    """Executions that only share a session's memory say nothing in its conversation."""
    return state.session is not None and state.parent is None and isinstance(state.options.get("history"), int)


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
    """Its process may have died between its end and what was said in it joining the session."""
    ended = ExecutionQuery(session=session, statuses=frozenset({"completed"}), limit=LOOKED_AT)
    for one in await runtime.store.executions.list(ended):
        state = await runtime.load(one.execution)
        if not is_turn(state):
            continue
        said, before = await runtime.store.sessions.load(session), state.options["history"]
        if isinstance(before, int) and len(said.messages) <= before:
            with suppress(SessionMoved, SessionClosed):  # another turn was faster
                await save_turn(runtime.store, state)
        return


async def save_turn(store: Store, state: ExecutionState) -> None:
    """A completed turn is added to its session, which it may close. Safe to say again after a crash."""
    if not is_turn(state) or state.status != "completed":
        return
    known = state.options["history"]
    messages = state.root.data.root.get("messages")
    if state.session is None or not isinstance(known, int) or not isinstance(messages, list):
        return
    await store.sessions.append(state.session, tuple(messages[known:]), after=known)
    if state.closes_session:
        await store.sessions.close(state.session)
