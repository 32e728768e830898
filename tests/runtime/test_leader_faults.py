"""Faults of the leader: unreachable stores, executions and background work that cannot continue."""

from __future__ import annotations

import asyncio

import pytest

from pointsman.engine.commands import Execute
from pointsman.errors import CallerError
from pointsman.runtime.leader import AGAIN_S, Leader
from pointsman.store.errors import (
    StoreFailed,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreOverloaded,
    StoreReadOnly,
    StoreUnreachable,
)
from pointsman.store.memory import MemoryStore
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.testing.clock import run_virtually
from pointsman.values import ExecutionId, Json
from tests.runtime.test_leader import begun, here, looks


def test_an_execution_that_cannot_be_resumed_is_reported_and_does_not_block_others() -> None:
    async def story() -> None:
        store, troubles = MemoryStore(), list[tuple[str | None, str]]()
        runtime, _, _ = await here(store)
        waits = [await begun(runtime, "waits", number) for number in range(2)]
        await looks(Leader(runtime, runtime.open))

        async def take_up(execution: ExecutionId) -> object:
            if execution == waits[0]:
                raise CallerError("its definition is gone")
            return await runtime.open(execution)

        keeper = Leader(runtime, take_up, tell=lambda name, why: troubles.append((name, str(why))))
        await runtime.clock.sleep_until(runtime.clock.now() + 3601)
        await looks(keeper, 5)
        assert troubles == [(waits[0], "its definition is gone")], "told once, tried again later"
        assert (await runtime.load(waits[1])).status == "completed"

    run_virtually(story())


@pytest.mark.parametrize("fault", [StoreOverloaded, StoreFull, StoreLocked, StoreReadOnly, StoreUnreachable])
def test_an_unavailable_store_is_reported_once_and_retried(
    fault: type[StoreFailed], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        store, troubles = MemoryStore(), list[tuple[str | None, str]]()
        runtime, doing, _ = await here(store)
        execution = await begun(runtime, "waits")
        keeper = Leader(runtime, runtime.open, tell=lambda name, why: troubles.append((name, str(why))))
        keeps = asyncio.create_task(keeper.run())
        list_, began = store.executions.list, runtime.clock.now()

        async def list_unless_away(query: ExecutionQuery) -> list[Summary]:
            if began + 10 < runtime.clock.now() < began + 7200:
                raise fault("away")
            return await list_(query)

        monkeypatch.setattr(store.executions, "list", list_unless_away)
        await runtime.clock.sleep_until(began + 7100)
        assert ([one.step.node for one in doing.asked], troubles) == (["a"], [(None, "away")])
        await runtime.clock.sleep_until(began + 7210)
        assert (await runtime.load(execution)).status == "completed"
        assert not keeps.done()
        keeps.cancel()

    run_virtually(story())


def test_a_step_during_a_store_outage_does_not_fail_and_runs_again_afterwards() -> None:
    async def story() -> None:
        away = True

        async def unless_away(command: Execute) -> Json:
            if away and command.step.node == "b":
                raise StoreUnreachable("away")
            return command.step.node

        runtime, doing, keeper = await here(MemoryStore(), unless_away)
        keeps = asyncio.create_task(keeper.run())
        execution = await begun(runtime, "chain")
        await runtime.clock.sleep_until(runtime.clock.now() + 1)
        assert ((await runtime.load(execution)).status, [one.step.node for one in doing.asked]) == (
            "running",
            ["a", "b"],
        )
        away = False
        await runtime.clock.sleep_until(runtime.clock.now() + 300)
        assert (await runtime.load(execution)).status == "completed"
        assert [(one.step.node, one.attempt) for one in doing.asked] == [("a", 1), ("b", 1), ("b", 1), ("c", 1)]
        keeps.cancel()

    run_virtually(story())


def test_a_deleted_execution_that_could_not_be_resumed_is_not_retried() -> None:
    async def story() -> None:
        store, tried, told = MemoryStore(), list[str](), list[str]()

        async def hang(command: Execute) -> Json:
            return await asyncio.get_running_loop().create_future()

        first, _, _ = await here(store, hang)
        execution = await begun(first, "chain")
        await first.close()
        runtime, _, _ = await here(store)

        async def take_up(name: ExecutionId) -> object:
            tried.append(name)
            if len(tried) == 1:
                raise CallerError("its definition is gone")
            return await runtime.open(name)

        keeper = Leader(runtime, take_up, tell=lambda _, why: told.append(str(why)))
        keeps = asyncio.create_task(keeper.run())
        await runtime.clock.sleep_until(runtime.clock.now() + 1)
        await store.removal.remove(execution, at=await store.journal.last(execution))
        await runtime.clock.sleep_until(runtime.clock.now() + 600)
        assert (tried, told) == ([execution] * 2, ["its definition is gone"])
        keeps.cancel()

    run_virtually(story())


def test_a_store_outage_during_resuming_is_reported_once() -> None:
    async def story() -> None:
        store, troubles = MemoryStore(), list[tuple[str | None, str]]()
        runtime, _, _ = await here(store)
        waits = [await begun(runtime, "waits", number) for number in range(2)]
        await looks(Leader(runtime, runtime.open))
        began = runtime.clock.now()

        async def take_up(execution: ExecutionId) -> object:
            if runtime.clock.now() < began + 3700:
                raise StoreUnreachable("away")
            return await runtime.open(execution)

        keeper = Leader(runtime, take_up, tell=lambda name, why: troubles.append((name, str(why))))
        keeps = asyncio.create_task(keeper.run())
        await runtime.clock.sleep_until(began + 3710)
        assert troubles == [(None, "away")]
        assert [(await runtime.load(one)).status for one in waits] == ["completed", "completed"]
        keeps.cancel()

    run_virtually(story())


class FailingChore:
    """Background work that is due until it is done; it completes after its errors."""

    def __init__(self, *raises: Exception) -> None:
        self.fired: list[float] = []
        self._raises, self._is_done = [*raises], False

    async def next_due(self) -> float | None:
        return None if self._is_done else 0.0

    async def fire(self, now: float) -> None:
        self.fired.append(now)
        if self._raises:
            raise self._raises.pop(0)
        self._is_done = True


def test_a_due_execution_that_fails_is_reported_and_retried_after_a_minute() -> None:
    async def story() -> None:
        troubles: list[tuple[str | None, str]] = []
        runtime, _, _ = await here(MemoryStore())
        broken, other = FailingChore(CallerError("its workflow is gone")), FailingChore()
        keeper = Leader(
            runtime, runtime.open, chores=[broken, other], tell=lambda name, why: troubles.append((name, str(why)))
        )
        keeps, began = asyncio.create_task(keeper.run()), runtime.clock.now()
        await runtime.clock.sleep_until(began + AGAIN_S - 1)
        assert (broken.fired, other.fired, troubles) == ([began], [began], [(None, "its workflow is gone")])
        await runtime.clock.sleep_until(began + AGAIN_S + 1)
        assert (broken.fired, len(troubles)) == ([began, began + AGAIN_S], 1)
        keeps.cancel()

    run_virtually(story())


def test_a_permanently_missing_store_ends_the_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        store = MemoryStore()
        _, _, keeper = await here(store)

        async def gone(query: ExecutionQuery) -> list[Summary]:
            raise StoreMissing("gone")

        monkeypatch.setattr(store.executions, "list", gone)
        with pytest.raises(StoreMissing):
            await keeper.run()

    run_virtually(story())
