"""Trials: a part of a workflow is performed, the rest of it is said; and executions that stop before a step."""

from __future__ import annotations

import pytest

from pointsman.engine.compile.partial_run import TrialUnfit, tried
from pointsman.engine.events.lifecycle import ExecutionCompleted, ExecutionPaused, ExecutionStarted
from pointsman.engine.events.steps import InstantStepCompleted
from pointsman.engine.replay import replay
from pointsman.engine.reports import ResumeRequested
from pointsman.values import Json, JsonObject
from tests.engine.world import More, World, plan_of

LINE = "start -> tool1; tool1 -> tool2; tool2 -> tool3"
FAN = "start -> fan1; fan1 -> tool1; tool1 -> tool2; tool2 -> join1; join1 -> tool3"


def trial(drawing: str, *, input: JsonObject | None = None, nodes: More | None = None, **said: Json) -> World:
    return World(tried(plan_of(drawing, nodes=nodes), said)).begin(input)


def step(world: World) -> World:
    world.tell(ResumeRequested(step=True))
    return world


def paused_before(world: World) -> list[str]:
    return [str(event.before) for event in world.events(ExecutionPaused) if event.before is not None]


def test_what_is_pinned_is_not_performed_and_brings_what_was_said() -> None:
    nodes = {"tool2": {"config": {"tool": "t", "parameters": {"of": "{{nodes.tool1.name}}"}}}}
    world = trial(LINE, nodes=nodes, pinned={"tool1": {"name": "ada"}})
    assert (world.working, world.asked("tool2")["parameters"]) == (["tool2"], {"of": "ada"})
    assert [str(one.step) for one in world.events(InstantStepCompleted) if one.pinned] == ["tool1"]
    world.crash().done("tool2").done("tool3")
    assert world.status == "completed"


def test_a_pinned_answer_of_a_person_leaves_by_its_action() -> None:
    world = trial("start -> ask1; ask1 -#yes-> tool1; ask1 -#no-> tool2", pinned={"ask1": {"action": "no"}})
    assert (world.gates, world.working) == ([], ["tool2"])


def test_each_branch_and_each_round_brings_what_was_pinned_of_its_step() -> None:
    nodes = {"fan1": {"config": {"items": "input.all"}}}
    pinned: JsonObject = {"fan1[1.0]/tool1": "north", "fan1[1.2]/tool1": "south", "tool2": "drawn"}
    world = trial(FAN, nodes=nodes, input={"all": [1, 2, 3]}, pinned=pinned, until=["join1"])
    assert world.working == ["fan1[1.1]/tool1"], "of this one nothing was said"
    said = {str(one.step): one.result for one in world.events(InstantStepCompleted) if one.pinned}
    assert said["fan1[1.0]/tool1"] == "north"
    assert said["fan1[1.2]/tool1"] == "south"
    world.crash().done("fan1[1.1]/tool1", "east")
    assert (world.status, world.output) == ("completed", ["drawn"] * 3)


def test_what_is_pinned_of_a_step_goes_before_what_is_pinned_of_its_node() -> None:
    drawing = "start -> tool1; tool1 -> ask1; ask1 -#again-> tool1; ask1 -#done-> tool2"
    pinned: JsonObject = {"tool1": "any", "tool1#2": "second", "ask1#1": "again", "ask1#2": "again", "ask1": "done"}
    world = trial(drawing, pinned=pinned)
    assert [one.result for one in world.events(InstantStepCompleted) if one.step.node == "tool1"] == [
        "any",
        "second",
        "any",
    ]
    assert world.working == ["tool2"]


def test_it_ends_behind_the_node_it_was_to_run_to_with_what_that_brought() -> None:
    world = trial(LINE, until=["tool2"]).done("tool1").done("tool2", {"found": 1})
    assert (world.status, world.output, world.working) == ("completed", {"found": 1}, [])
    (event,) = world.events(ExecutionCompleted)
    assert event.until == ("tool2",)


def test_what_does_not_lead_there_is_not_performed() -> None:
    world = trial("start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4", until=["tool2"])
    assert world.done("tool1").working == ["tool2"]
    world.crash().done("tool2")
    assert (world.status, world.output) == ("completed", "tool2")


def test_inside_of_a_parallel_every_branch_comes_to_its_end_and_nothing_follows() -> None:
    nodes = {"fan1": {"config": {"items": "input.all"}}}
    world = trial(FAN, nodes=nodes, input={"all": [1, 2]}, until=["tool1"])
    for branch, name in enumerate(world.working):
        world.crash().done(name, f"found {branch}")
    assert (world.status, world.output) == ("completed", ["found 0", "found 1"])


def test_to_run_to_a_parallel_is_to_run_to_its_join() -> None:
    nodes = {"fan1": {"config": {"items": "input.all"}}}
    world = trial(FAN, nodes=nodes, input={"all": [1, 2]}, until=["fan1"], pinned={"tool1": "x"})
    for name in world.working:
        world.done(name, "y")
    assert (world.status, world.output, "tool3" in world.path) == ("completed", ["y", "y"], False)


def test_one_node_is_tried_alone_with_the_data_that_it_is_given() -> None:
    nodes = {"tool2": {"config": {"tool": "t", "parameters": {"n": "{{n}}", "got": "{{result}}"}}}}
    world = trial(LINE, nodes=nodes, input={"n": 7}, node="tool2", given="before")
    assert (world.working, world.asked("tool2")["parameters"]) == (["tool2"], {"n": 7, "got": "before"})
    world.crash().done("tool2", "after")
    assert (world.status, world.output) == ("completed", "after")


def test_it_pauses_once_before_each_step_of_a_breakpoint_and_goes_on_past_it() -> None:
    world = trial(LINE, breakpoints=["tool2"]).done("tool1")
    assert (world.status, world.working, paused_before(world)) == ("paused", [], ["tool2"])
    world.crash().resume()
    assert (world.status, world.working) == ("running", ["tool2"])
    world.done("tool2").done("tool3")
    assert world.status == "completed"


def test_a_node_at_which_several_meet_stops_before_it_starts_and_starts_with_all_of_them() -> None:
    world = trial("start -> tool1, tool2; tool1 -> tool3; tool2 -> tool3", breakpoints=["tool3"])
    world.done("tool1").done("tool2")
    assert (world.status, paused_before(world)) == ("paused", ["tool3"])
    world.crash().resume()
    assert world.working == ["tool3"]


def test_any_execution_goes_on_one_step_at_a_time() -> None:
    world = World(plan_of(LINE)).begin().pause().done("tool1")
    step(world)
    assert (world.status, paused_before(world)) == ("paused", ["tool2"])
    step(world.crash())
    assert world.working == ["tool2"]
    world.done("tool2")
    assert (world.status, paused_before(world)) == ("paused", ["tool2", "tool3"])
    world.resume().done("tool3")
    assert world.status == "completed"


def test_a_journal_of_a_trial_is_decided_again_as_it_was() -> None:
    plan = tried(plan_of(LINE), {"pinned": {"tool1": 1}, "breakpoints": ["tool2"], "until": ["tool3"]})
    world = World(plan).begin()
    step(world.resume().done("tool2"))
    world.done("tool3")
    assert world.status == "completed"
    found = replay(lambda _: plan, "simulated", world.simulation.rows)
    assert found.differences == []


def test_the_start_of_an_execution_that_is_no_trial_says_nothing_of_one() -> None:
    world = World(plan_of(LINE)).begin()
    (event,) = world.events(ExecutionStarted)
    assert event.options == {}
    assert not world.state.pause.breakpoints.passed_steps


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"until": ["nowhere"]}, "'nowhere'"),
        ({"pinned": {"fan1": 1}}, "leads control"),
        ({"node": "join1"}, "alone it has nothing to lead"),
        ({"breakpoints": ["nowhere"]}, "stopped at"),
        ({"pinned": {"fan1[1.0]/nowhere": 1}}, "'nowhere'"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_starts(said: JsonObject, message: str) -> None:
    with pytest.raises(TrialUnfit, match=message):
        tried(plan_of(FAN, nodes={"fan1": {"config": {"items": "input.all"}}}), said)


SCHEMA: JsonObject = {"type": "object", "required": ["score"], "properties": {"score": {"type": "integer"}}}
ROUTED = "start -> agent1; agent1 -> ask1; ask1 -#yes-> decision1; ask1 -#no-> tool1; decision1 -#true-> tool2"


@pytest.mark.parametrize(
    ("pinned", "message"),
    [
        ({"ask1": {"action": "maybe"}}, "pinned to the answer 'maybe', and no edge takes that"),
        ({"ask1": {}}, "pinned to no answer"),
        ({"decision1": "false"}, "pinned to the branch 'false'"),
        ({"decision1#2": {"branch": 7}}, "pinned to the branch '7'"),
        ({"agent1": {"score": "high"}}, "score: "),
        ({"agent1": "no object"}, "output schema forbids"),
    ],
)
def test_a_value_that_the_node_could_never_bring_is_refused(pinned: JsonObject, message: str) -> None:
    nodes = {
        "agent1": {"config": {"prompt": "x", "outputSchema": SCHEMA}},
        "decision1": {"config": {"expression": "1 == 1"}},
    }
    with pytest.raises(TrialUnfit, match=message):
        tried(plan_of(ROUTED, nodes=nodes), {"pinned": pinned})
    fits: JsonObject = {"agent1": {"score": 7, "next": "ask1"}, "ask1": {"action": "YES"}, "decision1": True}
    assert World(tried(plan_of(ROUTED, nodes=nodes), {"pinned": fits})).begin().working == ["tool2"]
