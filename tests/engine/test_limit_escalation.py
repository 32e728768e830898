"""Limits with a gate: a limit stops an execution, and the approvers may continue it."""

from __future__ import annotations

import pytest

from pointsman.definition.model.policies import Limits
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.limits import LimitCapped
from pointsman.engine.events.lifecycle import ExecutionInterrupted, LimitEscalated, LimitsRaised
from pointsman.engine.reports import GateAnswered, TimerFired, Usage
from pointsman.engine.state import status_of
from pointsman.values import Json, JsonObject
from tests.engine.world import World, limits, started

ASKED = "start -> tool1, tool2, wait1; tool1 -> tool3; tool3 -> tool4; ask9 -#stop-> tool9"
OPTIONS = [{"value": "continue", "more": {"steps": 5, "tokens": 50}}, {"value": "stop"}]


def asked(*, options: object = OPTIONS, drawing: str = ASKED, **gate: object) -> World:
    """Return a world with two branches and a timer; the limit applies before `tool3`, and its gate opens."""
    nodes = {"ask9": {"config": {"options": options, **gate}}, "wait1": {"config": {"duration": "60s"}}}
    return started(drawing, nodes=nodes, config={**limits(steps=4), "onLimit": "ask9"}).done("tool1")


def test_a_limit_gate_shows_the_reached_limit_and_keeps_the_rest_of_the_state() -> None:
    world = asked()
    assert (world.gates, world.working, status_of(world.state)) == (["ask9"], [], "waiting")
    gate = world.state.steps[world.at("ask9")[0]].gate
    assert gate is not None
    assert gate.message == "the limit of 4 steps is reached (`steps`, set by the workflow)"
    assert sorted(str(step) for step in world.state.steps) == ["ask9", "tool2", "wait1"]
    assert [one.node for one in world.state.held_arrivals] == ["tool3"]
    assert [event.limit for event in world.events(ExecutionInterrupted)] == ["steps"]


@pytest.mark.parametrize("crashed", [False, True])
def test_an_action_that_raises_the_limit_resumes_all_stopped_steps(crashed: bool) -> None:
    world = asked()
    if crashed:
        world.crash()
    world.answer("ask9", "continue")
    assert (world.working, world.timers, world.gates) == (["tool2", "tool3"], [60.0], [])
    assert world.state.limits.raised == {"steps": 10}, (
        "so much more than was taken: there is no budget of tokens to raise"
    )
    assert world.done("tool3").rest().status == "completed"
    assert world.path.count("tool4") == 1


def test_another_action_drops_stopped_steps_and_takes_its_edge() -> None:
    world = asked().crash().answer("ask9", "stop")
    assert (world.status, world.working, world.timers, world.state.held_arrivals) == ("running", ["tool9"], [], [])
    assert [event.gate is None for event in world.events(LimitEscalated)] == [False, True]
    assert world.done("tool9", "a person called").output == "a person called"


def test_an_action_without_an_edge_ends_the_execution_and_reject_cancels_it() -> None:
    silent = "start -> tool1, tool2, wait1; tool1 -> tool3; tool3 -> tool4; ask9"
    assert asked(drawing=silent).answer("ask9", "stop").status == "completed"
    options = [*OPTIONS, {"value": "reject"}]
    assert asked(drawing=silent, options=options).answer("ask9", "reject").status == "cancelled"


def test_a_limit_gate_opens_each_time_a_limit_is_reached() -> None:
    options = [{"value": "continue", "more": {"steps": 1}}]
    world = asked(options=options, drawing=ASKED.replace(" -#stop-> tool9", "")).answer("ask9", "continue")
    assert world.gates == []
    world.done("tool3")
    assert world.gates == ["ask9#2"]
    world.answer("ask9#2", "continue").done("tool4").done("tool2").ring()
    assert world.status == "completed"


def test_results_that_arrive_during_a_limit_gate_are_not_lost() -> None:
    world = asked().done("tool2", "paid for")
    assert (world.gates, world.status) == (["ask9"], "interrupted")
    world.answer("ask9", "continue").done("tool3").done("tool4").ring()
    assert (world.status, world.path.count("tool2")) == ("completed", 1)


def test_only_the_timer_of_the_limit_gate_fires_while_it_is_open() -> None:
    world = asked(timeout="10s", onTimeout="continue")
    waiting = next(name for name, timer in world.state.timers.items() if timer.purpose == "wait")
    world.tell(TimerFired(timer=waiting))
    assert (world.gates, world.timers) == (["ask9"], [10.0])
    world.crash().ring()
    assert (world.status, world.working) == ("running", ["tool2", "tool3"])


def test_an_unanswered_limit_gate_leaves_the_execution_interrupted_and_resumable() -> None:
    world = asked(timeout="10s").ring()
    assert (world.status, status_of(world.state), world.warnings) == ("interrupted", "interrupted", ["handoff-failed"])
    assert world.crash().resume(steps=20).working == ["tool2", "tool3"]


def test_a_resume_answers_the_limit_gate() -> None:
    world = asked().resume(steps=20)
    assert (world.gates, world.working) == ([], ["tool2", "tool3"])
    assert world.rest().status == "completed"


def test_more_wall_clock_time_counts_from_the_answer() -> None:
    options = [{"value": "continue", "more": {"deadline": "30s"}}]
    nodes = {"ask9": {"config": {"options": options}}}
    world = started("start -> tool1; ask9", nodes=nodes, config={**limits(deadline="60s"), "onLimit": "ask9"}).ring()
    assert world.gates == ["ask9"]
    world.later(1_000).answer("ask9", "continue")
    assert (world.working, world.timers) == (["tool1"], [30.0])


def test_execution_time_does_not_count_while_a_limit_gate_is_open() -> None:
    options = [{"value": "continue", "more": {"executionTime": "5s"}}]
    nodes = {"ask9": {"config": {"options": options}}}
    world = started("start -> tool1; ask9", nodes=nodes, config={**limits(executionTime="10s"), "onLimit": "ask9"})
    world.ring().later(1_000).answer("ask9", "continue")
    assert (world.working, world.timers) == (["tool1"], [5.0])


def test_a_budget_is_raised_from_the_spent_amount() -> None:
    options = [{"value": "continue", "more": {"tokens": 100, "modelCalls": 1}}]
    nodes = {"ask9": {"config": {"options": options}}}
    config = {**limits(tokens=50), "onLimit": "ask9"}
    world = started("start -> agent1; agent1 -> agent2; agent2 -> agent3; ask9", nodes=nodes, config=config)
    world.done("agent1", usage=Usage(input_tokens=90)).answer("ask9", "continue")
    assert (world.working, world.state.limits.raised) == (["agent2"], {"tokens": 190})
    assert world.done("agent2", usage=Usage(input_tokens=100)).gates == ["ask9#2"]


def test_a_person_can_give_a_stalled_agent_more_attempts() -> None:
    options: list[Json] = [{"value": "continue", "more": {}}, {"value": "reject"}]
    nodes = {"ask9": {"config": {"options": options}}}
    world = started("start -> agent1; agent1 -> agent1; ask9", nodes=nodes, config={"onLimit": "ask9"})
    for _ in range(3):
        world.done("agent1", "the same")
    assert world.gates == ["ask9"]
    world.answer("ask9", "continue")
    assert world.working == ["agent1#3"]
    for _ in range(3):
        world.done(world.working[0], "the same")
    assert world.state.limits.interruption is None
    assert world.done(world.working[0], "the same").gates == ["ask9#2"]


def test_an_answer_cannot_exceed_the_limits_of_the_operator() -> None:
    document: JsonObject = {
        "id": "capped",
        "config": {"limits": {"steps": 2}, "onLimit": "ask"},
        "nodes": [
            {"id": "one", "type": "tool", "config": {"tool": "t"}},
            {"id": "ask", "type": "human", "config": {"options": [{"value": "continue", "more": {"steps": 9}}]}},
        ],
        "edges": [{"source": "one", "target": "one", "condition": {"type": "expression", "expression": "true"}}],
        "entry": "one",
    }
    workflow, problems = WorkflowDefinition.from_document(document)
    assert workflow is not None, problems
    world = World(compile_workflow(workflow, caps=Limits(steps=5))).begin().done("one").done("one#2")
    answer = GateAnswered(step=world.at("ask")[0], action="continue")
    with pytest.raises(LimitCapped):
        decide(world.simulation.plan, world.state, answer, world.now)
    assert (world.gates, world.events(LimitsRaised)) == (["ask"], [])
