"""The leader: waiting executions are rows in the store, and continue in time."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from pointsman.engine.commands import Execute
from pointsman.engine.reports import EventReceived, GateAnswered, Start
from pointsman.engine.steps import Step
from pointsman.runtime.children import child_id
from pointsman.runtime.leader import ABANDONED_S, Leader
from pointsman.runtime.local import LocalRuntime
from pointsman.store.api import Store
from pointsman.store.memory import MemoryStore
from pointsman.store.sqlite import open_sqlite
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import ExecutionId, Json, JsonObject
from tests.runtime.world import Doing, Shelf, Work, chain, make_runtime, named, tool


def flow(*nodes: JsonObject, name: str = "flow", **more: Json) -> JsonObject:
    """Return nodes in sequence."""
    ids = [node["id"] for node in nodes]
    return {
        "id": name,
        "nodes": [*nodes],
        "edges": [{"source": one, "target": other} for one, other in pairwise(ids)],
        **more,
    }


WAITS = flow(tool("a"), {"id": "nap", "type": "wait", "config": {"duration": "1h"}}, tool("b"))
ASKS = flow(
    tool("a"), {"id": "ask", "type": "human", "config": {"message": "Well?", "actions": ["approve"]}}, tool("b")
)
HEARS = flow(tool("a"), {"id": "hear", "type": "wait", "config": {"event": "paid"}}, tool("b"))
TELLS = flow({"id": "tell", "type": "emit", "config": {"event": "paid", "data": {"n": 7}}}, tool("c"))
CALLS = flow({"id": "call", "type": "workflow", "config": {"workflow": "asks"}}, tool("z"))
SHELF = Shelf(waits=WAITS, asks=ASKS, hears=HEARS, tells=TELLS, calls=CALLS, chain=chain("a", "b", "c"))


async def begun(runtime: LocalRuntime, name: str, number: int = 0) -> ExecutionId:
    execution = ExecutionId(f"exec-{name}-{number}")
    await runtime.start(execution, SHELF.plans[name], Start(input={}, definition=name))
    return execution


async def here(store: Store, work: Work = named) -> tuple[LocalRuntime, Doing, Leader]:
    runtime, doing = await make_runtime(SHELF, work, store=store, clock=VirtualClock())
    return runtime, doing, Leader(runtime, runtime.open)


async def looks(keeper: Leader, times: int = 3) -> None:
    """Let the leader look a few times without any time passing."""
    for _ in range(times):
        await keeper.look()
        for _ in range(20):
            await asyncio.sleep(0)


def test_a_waiting_execution_is_evicted_and_woken_by_its_timer() -> None:
    async def story() -> None:
        store = MemoryStore()
        runtime, doing, keeper = await here(store)
        execution = await begun(runtime, "waits")
        keeps = asyncio.create_task(keeper.run())
        await runtime.clock.sleep_until(runtime.clock.now() + 10)
        assert (runtime.drivers, [one.step.node for one in doing.asked]) == ({}, ["a"])
        found = await store.executions.find(execution)
        assert found is not None
        assert (found.status, found.wakes) == ("waiting", found.started + 3600)
        await runtime.clock.sleep_until(found.started + 3601)
        assert [one.step.node for one in doing.asked] == ["a", "b"]
        assert (await runtime.load(execution)).status == "completed"
        keeps.cancel()

    run_virtually(story())


@pytest.mark.integration
def test_a_timer_fires_after_its_process_has_ended(tmp_path: Path) -> None:
    async def story() -> None:
        address = f"sqlite:///{tmp_path}/store.db"
        first = await open_sqlite(address)
        runtime, _, _ = await here(first)
        execution = await begun(runtime, "waits")
        await runtime.drivers[execution].until(lambda: bool(runtime.drivers[execution].state.timers))
        await runtime.close()
        await first.close()
        second = await open_sqlite(address)
        runtime, doing, keeper = await here(second)
        keeps = asyncio.create_task(keeper.run())
        while not (await runtime.load(execution)).ended:
            # The writing thread is not part of virtual time: it gets a turn before time advances.
            await asyncio.to_thread(lambda: None)
            await runtime.clock.sleep_until(runtime.clock.now() + 60)
        assert (await runtime.load(execution)).status == "completed"
        while runtime.drivers:
            await asyncio.to_thread(lambda: None)
        assert [one.step.node for one in doing.asked] == ["b"]
        keeps.cancel()
        await second.close()

    run_virtually(story())


def test_a_new_leader_resumes_all_running_executions() -> None:
    async def story() -> None:
        store, hang = MemoryStore(), asyncio.Event()

        async def forever(command: Execute) -> Json:
            await hang.wait()
            return None

        runtime, _, _ = await here(store, forever)
        names = [await begun(runtime, "chain", number) for number in range(30)]
        await asyncio.sleep(0)
        await runtime.close()
        runtime, doing, keeper = await here(store)
        await keeper.recover()
        for name in names:
            driver = runtime.drivers.get(name)
            if driver is not None:
                await driver.until(lambda driver=driver: driver.state.ended)
        assert [(await runtime.load(name)).status for name in names] == ["completed"] * 30
        assert len(doing.asked) == 90

    run_virtually(story())


def test_an_answer_reaches_an_evicted_gate_and_awaited_executions_stay_in_memory() -> None:
    async def story() -> None:
        runtime, doing, keeper = await here(MemoryStore())
        execution = await begun(runtime, "asks")
        driver = runtime.drivers[execution]
        waits = asyncio.create_task(driver.until(lambda: driver.state.ended))
        await asyncio.sleep(0)
        await looks(keeper)
        assert execution in runtime.drivers
        waits.cancel()
        await looks(keeper)
        assert runtime.drivers == {}
        again = await runtime.open(execution)
        await again.deliver(GateAnswered(step=Step("ask"), action="approve"))
        await again.until(lambda: again.state.ended)
        assert [one.step.node for one in doing.asked] == ["a", "b"]

    run_virtually(story())


def test_an_emitted_event_reaches_evicted_executions() -> None:
    async def story() -> None:
        runtime, _, keeper = await here(MemoryStore())
        runtime.is_leading = True
        hears = [await begun(runtime, "hears", number) for number in range(3)]
        await looks(keeper)
        assert runtime.drivers == {}
        await begun(runtime, "tells")
        await looks(keeper)
        states = [await runtime.load(name) for name in hears]
        assert [state.status for state in states] == ["completed"] * 3
        told = await runtime.load(ExecutionId("exec-tells-0"))
        assert (told.status, told.outbox) == ("completed", {})

    run_virtually(story())


def test_a_process_that_is_not_leader_leaves_evicted_receivers_to_the_leader() -> None:
    async def story() -> None:
        store = MemoryStore()
        runtime, doing, keeper = await here(store)
        hears = await begun(runtime, "hears")
        await looks(keeper)
        elsewhere, other, _ = await here(store)
        assert await elsewhere.broadcast("paid", {"n": 1}, key="one") == 1
        assert await elsewhere.broadcast("paid", {"n": 1}, key="one") == 0
        assert (other.asked, elsewhere.drivers) == ([], {}), "nothing of it runs where it was told"
        await looks(keeper)
        assert [one.step.node for one in doing.asked] == ["a", "b"]
        assert (await runtime.load(hears)).status == "completed"

    run_virtually(story())


def test_an_event_emitted_before_a_crash_is_delivered_once_after_it() -> None:
    async def story() -> None:
        store, told = MemoryStore(), list[str]()
        runtime, _, keeper = await here(store)
        hears = await begun(runtime, "hears")
        await looks(keeper)

        async def lost(*_: object, **__: object) -> None:
            told.append("lost")
            await asyncio.Event().wait()

        crashes, _, _ = await here(store)
        crashes.tell = lost
        tells = await begun(crashes, "tells")
        for _ in range(20):
            await asyncio.sleep(0)
        state = await crashes.load(tells)
        assert (told, state.status, [*state.outbox]) == (["lost"], "completed", ["emit:tell"])
        await crashes.close()
        await runtime.clock.sleep_until(runtime.clock.now() + 31)
        runtime.is_leading = True
        await looks(keeper)
        assert (await runtime.load(hears)).status == "completed"
        assert (await runtime.load(tells)).outbox == {}
        again = await runtime.open(hears)
        repeated = EventReceived(name="paid", data={"n": 7}, key=f"{tells}|emit:tell")
        assert await again.deliver(repeated) == ()

    run_virtually(story())


def test_an_evicted_parent_is_notified_of_the_end_of_its_child() -> None:
    async def story() -> None:
        runtime, doing, keeper = await here(MemoryStore())
        parent = await begun(runtime, "calls")
        await looks(keeper)
        assert runtime.drivers == {}
        child = child_id(parent, Step("call"), 1)
        opened = await runtime.open(child)
        await opened.deliver(GateAnswered(step=Step("ask"), action="approve"))
        await opened.until(lambda: opened.state.ended)
        await looks(keeper)
        assert (await runtime.load(parent)).status == "completed"
        assert [one.step.node for one in doing.asked] == ["a", "b", "z"]
        await looks(keeper)
        assert runtime.drivers == {}

    run_virtually(story())


def test_abandoned_executions_are_resumed_after_a_while() -> None:
    async def story() -> None:
        store, hang = MemoryStore(), asyncio.Event()
        runtime, _, keeper = await here(store)
        keeps = asyncio.create_task(keeper.run())
        await runtime.clock.sleep_until(runtime.clock.now() + 5)

        async def forever(command: Execute) -> Json:
            await hang.wait()
            return None

        dies, _, _ = await here(store, forever)
        left = await begun(dies, "chain")
        await asyncio.sleep(0)
        await dies.close()
        await runtime.clock.sleep_until(runtime.clock.now() + ABANDONED_S / 2)
        assert (await runtime.load(left)).status == "running"
        await runtime.clock.sleep_until(runtime.clock.now() + ABANDONED_S)
        assert (await runtime.load(left)).status == "completed"
        keeps.cancel()

    run_virtually(story())


@pytest.mark.parametrize("name", ["asks", "waits", "hears"])
def test_a_thousand_evicted_executions_leave_no_driver_task_or_timer(name: str) -> None:
    async def story() -> None:
        runtime, _, keeper = await here(MemoryStore())
        for number in range(1000):
            await begun(runtime, name, number)
        await looks(keeper)
        assert runtime.drivers == {}
        assert len(asyncio.all_tasks()) == 1

    run_virtually(story())
