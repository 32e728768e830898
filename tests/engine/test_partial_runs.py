"""Partial runs: a part of a workflow runs, the results of the rest are given; and breakpoints."""

from __future__ import annotations

import pytest

from pointsman.engine.compile.partial_run import PartialRunInvalid, partial_run_plan
from pointsman.engine.events.lifecycle import ExecutionCompleted, ExecutionPaused, ExecutionStarted
from pointsman.engine.events.steps import InstantStepCompleted
from pointsman.engine.reports import ResumeRequested
from pointsman.values import Json, JsonObject
from tests.engine.replays import replay
from tests.engine.world import More, World, plan_of

LINE = "start -> tool1; tool1 -> tool2; tool2 -> tool3"
FAN = "start -> fan1; fan1 -> tool1; tool1 -> tool2; tool2 -> join1; join1 -> tool3"


def trial(drawing: str, *, input: JsonObject | None = None, nodes: More | None = None, **said: Json) -> World:
    return World(partial_run_plan(plan_of(drawing, nodes=nodes), said)).begin(input)


def step(world: World) -> World:
    world.tell(ResumeRequested(step=True))
    return world


def paused_before(world: World) -> list[str]:
    return [str(event.before) for event in world.events(ExecutionPaused) if event.before is not None]


def test_a_pinned_node_is_not_executed_and_returns_its_pinned_value() -> None:
    nodes = {"tool2": {"config": {"tool": "t", "parameters": {"of": "{{nodes.tool1.name}}"}}}}
    world = trial(LINE, nodes=nodes, pinned={"tool1": {"name": "ada"}})
    assert (world.working, world.asked("tool2")["parameters"]) == (["tool2"], {"of": "ada"})
    assert [str(one.step) for one in world.events(InstantStepCompleted) if one.pinned] == ["tool1"]
    world.crash().done("tool2").done("tool3")
    assert world.status == "completed"


def test_a_pinned_answer_of_a_person_leaves_by_its_action() -> None:
    world = trial("start -> ask1; ask1 -#yes-> tool1; ask1 -#no-> tool2", pinned={"ask1": {"action": "no"}})
    assert (world.gates, world.working) == ([], ["tool2"])


def test_each_branch_and_round_returns_the_pin_of_its_step() -> None:
    nodes = {"fan1": {"config": {"items": "input.all"}}}
    pinned: JsonObject = {"fan1[1.0]/tool1": "north", "fan1[1.2]/tool1": "south", "tool2": "drawn"}
    world = trial(FAN, nodes=nodes, input={"all": [1, 2, 3]}, pinned=pinned, until=["join1"])
    assert world.working == ["fan1[1.1]/tool1"], "of this one nothing was said"
    said = {str(one.step): one.result for one in world.events(InstantStepCompleted) if one.pinned}
    assert said["fan1[1.0]/tool1"] == "north"
    assert said["fan1[1.2]/tool1"] == "south"
    world.crash().done("fan1[1.1]/tool1", "east")
    assert (world.status, world.output) == ("completed", ["drawn"] * 3)


def test_the_pin_of_a_step_takes_precedence_over_the_pin_of_its_node() -> None:
    drawing = "start -> tool1; tool1 -> ask1; ask1 -#again-> tool1; ask1 -#done-> tool2"
    pinned: JsonObject = {"tool1": "any", "tool1#2": "second", "ask1#1": "again", "ask1#2": "again", "ask1": "done"}
    world = trial(drawing, pinned=pinned)
    assert [one.result for one in world.events(InstantStepCompleted) if one.step.node == "tool1"] == [
        "any",
        "second",
        "any",
    ]
    assert world.working == ["tool2"]


def test_a_partial_run_ends_after_its_target_with_the_result_of_the_target() -> None:
    world = trial(LINE, until=["tool2"]).done("tool1").done("tool2", {"found": 1})
    assert (world.status, world.output, world.working) == ("completed", {"found": 1}, [])
    (event,) = world.events(ExecutionCompleted)
    assert event.until == ("tool2",)


def test_nodes_that_do_not_lead_to_the_target_are_not_executed() -> None:
    world = trial("start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4", until=["tool2"])
    assert world.done("tool1").working == ["tool2"]
    world.crash().done("tool2")
    assert (world.status, world.output) == ("completed", "tool2")


def test_a_target_inside_a_parallel_ends_every_branch_and_nothing_follows() -> None:
    nodes = {"fan1": {"config": {"items": "input.all"}}}
    world = trial(FAN, nodes=nodes, input={"all": [1, 2]}, until=["tool1"])
    for branch, name in enumerate(world.working):
        world.crash().done(name, f"found {branch}")
    assert (world.status, world.output) == ("completed", ["found 0", "found 1"])


def test_a_partial_run_to_a_parallel_runs_to_its_join() -> None:
    nodes = {"fan1": {"config": {"items": "input.all"}}}
    world = trial(FAN, nodes=nodes, input={"all": [1, 2]}, until=["fan1"], pinned={"tool1": "x"})
    for name in world.working:
        world.done(name, "y")
    assert (world.status, world.output, "tool3" in world.path) == ("completed", ["y", "y"], False)


def test_a_single_node_runs_alone_with_the_given_data() -> None:
    nodes = {"tool2": {"config": {"tool": "t", "parameters": {"n": "{{n}}", "got": "{{result}}"}}}}
    world = trial(LINE, nodes=nodes, input={"n": 7}, node="tool2", given="before")
    assert (world.working, world.asked("tool2")["parameters"]) == (["tool2"], {"n": 7, "got": "before"})
    world.crash().done("tool2", "after")
    assert (world.status, world.output) == ("completed", "after")


def test_a_breakpoint_pauses_once_before_each_step_and_resumes_past_it() -> None:
    world = trial(LINE, breakpoints=["tool2"]).done("tool1")
    assert (world.status, world.working, paused_before(world)) == ("paused", [], ["tool2"])
    world.crash().resume()
    assert (world.status, world.working) == ("running", ["tool2"])
    world.done("tool2").done("tool3")
    assert world.status == "completed"


def test_a_breakpoint_at_a_joining_node_keeps_all_its_arrivals() -> None:
    world = trial("start -> tool1, tool2; tool1 -> tool3; tool2 -> tool3", breakpoints=["tool3"])
    world.done("tool1").done("tool2")
    assert (world.status, paused_before(world)) == ("paused", ["tool3"])
    world.crash().resume()
    assert world.working == ["tool3"]


def test_any_execution_can_continue_one_step_at_a_time() -> None:
    world = World(plan_of(LINE)).begin().pause().done("tool1")
    step(world)
    assert (world.status, paused_before(world)) == ("paused", ["tool2"])
    step(world.crash())
    assert world.working == ["tool2"]
    world.done("tool2")
    assert (world.status, paused_before(world)) == ("paused", ["tool2", "tool3"])
    world.resume().done("tool3")
    assert world.status == "completed"


def test_replay_of_a_partial_run_gives_the_same_journal() -> None:
    plan = partial_run_plan(plan_of(LINE), {"pinned": {"tool1": 1}, "breakpoints": ["tool2"], "until": ["tool3"]})
    world = World(plan).begin()
    step(world.resume().done("tool2"))
    world.done("tool3")
    assert world.status == "completed"
    found = replay(lambda _: plan, "simulated", world.simulation.rows)
    assert found.differences == []


def test_the_start_event_of_a_full_run_has_no_partial_run() -> None:
    world = World(plan_of(LINE)).begin()
    (event,) = world.events(ExecutionStarted)
    assert event.options == {}
    assert not world.state.pause.breakpoints.passed_steps


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"until": ["nowhere"]}, "'nowhere'"),
        ({"pinned": {"fan1": 1}}, "routes control"),
        ({"node": "join1"}, "it cannot run without"),
        ({"breakpoints": ["nowhere"]}, "a breakpoint"),
        ({"pinned": {"fan1[1.0]/nowhere": 1}}, "'nowhere'"),
    ],
)
def test_an_impossible_partial_run_is_refused_before_it_starts(said: JsonObject, message: str) -> None:
    with pytest.raises(PartialRunInvalid, match=message):
        partial_run_plan(plan_of(FAN, nodes={"fan1": {"config": {"items": "input.all"}}}), said)


SCHEMA: JsonObject = {"type": "object", "required": ["score"], "properties": {"score": {"type": "integer"}}}
ROUTED = "start -> agent1; agent1 -> ask1; ask1 -#yes-> decision1; ask1 -#no-> tool1; decision1 -#true-> tool2"


@pytest.mark.parametrize(
    ("pinned", "message"),
    [
        ({"ask1": {"action": "maybe"}}, "pinned to the answer 'maybe', but no edge accepts it"),
        ({"ask1": {}}, "pinned to no answer"),
        ({"decision1": "false"}, "pinned to the branch 'false'"),
        ({"decision1#2": {"branch": 7}}, "pinned to the branch '7'"),
        ({"agent1": {"score": "high"}}, "score: "),
        ({"agent1": "no object"}, "breaks its output schema"),
    ],
)
def test_a_pin_that_the_node_could_never_return_is_refused(pinned: JsonObject, message: str) -> None:
    nodes = {
        "agent1": {"config": {"prompt": "x", "outputSchema": SCHEMA}},
        "decision1": {"config": {"expression": "1 == 1"}},
    }
    with pytest.raises(PartialRunInvalid, match=message):
        partial_run_plan(plan_of(ROUTED, nodes=nodes), {"pinned": pinned})
    fits: JsonObject = {"agent1": {"score": 7, "next": "ask1"}, "ask1": {"action": "YES"}, "decision1": True}
    assert World(partial_run_plan(plan_of(ROUTED, nodes=nodes), {"pinned": fits})).begin().working == ["tool2"]
