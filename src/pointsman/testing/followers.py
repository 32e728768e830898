"""What every store must tell of rows that others write, as functions to run against any address.

See `testing.journals`. A follower is told without a reason now and then: each rule waits until what it waits for is
there.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pointsman.store.api import Store
from pointsman.testing.journals import ONE, Rule, opened, row_of
from pointsman.values import ExecutionId

PATIENCE_S: Final = 60.0


async def until_it_has(store: Store, execution: ExecutionId, seq: int, woken: asyncio.Event) -> None:
    """Read, then wait, then read again: as all who follow."""
    async with asyncio.timeout(PATIENCE_S):
        while await store.journal.last(execution) < seq:
            await woken.wait()
            woken.clear()


async def rows_written_here_are_followed(url: str) -> None:
    async with opened(url) as store:
        woken, ended = asyncio.Event(), asyncio.Event()
        store.follow(ONE, woken.set)
        leave = store.follow(ONE, ended.set)
        for seq in range(1, 4):
            await store.journal.append(ONE, row_of(seq))
            await until_it_has(store, ONE, seq, woken)
        await asyncio.wait_for(ended.wait(), PATIENCE_S)
        leave()
        leave()
        ended.clear()
        woken.clear()
        await store.journal.append(ONE, row_of(4))
        await asyncio.wait_for(woken.wait(), PATIENCE_S)
        assert not ended.is_set(), "who has left is told nothing"


FOLLOWER_RULES: Final[tuple[Rule, ...]] = (rows_written_here_are_followed,)


async def rows_written_elsewhere_are_followed(url: str) -> None:
    other = ExecutionId("exec-other")
    async with opened(url) as here, opened(url) as elsewhere:
        woken = {execution: asyncio.Event() for execution in (ONE, other)}
        for execution, event in woken.items():
            here.follow(execution, event.set)
        for seq in range(1, 6):
            await elsewhere.journal.append(ONE, row_of(seq))
            await until_it_has(here, ONE, seq, woken[ONE])
        await elsewhere.journal.append(other, row_of(1))
        await until_it_has(here, other, 1, woken[other])


async def many_rows_written_elsewhere_at_once_are_followed(url: str) -> None:
    executions = [ExecutionId(f"exec-{number:030}") for number in range(400)]
    async with opened(url) as here, opened(url) as elsewhere:
        woken = asyncio.Event()
        here.follow(executions[-1], woken.set)
        await asyncio.gather(*(elsewhere.journal.append(execution, row_of(1)) for execution in executions))
        await until_it_has(here, executions[-1], 1, woken)


DURABLE_FOLLOWER_RULES: Final[tuple[Rule, ...]] = (
    rows_written_elsewhere_are_followed,
    many_rows_written_elsewhere_at_once_are_followed,
)
