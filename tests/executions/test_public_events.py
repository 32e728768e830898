"""Public events of an execution: names, order, numbers, and levels of detail."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.app import Pointsman
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.executions.views import ExecutionView
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject
from tests.scenarios import installation, written

LETTER = """\
pointsman: 1
id: letter
entry: write
config: {observability: %s}
nodes:
  - {id: write, type: agent, config: {prompt: "Write about {goal}"}, execution: {retries: 1}, outputs: {text: result}}
  - {id: review, type: human, config: {message: "Send it?", options: [{value: approve}]}}
  - {id: send, type: tool, config: {tool: post}}
edges:
  - {source: write, target: review}
  - {source: review, target: send, condition: {type: label, label: approve}}
"""
SCRIPT = """\
rules: [{node: write, attempt: 1, fail: 503}, {node: write, text: Dear Ada}]
tools: {post: {results: [{fail: {message: the box is full}}]}}
"""


async def told(app: Pointsman, level: str = "standard", *answers: GivenAnswer) -> list[JsonObject]:
    execution = await app.start(written(LETTER % level), {"goal": "tides"})
    await drive(execution, answers)
    return await app.public_events(execution.id)


def feed(level: str = "standard", *answers: GivenAnswer, script: str = SCRIPT) -> list[JsonObject]:
    async def run() -> list[JsonObject]:
        async with installation(script) as app:
            return await told(app, level, *answers)

    return run_virtually(run())


def names(bulletins: list[JsonObject], *, but: str = "workflow.checkpoint.saved") -> list[Json]:
    return [one["event"] for one in bulletins if one["event"] != but]


APPROVED = GivenAnswer("review", "approve")
GOOD = SCRIPT.replace("results: [{fail: {message: the box is full}}]", "result: sent")


@pytest.mark.requirement("S1-90", "S1-91", "S1-92", "S1-93", "S1-94", "S1-96", "S1-97", "S1-131", "T1-7")
def test_public_events_have_documented_names() -> None:
    begun: list[Json] = [
        "workflow.start",
        "workflow.node.start",
        "workflow.node.retry",
        "workflow.node.complete",
        "workflow.usage",
        "workflow.node.start",
        "workflow.human.required",
    ]
    answered: list[Json] = ["workflow.human.answered", "workflow.node.complete", "workflow.node.start"]
    assert names(feed()) == begun
    good = names(feed("standard", APPROVED, script=GOOD))
    assert [name for name in good if name != "workflow.usage"][-2:] == ["workflow.node.complete", "workflow.complete"]
    assert names(feed("standard", APPROVED)) == [*begun, *answered, "workflow.node.error", "workflow.failed"]


@pytest.mark.requirement("S1-95")
def test_every_journal_row_is_a_public_checkpoint() -> None:
    bulletins = feed()
    saved = [one["seq"] for one in bulletins if one["event"] == "workflow.checkpoint.saved"]
    assert saved == [*range(1, len(saved) + 1)]
    assert len(saved) == len({cast(int, one["seq"]) for one in bulletins})


@pytest.mark.requirement("S1-90", "S1-91", "S1-92", "S1-93", "S1-94", "S1-95", "S1-96", "S1-97")
def test_every_public_event_has_execution_node_time_and_a_growing_number() -> None:
    bulletins = feed("standard", APPROVED)
    places = [tuple(int(part) for part in str(one["id"]).split(".")) for one in bulletins]
    assert places == sorted(places)
    assert len({(str(one["id"]), str(one["event"])) for one in bulletins}) == len(bulletins)
    assert {str(one["executionId"])[:5] for one in bulletins} == {"exec-"}
    assert all(isinstance(one["at"], float) for one in bulletins)
    nodes = [one["nodeId"] for one in bulletins if str(one["event"]).startswith(("workflow.node", "workflow.human"))]
    assert nodes == ["write"] * 3 + ["review"] * 4 + ["send"] * 2


@pytest.mark.requirement("S1-02", "S1-98", "S1-21")
def test_the_workflow_chooses_the_detail_of_public_events() -> None:
    minimal, standard, full = (feed(level, APPROVED) for level in ("minimal", "standard", "full"))
    assert names(minimal) == ["workflow.human.required", "workflow.node.error", "workflow.failed"]
    assert names(standard) == names(full)
    assert "tides" not in str(standard)
    assert "Dear Ada" not in str(standard)
    (result,) = [one["result"] for one in full if one["event"] == "workflow.node.complete" and one["nodeId"] == "write"]
    assert (full[0]["input"], result) == ({"goal": "tides"}, "Dear Ada")


@pytest.mark.requirement("T1-7")
def test_actions_of_people_are_public_events() -> None:
    async def run() -> tuple[list[JsonObject], list[JsonObject]]:
        async with installation(GOOD) as app:
            execution = await app.start(written(LETTER % "standard"), {"goal": "tides"})
            await execution.settled()
            await execution.pause(by="ada")
            await execution.resume(by="ada")
            await execution.cancel(reason="no need")
            endless = written(LETTER % "standard, limits: {steps: 1}")
            limited = await app.start(endless, {"goal": "tides"})
            await limited.settled()
            return await app.public_events(execution.id), await app.public_events(limited.id)

    stopped, limited = run_virtually(run())
    assert names(stopped)[-3:] == ["workflow.paused", "workflow.resumed", "workflow.cancelled"]
    assert names(limited)[-1] == "workflow.interrupted"


@pytest.mark.requirement("T1-7")
def test_a_skipped_node_is_a_public_event() -> None:
    document = """\
pointsman: 1
id: off
nodes: [{id: a, type: agent, skipWhen: "true", config: {prompt: x}}, {id: b, type: agent, config: {prompt: y}}]
edges: [{source: a, target: b}]
"""

    async def run() -> list[JsonObject]:
        async with installation() as app:
            execution = await app.start(written(document), {})
            await execution.settled()
            return await app.public_events(execution.id)

    skipped = [one["nodeId"] for one in run_virtually(run()) if one["event"] == "workflow.node.skipped"]
    assert skipped == ["a"]


@pytest.mark.requirement("S1-109")
def test_a_reconnected_subscriber_receives_only_new_events() -> None:
    async def run() -> tuple[list[JsonObject], list[JsonObject], list[JsonObject]]:
        async with installation(GOOD) as app:
            execution = await app.start(written(LETTER % "standard"), {"goal": "tides"})
            await execution.settled()
            before = await app.public_events(execution.id)
            await drive(execution, (APPROVED,))
            after = await app.public_events(execution.id, after=cast(int, before[-1]["seq"]))
            return before, after, await app.public_events(execution.id)

    before, after, whole = run_virtually(run())
    assert before + after == whole
    assert after[-1]["event"] == "workflow.checkpoint.saved"


@pytest.mark.requirement("S1-52", "S1-54", "S1-55", "S1-56", "S1-57", "S1-58", "S0-O4")
def test_an_execution_view_shows_position_data_and_path() -> None:
    document = """\
pointsman: 1
id: both
version: 1.2.0
nodes:
  - {id: a, type: transform, config: {set: {n: "1"}}}
  - {id: ask, type: human, config: {message: "Well?", options: [{value: go}]}}
  - {id: knock, type: wait, config: {event: door}}
edges: [{source: a, target: ask}, {source: a, target: knock}]
"""

    async def run() -> tuple[ExecutionView, ExecutionView, ExecutionView, list[JsonObject]]:
        async with installation(SCRIPT) as app:
            execution = await app.start(written(document), {"goal": "x"})
            await execution.settled()
            waiting = await execution.view()
            await execution.signal("door")
            await drive(execution, (GivenAnswer("ask", "go"),))
            broken = await app.start(written(LETTER % "standard"), {"goal": "y"})
            await drive(broken, (APPROVED,))
            _, events = await app.state_and_events(execution.id)
            return waiting, await execution.view(), await broken.view(), events

    waiting, ended, broken, events = run_virtually(run())
    assert str(waiting["executionId"]).startswith("exec-")
    assert (waiting["workflowId"], waiting["version"], waiting["status"]) == ("both", "1.2.0", "waiting")
    assert (waiting["currentNodes"], waiting["state"]) == (["ask", "knock"], {"goal": "x", "n": 1})
    assert (ended["currentNodes"], ended["status"], ended["input"]) == ([], "completed", {"goal": "x"})
    assert ended["path"][0] == "a"
    assert (events[0]["seq"], events[-1]["seq"]) == (1, ended["seq"])
    (error,) = cast("list[JsonObject]", broken["errors"])
    assert (error["nodeId"], error["message"]) == ("send", "the box is full")
