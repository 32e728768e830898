"""Conformance suite of leaders, as functions for any address. See `testing.journals`."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from pointsman.store.errors import LeaderExists
from pointsman.testing.journals import ONE, Rule, opened, refused, row_of

NOT_YET_S: Final = 0.01


async def a_store_has_one_keeper_who_can_step_back(url: str) -> None:
    async with opened(url) as store:
        first = await store.keep("first")
        (why,) = await asyncio.gather(store.keep("second"), return_exceptions=True)
        assert isinstance(why, LeaderExists)
        assert "'first', since 20" in str(why), "it says who keeps the store, and since when"
        await store.journal.append(ONE, row_of(1))
        await first.release()
        await first.release()
        assert not first.lost.is_set(), "who steps back has lost nothing"
        second = await store.keep("second")
        assert (second.holder, second.epoch > first.epoch) == ("second", True)
        await store.journal.append(ONE, row_of(2))
        await store.effects.record(ONE, "write#1", 1, "paid")
        await store.memory.put("session", "ann", "name", "Ann")


async def who_stands_by_takes_over_when_the_keeper_steps_back(url: str) -> None:
    async with opened(url) as store:
        first = await store.keep("first")
        waiting = asyncio.ensure_future(store.keep("second", wait=True))
        await asyncio.wait([waiting], timeout=NOT_YET_S)
        assert not waiting.done()
        await first.release()
        assert (await waiting).epoch > first.epoch


KEEPER_RULES: Final[tuple[Rule, ...]] = (
    a_store_has_one_keeper_who_can_step_back,
    who_stands_by_takes_over_when_the_keeper_steps_back,
)


async def two_openings_have_one_keeper_and_the_other_may_write_beside_it(url: str) -> None:
    async with opened(url) as one, opened(url) as other:
        await one.keep("one")
        assert await refused(other.keep("other"), LeaderExists)
        await one.journal.append(ONE, row_of(1))
        await other.journal.append(ONE, row_of(2))
        await one.journal.append(ONE, row_of(3))
        waiting = asyncio.ensure_future(other.keep("other", wait=True))
        await one.close()
        assert (await waiting).holder == "other"
        await other.journal.append(ONE, row_of(4))


async def a_keeper_that_is_killed_makes_room(url: str) -> None:
    program = f"import asyncio, pointsman.testing.leaders as k; asyncio.run(k.keep_until_killed({url!r}))"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    epoch = int(await child.stdout.readline())
    async with opened(url) as store:
        assert await refused(store.keep("here"), LeaderExists)
        waiting = asyncio.ensure_future(store.keep("here", wait=True))
        await asyncio.wait([waiting], timeout=NOT_YET_S)
        assert not waiting.done()
        child.kill()
        assert (await waiting).epoch == epoch + 1
        await child.wait()
        await store.journal.append(ONE, row_of(2))


async def keep_until_killed(url: str) -> None:
    """Become the leader, write a row, print the epoch, and wait."""
    async with opened(url) as store:
        keep = await store.keep("child")
        await store.journal.append(ONE, row_of(1))
        sys.stdout.write(f"{keep.epoch}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


DURABLE_KEEPER_RULES: Final[tuple[Rule, ...]] = (
    two_openings_have_one_keeper_and_the_other_may_write_beside_it,
    a_keeper_that_is_killed_makes_room,
)
