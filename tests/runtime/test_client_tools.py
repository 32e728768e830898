"""Client tools, which the caller runs: the step waits for the results without a limit, over restarts."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.cli.results import outcome_lines
from pointsman.engine.decide.human_task_answers import ActionNotOffered, AnswerInvalid
from pointsman.engine.decide.human_tasks import GateClosedAlready
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.scripts import parse_script

pytestmark = pytest.mark.integration

AGENT = """\
pointsman: 1
id: guide
output: {said: said}
nodes:
  - {id: guide, type: agent, config: {prompt: "Where am I?", tools: [locate, look]}, outputs: {said: result}}
edges: []
"""
NODE = """\
pointsman: 1
id: node
nodes:
  - {id: where, type: tool, config: {tool: locate, parameters: {precise: true}}}
edges: []
"""
SCRIPT = """\
rules:
  - {call: 1, toolCalls: [{name: look, arguments: {}}, {name: locate, arguments: {precise: true}},
     {name: locate, arguments: {precise: false}}]}
  - {contains: Bergen, text: In Bergen.}
  - {contains: tool-timeout, text: Nobody says.}
  - {contains: client-failed, text: You do not tell.}
"""


class World:
    """Apps in sequence, and the effects of their own tool."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"
        self.looked = 0
        self.clock: VirtualClock | None = None

    def open(self, **described: object) -> Pointsman:
        @tool
        async def look() -> str:
            """Look around."""
            self.looked += 1
            return "a harbour"

        about = {
            "description": "Where the user is.",
            "parameters": {"type": "object", "properties": {"precise": {"type": "boolean"}}},
            **described,
        }
        settings = Settings.model_validate({"client_tools": {"locate": about}})
        return Pointsman(self.url, tools=[look], script=parse_script(SCRIPT), settings=settings, clock=self.clock)

    async def waiting(self, flow: str = AGENT, **described: object) -> str:
        async with self.open(**described) as app:
            execution = await app.start(Workflow.parse(flow, name="flow"), {})
            assert await execution.settled() == "waiting"
            return execution.id


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def gate_of(app: Pointsman, name: str) -> JsonObject:
    (gate,) = cast("list[JsonObject]", (await app.view(name))["waiting"])
    return gate


async def test_a_client_tool_step_waits_for_its_result_even_after_a_restart(world: World) -> None:
    name = await world.waiting()
    async with world.open() as app:
        gate = await gate_of(app, name)
        assert (gate["about"], gate["approvers"]) == ("client", None)
        assert gate["shown"] == {
            "3": {"tool": "locate", "arguments": {"precise": True}},
            "4": {"tool": "locate", "arguments": {"precise": False}},
        }
        execution = await app.open(name)
        await execution.answer("guide", "return", {"3": "Norway", "4": {"city": "Bergen"}})
        assert await execution.output() == {"said": "In Bergen."}
        assert world.looked == 1
        assert (await app.replay(name)).differences == []


async def test_the_model_receives_a_failure_reported_by_the_caller(world: World) -> None:
    name = await world.waiting()
    async with world.open() as app:
        execution = await app.open(name)
        await execution.answer("guide", "fail", comment="the user said no")
        assert await execution.output() == {"said": "You do not tell."}


@pytest.mark.parametrize(
    ("action", "data"),
    [
        ("return", None),
        ("return", "Bergen"),
        ("return", {}),
        ("return", {"3": 1}),
        ("return", {"3": 1, "4": 2, "5": 3}),
        ("return", {"3": "x" * 200, "4": 2}),
        ("approve", None),
    ],
)
async def test_invalid_results_of_client_tools_are_refused_and_the_gate_stays_open(
    world: World, action: str, data: Json
) -> None:
    name = await world.waiting(bytes_max=100)
    async with world.open(bytes_max=100) as app:
        execution = await app.open(name)
        with pytest.raises((AnswerInvalid, ActionNotOffered)):
            await execution.answer("guide", action, data)
        await execution.answer("guide", "return", {"3": None, "4": "Bergen"}, key="once")
        await execution.answer("guide", "return", {"3": None, "4": "Bergen"}, key="once")
        with pytest.raises(GateClosedAlready):
            await execution.answer("guide", "return", {"3": "Oslo", "4": None})
        assert await execution.output() == {"said": "In Bergen."}


def test_the_model_receives_a_timeout_when_the_caller_returns_no_result(world: World) -> None:
    async def scenario() -> None:
        clock = world.clock = VirtualClock()
        name = await world.waiting(timeout="5m")
        began = clock.now()
        async with world.open(timeout="5m") as app:
            assert (await gate_of(app, name))["deadline"] == pytest.approx(began + 300, abs=1)
            execution = await app.open(name)
            await clock.sleep_until(began + 299)
            assert await execution.settled() == "waiting"
            await clock.sleep_until(began + 302)
            assert await execution.output() == {"said": "Nobody says."}

    run_virtually(scenario())


async def test_a_tool_node_receives_the_client_result_or_fails(world: World) -> None:
    name = await world.waiting(NODE)
    async with world.open() as app:
        execution = await app.open(name)
        await execution.answer("where", "return", {"1": {"city": "Bergen"}})
        assert await execution.output() == {"city": "Bergen"}
    name = await world.waiting(NODE)
    async with world.open() as app:
        execution = await app.open(name)
        await execution.answer("where", "fail", comment="offline")
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == "client-failed"
        assert "offline" in execution.state.outcome.failure.message


async def test_approval_comes_before_a_client_call_and_edited_arguments_are_sent(world: World) -> None:
    name = await world.waiting(NODE, requires_approval=True)
    async with world.open(requires_approval=True) as app:
        assert (await gate_of(app, name))["about"] == "calls"
        execution = await app.open(name)
        await execution.answer("where", "edit", {"1": {"precise": False}})
        assert await execution.settled() == "waiting"
        gate = await gate_of(app, name)
        assert (gate["about"], gate["shown"]) == ("client", {"1": {"tool": "locate", "arguments": {"precise": False}}})
    async with world.open(requires_approval=True) as app:
        execution = await app.open(name)
        await execution.answer("where", "return", {"1": "roughly Bergen"})
        assert await execution.output() == "roughly Bergen"


async def test_a_cancel_ends_the_wait_for_client_tools(world: World) -> None:
    name = await world.waiting()
    async with world.open() as app:
        execution = await app.open(name)
        await execution.cancel()
        assert await execution.settled() == "cancelled"
        with pytest.raises(GateClosedAlready):
            await execution.answer("guide", "return", {"3": 1, "4": 2})


async def test_a_client_tool_gate_shows_the_form_of_results(world: World) -> None:
    name = await world.waiting(NODE)
    async with world.open() as app:
        told = outcome_lines(json_of(await app.view(name)), stopped=False, store="", lasting=True)
    answer = f'pointsman answer {name} where \'{{"action": "return", "data": {{"1": RESULT}}}}\''
    assert [line for line in told if answer in line] != []
