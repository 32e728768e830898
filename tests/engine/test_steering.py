"""Steering: people change a running execution."""

from __future__ import annotations

import msgspec
import pytest

from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.lifecycle import NotSteerable
from pointsman.engine.decide.outputs import EditRefused
from pointsman.engine.events.lifecycle import ExecutionSteered
from pointsman.engine.reports import SteerRequested
from pointsman.values import Json
from tests.engine.replays import replay
from tests.engine.world import World, started

REAL_TIME = {"humanInLoop": "real_time"}
LINE = "start -> tool1; tool1 -> tool2; tool2 -> tool3"


def steer(world: World, **said: Json | tuple[object, ...]) -> None:
    """Decide first, which raises refusals, and then report to the world."""
    report = msgspec.convert({"type": "steer_requested", **said}, SteerRequested)
    decide(world.simulation.plan, world.state, report, world.now)
    world.crash()
    world.tell(report)


def test_steering_moves_control_to_another_node_only() -> None:
    world = started("start -> tool1, ask1; tool1 -> tool2; ask1 -> tool3; tool9 -> tool4", config=REAL_TIME)
    steer(world, goto="tool9", by="ada", reason="stuck")
    assert (world.working, world.gates) == (["tool9"], [])
    (event,) = world.events(ExecutionSteered)
    assert (event.by, event.reason) == ("ada", "stuck")
    world.crash().done("tool9").done("tool4")
    assert world.status == "completed"


def test_steps_that_start_after_steering_read_the_new_values() -> None:
    nodes = {"tool2": {"config": {"tool": "t", "parameters": {"n": "{{n}}"}}}}
    world = started(LINE, nodes=nodes, input={"n": 1}, config=REAL_TIME)
    steer(world, edits=[[["n"], 7, []]])
    assert world.done("tool1").asked("tool2")["parameters"] == {"n": 7}


def test_steering_can_add_a_message_to_the_conversation() -> None:
    world = started(LINE, config={**REAL_TIME, "conversational": True})
    steer(world, messages=[{"role": "user", "content": "shorter"}])
    assert world.crash().data["messages"] == [{"role": "user", "content": "shorter"}]


def test_steering_during_a_pause_takes_effect_on_resume() -> None:
    world = started(LINE, config=REAL_TIME).pause()
    steer(world, goto="tool3")
    assert (world.status, world.working) == ("paused", [])
    assert world.crash().resume().working == ["tool3"]


@pytest.mark.parametrize(
    ("config", "said", "refusal"),
    [
        ({}, {"goto": "tool2"}, NotSteerable),
        (REAL_TIME, {"goto": "nowhere"}, NotSteerable),
        (REAL_TIME, {"messages": ["hi"]}, NotSteerable),
        (REAL_TIME, {"edits": [[["n", "x"], 1, []]]}, EditRefused),
    ],
)
def test_an_impossible_steering_is_refused(
    config: dict[str, object], said: dict[str, Json], refusal: type[Exception]
) -> None:
    world = started(LINE, input={"n": 1}, config=config)
    with pytest.raises(refusal):
        steer(world, **said)
    assert world.working == ["tool1"]


def test_steering_cannot_move_control_into_loops_and_parallels() -> None:
    drawing = "start -> fan1; fan1 -> tool1; tool1 -> join1; join1 -> tool2"
    world = started(drawing, nodes={"fan1": {"config": {"items": "[1, 2]"}}}, config=REAL_TIME)
    for inside in ("tool1", "join1"):
        with pytest.raises(NotSteerable, match="control cannot begin there"):
            steer(world, goto=inside)
    steer(world, goto="tool2")
    assert world.working == ["tool2"]


def test_steering_cannot_move_control_to_or_from_compensations() -> None:
    drawing = "start -> tool1; tool1 -> tool2; tool8"
    world = started(drawing, nodes={"tool1": {"compensate": "tool8"}}, config=REAL_TIME).done("tool1")
    with pytest.raises(NotSteerable, match="is a compensation"):
        steer(world, goto="tool8")
    world.fails("tool2")
    with pytest.raises(NotSteerable, match="being compensated"):
        steer(world, goto="tool2")
    assert world.done("tool8").status == "failed"


DECLARED = {"n": {"schema": {"type": "integer"}}, "text": {"schema": {"type": "string", "minLength": 2}}}


@pytest.mark.parametrize(
    ("edits", "told"),
    [
        ([[["n"], "seven", []]], "'n' does not match its declaration in the workflow"),
        ([[["deep", "list"], [1, "x"], []]], r"'deep\.list\[1\]' does not match"),
        ([[["deep"], {"list": 3}, []]], r"'deep\.list' does not match"),
    ],
)
def test_steered_values_must_match_the_declared_fields(edits: Json, told: str) -> None:
    whole = {"schema": {"properties": {"list": {"type": "array", "items": {"type": "integer"}}}}}
    world = started(LINE, input={"n": 1}, config=REAL_TIME, state={**DECLARED, "deep": whole})
    with pytest.raises(EditRefused, match=told):
        steer(world, edits=edits)
    steer(world, edits=[[["n"], 7, []], [["deep"], {"list": [1]}, []]])
    assert (world.crash().data["n"], world.data["deep"]) == (7, {"list": [1]})


def test_an_invalid_value_from_a_step_does_not_block_edits_of_other_fields() -> None:
    writes = {"tool1": {"outputs": {"n": "result"}}}
    world = started(LINE, nodes=writes, config=REAL_TIME, state=DECLARED).done("tool1", "no number")
    steer(world, edits=[[["text"], "fine", []]])
    assert world.data == {"n": "no number", "text": "fine"}


def test_replay_decides_steering_again() -> None:
    world = started(LINE, input={"n": 1}, config=REAL_TIME)
    steer(world, edits=[[["n"], 2, []]], goto="tool3", by="ada")
    again = replay(lambda _: world.simulation.plan, world.state.id, world.simulation.rows)
    assert (world.working, again.differences, again.rows_without_report) == (["tool3"], [], [])
