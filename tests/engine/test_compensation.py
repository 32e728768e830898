"""Compensation: completed work is undone in reverse order after the execution failed or was cancelled."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.events.lifecycle import CompensationBegan, ExecutionFailed, UndoBegan, UndoEnded
from pointsman.testing.simulation import refolded
from pointsman.values import Json
from tests.engine.world import World, limits, started

TRIP = "start -> tool1; tool1 -> tool2; tool2 -> tool3; tool8; tool9"
UNDONE = {"tool1": {"compensate": "tool8"}, "tool2": {"compensate": "tool9"}}
SEES = {"config": {"tool": "t", "parameters": {"was": "{{result}}", "of": "{{compensated.step}}"}}}


def trip(**more: Mapping[str, object]) -> World:
    """Return a world in which two steps with compensation are done and the third is running."""
    nodes = {name: {**UNDONE.get(name, {}), **more.get(name, {})} for name in {*UNDONE, *more}}
    return started(TRIP, nodes=nodes).done("tool1", "flight").done("tool2", "hotel")


def undone(world: World) -> list[str]:
    return [str(event.step) for event in world.events(UndoEnded) if event.failure is None]


def told(world: World) -> Json:
    return (world.failure.details or {})["compensation"]


def test_compensation_runs_in_reverse_order_and_the_failure_stays_the_reason() -> None:
    world = trip(tool8=SEES, tool9=SEES).fails("tool3")
    assert (world.status, world.working) == ("running", ["tool9"])
    assert world.asked("tool9")["parameters"] == {"was": "hotel", "of": "tool2"}
    assert world.done("tool9").working == ["tool8"]
    assert world.asked("tool8")["parameters"] == {"was": "flight", "of": "tool1"}
    world.done("tool8")
    assert (world.status, world.failure.code, undone(world)) == ("failed", "boom", ["tool2", "tool1"])
    assert told(world) == {"undone": ["tool2", "tool1"], "notUndone": []}


def test_no_compensation_runs_without_finished_steps_or_after_a_caught_failure() -> None:
    world = started(TRIP, nodes=UNDONE).fails("tool1")
    assert (world.status, world.events(CompensationBegan)) == ("failed", [])
    caught = started("start -> tool1; tool1 -> tool2; tool2 -error-> tool3; tool8", nodes=UNDONE | {"tool2": {}})
    assert caught.done("tool1").fails("tool2").done("tool3").status == "completed"


def test_a_compensation_reads_the_input_of_its_step() -> None:
    nodes = {
        "tool1": {"compensate": "tool8", "config": {"tool": "book", "parameters": {"seat": "4a"}}},
        "tool8": {"config": {"tool": "t", "parameters": {"seat": "{{compensated.input.parameters.seat}}"}}},
    }
    world = started("start -> tool1; tool1 -> tool2; tool8", nodes=nodes).done("tool1").fails("tool2")
    assert world.asked("tool8")["parameters"] == {"seat": "4a"}


def test_a_failed_compensation_is_retried_and_reported_and_the_others_continue() -> None:
    world = trip(tool9={"execution": {"retries": 1}}).fails("tool3").fails("tool9", "down", retryable=True)
    world.ring().fails("tool9", "down", retryable=True)
    assert world.working == ["tool8"]
    world.done("tool8")
    assert (world.status, world.failure.code) == ("failed", "boom")
    assert world.failure.message == "boom at tool3; could not be undone: 'tool2'"
    assert told(world) == {
        "undone": ["tool1"],
        "notUndone": [{"step": "tool2", "code": "down", "message": "down at tool9"}],
    }


def test_a_cancel_runs_compensations_first_and_a_second_cancel_has_no_effect() -> None:
    world = trip().cancel()
    assert (world.status, world.working) == ("running", ["tool9"])
    rows = len(world.simulation.rows)
    world.cancel()
    assert len(world.simulation.rows) == rows
    assert world.done("tool9").done("tool8").status == "cancelled"
    assert world.state.steps == {}


def test_an_execution_whose_compensation_fails_after_a_cancel_has_failed() -> None:
    world = trip().cancel().fails("tool9").done("tool8")
    assert (world.status, world.failure.code) == ("failed", "compensation-failed")
    assert world.failure.message == "it was cancelled; could not be undone: 'tool2'"


def test_a_workflow_can_disable_compensation_on_cancel() -> None:
    world = started(TRIP, nodes=UNDONE, config={"onCancel": "stop"}).done("tool1").cancel()
    assert (world.status, world.events(CompensationBegan)) == ("cancelled", [])


def test_an_immediate_cancel_stops_compensation_and_lists_the_steps_left() -> None:
    world = trip().fails("tool3").cancel_now()
    assert (world.status, world.working) == ("failed", [])
    assert told(world) == {
        "undone": [],
        "notUndone": [
            {"step": "tool2", "code": "compensation-stopped", "message": "the compensation was stopped while it ran"},
            {"step": "tool1", "code": "not-tried", "message": "its compensation did not run"},
        ],
    }
    assert trip().cancel_now().status == "cancelled", "nothing had begun to be undone"


def test_each_visit_and_branch_is_compensated_with_its_own_item() -> None:
    drawing = "start -> fan; fan -> tool1; tool1 -> join; join -> tool2; tool9"
    nodes = {
        "fan": {"config": {"items": "input.items", "as": "city"}},
        "tool1": {"compensate": "tool9"},
        "tool9": {"config": {"tool": "t", "parameters": {"city": "{{city}}", "was": "{{result}}"}}},
    }
    world = started(drawing, nodes=nodes, input={"items": ["Rome", "Oslo"]})
    world.done("fan[1.1]/tool1", "o").done("fan[1.0]/tool1", "r").fails("tool2")
    assert world.asked("tool9")["parameters"] == {"city": "Rome", "was": "r"}
    assert world.done("tool9").asked("tool9")["parameters"] == {"city": "Oslo", "was": "o"}
    assert world.done("tool9").status == "failed"
    assert undone(world) == ["fan[1.0]/tool1", "fan[1.1]/tool1"]


def test_the_rounds_of_a_loop_are_compensated_one_by_one() -> None:
    drawing = "start -> loop; loop -body-> tool1; tool1 -> loop; loop -exit-> tool2; tool9"
    nodes = {"loop": {"config": {"maxIterations": 3}}, "tool1": {"compensate": "tool9"}}
    world = started(drawing, nodes=nodes).done("tool1").done("tool1").done("tool1").fails("tool2")
    world.done("tool9").done("tool9").done("tool9")
    assert (undone(world), world.path.count("tool9")) == (["tool1#3", "tool1#2", "tool1"], 3)


def test_running_steps_are_stopped_before_compensation_and_late_results_refused() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool9"
    world = started(drawing, nodes={name: {"compensate": "tool9"} for name in ("tool1", "tool3")}).done("tool1")
    step, attempt = world.at("tool3")
    world.fails("tool2")
    assert world.working == ["tool9"]
    rows = len(world.simulation.rows)
    world.late(step, attempt)
    assert len(world.simulation.rows) == rows
    assert undone(world.done("tool9")) == ["tool1"]


def test_a_tolerated_failed_branch_is_compensated_only_when_the_execution_fails() -> None:
    drawing = "start -> fan; fan -> tool1, tool2; tool1 -> tool3; tool3 -> join; tool2 -> join; join -> tool4; tool9"
    nodes = {"fan": {"config": {"onBranchError": "continue"}}, "tool1": {"compensate": "tool9"}}
    world = started(drawing, nodes=nodes).done("tool1").fails("tool3").done("tool2")
    assert (world.working, world.events(CompensationBegan)) == (["tool4"], [])
    assert world.fails("tool4").working == ["tool9"]


def test_a_sub_workflow_is_compensated_by_the_compensation_of_its_node() -> None:
    drawing = "start -> child1; child1 -> tool2; child9"
    nodes = {
        "child1": {"type": "workflow", "config": {"workflow": "book"}, "compensate": "child9"},
        "child9": {"type": "workflow", "config": {"workflow": "unbook", "input": {"booking": "result.id"}}},
    }
    world = started(drawing, nodes=nodes).child_ended("child1", {"id": 7}).fails("tool2")
    (asked,) = world.simulation.asked.children.values()
    assert (asked.workflow, asked.input) == ("unbook", {"booking": 7})
    assert world.child_ended("child9").status == "failed"


def test_a_person_can_perform_a_compensation_or_report_that_it_is_impossible() -> None:
    drawing = "start -> tool1; tool1 -> tool2; ask9"
    nodes = {"tool1": {"compensate": "ask9"}}
    world = started(drawing, nodes=nodes).done("tool1").fails("tool2").answer("ask9", "approve")
    assert (world.status, undone(world)) == ("failed", ["tool1"])
    world = started(drawing, nodes=nodes).done("tool1").fails("tool2").answer("ask9", "reject")
    assert (world.status, undone(world)) == ("failed", [])
    assert "compensation-rejected" in str(told(world))


def test_limits_do_not_stop_compensation() -> None:
    world = started(TRIP, nodes=UNDONE, config=limits(steps=4)).done("tool1", cost=1.0).done("tool2").fails("tool3")
    assert world.done("tool9").done("tool8").status == "failed"
    assert world.state.counters.steps == 6


def test_a_time_limit_that_fires_during_compensation_is_ignored() -> None:
    world = started(TRIP, nodes=UNDONE, config=limits(executionTime="10s")).done("tool1").fails("tool2").ring()
    assert world.working == ["tool8"]


def test_compensation_can_be_paused_and_resumed() -> None:
    world = trip().fails("tool3").pause().done("tool9")
    assert (world.status, world.working) == ("paused", [])
    assert world.resume().working == ["tool8"]
    assert world.done("tool8").status == "failed"


def test_compensation_continues_after_a_crash() -> None:
    world = trip().fails("tool3").crash()
    assert world.working == ["tool9"]
    assert world.done("tool9").crash().working == ["tool8"]
    assert undone(world.done("tool8")) == ["tool2", "tool1"]
    again = refolded("simulated", world.simulation.rows)
    assert (again.status, again.outcome.failure) == ("failed", world.failure)


def test_a_compensated_execution_cannot_be_retried() -> None:
    world = trip().fails("tool3").done("tool9").done("tool8")
    with pytest.raises(WrongStatus, match="it was compensated"):
        world.refused_retry()


def test_the_failure_handler_of_the_workflow_runs_before_compensation_and_can_prevent_it() -> None:
    drawing = "start -> tool1; tool1 -> tool2; tool5; tool9"
    nodes = {"tool1": {"compensate": "tool9"}}
    world = started(drawing, nodes=nodes, onError="tool5").done("tool1").fails("tool2")
    assert world.working == ["tool5"]
    assert world.done("tool5").status == "completed"
    again = started(drawing, nodes=nodes, onError="tool5").done("tool1").fails("tool2").fails("tool5")
    assert again.working == ["tool9"]


def test_an_output_that_cannot_be_computed_fails_and_compensates_the_execution() -> None:
    drawing = "start -> tool1; tool9"
    world = started(drawing, nodes={"tool1": {"compensate": "tool9"}}, output={"n": "1 / 0"}).done("tool1")
    assert world.working == ["tool9"]
    world.done("tool9")
    assert (len(world.events(ExecutionFailed)), world.status) == (1, "failed")


def test_a_skipped_compensation_counts_as_done() -> None:
    world = trip(tool9={"skipWhen": "result == 'hotel'"}).fails("tool3")
    assert (world.working, [str(one.step) for one in world.events(UndoBegan)]) == (["tool8"], ["tool2", "tool1"])
