"""Budgets: limits of spending on models and tools, including sub-workflows, and the gate when they are spent."""

from __future__ import annotations

import pytest

from pointsman.definition.model.base import Duration
from pointsman.definition.model.policies import Limits
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import WorkAction
from pointsman.engine.commands import HoldChild
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.entry import outstanding
from pointsman.engine.decide.limits import LimitCapped, LimitUsed, UnknownLimit, refused_by_budget
from pointsman.engine.events.waits import LimitHit
from pointsman.engine.reports import ChildUsageReported, Usage
from pointsman.values import Json, JsonObject, Seconds
from tests.engine.world import World, limits, plan_of, started

CHAIN = "start -> agent1; agent1 -> agent2; agent2 -> set1; set1 -> agent3"
CHILD = {"child1": {"type": "workflow", "config": {"workflow": "other"}}}
TALK = Usage(input_tokens=60, output_tokens=40, model_calls=1, cost_usd=0.05)


def budget(policy: str | None = None, warn_at: float | None = None, **said: Json) -> dict[str, object]:
    about: JsonObject = {}
    if policy is not None:
        about["policy"] = policy
    if warn_at is not None:
        about["warnAt"] = warn_at
    return {"limits": dict(said), **({"budget": about} if about else {})}


def talked(config: dict[str, object]) -> World:
    """Return a world in which two agents have each spent what `TALK` defines."""
    return started(CHAIN, config=config).done("agent1", usage=TALK).done("agent2", usage=TALK)


@pytest.mark.parametrize(("name", "most"), [("tokens", 200), ("modelCalls", 2), ("costUsd", 0.1)])
def test_a_step_beyond_the_budget_is_stopped_and_continues_when_the_budget_is_raised(name: str, most: float) -> None:
    world = talked({"limits": {name: most}})
    assert (world.status, world.state.limits.interruption) == ("interrupted", name)
    assert "set1" in world.path, "what spends nothing goes on"
    assert world.crash().resume(**{name: most * 2}).working == ["agent3"]


def test_an_exactly_spent_budget_does_not_stop_steps_without_cost() -> None:
    world = started("start -> agent1; agent1 -> set1", config=budget(modelCalls=1)).done("agent1", usage=TALK)
    assert world.status == "completed"


def test_tool_calls_are_counted_separately() -> None:
    world = started("start -> tool1; tool1 -> agent1; agent1 -> tool2", config=budget(toolCalls=1))
    world.done("tool1", usage=Usage(tool_calls=1))
    assert world.working == ["agent1"]
    world.done("agent1", usage=TALK)
    assert (world.status, world.state.limits.interruption) == ("interrupted", "toolCalls")


def test_a_budget_warns_once_before_it_is_spent() -> None:
    world = talked(budget(tokens=240))
    assert world.warnings == ["budget-low"]
    assert world.done("agent3").warnings == ["budget-low"]
    assert talked(budget(tokens=250)).warnings == ["budget-low"], "80 %"
    assert talked(budget(tokens=251)).warnings == []
    assert talked(budget(tokens=1000, warn_at=0.2)).warnings == ["budget-low"]


def test_a_budget_that_only_warns_stops_no_step() -> None:
    world = talked(budget("warn", tokens=150))
    assert (world.working, world.warnings) == (["agent3"], ["budget-spent"])
    assert refused_by_budget(world.simulation.plan, world.state, "model", 1, []) is None


def test_a_pausing_budget_lets_running_steps_finish_and_waits_for_a_person() -> None:
    world = started("start -> agent1, tool1; agent1 -> agent2", config=budget("pause", tokens=100))
    world.done("agent1", usage=TALK)
    assert (world.status, world.working) == ("paused", ["tool1"])
    assert [event.limit for event in world.events(LimitHit)] == ["tokens"]
    assert world.done("tool1").resume().status == "paused", "there is no more of it than before"
    assert world.crash().resume(tokens=500).working == ["agent2"]


def test_an_unknown_cost_is_reported_and_is_not_zero() -> None:
    unpriced = Usage(input_tokens=5, model_calls=1)
    world = started(CHAIN, config=budget(costUsd=1)).done("agent1", usage=unpriced).done("agent2", usage=unpriced)
    assert world.warnings == ["cost-unknown"]
    assert "cost-unknown" not in talked(budget(costUsd=1)).warnings
    free, mixed = Usage(model_calls=2, free_calls=2), Usage(model_calls=2, free_calls=1)
    world = started(CHAIN, config=budget(costUsd=1)).done("agent1", usage=free)
    assert world.warnings == [], "what has no price because nobody is asked costs nothing"
    assert world.done("agent2", usage=mixed).warnings == ["cost-unknown"]


def test_an_attempt_stopped_by_a_budget_has_not_failed_and_runs_again() -> None:
    world = started(CHAIN, config=budget(tokens=100)).refused("agent1", "tokens")
    assert (world.status, world.state.limits.interruption, world.state.usage.model_calls) == (
        "interrupted",
        "tokens",
        0,
    )
    world.resume(tokens=500)
    assert (world.working, world.at("agent1")[1]) == (["agent1"], 1), "the same attempt: its record is paid for"


def test_all_attempts_refused_during_a_pause_run_again() -> None:
    world = started("start -> agent1, agent2, agent3", config=budget("pause", tokens=100))
    world.refused("agent1", "tokens").refused("agent2", "tokens")
    assert (world.status, world.working) == ("paused", ["agent3"])
    assert world.resume(tokens=500).working == ["agent1", "agent2", "agent3"]


def test_the_cost_of_open_attempts_is_added_up() -> None:
    plan = plan_of(CHAIN, config=budget(modelCalls=3, toolCalls=2, tokens=1000))
    state = World(plan).begin().state
    one = Usage(model_calls=1, tool_calls=1, input_tokens=10)
    assert refused_by_budget(plan, state, "model", 1, [one, one]) is None
    tripped = refused_by_budget(plan, state, "model", 1, [one, one, one])
    assert tripped is not None
    assert tripped.limit == "modelCalls"
    assert tripped.message == "the budget of 3 model calls is spent (`modelCalls`, set by the workflow)"
    assert refused_by_budget(plan, state, "tool", 1, [one]) is None
    assert refused_by_budget(plan, state, "tool", 2, [one]) is not None
    assert refused_by_budget(plan, state, "tool", 1, [Usage(input_tokens=1000)]) is not None


def test_the_usage_of_a_running_sub_workflow_counts_once() -> None:
    world = started("start -> child1; child1 -> agent1", nodes=CHILD, config=budget(tokens=250))
    world.child_spends("child1", TALK).child_spends("child1", Usage(input_tokens=200, model_calls=2, cost_usd=0.07))
    assert (world.state.usage.model_calls, world.state.usage.input_tokens) == (2, 200)
    world.crash().child_ended("child1", usage=Usage(input_tokens=210, model_calls=3, cost_usd=0.09))
    usage = world.state.usage
    assert (usage.model_calls, usage.input_tokens, usage.cost_usd) == (3, 210, pytest.approx(0.09))
    assert world.working == ["agent1"]


def test_a_sub_workflow_that_overspends_stops_its_parent_at_its_next_step() -> None:
    world = started("start -> child1", nodes=CHILD, config=budget(tokens=90)).child_spends("child1", TALK)
    assert (world.status, world.state.limits.interruption) == ("interrupted", "tokens")
    world.resume(tokens=500)
    assert world.child_ended("child1", "fine").status == "completed"


def test_the_fallback_node_runs_after_a_spent_budget_and_may_spend() -> None:
    config = {**budget(tokens=100), "onLimit": "agent9"}
    world = started("start -> agent1; agent1 -> agent2; agent9", config=config).done("agent1", usage=TALK)
    assert world.working == ["agent9"]
    assert refused_by_budget(world.simulation.plan, world.state, "model", 1, []) is None


def capped(config: JsonObject, caps: Limits) -> World:
    document: JsonObject = {
        "id": "w",
        "nodes": [{"id": "a", "type": "tool", "config": {"tool": "t"}}],
        "edges": [{"source": "a", "target": "a", "condition": {"type": "expression", "expression": "true"}}],
        "entry": "a",
        "config": config,
    }
    workflow, problems = WorkflowDefinition.from_document(document)
    assert workflow is not None, problems
    return World(compile_workflow(workflow, caps=caps)).begin()


def test_the_operator_caps_the_limits_of_a_workflow_and_their_raises() -> None:
    world = capped({"limits": {"steps": 50}}, Limits(steps=2)).done("a").done("a")
    (_, message) = (world.status, world.simulation.outcome.events[-1])
    assert world.status == "interrupted"
    assert "`steps`, set by the operator" in str(message)
    with pytest.raises(LimitCapped, match="the operator allows 2"):
        world.refused_resume(steps=3)
    assert "`steps`, the default" not in str(message)


@pytest.mark.parametrize(
    ("config", "caps", "found"),
    [
        ({}, Limits(tokens=7), (("tokens", 7.0),)),
        ({"limits": {"tokens": 5}}, Limits(tokens=7), (("tokens", 5.0),)),
        ({"limits": {"tokens": 9}}, Limits(tokens=7, cost_usd=1), (("tokens", 7.0), ("costUsd", 1.0))),
    ],
)
def test_the_lower_of_two_limits_applies(
    config: JsonObject, caps: Limits, found: tuple[tuple[str, float], ...]
) -> None:
    assert capped(config, caps).simulation.plan.limits.budgets == found


def test_limits_of_time_and_parallelism_are_capped_too() -> None:
    caps = Limits(execution_time=Duration(Seconds(60)), parallel=2, node_time=Duration(Seconds(5)))
    plan = capped({"limits": {"executionTime": "10m", "parallel": 4}}, caps).simulation.plan
    assert (plan.limits.execution_time_s, plan.limits.parallel) == (60.0, 2)
    does = plan.nodes["a"].action
    assert isinstance(does, WorkAction)
    assert (does.spec.settings["modelCallTime"], does.spec.settings["toolCallTime"]) == (5.0, 5.0)


def test_an_unknown_limit_cannot_be_raised() -> None:
    world = talked(budget(tokens=200))
    with pytest.raises(UnknownLimit, match="no limit 'token'"):
        world.refused_resume(token=3)


def test_a_limit_cannot_be_set_below_its_present_use() -> None:
    world = talked(budget(tokens=200))
    with pytest.raises(LimitUsed, match=r"'tokens' cannot be 200: 200 are already used"):
        world.refused_resume(tokens=200)
    with pytest.raises(LimitUsed, match="'steps' cannot be 1"):
        world.refused_resume(tokens=1000, steps=1)
    assert (world.status, world.state.limits.raised) == ("interrupted", {}), "nothing was raised"
    assert world.crash().resume(tokens=201, steps=100).status == "running"


def test_the_visit_limit_of_a_node_can_be_raised_but_not_below_its_visits() -> None:
    world = started("start -> agent1; agent1 -> agent1", config=limits(visits=2))
    world.done("agent1", "a").done(world.working[0], "b")
    assert world.state.limits.interruption == "visits"
    with pytest.raises(LimitUsed, match="'visits:agent1' cannot be 2: 2 are already used"):
        world.refused_resume(**{"visits:agent1": 2})
    with pytest.raises(LimitUsed, match="'visits' cannot be 1"):
        world.refused_resume(visits=1)
    with pytest.raises(UnknownLimit, match="'visits:nobody'"):
        world.refused_resume(**{"visits:nobody": 9})
    assert world.resume(**{"visits:agent1": 3}).working == ["agent1#3"]


@pytest.mark.parametrize("policy", ["stop", "pause"])
def test_a_sub_workflow_is_paused_with_its_parent_even_after_a_crash(policy: str) -> None:
    world = started("start -> child1", nodes=CHILD, config=budget(policy, tokens=90))
    step, attempt = world.at("child1")
    report = ChildUsageReported(step=step, attempt=attempt, usage=TALK)
    decision = decide(world.simulation.plan, world.state, report, world.now)
    assert HoldChild(step=step, attempt=1) in decision.commands
    if policy == "stop":
        assert outstanding(world.simulation.plan, world.state) == [HoldChild(step=step, attempt=1)]
