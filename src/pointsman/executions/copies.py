"""Copies: executions whose rows come from elsewhere, such as forks and imports.

    announced ─▶ rows ─▶ rows ─▶ the last row, from which on lists show it ─▶ announcement removed
         └─ a crash ─▶ rows that no list shows, and an entry that names them: `gc` deletes both

One announcement names all executions that are copied together; the copy is finished when lists show the first of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import msgspec

from pointsman.context import AppContext
from pointsman.executions.deletion import erase
from pointsman.executions.files import delete_artifacts
from pointsman.ports import Clock
from pointsman.store.api import Store
from pointsman.store.errors import JournalMoved
from pointsman.values import ExecutionId

KIND: Final = "copies"
UNDER_WAY_S: Final = 3600.0
"""A copy that takes longer than this many seconds was interrupted."""


class Copy(NamedTuple):
    """The content of an announcement."""

    executions: tuple[ExecutionId, ...]
    since: float


@asynccontextmanager
async def announced(store: Store, clock: Clock, executions: Sequence[ExecutionId]) -> AsyncGenerator[None, None]:
    """Announce copies for the duration of the block. The first execution must be listed last."""
    copy = Copy(tuple(executions), clock.now())
    await store.entries.put(KIND, copy.executions[0], [[*copy.executions], copy.since])
    yield
    await store.entries.delete(KIND, copy.executions[0])


async def interrupted(app: AppContext) -> list[Copy]:
    """Return the copies that were announced long ago and are not finished."""
    begun = [msgspec.convert(entry.value, Copy) for entry in await app.store.entries.list(KIND)]
    return [copy for copy in begun if copy.since < app.clock.now() - UNDER_WAY_S]


async def undo_interrupted(app: AppContext) -> int:
    """Delete what interrupted copies left, and return their number."""
    undone = [await undo(app, copy) for copy in await interrupted(app)]
    return sum(undone)


async def make_room(app: AppContext, execution: ExecutionId) -> None:
    """Delete what an interrupted copy of that name left, whatever its age, before the copy is repeated."""
    entry = await app.store.entries.find(KIND, execution)
    if entry is not None:
        await undo(app, msgspec.convert(entry.value, Copy))


async def undo(app: AppContext, copy: Copy) -> bool:
    """Delete a copy, unless it is finished or being written. Return whether it was deleted. Safe to repeat after a
    crash."""
    store, first = app.store, copy.executions[0]
    last = {one: await store.journal.last(one) for one in copy.executions}
    finished = await store.executions.find(first) is not None
    if not finished:
        try:
            for one in copy.executions:
                await erase(store, one, at=last[one])
                await delete_artifacts(app.settings, one)
        except JournalMoved:
            return False
    await store.entries.delete(KIND, first)
    return not finished
