"""Key selection: pacing, cool-down, fail-over, fairness. Time is virtual, and nothing is sent."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from pointsman.engine.failures import Failure
from pointsman.models.key_pool import PATIENCE_S, REFUSED_S, KeyPool, KeysExhausted, Pacing
from pointsman.testing.clock import run_virtually

LIMITED = Failure(code="model-rate-limited", message="slow down", retryable=True)
REFUSED = Failure(code="model-unauthorized", message="who are you?")


class Calls:
    """Calls that take a while, with their start and key."""

    def __init__(self, pool: KeyPool, *, seconds: float = 0.0) -> None:
        self.pool = pool
        self.seconds = seconds
        self.began: list[tuple[float, int, int]] = []
        """Start time, key and number of each call."""
        self.open = 0
        self.open_max = 0

    async def call(self, number: int = 0, index: int | None = None) -> int:
        key = await self.pool.take(index)
        self.began.append((asyncio.get_running_loop().time(), key, number))
        self.open += 1
        self.open_max = max(self.open, self.open_max)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.open -= 1
            self.pool.give_back(key)
        return key

    @property
    def order(self) -> list[int]:
        return [number for _, _, number in self.began]

    def gaps(self, key: int | None = None) -> list[float]:
        """Return the intervals between calls, of all keys or of one."""
        times = [at for at, used, _ in self.began if key is None or used == key]
        return [after - before for before, after in pairwise(times)]


def pool(keys: int = 3, **pacing: float | bool | None) -> KeyPool:
    return KeyPool("house", keys=keys, pacing=Pacing(**pacing))  # pyright: ignore[reportArgumentType] - a shorthand


@pytest.mark.requirement("S2-69", "S2-70", "S2-68")
def test_two_hundred_calls_over_three_paced_keys_keep_rate_and_order() -> None:
    async def story() -> Calls:
        calls = Calls(pool(interval_s=0.4, key_interval_s=1.0), seconds=3.0)
        await asyncio.gather(*(calls.call(number, number % 3) for number in range(200)))
        return calls

    calls = run_virtually(story())
    assert sorted(calls.order) == [*range(200)]
    assert min(calls.gaps()) >= 0.4
    for key in range(3):
        assert min(calls.gaps(key)) >= 1.0
        own = [number for _, used, number in calls.began if used == key]
        assert own == [*range(key, 200, 3)], "who comes first to a key is served first"
    begin, end = calls.began[0][0], calls.began[-1][0]
    assert end - begin < 199 * 0.4 + 1.0, "no turn is left unused"
    assert calls.open_max > 3, "a paced call does not wait for the one before it to end"


def test_calls_without_a_key_use_the_longest_idle_one() -> None:
    async def story() -> list[int]:
        calls = Calls(pool())
        return [await calls.call(index=index) for index in (None, 1, None, None, None)]

    assert run_virtually(story()) == [0, 1, 2, 0, 1]


@pytest.mark.requirement("S2-O4", "S2-72")
def test_rotation_alternates_keys_and_fixed_uses_its_index() -> None:
    async def story(rotates: bool) -> list[int]:
        calls = Calls(pool(rotates=rotates))
        return [await calls.call(index=0) for _ in range(4)]

    assert run_virtually(story(rotates=True)) == [0, 1, 2, 0]
    assert run_virtually(story(rotates=False)) == [0, 0, 0, 0]


def test_the_operator_bounds_the_rest_of_a_key() -> None:
    async def story() -> tuple[bool, bool]:
        keys = pool(1, rest_s_max=60.0)
        keys.rest(0, 86_400.0, Failure(code="model-rate-limited", message="come back tomorrow"))
        before = keys.is_usable(0)
        await asyncio.sleep(60.0 - PATIENCE_S)
        return before, keys.is_usable(0)

    assert run_virtually(story()) == (False, True)


def test_a_key_limits_its_open_calls_and_serves_in_order() -> None:
    async def story() -> Calls:
        calls = Calls(pool(2, concurrency=2), seconds=1.0)
        await asyncio.gather(*(calls.call(number) for number in range(9)))
        return calls

    calls = run_virtually(story())
    assert calls.open_max == 4
    assert calls.order == [*range(9)]


def test_a_call_waiting_for_a_busy_key_does_not_block_other_keys() -> None:
    async def story() -> Calls:
        calls = Calls(pool(2, concurrency=1), seconds=5.0)
        await asyncio.gather(calls.call(0, 0), calls.call(1, 0), calls.call(2, 1))
        return calls

    assert [(at, number) for at, _, number in run_virtually(story()).began] == [
        (pytest.approx(0), 0),
        (pytest.approx(0), 2),
        (pytest.approx(5), 1),
    ]


def test_calls_with_a_fixed_key_wait_for_its_rest_and_other_calls_skip_it() -> None:
    async def story() -> Calls:
        calls = Calls(pool(2))
        calls.pool.rest(0, 7.0, LIMITED)
        await asyncio.gather(calls.call(0, 0), calls.call(1), calls.call(2))
        return calls

    began = run_virtually(story()).began
    assert [(key, number) for _, key, number in began] == [(1, 1), (1, 2), (0, 0)]
    assert began[-1][0] >= 7.0


def test_a_key_that_rests_too_long_is_replaced_even_for_waiting_calls() -> None:
    async def story() -> list[int]:
        calls = Calls(pool(3))
        calls.pool.rest(1, 5.0, LIMITED)
        waiting = asyncio.create_task(calls.call(0, 1))
        await asyncio.sleep(1)
        calls.pool.rest(1, REFUSED_S, REFUSED)
        found = [await waiting, await calls.call(1, 1)]
        await asyncio.sleep(REFUSED_S)
        return [*found, await calls.call(2, 1)]

    assert run_virtually(story()) == [2, 2, 1]


def test_without_a_key_available_soon_calls_fail_immediately_with_the_wait() -> None:
    async def story() -> tuple[Failure, Failure]:
        calls = Calls(pool(2))
        calls.pool.rest(0, REFUSED_S, REFUSED)
        calls.pool.rest(1, PATIENCE_S + 15, LIMITED)
        with pytest.raises(KeysExhausted, match="no key of 'house'") as limited:
            await calls.call(0, 0)
        calls.pool.rest(1, REFUSED_S, REFUSED)
        with pytest.raises(KeysExhausted) as refused:
            await calls.call(0)
        assert calls.began == []
        return limited.value.failure, refused.value.failure

    limited, refused = run_virtually(story())
    assert (limited.code, limited.retryable, limited.retry_after_s) == ("model-rate-limited", True, 45)
    assert "key 0: model-unauthorized, rests for 600 s; key 1: model-rate-limited, rests for 45 s" in limited.message
    assert (refused.code, refused.retryable) == ("model-unauthorized", False)


def test_a_key_has_a_maximum_of_calls() -> None:
    async def story() -> tuple[list[int], Failure]:
        calls = Calls(pool(2, calls_max=2))
        paid = [await calls.call(index=0) for _ in range(4)]
        with pytest.raises(KeysExhausted) as spent:
            await calls.call(index=0)
        return paid, spent.value.failure

    paid, failure = run_virtually(story())
    assert paid == [0, 0, 1, 1]
    assert failure.code == "model-key-budget-spent"


def test_a_cancelled_waiter_does_not_use_a_turn() -> None:
    async def story() -> Calls:
        calls = Calls(pool(1, interval_s=1.0, concurrency=1), seconds=0.5)
        tasks = [asyncio.create_task(calls.call(number)) for number in range(6)]
        await asyncio.sleep(1.2)
        tasks[2].cancel()
        tasks[4].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return calls

    calls = run_virtually(story())
    assert calls.order == [0, 1, 3, 5]
    assert calls.gaps() == [pytest.approx(1.0, abs=0.01)] * 3


def test_a_turn_cancelled_on_arrival_goes_to_the_next_waiter() -> None:
    async def story() -> list[int]:
        calls = Calls(pool(1, concurrency=1, calls_max=2))
        key = await calls.pool.take()
        first, second = asyncio.create_task(calls.call(0)), asyncio.create_task(calls.call(1))
        await asyncio.sleep(1)
        calls.pool.give_back(key)
        first.cancel()  # It had been granted the key and had not started.
        await asyncio.gather(first, second, return_exceptions=True)
        return calls.order

    assert run_virtually(story()) == [1]
