"""Pending tool calls of agents: which node runs them, and where control goes afterwards."""

from __future__ import annotations

import pytest

from pointsman.engine.actions import WorkAction
from pointsman.engine.reports import ToolCall
from pointsman.values import JsonObject
from tests.engine.world import World, plan_of, started

AGENTS = {"agent1": {"routing": "label"}, "agent2": {"routing": "label"}}
CALL = ToolCall(id="c1", name="search", arguments={"q": "x"})


def called(drawing: str) -> World:
    return started(drawing, nodes=AGENTS).done("agent1", pending=(CALL,))


@pytest.mark.requirement("S0-38", "T0-15")
def test_pending_calls_go_to_the_tool_executor_with_any_label_of_the_agent() -> None:
    world = started("start -> agent1; agent1 -#on-> agent2; agent1 -> tools", nodes=AGENTS)
    world.done("agent1", next="on", pending=(CALL,))
    assert world.working == ["tools"]
    assert world.asked("tools") == {
        "calls": [{"id": "c1", "name": "search", "arguments": {"q": "x"}}],
        "caller": "agent1",
    }


@pytest.mark.requirement("S0-24", "S0-40", "S0-45", "T0-10")
def test_the_tool_executor_takes_the_edge_of_the_last_tool_with_an_edge() -> None:
    drawing = "start -> agent1; agent1 -> tools; tools -#search-> agent2; tools -#other-> agent1; tools -> tool9"
    assert called(drawing).done("tools", labels=("unknown",), next="search").working == ["agent2"]
    assert called(drawing).done("tools", labels=("search",), next="unknown").working == ["agent2"]


@pytest.mark.requirement("S0-41", "S0-45")
def test_the_tool_executor_takes_its_plain_edge_without_a_tool_edge() -> None:
    drawing = "start -> agent1; agent1 -> tools; tools -#other-> agent2; tools -> tool9"
    assert called(drawing).done("tools", next="search").working == ["tool9"]


@pytest.mark.requirement("S0-43", "S0-44")
@pytest.mark.parametrize("more", ["", "; tools -#other-> agent2"])
def test_the_tool_executor_returns_to_the_caller_without_edges(more: str) -> None:
    world = called("start -> agent1; agent1 -> tools" + more).done("tools", next="search")
    assert world.working == ["agent1#2"]


@pytest.mark.requirement("S0-43")
def test_each_caller_receives_its_own_results() -> None:
    world = called("start -> agent1; agent1 -> tools; agent1 -#on-> agent2; agent2 -> tools").done("tools", "r")
    world.done("agent1", next="on").done("agent2", pending=(CALL,)).done("tools", "r2")
    assert world.working == ["agent2#2"]


def test_concurrent_callers_are_served_one_by_one() -> None:
    drawing = "start -> agent1, agent2; agent1 -> tools; agent2 -> tools"
    for order in (["agent1", "agent2"], ["agent2", "agent1"]):
        world = started(drawing, nodes=AGENTS)
        for name in order:
            world.done(name, pending=(ToolCall(id=name, name="search", arguments={}),))
        assert world.working == ["tools~start.1.0", "tools~start.1.1"]
        assert [world.asked(name)["caller"] for name in world.working] == ["agent1", "agent2"]
        world.done("tools~start.1.1", "found")
        assert world.working == ["agent2#2", "tools~start.1.0"]


def test_a_tool_executor_without_pending_calls_warns_and_passes_control_on() -> None:
    world = started("start -> tool1; tool1 -> tools; tools -> tool2").done("tool1", "v")
    assert (world.working, world.warnings) == (["tool2"], ["nothing-pending"])
    assert world.state.steps[world.at("tool2")[0]].incoming.value == "v"


@pytest.mark.requirement("S0-48")
def test_the_edge_to_the_tool_executor_is_not_a_label_for_agents() -> None:
    plan = plan_of("start -> agent1; agent1 -#on-> agent2; agent1 -#run-> tools", nodes=AGENTS)
    does = plan.nodes["agent1"].action
    assert isinstance(does, WorkAction)
    assert (does.spec.routes, does.spec.leaves_calls) == (("on",), True)


def test_agents_run_their_tools_themselves_without_a_tool_executor() -> None:
    does = plan_of("start -> agent1").nodes["agent1"].action
    assert isinstance(does, WorkAction)
    assert not does.spec.leaves_calls


@pytest.mark.requirement("S0-38")
def test_agents_with_an_executor_share_the_conversation() -> None:
    world = started("start -> agent1; agent1 -> tools", nodes=AGENTS)
    said: JsonObject = {"role": "assistant", "content": "let me see"}
    world.done("agent1", pending=(CALL,), messages=(said,))
    world.done("tools", messages=({"role": "tool", "content": "found"},))
    assert world.data["messages"] == [said, {"role": "tool", "content": "found"}]
    step, _ = world.at("agent1")
    assert list(world.simulation.asked.work[step].messages) == world.data["messages"]
    world.crash()
    assert list(world.simulation.asked.work[step].messages) == world.data["messages"]
