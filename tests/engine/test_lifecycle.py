"""Lifecycle of an execution: pause, cancel, retry, end, and its output."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.compile import compile_workflow
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.events.lifecycle import ExecutionFailed
from pointsman.engine.reports import CancelRequested, PauseRequested, Report, ResumeRequested, RetryRequested, Start
from pointsman.testing.graphs import INPUT, perform, random_workflow
from pointsman.testing.simulation import Simulation
from pointsman.values import Json
from tests.engine.world import limits, started

SPLIT = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4"


@pytest.mark.requirement("T1-22")
def test_a_paused_execution_lets_running_work_finish_and_starts_nothing() -> None:
    world = started(SPLIT).done("tool1").pause()
    assert world.working == ["tool2", "tool3"]
    world.done("tool2").done("tool3")
    assert (world.status, world.working) == ("paused", [])
    assert world.resume().working == ["tool4"]


@pytest.mark.requirement("S1-82", "S1-67")
def test_a_pause_outlives_a_crash() -> None:
    world = started(SPLIT).done("tool1").pause().done("tool2").crash().done("tool3").crash()
    assert world.resume().working == ["tool4"]


def test_answers_timers_and_events_are_accepted_during_a_pause() -> None:
    nodes = {"wait1": {"config": {"duration": "5s"}}, "wait2": {"config": {"event": "e"}}}
    world = started("start -> ask1, wait1, wait2; ask1 -> tool1; wait1 -> tool2; wait2 -> tool3", nodes=nodes).pause()
    world.answer("ask1", "approve").ring().signal("e")
    assert (world.status, world.working) == ("paused", [])
    assert world.resume().working == ["tool1", "tool2", "tool3"]


def test_branches_begin_after_a_pause_with_the_input_of_their_parallel() -> None:
    drawing = "start -> tool1; tool1 -> fan; fan -> tool2, tool3; tool2 -> join; tool3 -> join; join -> tool4"
    seen = {"tool3": {"config": {"tool": "t", "parameters": {"saw": "{{result}}"}}}}
    nodes = {"fan": {"config": {"maxParallel": 1}}, **seen}
    world = started(drawing, nodes=nodes).done("tool1", "v").pause().done("tool2", "b").crash()
    assert (world.status, world.working) == ("paused", [])
    world.resume()
    assert world.asked("tool3")["parameters"] == {"saw": "v"}
    assert world.done("tool3", "c").state.root.nodes["join"] == ["b", "c"]


def test_a_parallel_that_opens_during_a_pause_begins_afterwards() -> None:
    drawing = "start -> ask1; ask1 -> fan; fan -> tool1, tool2; tool1 -> join; tool2 -> join"
    world = started(drawing).pause().answer("ask1", "approve").resume()
    assert world.working == ["fan[1.0]/tool1", "fan[1.1]/tool2"]


def test_a_branch_that_fails_during_a_pause_drops_its_held_steps() -> None:
    drawing = "start -> fan; fan -> tool1, tool2; tool1 -> tool3; tool3 -> join; tool2 -> join; fan -error-> tool4"
    world = started(drawing).pause().done("tool1").fails("tool2")
    assert [one.node for one in world.state.held_arrivals] == ["tool4"]
    assert world.resume().working == ["tool4"]


@pytest.mark.parametrize(
    ("report", "before"),
    [
        (ResumeRequested(), "running"),
        (RetryRequested(), "running"),
        (Start(input={}), "running"),
        (PauseRequested(), "completed"),
        (CancelRequested(), "completed"),
        (RetryRequested(), "completed"),
        (ResumeRequested(), "completed"),
        (RetryRequested(), "cancelled"),
    ],
)
def test_a_request_that_the_status_forbids_is_refused_without_effect(report: Report, before: str) -> None:
    world = started("start -> tool1")
    if before == "completed":
        world.done("tool1")
    if before == "cancelled":
        world.cancel()
    seq = world.state.seq
    with pytest.raises(WrongStatus, match=before):
        decide(world.simulation.plan, world.state, report, world.now)
    assert (world.state.seq, world.status) == (seq, before)


@pytest.mark.requirement("S1-87")
def test_a_cancel_stops_everything_and_is_idempotent() -> None:
    world = started(SPLIT).done("tool1").cancel()
    rows = len(world.simulation.rows)
    world.cancel()
    assert (world.status, world.working, len(world.simulation.rows)) == ("cancelled", [], rows)


def test_a_pause_is_idempotent() -> None:
    world = started(SPLIT).pause()
    rows = len(world.simulation.rows)
    assert len(world.pause().simulation.rows) == rows


@pytest.mark.requirement("S1-87", "S3-93")
@pytest.mark.parametrize("seed", range(12))
def test_an_execution_can_be_cancelled_or_paused_after_every_row(seed: int) -> None:
    workflow, _ = WorkflowDefinition.from_document(random_workflow(seed, 6))
    assert workflow is not None
    plan = compile_workflow(workflow)
    calm = Simulation(plan, seed, work=perform, checked=True).run(INPUT)
    for rows in range(1, min(len(calm.rows), 25)):
        for stop, expected in ((CancelRequested(), "cancelled"), (PauseRequested(), calm.status)):
            world = Simulation(plan, seed, work=perform)
            world.run_rows(INPUT, rows)  # As in the calm run, which was checked.
            world.checked = True
            if world.state.ended:  # Rows after its end record that commands were carried out.
                break
            world.tell(stop)
            if expected != "cancelled":
                world.go_on()
                world.tell(ResumeRequested())
            assert world.go_on().status == expected
            if expected != "cancelled":
                assert world.state.outcome.output == calm.output


def test_a_retry_runs_the_failed_step_again() -> None:
    world = started("start -> tool1; tool1 -> tool2").done("tool1").fails("tool2").crash().retry()
    assert world.working == ["tool2"]
    assert world.done("tool2", "at last").output == "at last"


def test_a_retry_resumes_steps_that_ran_beside_the_failure() -> None:
    world = started(SPLIT).done("tool1").fails("tool3")
    assert world.status == "failed"
    world.retry()
    assert world.working == ["tool2", "tool3"]
    assert world.done("tool2").done("tool3").working == ["tool4"]


def test_a_retry_resumes_transitions_that_were_pending_at_the_failure() -> None:
    nodes = {"set1": {"config": {"set": {"x": "n + {}"}}}}
    world = started("start -> set1, set2, tool1; set2 -> tool2", nodes=nodes, input={"n": 1})
    assert (world.status, world.failure.code, [one.node for one in world.state.held_arrivals]) == (
        "failed",
        "expression-types",
        ["tool2"],
    )
    world.retry()
    assert (world.status, world.path.count("tool2"), world.path.count("set1")) == ("failed", 1, 2)


def test_a_retry_resets_the_number_of_attempts() -> None:
    world = started("start -> tool1", nodes={"tool1": {"execution": {"retries": 1}}}).fails("tool1", retryable=True)
    world.ring().fails("tool1", retryable=True)
    assert world.status == "failed"
    world.retry().fails("tool1", retryable=True)
    assert (world.status, len(world.timers)) == ("running", 1)


def test_a_retry_sets_timers_and_children_again() -> None:
    nodes = {
        "wait1": {"config": {"duration": "60s"}},
        "child": {"type": "workflow", "config": {"workflow": "other"}},
        "ask1": {"config": {"timeout": "90s"}},
    }
    world = started("start -> wait1, child, ask1, tool1", nodes=nodes).fails("tool1").retry()
    assert (world.timers, world.gates, world.working) == ([60.0, 90.0], ["ask1"], ["tool1"])
    assert [one.attempt for one in world.simulation.asked.children.values()] == [2], "the first one was cancelled"


def test_a_failure_inside_branches_keeps_them_for_a_retry() -> None:
    drawing = """start -> fan1; fan1 -> fan2; fan2 -> tool1, tool2
        tool1 -> join2; tool2 -> join2; join2 -> join1; join1 -> tool3"""
    world = started(drawing).done("tool1", "a").fails("tool2").crash().retry()
    assert world.working == ["fan1[1.0]/fan2[1.1]/tool2"]
    assert world.done("tool2", "b").state.root.nodes["join1"] == [["a", "b"]]


def test_a_retry_resumes_all_failed_steps() -> None:
    drawing = "start -> dec1, dec2, tool1; dec1 -#yes-> tool2; dec2 -#yes-> tool3"
    nodes = {name: {"config": {"expression": "answer"}} for name in ("dec1", "dec2")}
    world = started(drawing, nodes=nodes)
    (failed,) = world.events(ExecutionFailed)
    assert [step.node for step in failed.steps] == ["dec1", "dec2"]
    world.retry()
    assert [step.node for step in world.events(ExecutionFailed)[-1].steps] == ["dec1", "dec2"]


def test_a_failed_output_cannot_be_retried() -> None:
    world = started("start -> tool1", output={"x": "result + {}"}).done("tool1", 1)
    with pytest.raises(WrongStatus):
        decide(world.simulation.plan, world.state, RetryRequested(), world.now)


def test_execution_time_does_not_count_during_a_pause() -> None:
    world = started("start -> tool1, tool2", config=limits(steps=2)).later(5)
    assert world.status == "interrupted"
    world.later(1_000).resume(steps=9).later(3).done("tool1").done("tool2")
    assert world.state.counters.worked_s == pytest.approx(3.0)


@pytest.mark.requirement("X-2")
def test_an_execution_ends_when_no_token_is_left() -> None:
    world = started("start -> tool1, tool2").done("tool2", "b")
    assert world.status == "running"
    assert world.done("tool1", "a").output == ["a", "b"]


@pytest.mark.requirement("S1-34")
def test_several_ends_give_their_outputs_in_document_order() -> None:
    nodes = {"end1": {"config": {"output": {"one": "result"}}}, "end2": {"config": {"output": "result"}}}
    world = (
        started("start -> tool1, tool2; tool1 -> end1; tool2 -> end2", nodes=nodes).done("tool2", 2).done("tool1", 1)
    )
    assert world.output == [{"one": 1}, 2]


def test_ends_take_precedence_over_paths_that_stopped_elsewhere() -> None:
    assert started("start -> tool1, tool2; tool1 -> end").done("tool2", 2).done("tool1", 1).output == 1


def test_the_output_mapping_takes_precedence_over_ends() -> None:
    world = started("start -> tool1; tool1 -> end", output={"x": "n", "r": "nodes.tool1"}, input={"n": 3}).done(
        "tool1", 1
    )
    assert world.output == {"x": 3, "r": 1}


def test_an_end_that_terminates_ends_everything() -> None:
    world = started("start -> tool1, tool2; tool1 -> end", nodes={"end": {"config": {"terminate": True}}}).done(
        "tool1", 1
    )
    assert (world.status, world.output, world.working) == ("completed", 1, [])


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_an_end_can_set_the_outcome(status: str) -> None:
    world = started("start -> tool1; tool1 -> end", nodes={"end": {"config": {"status": status}}}).done("tool1")
    assert world.status == status


def test_an_end_inside_a_branch_ends_only_the_branch() -> None:
    world = started("start -> fan; fan -> tool1, tool2; tool1 -> end; tool2 -> join; join -> tool3")
    assert world.done("tool1", "x").status == "running"
    world.done("tool2", "b").done("tool3")
    assert (world.status, world.output) == ("completed", "x")


def test_the_target_end_ends_the_execution_from_anywhere() -> None:
    world = started("start -> fan; fan -> tool1, tool2; tool1 -> END; tool2 -> join").done("tool1", "out")
    assert (world.status, world.working) == ("completed", [])


@pytest.mark.requirement("S3-83", "T3-24")
def test_the_latest_of_repeated_ends_gives_the_output() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -n < 1-> tool1"
    world = started(drawing, input={"n": 0}).done("tool1").done("tool2").done("tool1")
    world.done("tool3~tool1.2.2", "second").done("tool3~tool1.1.2", "first").cancel()
    assert [ended.value for ended in world.state.outcome.branch_results.values()] == ["second"]


def test_a_path_that_ends_without_a_result_gives_its_last_result() -> None:
    drawing = "start -> tool1, tool2, set2; tool1 -> set1; tool2 -> dec1; dec1 -n > 5-> tool3; dec1 -default-> wait1"
    nodes = {"wait1": {"config": {"duration": "1s"}}}
    world = started(drawing, nodes=nodes, input={"n": 1}).done("tool1", "a").done("tool2", "b").ring()
    assert sorted(map(str, world.output if isinstance(world.output, list) else [])) == ["a", "b"]


def test_a_workflow_with_only_a_start_completes() -> None:
    assert (started("start").status, started("start").output) == ("completed", None)


def test_an_ended_execution_accepts_no_report() -> None:
    world = started("start -> tool1").done("tool1")
    rows = len(world.simulation.rows)
    world.signal("anything")
    assert len(world.simulation.rows) == rows


@pytest.mark.parametrize("order", [["tool1", "tool2"], ["tool2", "tool1"]])
def test_a_retried_join_has_all_its_arrivals(order: list[str]) -> None:
    drawing = "start -> tool1, tool2; tool1 -> join1; tool2 -> join1; join1 -> tool3"
    nodes = {"join1": {"outputs": {"all": "result"}}}
    world = started(drawing, nodes=nodes, config={"limits": {"stateSize": "1KB"}})
    for name in order:
        world.done(name, f"{name} said " + 600 * "x")
    assert (world.status, world.failure.code) == ("failed", "state-too-large")
    world.crash().retry(stateSize=10_000).crash()
    assert [str(one)[:5] for one in cast("list[Json]", world.data["all"])] == ["tool1", "tool2"]
    assert world.done("tool3").status == "completed"


def test_a_retried_join_that_a_limit_stops_keeps_all_its_arrivals() -> None:
    drawing = "start -> tool1, tool2; tool1 -> join1; tool2 -> join1; join1 -> tool3"
    nodes = {"join1": {"outputs": {"all": "result"}}}
    world = started(drawing, nodes=nodes, config={"limits": {"stateSize": "1KB", "steps": 4}})
    world.done("tool1", 600 * "a").done("tool2", 600 * "b")
    world.retry(stateSize=10_000)
    assert (world.status, world.state.limits.interruption) == ("interrupted", "steps")
    world.crash().resume(steps=10)
    assert len(cast("list[Json]", world.data["all"])) == 2
    assert world.working == ["tool3"]
