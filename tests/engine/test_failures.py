"""Failures: retries, error edges, error handlers, advice of a model, and failures inside branches and parallels."""

from __future__ import annotations

import pytest
from msgspec import structs

from pointsman.definition.model.policies import Limits
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.compile import compile_workflow
from pointsman.engine.events.lifecycle import ExecutionFailed
from pointsman.engine.events.steps import AttemptStarted, Event, StepFailed
from pointsman.engine.events.waits import WarningRaised
from tests.definition.graphs import document
from tests.engine.replays import replay
from tests.engine.world import World, limits, started

FAN = "start -> fan; fan -> tool1, tool2; tool1 -> join; tool2 -> join; join -> tool3"


def retrying(**execution: object) -> dict[str, dict[str, object]]:
    return {"tool1": {"execution": execution}}


@pytest.mark.requirement("S3-85", "S3-15")
def test_a_failed_attempt_is_retried_with_growing_waits_until_no_attempt_is_left() -> None:
    world = started("start -> tool1", nodes=retrying(retries=3, retryDelay="1s", backoff=2))
    inputs = [world.asked("tool1")]
    for base in (1.0, 2.0, 4.0):
        world.fails("tool1", retryable=True)
        (wait,) = world.timers
        assert base * 0.9 <= wait <= base * 1.1
        inputs.append(world.ring().asked("tool1"))
    assert inputs == [inputs[0]] * 4
    world.fails("tool1", retryable=True)
    assert (world.status, world.failure.code, len(world.events(StepFailed))) == ("failed", "boom", 4)


def test_the_jitter_of_retries_is_derived_from_the_seed_and_the_step() -> None:
    def waits(input: int) -> list[float]:
        drawing = "start -> tool1, tool2"
        nodes = {name: {"execution": {"retries": 1}} for name in ("tool1", "tool2")}
        world = started(drawing, nodes=nodes, input={"n": input})
        return world.fails("tool2", retryable=True).fails("tool1", retryable=True).timers

    assert waits(1) == waits(2)
    assert len(set(waits(1))) == 2, "not all at once"


def test_a_permanent_failure_is_not_retried() -> None:
    assert started("start -> tool1", nodes=retrying(retries=3)).fails("tool1").status == "failed"


def test_the_provider_can_request_a_longer_wait() -> None:
    world = started("start -> tool1", nodes=retrying(retries=1)).fails("tool1", retryable=True, after_s=90.0)
    assert world.timers == [90.0]


@pytest.mark.parametrize(
    ("limit", "waits"), [({}, 3600.0), ({"retryAfter": "5m"}, 300.0), ({"retryAfter": "2h"}, 5000.0)]
)
def test_a_requested_wait_is_bounded_by_the_limit(limit: dict[str, object], waits: float) -> None:
    world = started("start -> tool1", nodes=retrying(retries=1), config=limits(**limit))
    assert world.fails("tool1", retryable=True, after_s=5000.0).timers == [waits]


def test_the_operator_caps_the_requested_wait() -> None:
    drawn = document("start -> tool1")
    drawn["config"] = {"limits": {"retryAfter": "10m"}}
    workflow, _ = WorkflowDefinition.from_document(drawn)
    assert workflow is not None
    caps = Limits.model_validate({"retryAfter": "1m"})
    assert compile_workflow(workflow, caps=caps).limits.retry_after_s == 60.0
    assert compile_workflow(workflow).limits.retry_after_s == 600.0


def test_a_node_can_list_the_failures_that_it_retries() -> None:
    nodes = retrying(retries=1, retryOn=["boom"])
    once = started("start -> tool1", nodes=nodes).fails("tool1", "boom", retryable=False)
    assert len(once.timers) == 1, "the node knows better than the failure"
    assert once.crash().ring().fails("tool1", "boom").status == "failed"
    assert started("start -> tool1", nodes=nodes).fails("tool1", "other", retryable=True).status == "failed"


def test_retry_on_and_error_edges_accept_the_former_name_of_a_code() -> None:
    nodes = retrying(retries=1, retryOn=["not-reached"])
    assert len(started("start -> tool1", nodes=nodes).fails("tool1", "address-unreachable").timers) == 1
    condition = {"type": "error", "codes": ["tool-off"]}
    caught = started("start -> tool1; tool1 -error-> tool2", edges={"tool1->tool2": {"condition": condition}})
    assert caught.fails("tool1", "tool-disabled").working == ["tool2"]


@pytest.mark.requirement("S1-06", "S1-23")
def test_a_workflow_with_retries_gives_three_attempts_by_default() -> None:
    world = started("start -> tool1", config={"errorHandling": "retry"})
    for _ in range(3):
        world.fails("tool1", retryable=True).ring()
    assert world.fails("tool1", retryable=True).status == "failed"


def test_a_late_result_of_an_earlier_attempt_is_refused() -> None:
    world = started("start -> tool1; tool1 -> tool2", nodes=retrying(retries=1)).fails("tool1", retryable=True)
    rows = len(world.simulation.rows)
    world.done("tool1", "late", attempt=1)
    assert len(world.simulation.rows) == rows, "nobody works on it while it waits"
    world.ring().done("tool1", "later still", attempt=1)
    assert (world.working, len(world.simulation.rows)) == (["tool1"], rows + 1)


@pytest.mark.parametrize(
    ("codes", "taken"), [(None, "tool2"), (["boom"], "tool2"), (["other", "boom"], "tool2"), (["other"], None)]
)
def test_an_error_edge_takes_the_failures_it_names(codes: list[str] | None, taken: str | None) -> None:
    condition = {"type": "error", **({"codes": codes} if codes else {})}
    world = started(
        "start -> tool1; tool1 -error-> tool2; tool1 -> tool3", edges={"tool1->tool2": {"condition": condition}}
    )
    world.fails("tool1")
    assert (world.working, world.status) == (([taken], "running") if taken else ([], "failed"))


def test_error_edges_are_taken_only_after_the_last_attempt() -> None:
    world = started("start -> tool1; tool1 -error-> tool2", nodes=retrying(retries=1)).fails("tool1", retryable=True)
    assert world.working == []
    assert world.ring().fails("tool1", retryable=True).working == ["tool2"]


def test_the_failure_is_the_value_after_an_error_edge() -> None:
    seen = {"tool2": {"config": {"tool": "t", "parameters": {"why": "{{result.error.code}}"}}}}
    world = started("start -> tool1; tool1 -error-> tool2", nodes=seen).fails("tool1")
    assert world.asked("tool2")["parameters"] == {"why": "boom"}
    assert world.state.root.nodes["tool1"] == {
        "error": {
            "code": "boom",
            "message": "boom at tool1",
            "retryable": False,
            "node": "tool1",
            "step": "tool1",
            "attempt": 1,
            "details": None,
        }
    }


@pytest.mark.requirement("S3-86", "T3-23")
def test_continue_makes_the_failure_the_result() -> None:
    drawing = "start -> tool1; tool1 -exists(result.error)-> tool2; tool1 -default-> tool3"
    world = started(drawing, nodes=retrying(errorHandler="continue")).fails("tool1")
    assert world.working == ["tool2"]
    assert "boom" in str(world.state.root.nodes["tool1"])


def test_a_continued_failure_leaves_outputs_unchanged_and_warns() -> None:
    nodes = {"tool1": {"execution": {"errorHandler": "continue"}, "outputs": {"kept": "result", "score": "result.n"}}}
    world = started("start -> tool1; tool1 -> tool2", nodes=nodes, input={"kept": "old"}).fails("tool1")
    assert (world.working, world.data["kept"]) == (["tool2"], "old")
    assert world.warnings == ["outputs-not-written"]
    bare = started("start -> tool1; tool1 -> tool2", nodes=retrying(errorHandler="continue"))
    assert bare.fails("tool1").warnings == []


def test_continue_applies_to_failures_without_an_error_edge() -> None:
    edges = {"tool1->tool3": {"condition": {"type": "error", "codes": ["other"]}}}
    drawing = "start -> tool1; tool1 -> tool2; tool1 -error-> tool3"
    assert started(drawing, nodes=retrying(errorHandler="continue"), edges=edges).fails("tool1").working == ["tool2"]


ADVISED = retrying(errorHandler="llm_recovery")


def advised(**advice: object) -> World:
    world = started(
        "start -> tool1; tool1 -> tool2; tool1 -default-> tool3",
        nodes={"tool1": {**ADVISED["tool1"], "outputs": {"x": "result"}}},
    )
    world.fails("tool1")
    question = world.asked("tool1")
    assert (question["routes"], question["failure"]) == (
        ["tool2", "tool3"],
        {"code": "boom", "message": "boom at tool1", "hint": ""},
    )
    return world.done("tool1", advice)  # pyright: ignore[reportArgumentType] - plain JSON


def test_a_model_can_advise_a_retry_with_other_inputs() -> None:
    world = advised(choice="retry", inputs={"parameters": {"q": "better"}})
    assert world.asked("tool1") == {"tool": "look_up", "parameters": {"q": "better"}}
    assert world.done("tool1", "found").data == {"x": "found"}


def test_a_model_can_substitute_the_result() -> None:
    world = advised(choice="substitute", value="good enough")
    assert (world.working, world.data) == (["tool2"], {"x": "good enough"})


def test_a_model_can_route_to_another_node_or_give_up() -> None:
    assert advised(choice="route", route="tool3").working == ["tool3"]
    assert advised(choice="give_up").status == "failed"
    assert advised(choice="route", route="nowhere").status == "failed"


@pytest.mark.parametrize(
    "advice", [{"choice": "retry"}, {"choice": "substitute", "value": 1}, {"choice": "route", "route": "tool3"}, {}]
)
def test_the_reason_of_a_models_advice_is_a_warning_and_replays_identically(advice: dict[str, object]) -> None:
    world = advised(**advice, reason="The service is down: wait.")
    (told,) = [event for event in world.events(WarningRaised) if event.code == "recovery-advice"]
    assert (told.message, str(told.step)) == ("advice of the model: The service is down: wait.", "tool1")
    simulation = world.simulation
    found = replay(lambda _: simulation.plan, world.state.id, simulation.rows)
    assert (len(found.differences), found.rows, len(found.rows_without_report)) == (0, len(simulation.rows), 0)


def test_a_model_is_asked_at_most_twice_and_its_advice_is_in_the_journal() -> None:
    world = advised(choice="retry").fails("tool1").done("tool1", {"choice": "retry"}).fails("tool1")
    assert (world.status, [event.reason for event in world.events(AttemptStarted)]) == (
        "failed",
        ["advice", "retry", "advice", "retry"],
    )


def test_a_failing_adviser_keeps_the_original_failure() -> None:
    world = started("start -> tool1", nodes=ADVISED).fails("tool1", "first").fails("tool1", "adviser")
    assert world.failure.code == "first"


@pytest.mark.parametrize(("handler", "result"), [("continue", 2), ("ignore", 1)])
def test_a_failed_branch_can_be_included_or_ignored(handler: str, result: int) -> None:
    world = started(FAN, nodes={"fan": {"config": {"onBranchError": handler}}}).fails("tool1").done("tool2", "b")
    joined = world.state.root.nodes["join"]
    assert isinstance(joined, list)
    assert (len(joined), joined[-1]) == (result, "b")


def test_a_failed_branch_cancels_its_siblings() -> None:
    world = started(FAN).fails("tool1")
    assert (world.status, world.failure.code) == ("failed", "boom")
    world = started(FAN + "; fan -error-> tool4").fails("tool1")
    assert world.working == ["tool4"], "tool2 was stopped"


def test_a_failure_caught_by_a_step_does_not_reach_its_parallel() -> None:
    drawing = FAN + "; tool1 -error-> tool4; tool4 -> join"
    world = started(drawing).fails("tool1").done("tool4", "a").done("tool2", "b")
    assert world.state.root.nodes["join"] == ["a", "b"]


def test_a_tolerant_join_fires_when_all_branches_fail() -> None:
    world = started(FAN, nodes={"fan": {"config": {"onBranchError": "ignore"}}}).fails("tool1").fails("tool2")
    assert (world.working, world.state.root.nodes["join"]) == (["tool3"], [])


def test_failures_propagate_outwards_until_a_parallel_tolerates_them() -> None:
    drawing = """start -> fan1; fan1 -> fan2, tool3; fan2 -> tool1, tool2
        tool1 -> join2; tool2 -> join2; join2 -> join1; tool3 -> join1; join1 -> tool4"""
    world = started(drawing, nodes={"fan1": {"config": {"onBranchError": "continue"}}}).fails("tool1")
    assert world.working == ["fan1[1.1]/tool3"]
    world.done("tool3", "c")
    joined = world.state.root.nodes["join1"]
    assert isinstance(joined, list)
    assert ("boom" in str(joined[0]), joined[1]) == (True, "c")


@pytest.mark.requirement("S1-97")
def test_a_workflow_can_have_a_node_for_uncaught_failures() -> None:
    drawing = "start -> tool1, tool2; tool1 -> tool3; tool2 -> tool3; tool9"
    world = started(drawing, onError="tool9").done("tool2").fails("tool1")
    assert (world.working, world.state.root.parked) == (["tool9"], {})
    world.done("tool9", "mended")
    assert (world.status, world.output) == ("completed", "mended")


def test_a_failure_of_the_failure_handler_fails_the_execution() -> None:
    world = started("start -> tool1; tool9", onError="tool9").fails("tool1").fails("tool9", "worse")
    assert (world.status, world.failure.code) == ("failed", "worse")


@pytest.mark.parametrize(
    ("nodes", "drawing"),
    [
        ({"dec1": {"config": {"expression": "n + {}"}}}, "start -> dec1; dec1 -> tool2; dec1 -error-> tool1"),
        (
            {"loop": {"config": {"while": "n.x + 1 > {}"}}},
            "start -> loop; loop -body-> tool2; tool2 -> loop; loop -error-> tool1",
        ),
        ({"fan": {"config": {"items": "n + {}"}}}, "start -> fan; fan -> tool2; fan -error-> tool1"),
        ({"ask1": {"config": {"show": ["n + {}"]}}}, "start -> ask1; ask1 -> tool2; ask1 -error-> tool1"),
        ({"wait1": {"config": {"until": "'soon'"}}}, "start -> wait1; wait1 -> tool2; wait1 -error-> tool1"),
        (
            {"join": {"config": {"wait": "n + {}"}}},
            "start -> fan; fan -> set1, set2; set1 -> join; set2 -> join; fan -error-> tool1",
        ),
        ({"join": {"config": {"aggregate": "n + {}"}}}, "start -> fan; fan -> set1; set1 -> join; fan -error-> tool1"),
        ({"set1": {"config": {"set": {"x": "n + {}"}}}}, "start -> set1; set1 -error-> tool1"),
    ],
)
def test_a_failing_expression_fails_its_node(nodes: dict[str, dict[str, object]], drawing: str) -> None:
    world = started(drawing, nodes=nodes, input={"n": 1})
    assert world.working == ["tool1"]


def test_an_output_that_cannot_be_computed_fails_the_execution() -> None:
    world = started("start -> tool1", output={"x": "result + {}"}).done("tool1", 1)
    assert world.status == "failed"


def test_a_replay_does_not_compare_the_wording_of_failures() -> None:
    simulation = started("start -> tool1", output={"x": "result + {}"}).done("tool1", 1).simulation
    rows = [structs.replace(row, events=tuple(reworded(event) for event in row.events)) for row in simulation.rows]
    assert tuple(rows) != tuple(simulation.rows)
    found = replay(lambda _: simulation.plan, simulation.state.id, rows)
    assert found.differences == []
    assert found.state.outcome.failure is not None
    assert found.state.outcome.failure.message == "in other words"


def reworded(event: Event) -> Event:
    if isinstance(event, StepFailed | ExecutionFailed):
        return structs.replace(event, failure=structs.replace(event.failure, message="in other words"))
    return event
