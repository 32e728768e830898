"""A decision about many steps without work: other tasks get turns, and the unfinished decision is invisible."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from pointsman import Pointsman, Workflow
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.reports import CancelRequested, EventReceived, PauseRequested, Start
from pointsman.engine.state import status_of
from pointsman.ports import Row
from pointsman.runtime import driver as drivers
from pointsman.runtime.children import child_id
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.local import LocalRuntime
from pointsman.store.memory import open_memory
from pointsman.values import ExecutionId, Json, JsonObject
from tests.runtime.world import FIRST, Shelf, make_runtime, tool

STEPS = 60


def transforms(count: int = STEPS, operations: int = 1, *, then: JsonObject | None = None) -> JsonObject:
    """Return a chain of transforms that each increment `n`; `then` follows."""
    counting: list[Json] = [{"increment": "state.n"}] * operations
    nodes: list[Json] = [
        {"id": f"t{number}", "type": "transform", "config": {"operations": counting}} for number in range(count)
    ]
    names = [f"t{number}" for number in range(count)]
    if then is not None:
        nodes.append(then)
        names.append(str(then["id"]))
    edges: list[Json] = [{"source": a, "target": b} for a, b in pairwise(names)]
    return {"id": "long", "nodes": nodes, "edges": edges}


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each part of a decision end as early as possible."""
    monkeypatch.setattr(drivers, "PART_S", 0.0)


@asynccontextmanager
async def turns() -> AsyncGenerator[list[int]]:
    """Count the turns that another task gets."""
    got = [0]

    async def count() -> None:
        while True:
            got[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    try:
        yield got
    finally:
        task.cancel()


def start(name: str = "long") -> Start:
    return Start(input={}, definition=name)


async def rows_of(runtime: LocalRuntime, execution: ExecutionId = FIRST) -> list[Row]:
    return [row async for row in runtime.journal.read(execution)]


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("document", [transforms(), transforms(1, operations=4 * STEPS)], ids=["chain", "operations"])
async def test_other_tasks_get_turns_while_a_long_decision_is_made(document: JsonObject) -> None:
    shelf = Shelf(long=document)
    runtime, _ = await make_runtime(shelf)
    async with turns() as got:
        driver = await runtime.start(FIRST, shelf.plans["long"], start())
    assert driver.state.status == "completed"
    assert got[0] >= STEPS / 4
    assert len(await rows_of(runtime)) == 1


async def test_a_decision_in_parts_writes_the_same_row(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(long=transforms(operations=7, then=tool("work")))

    async def events(part_s: float) -> list[object]:
        monkeypatch.setattr(drivers, "PART_S", part_s)
        runtime, _ = await make_runtime(shelf)
        driver = await runtime.start(FIRST, shelf.plans["long"], start())
        await driver.until(lambda: driver.state.ended)
        return [row.events for row in await rows_of(runtime)]

    assert await events(0.0) == await events(1000.0)


@pytest.mark.usefixtures("short_parts")
async def test_reports_wait_until_a_long_decision_is_finished() -> None:
    shelf = Shelf(long=transforms(then=tool("work")))
    runtime, doing = await make_runtime(shelf)
    starting = asyncio.create_task(runtime.start(FIRST, shelf.plans["long"], start()))
    await asyncio.sleep(0)
    driver = runtime.drivers[FIRST]
    assert driver.is_deciding
    assert driver.committing
    paused = await driver.deliver(PauseRequested(by="ann"))
    await starting
    rows = await rows_of(runtime)
    assert rows[1].events == paused
    assert rows[0].events == (await _undisturbed(shelf))[0].events
    assert status_of(driver.state) == "paused"
    assert [command.step.node for command in doing.asked] == ["work"]


async def _undisturbed(shelf: Shelf) -> list[Row]:
    runtime, _ = await make_runtime(shelf)
    await runtime.start(FIRST, shelf.plans["long"], start())
    return await rows_of(runtime)


@pytest.mark.usefixtures("short_parts")
async def test_a_caller_that_stops_waiting_does_not_stop_a_long_decision() -> None:
    shelf = Shelf(long=transforms(then=tool("work")))
    runtime, _ = await make_runtime(shelf)
    starting = asyncio.create_task(runtime.start(FIRST, shelf.plans["long"], start()))
    await asyncio.sleep(0)
    driver = runtime.drivers[FIRST]
    assert driver.is_deciding
    starting.cancel()
    await asyncio.wait([starting])
    await driver.until(lambda: driver.state.ended)
    assert (driver.state.status, driver.state.outcome.output) == ("completed", "work")
    assert runtime.drivers.get(FIRST) in (driver, None)


@pytest.mark.usefixtures("short_parts")
async def test_a_runtime_that_closes_discards_an_unfinished_decision() -> None:
    wait: JsonObject = {"id": "wait", "type": "wait", "config": {"event": "go"}}
    document = transforms()
    nodes, edges = document["nodes"], document["edges"]
    assert isinstance(nodes, list)
    assert isinstance(edges, list)
    shelf = Shelf(long={**document, "nodes": [wait, *nodes], "edges": [{"source": "wait", "target": "t0"}, *edges]})
    store = await open_memory("memory:")
    runtime, _ = await make_runtime(shelf, store=store)
    driver = await runtime.start(FIRST, shelf.plans["long"], start())
    event = EventReceived(name="go", data=None, key="1")
    delivery = asyncio.create_task(driver.deliver(event))
    await asyncio.sleep(0)
    late = asyncio.create_task(driver.deliver(CancelRequested(reason="late")))
    await asyncio.sleep(0)
    assert driver.is_deciding
    await runtime.close()
    with pytest.raises(DriverLost):
        await late
    assert delivery.done()
    assert len(await rows_of(runtime)) == 1
    again, _ = await make_runtime(shelf, store=store)
    driver = await again.open(FIRST)
    await driver.deliver(event)
    assert driver.state.status == "completed"
    assert driver.state.root.data.root["n"] == STEPS


@pytest.mark.usefixtures("short_parts")
async def test_a_parent_that_stops_waits_for_the_long_decision_of_its_child() -> None:
    call: JsonObject = {"id": "call", "type": "workflow", "config": {"workflow": "long"}}
    shelf = Shelf(long=transforms(), parent={"id": "parent", "nodes": [call], "edges": []})
    runtime, _ = await make_runtime(shelf)
    parent = await runtime.start(FIRST, shelf.plans["parent"], start("parent"))
    name = child_id(FIRST, next(iter(parent.state.steps)), 1)
    for _ in range(20):
        await asyncio.sleep(0)
    child = runtime.drivers[name]
    assert child.is_deciding
    await parent.deliver(CancelRequested(reason="enough"))
    await parent.drained()
    assert parent.failure is None
    assert (parent.state.status, child.state.status) == ("cancelled", "completed")


async def test_an_error_in_a_long_decision_reaches_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = 0

    def break_second(ctx: DecisionContext) -> bool:
        nonlocal parts
        parts += 1
        if parts == 2:
            raise ZeroDivisionError
        return False

    shelf = Shelf(long=transforms())
    runtime, _ = await make_runtime(shelf)
    monkeypatch.setattr(drivers, "_part", break_second)
    with pytest.raises(ZeroDivisionError):
        await runtime.start(FIRST, shelf.plans["long"], start())
    assert FIRST not in runtime.drivers


@pytest.mark.usefixtures("short_parts")
async def test_other_tasks_get_turns_while_a_long_decision_is_made_again() -> None:
    async with Pointsman("memory:") as app:
        execution = await app.start(Workflow.of({"pointsman": 1, **transforms()}))
        assert await execution.settled() == "completed"
        async with turns() as got:
            assert (await app.replay(execution.id)).differences == []
        assert got[0] >= STEPS / 4
        async with turns() as got:
            fork = await app.fork(execution.id, before=f"t{STEPS - 1}")
            assert await fork.settled() == "completed"
        assert got[0] >= STEPS / 4
