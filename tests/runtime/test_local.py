"""Executions in one process: work, cancellation, timers, recovery, sub-workflows and events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from pointsman.engine.commands import Execute
from pointsman.engine.reports import CancelRequested, EventReceived, GateAnswered, Start
from pointsman.engine.state import ExecutionState, status_of
from pointsman.engine.steps import Step
from pointsman.ports import Row
from pointsman.runtime.children import child_id
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import UnknownExecution
from pointsman.store.errors import StoreUnreachable
from pointsman.store.records import EffectRecord, Summary
from pointsman.store.sqlite import open_sqlite
from pointsman.values import ExecutionId, Json, JsonObject
from tests.patience import PATIENCE_S
from tests.runtime.world import FIRST, Shelf, chain, make_runtime, named, tool


async def finished(driver: Driver) -> str:
    await driver.until(lambda: driver.state.ended)
    return driver.state.status


async def test_a_chain_runs_in_order_and_its_output_is_the_last_result() -> None:
    shelf = Shelf(chain=chain("a", "b", "c"))
    runtime, doing = await make_runtime(shelf)
    driver = await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    assert await finished(driver) == "completed"
    assert ([c.step.node for c in doing.asked], driver.state.outcome.output) == (["a", "b", "c"], "c")


@pytest.mark.requirement("S0-55", "S1-111")
async def test_an_attempt_that_takes_too_long_is_cancelled_and_fails() -> None:
    forever = asyncio.Event()

    async def hang(command: Execute) -> Json:
        await forever.wait()
        return None

    document: JsonObject = {
        "id": "slow",
        "nodes": [tool("a", execution={"timeout": "10ms"})],
        "edges": [],
    }
    shelf = Shelf(slow=document)
    runtime, doing = await make_runtime(shelf, hang)
    driver = await runtime.start(FIRST, shelf.plans["slow"], Start(input={}, definition="slow"))
    assert await finished(driver) == "failed"
    assert driver.state.outcome.failure is not None
    assert (driver.state.outcome.failure.code, doing.cancelled) == ("timeout", ["a"])


@pytest.mark.requirement("S1-87")
async def test_a_cancel_stops_running_work_and_a_second_one_has_no_effect() -> None:
    began, forever = asyncio.Event(), asyncio.Event()

    async def hang(command: Execute) -> Json:
        began.set()
        await forever.wait()
        return None

    shelf = Shelf(chain=chain("a", "b"))
    runtime, doing = await make_runtime(shelf, hang)
    driver = await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    await began.wait()
    assert await driver.deliver(CancelRequested(reason="enough")) != ()
    assert await driver.deliver(CancelRequested(reason="enough")) == ()
    await asyncio.gather(*driver.tasks, return_exceptions=True)
    assert (driver.state.status, doing.cancelled, len(doing.asked)) == ("cancelled", ["a"], 1)


@pytest.mark.requirement("S3-32", "S1-63", "T1-4")
async def test_concurrent_steps_are_limited() -> None:
    running, most, gate = 0, 0, asyncio.Event()

    async def count(command: Execute) -> Json:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            gate.set()
        await gate.wait()
        running -= 1
        return None

    document: JsonObject = {
        "id": "wide",
        "config": {"limits": {"parallel": 3}},
        "nodes": [tool("s"), *(tool(f"n{i}") for i in range(9))],
        "edges": [{"source": "s", "target": f"n{i}"} for i in range(9)],
    }
    shelf = Shelf(wide=document)
    runtime, doing = await make_runtime(shelf, lambda c: named(c) if c.step.node == "s" else count(c))
    driver = await runtime.start(FIRST, shelf.plans["wide"], Start(input={}, definition="wide"))
    assert await finished(driver) == "completed"
    assert (most, len(doing.asked)) == (3, 10)


@pytest.mark.integration
@pytest.mark.requirement("S1-67", "S3-92", "S1-157", "S1-121")
async def test_unfinished_executions_are_resumed_without_repeating_recorded_steps(tmp_path: Path) -> None:
    store = await open_sqlite(f"sqlite:///{tmp_path / 'a.db'}")
    reached, forever = asyncio.Event(), asyncio.Event()

    async def stop_at_c(command: Execute) -> Json:
        if command.step.node == "c":
            reached.set()
            await forever.wait()
        return command.step.node

    shelf = Shelf(chain=chain("a", "b", "c", "d"))
    runtime, before = await make_runtime(shelf, stop_at_c, store=store)
    await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    await reached.wait()
    await runtime.close()
    again, after = await make_runtime(shelf, store=store)
    driver = await again.open(FIRST)
    assert await finished(driver) == "completed"
    assert [c.step.node for c in before.asked] == ["a", "b", "c"]
    assert [c.step.node for c in after.asked] == ["c", "d"]
    await store.close()


async def test_an_unknown_execution_is_reported_as_unknown() -> None:
    runtime, _ = await make_runtime(Shelf())
    with pytest.raises(UnknownExecution):
        await runtime.open(ExecutionId("exec-none"))


PARENT: JsonObject = {
    "id": "parent",
    "nodes": [
        {"id": "call", "type": "workflow", "config": {"workflow": "child", "input": {"n": "input.n"}}},
        tool("after"),
    ],
    "edges": [{"source": "call", "target": "after"}],
}


@pytest.mark.requirement("S1-140")
async def test_a_sub_workflow_is_its_own_execution_and_its_output_is_the_step_result() -> None:
    shelf = Shelf(parent=PARENT, child=chain("x", "y"))
    runtime, doing = await make_runtime(shelf)
    driver = await runtime.start(FIRST, shelf.plans["parent"], Start(input={"n": 1}, definition="parent"))
    assert await finished(driver) == "completed"
    child = await runtime.load(child_id(FIRST, Step("call"), 1))
    assert ([c.step.node for c in doing.asked], child.setup.parent, child.setup.input) == (
        ["x", "y", "after"],
        FIRST,
        {"n": 1},
    )
    assert driver.state.root.nodes["call"] == "y"


async def test_cancelling_a_parent_cancels_its_child() -> None:
    began, forever = asyncio.Event(), asyncio.Event()

    async def hang(command: Execute) -> Json:
        began.set()
        await forever.wait()
        return None

    shelf = Shelf(parent=PARENT, child=chain("x"))
    runtime, _ = await make_runtime(shelf, hang)
    driver = await runtime.start(FIRST, shelf.plans["parent"], Start(input={}, definition="parent"))
    await began.wait()
    child = await runtime.open(child_id(FIRST, Step("call"), 1))
    await driver.deliver(CancelRequested())
    assert await finished(child) == "cancelled"


async def test_a_store_outage_at_the_start_of_a_sub_workflow_fails_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(parent=PARENT, child=chain("x", "y"))
    runtime, doing = await make_runtime(shelf)
    last, child = runtime.store.journal.last, child_id(FIRST, Step("call"), 1)

    async def away(execution: ExecutionId) -> int:
        if execution == child:
            raise StoreUnreachable("away")
        return await last(execution)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(runtime.store.journal, "last", away)
        driver = await runtime.start(FIRST, shelf.plans["parent"], Start(input={}, definition="parent"))
        with pytest.raises(StoreUnreachable):
            await finished(driver)
    assert await finished(await runtime.open(FIRST)) == "completed"
    assert [(c.step.node, c.attempt) for c in doing.asked] == [("x", 1), ("y", 1), ("after", 1)]


@pytest.mark.integration
async def test_a_resumed_parent_finds_its_started_child(tmp_path: Path) -> None:
    store = await open_sqlite(f"sqlite:///{tmp_path / 'a.db'}")
    reached, forever = asyncio.Event(), asyncio.Event()

    async def stop_at_y(command: Execute) -> Json:
        if command.step.node == "y":
            reached.set()
            await forever.wait()
        return command.step.node

    shelf = Shelf(parent=PARENT, child=chain("x", "y"))
    runtime, _ = await make_runtime(shelf, stop_at_y, store=store)
    await runtime.start(FIRST, shelf.plans["parent"], Start(input={}, definition="parent"))
    await reached.wait()
    await runtime.close()
    again, doing = await make_runtime(shelf, store=store)
    assert await finished(await again.open(FIRST)) == "completed"
    assert [c.step.node for c in doing.asked] == ["y", "after"]
    await store.close()


async def test_endless_recursion_is_a_failure_with_a_hint() -> None:
    endless: JsonObject = {
        "id": "endless",
        "nodes": [{"id": "again", "type": "workflow", "config": {"workflow": "endless"}}],
        "edges": [],
    }
    shelf = Shelf(endless=endless)
    runtime, _ = await make_runtime(shelf)
    driver = await runtime.start(FIRST, shelf.plans["endless"], Start(input={}, definition="endless"))
    assert await finished(driver) == "failed"
    assert driver.state.outcome.failure is not None
    assert "nested more than" in driver.state.outcome.failure.message


@pytest.mark.requirement("S1-158")
async def test_a_gate_waits_without_resources_and_continues_when_answered() -> None:
    document: JsonObject = {
        "id": "gate",
        "nodes": [tool("a"), {"id": "ok", "type": "human", "config": {"message": "Well?"}}, tool("b")],
        "edges": [
            {"source": "a", "target": "ok"},
            {"source": "ok", "target": "b", "condition": {"type": "label", "label": "approve"}},
        ],
    }
    shelf = Shelf(gate=document)
    runtime, doing = await make_runtime(shelf)
    driver = await runtime.start(FIRST, shelf.plans["gate"], Start(input={}, definition="gate"))
    await driver.until(lambda: status_of(driver.state) == "waiting")
    runtime.passivate(runtime.drivers[FIRST])
    assert runtime.drivers == {}
    again = await runtime.open(FIRST)
    await again.deliver(GateAnswered(step=Step("ok"), action="approve"))
    assert await finished(again) == "completed"
    assert [c.step.node for c in doing.asked] == ["a", "b"]


async def test_an_emitted_event_reaches_another_execution_that_waits_for_it() -> None:
    waits: JsonObject = {
        "id": "waits",
        "nodes": [
            {"id": "w", "type": "wait", "config": {"event": "go"}, "outputs": {"got": "result"}},
            tool("after"),
        ],
        "edges": [{"source": "w", "target": "after"}],
    }
    emits: JsonObject = {
        "id": "emits",
        "nodes": [{"id": "e", "type": "emit", "config": {"event": "go", "data": {"n": 7}}}],
        "edges": [],
    }
    shelf = Shelf(waits=waits, emits=emits)
    runtime, _ = await make_runtime(shelf)
    one = await runtime.start(FIRST, shelf.plans["waits"], Start(input={}, definition="waits"))
    other = await runtime.start(ExecutionId("exec-other"), shelf.plans["emits"], Start(input={}, definition="emits"))
    assert await finished(other) == "completed"
    assert await finished(one) == "completed"
    assert one.state.root.data.root["got"] == {"n": 7}


async def test_a_signal_from_outside_ends_a_wait() -> None:
    waits: JsonObject = {"id": "w", "nodes": [{"id": "w", "type": "wait", "config": {"event": "go"}}], "edges": []}
    shelf = Shelf(waits=waits)
    runtime, _ = await make_runtime(shelf)
    driver = await runtime.start(FIRST, shelf.plans["waits"], Start(input={}, definition="waits"))
    await driver.deliver(EventReceived(name="other"))
    assert status_of(driver.state) == "waiting"
    await driver.deliver(EventReceived(name="go"))
    assert await finished(driver) == "completed"


async def test_a_refused_row_ends_the_driver_without_loss() -> None:
    shelf = Shelf(chain=chain("a", "b"))
    runtime, _ = await make_runtime(shelf)
    gate = asyncio.Event()

    async def wait(command: Execute) -> Json:
        await gate.wait()
        return command.step.node

    slow, _ = await make_runtime(shelf, wait, store=runtime.store)
    driver = await slow.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    other = await runtime.open(FIRST)
    assert await finished(other) == "completed"
    gate.set()
    with pytest.raises(Exception, match="does not follow"):
        await finished(driver)
    assert (await runtime.load(FIRST)).status == "completed"


async def test_an_ended_execution_is_not_kept_in_memory() -> None:
    shelf = Shelf(chain=chain("a", "b"))
    runtime, _ = await make_runtime(shelf)
    driver = await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    assert await finished(driver) == "completed"
    assert runtime.drivers == {}
    assert (await runtime.open(FIRST)).state.outcome.output == "b"


async def test_an_execution_is_over_when_its_last_row_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last row is decided while the one before is written."""
    nodes: list[Json] = [{"id": "start", "type": "start"}, tool("a"), tool("b")]
    edges: list[Json] = [{"source": "start", "target": name} for name in ("a", "b")]
    shelf = Shelf(two={"id": "two", "nodes": nodes, "edges": edges})
    may_end = {"a": asyncio.Event(), "b": asyncio.Event()}
    written: list[int] = []
    ends: list[tuple[str, int]] = []

    async def work(command: Execute) -> Json:
        await may_end[command.step.node].wait()
        return command.step.node

    runtime, _ = await make_runtime(shelf, work)
    append, over, turn_ended = runtime.journal.append, runtime.over, runtime.turn_ended

    async def append_slowly(
        execution: ExecutionId, *rows: Row, summary: Summary | None = None, effects: Sequence[EffectRecord] = ()
    ) -> None:
        if rows[0].seq == 2:
            may_end["b"].set()
            async with asyncio.timeout(PATIENCE_S):
                while driver.state.seq < 3:  # noqa: ASYNC110 - the decision about the last row
                    await asyncio.sleep(0)
        for _ in range(10):  # what the row before causes comes first
            await asyncio.sleep(0)
        await append(execution, *rows, summary=summary, effects=effects)
        written.extend(row.seq for row in rows)

    async def record_turn(state: ExecutionState) -> None:
        ends.append(("turn", written[-1]))
        await turn_ended(state)

    def record_over(state: ExecutionState) -> None:
        ends.append(("over", written[-1]))
        over(state)

    driver = await runtime.start(FIRST, shelf.plans["two"], Start(input={}, definition="two"))
    for name, call in (("turn_ended", record_turn), ("over", record_over)):
        monkeypatch.setattr(runtime, name, call)
    monkeypatch.setattr(runtime.journal, "append", append_slowly)
    may_end["a"].set()
    async with asyncio.timeout(PATIENCE_S):
        await driver.until(lambda: driver.state.ended and not runtime.drivers)
    assert ends == [("turn", 3), ("over", 3)]


async def test_an_execution_whose_caller_leaves_while_its_first_row_is_written_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf = Shelf(one=chain("a"))
    runtime, doing = await make_runtime(shelf)
    append, is_asked, may_write = runtime.journal.append, asyncio.Event(), asyncio.Event()

    async def append_slowly(
        execution: ExecutionId, *rows: Row, summary: Summary | None = None, effects: Sequence[EffectRecord] = ()
    ) -> None:
        async def write() -> None:
            await may_write.wait()
            await append(execution, *rows, summary=summary, effects=effects)

        is_asked.set()
        await asyncio.shield(asyncio.create_task(write()))

    monkeypatch.setattr(runtime.journal, "append", append_slowly)
    starting = asyncio.create_task(runtime.start(FIRST, shelf.plans["one"], Start(input={}, definition="one")))
    await is_asked.wait()
    starting.cancel()
    await asyncio.wait({starting})
    may_write.set()
    async with asyncio.timeout(PATIENCE_S):
        while not doing.asked:  # noqa: ASYNC110 - the runtime looks by itself
            await asyncio.sleep(0.01)
        driver = await runtime.open(FIRST)
        await driver.until(lambda: driver.state.ended)
    assert (driver.state.status, len(doing.asked)) == ("completed", 1)
