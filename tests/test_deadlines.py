"""Deadlines of tasks: one timer for all of them, and the same rules as `asyncio.timeout`."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from pointsman.deadlines import Deadlines, wait_uninterrupted


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_block_that_takes_longer_than_its_limit_raises_a_timeout_error() -> None:
    limit = Deadlines().limit(0.001)
    with pytest.raises(TimeoutError), limit:
        await for_ever()
    assert limit.expired
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_each_task_has_its_own_deadline() -> None:
    deadlines = Deadlines()

    async def limited(seconds: float | None, work: float) -> bool:
        limit = deadlines.limit(seconds)
        try:
            with limit:
                await asyncio.sleep(work)
        except TimeoutError:
            return limit.expired
        return False

    found = await asyncio.gather(limited(60.0, 0.0), limited(0.001, 60.0), limited(None, 0.0), limited(0.002, 60.0))
    assert found == [False, True, False, True]


async def test_a_cancellation_from_outside_stays_a_cancellation() -> None:
    deadlines = Deadlines()

    async def limited() -> None:
        with deadlines.limit(60.0):
            await for_ever()

    task = asyncio.create_task(limited())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_from_outside_wins_over_the_deadline() -> None:
    deadlines = Deadlines()

    async def limited() -> None:
        with deadlines.limit(0.0):
            await for_ever()

    task = asyncio.create_task(limited())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_timeout_error_of_the_work_itself_does_not_count_as_expired() -> None:
    limit = Deadlines().limit(60.0)
    with pytest.raises(TimeoutError, match="own"), limit:
        raise TimeoutError("own")
    assert not limit.expired


async def test_work_that_swallows_its_timeout_leaves_the_task_uncancelled() -> None:
    limit = Deadlines().limit(0.001)
    with limit, suppress(asyncio.CancelledError):
        await for_ever()
    task = asyncio.current_task()
    assert task is not None
    assert (limit.expired, task.cancelling()) == (True, 0)
    await asyncio.sleep(0)


async def test_an_uninterrupted_wait_ends_with_its_event_and_then_raises_the_cancellation() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_uninterrupted(event.wait))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    event.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
