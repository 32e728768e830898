"""Work that became due while no process ran: the process that opens the execution performs it before it reads the
status."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.engine.decide.human_tasks import GateClosedAlready
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.errors import PointsmanError
from pointsman.executions.execution import Execution
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.settings import Settings
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject
from tests.installation import HandClock

pytestmark = pytest.mark.integration

HOUR_S = 3600.0


@tool
async def send(to: str = "") -> str:
    """Send a message."""
    return f"sent {to}"


def gate(id: str = "gate", **more: Json) -> JsonObject:
    return {"id": id, "type": "human", "config": {"message": "Go on?", "timeout": "1h", "onTimeout": "approve", **more}}


def sending(id: str = "work", **more: Json) -> JsonObject:
    return {"id": id, "type": "tool", "config": {"tool": "send", "parameters": {"to": "ann"}}, **more}


def linked(*pairs: tuple[str, str]) -> list[Json]:
    return [{"source": source, "target": target} for source, target in pairs]


def chain(id: str, *nodes: JsonObject, **more: Json) -> Workflow:
    edges: list[Json] = [{"source": one["id"], "target": other["id"]} for one, other in pairwise(nodes)]
    return Workflow.of({"id": id, "nodes": [*nodes], "edges": edges, **more})


class OneStore:
    """One store and one clock; each `opened` is another process."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path / 'store.db'}"
        self.clock = HandClock()

    def opened(self, *tools: Tool) -> Pointsman:
        return Pointsman(self.url, tools=[send, *tools], model="scripted", clock=self.clock, settings=Settings())

    async def left(self, workflow: Workflow, *saved: Workflow, by_s: float = 2 * HOUR_S) -> str:
        """Start an execution, end its process, and advance the time."""
        async with self.opened() as app:
            for one in saved:
                await app.save(one)
            execution = await app.start(workflow)
            await execution.settled()
        self.clock.move(by_s)
        return execution.id


@pytest.fixture
def place(tmp_path: Path) -> OneStore:
    return OneStore(tmp_path)


async def resumed(app: Pointsman, name: str) -> Execution:
    """Resume like `pointsman resume`."""
    execution = await app.open(name)
    await execution.resume()
    await drive(execution)
    return execution


async def test_a_passed_deadline_is_carried_out_with_its_consequences(place: OneStore) -> None:
    name = await place.left(chain("one", gate(), sending()))
    async with place.opened() as app:
        execution = await resumed(app, name)
        assert (execution.status, (await execution.view())["path"]) == ("completed", ["gate", "work"])


async def test_a_gate_with_a_future_deadline_stays_open(place: OneStore) -> None:
    name = await place.left(chain("two", gate(), sending("first"), gate("later"), sending("last")))
    async with place.opened() as app:
        execution = await resumed(app, name)
        assert (execution.status, [one.node for one in execution.gates]) == ("waiting", ["later"])


async def test_all_passed_deadlines_are_carried_out(place: OneStore) -> None:
    start: JsonObject = {"id": "start", "type": "start"}
    nodes: list[Json] = [start, gate("a"), gate("b"), sending("after_a"), sending("after_b")]
    edges = [("start", "a"), ("start", "b"), ("a", "after_a"), ("b", "after_b")]
    wide = Workflow.of({"id": "wide", "nodes": nodes, "edges": linked(*edges)})
    name = await place.left(wide)
    async with place.opened() as app:
        execution = await resumed(app, name)
        assert execution.status == "completed"
        assert {"after_a", "after_b"} <= {*execution.state.scopes[()].nodes}


async def test_a_deadline_in_a_sub_workflow_is_carried_out(place: OneStore) -> None:
    inner = chain("inner", gate(), sending(), output={"got": "nodes.work"})
    above = chain("above", {"id": "call", "type": "workflow", "config": {"workflow": "inner"}}, sending("after"))
    name = await place.left(above, inner)
    async with place.opened() as app:
        execution = await resumed(app, name)
        assert (execution.status, (await execution.view())["path"]) == ("completed", ["call", "after"])


async def test_a_wait_whose_time_has_passed_ends(place: OneStore) -> None:
    pausing: JsonObject = {"id": "rest", "type": "wait", "config": {"duration": "1h"}}
    async with place.opened() as app:
        execution = await app.start(chain("rested", pausing, sending()))
        name = execution.id
    place.clock.move(2 * HOUR_S)
    async with place.opened() as app:
        assert (await resumed(app, name)).status == "completed"


async def test_a_wait_for_a_late_event_times_out(place: OneStore) -> None:
    listening: JsonObject = {"id": "listen", "type": "wait", "config": {"event": "paid", "timeout": "1h"}}
    name = await place.left(chain("listens", listening, sending()))
    async with place.opened() as app:
        execution = await resumed(app, name)
        assert execution.status != "running"
        assert execution.is_idle
        assert execution.state.counters.running_steps == 0


async def test_a_due_escalation_is_carried_out(place: OneStore) -> None:
    escalating = gate(
        approvers={"users": ["ann"]}, escalation=[{"approvers": {"users": ["bob"]}, "timeout": "1h"}], onTimeout="fail"
    )
    name = await place.left(chain("escalates", escalating, sending()), by_s=1.5 * HOUR_S)
    async with place.opened() as app:
        execution = await resumed(app, name)
        assert execution.status == "waiting"
        (open_,) = execution.gates
        assert open_.at.gate is not None
        assert open_.at.gate.level == 1


async def test_a_late_answer_is_refused_and_the_execution_continues(place: OneStore) -> None:
    name = await place.left(chain("late", gate(), sending()))
    async with place.opened() as app:
        execution = await app.open(name)
        with pytest.raises((GateClosedAlready, PointsmanError)):
            await execution.answer("gate", "reject")
        await drive(execution)
        assert execution.status == "completed"


async def test_an_answer_to_one_gate_carries_out_the_due_deadline_of_another(place: OneStore) -> None:
    start: JsonObject = {"id": "start", "type": "start"}
    free = gate("free")
    free["config"] = {"message": "And this?"}
    nodes: list[Json] = [start, gate("due"), free, sending("after_due"), sending("after_free")]
    edges = [("start", "due"), ("start", "free"), ("due", "after_due"), ("free", "after_free")]
    wide = Workflow.of({"id": "both", "nodes": nodes, "edges": linked(*edges)})
    name = await place.left(wide)
    async with place.opened() as app:
        execution = await app.open(name)
        await execution.answer("free", "approve")
        await drive(execution)
        assert execution.status == "completed"


async def test_a_signal_carries_out_due_deadlines(place: OneStore) -> None:
    name = await place.left(chain("signalled", gate(), sending()))
    async with place.opened() as app:
        execution = await app.open(name)
        await execution.signal("anything", {})
        await drive(execution)
        assert execution.status == "completed"


async def test_a_fork_carries_out_due_deadlines(place: OneStore) -> None:
    name = await place.left(chain("forked", gate(), sending()))
    async with place.opened() as app:
        fork = await app.fork(name)
        await drive(fork)
        assert fork.status == "completed"


async def test_answers_of_a_resume_are_applied_after_due_deadlines(place: OneStore) -> None:
    name = await place.left(chain("answers", gate(), gate("second"), sending()))
    async with place.opened() as app:
        execution = await app.open(name)
        await execution.resume()
        assert await drive(execution, [GivenAnswer("second", "approve")]) == ()
        assert execution.status == "completed"


async def test_a_paused_execution_carries_out_due_deadlines_on_resume(place: OneStore) -> None:
    async with place.opened() as app:
        execution = await app.start(chain("paused", gate(), sending()))
        await execution.settled()
        await execution.pause()
        name = execution.id
    place.clock.move(2 * HOUR_S)
    async with place.opened() as app:
        execution = await app.open(name)
        assert await execution.settled() == "paused"
        await execution.resume()
        await drive(execution)
        assert execution.status == "completed"


async def test_a_passed_deadline_and_a_due_retry_are_both_carried_out(place: OneStore) -> None:
    start: JsonObject = {"id": "start", "type": "start"}
    flaky: JsonObject = {
        "id": "flaky",
        "type": "tool",
        "config": {"tool": "stumble"},
        "execution": {"retries": 1, "retryDelay": "10m"},
    }
    calls = list[str]()

    @tool
    async def stumble() -> str:
        """Fail the first time."""
        calls.append("stumble")
        if len(calls) == 1:
            raise TimeoutError("not now")
        return "done"

    edges = [("start", "gate"), ("start", "flaky"), ("gate", "after_gate"), ("flaky", "after_flaky")]
    nodes: list[Json] = [start, gate(), flaky, sending("after_gate"), sending("after_flaky")]
    wide = Workflow.of({"id": "retried", "nodes": nodes, "edges": linked(*edges)})
    async with place.opened(stumble) as app:
        execution = await app.start(wide)
        while "retry" not in [timer.purpose for timer in execution.state.timers.values()]:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0)
        name = execution.id
    place.clock.move(2 * HOUR_S)
    async with place.opened(stumble) as app:
        execution = await resumed(app, name)
        assert (execution.status, len(calls)) == ("completed", 2)


async def test_a_gate_that_opens_late_has_its_full_timeout(place: OneStore) -> None:
    name = await place.left(chain("row", gate("first"), gate("second", timeout="1m"), sending()))
    for after_s, status in ((30.0, "waiting"), (60.0, "completed")):
        async with place.opened() as app:
            assert (await resumed(app, name)).status == "waiting"
        place.clock.move(after_s)
        async with place.opened() as app:
            assert (await resumed(app, name)).status == status


async def test_deadlines_in_many_sub_workflows_are_carried_out_concurrently(place: OneStore) -> None:
    inner = chain("inner", gate(), {"id": "rest", "type": "wait", "config": {"duration": "0s"}}, sending())
    nodes: list[Json] = [
        {"id": "each", "type": "parallel", "config": {"items": "[1, 2, 3]"}},
        {"id": "call", "type": "workflow", "config": {"workflow": "inner"}},
        {"id": "join", "type": "join"},
        sending("after"),
    ]
    fan = Workflow.of(
        {"id": "fan", "nodes": nodes, "edges": linked(("each", "call"), ("call", "join"), ("join", "after"))}
    )
    name = await place.left(fan, inner)
    async with place.opened() as app:
        assert (await resumed(app, name)).status == "completed"


async def test_the_deadline_of_the_execution_stops_it_with_its_reason(place: OneStore) -> None:
    slow = chain("slow", gate(timeout="1d"), sending(), config={"limits": {"deadline": "1h"}})
    name = await place.left(slow)
    async with place.opened() as app:
        execution = await resumed(app, name)
        errors = (await execution.view())["errors"]
        assert isinstance(errors, list)
        assert (execution.status, [one["code"] for one in errors if isinstance(one, dict)]) == (
            "interrupted",
            ["limit-deadline"],
        )


async def test_resume_and_retry_return_after_due_deadlines_are_carried_out(place: OneStore) -> None:
    inner = chain("inner", gate(), {"id": "more", "type": "human", "config": {"message": "More?"}})
    above = chain("above", {"id": "call", "type": "workflow", "config": {"workflow": "inner"}})
    alone, nested = await place.left(inner), await place.left(above, inner)
    async with place.opened() as app:
        for name in (alone, nested):
            execution = await app.open(name)
            await execution.resume()
            waiting = (await execution.view())["waiting"]
            assert isinstance(waiting, list)
            assert "gate" not in [one["nodeId"] for one in waiting if isinstance(one, dict)]


async def test_a_retry_carries_out_other_due_deadlines(place: OneStore) -> None:
    works = list[bool]()

    @tool
    async def mended() -> str:
        """Succeed after the repair."""
        if not works:
            raise ValueError("not mended")
        return "done"

    start: JsonObject = {"id": "start", "type": "start"}
    broken: JsonObject = {"id": "broken", "type": "tool", "config": {"tool": "mended"}}
    nodes: list[Json] = [start, gate(), broken, sending("after")]
    edges = linked(("start", "gate"), ("start", "broken"), ("gate", "after"))
    async with place.opened(mended) as app:
        execution = await app.start(Workflow.of({"id": "both", "nodes": nodes, "edges": edges}))
        assert await execution.settled() == "failed"
        name = execution.id
    place.clock.move(2 * HOUR_S)
    works.append(True)
    async with place.opened(mended) as app:
        execution = await app.open(name)
        await execution.retry()
        await drive(execution)
        assert execution.status == "completed"
        assert "after" in execution.state.scopes[()].nodes


async def test_a_resume_that_ends_the_execution_succeeds_and_one_of_an_ended_execution_is_refused(
    place: OneStore,
) -> None:
    name = await place.left(chain("ends", gate(), sending()))
    async with place.opened() as app:
        execution = await app.open(name)
        await execution.settled()
        assert execution.status == "completed", "before anything else was asked of it"
        await execution.resume()
    async with place.opened() as app:
        execution = await app.open(name)
        with pytest.raises(WrongStatus):
            await execution.resume()
