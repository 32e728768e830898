"""Gates, waits, events and sub-workflows: an execution waits for them without running work."""

from __future__ import annotations

import pytest

from pointsman.engine.commands import Publish, StartChild, StopChild
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.decide.human_task_answers import ActionNotOffered, AnswerInvalid
from pointsman.engine.decide.human_tasks import GateClosedAlready
from pointsman.engine.events.waits import EventEmitted, GateClosed, GateOpened
from pointsman.engine.failures import Failure
from pointsman.engine.reports import CancelRequested, GateAnswered, WorkDone
from tests.engine.world import started

GATE = "start -> tool1; tool1 -> ask1; ask1 -#approve-> tool2; ask1 -#reject-> tool3"


def gate(**config: object) -> dict[str, dict[str, object]]:
    return {"ask1": {"config": config}}


@pytest.mark.requirement("S1-42", "S1-94", "S1-129")
def test_a_gate_shows_its_request_and_leaves_by_the_chosen_action() -> None:
    nodes = gate(
        message="Publish {{result}}?",
        options=[{"value": "approve"}, {"value": "reject", "style": "danger"}],
        show=["result"],
    )
    world = started(GATE, nodes=nodes).done("tool1", "draft")
    (opened,) = world.events(GateOpened)
    assert (opened.message, opened.shown) == ("Publish draft?", {"result": "draft"})
    assert [option["value"] for option in opened.options] == ["approve", "reject"]
    assert (world.status, world.gates) == ("running", ["ask1"])
    world.answer("ask1", "reject", by="ada")
    assert world.working == ["tool3"]
    assert world.state.root.nodes["ask1"] == {
        "branch": "reject",
        "action": "reject",
        "response": "reject",
        "data": None,
        "by": "ada",
    }
    assert world.state.steps[world.at("tool3")[0]].incoming.value == "draft", "the value passes a gate"


def test_unoffered_answers_and_answers_to_closed_gates_are_refused() -> None:
    world = started(GATE, nodes=gate()).done("tool1")
    step, _ = world.at("ask1")
    with pytest.raises(ActionNotOffered, match="'maybe'"):
        decide(world.simulation.plan, world.state, GateAnswered(step=step, action="maybe"), world.now)
    world.answer("ask1", "approve")
    with pytest.raises(GateClosedAlready):
        decide(world.simulation.plan, world.state, GateAnswered(step=step, action="approve"), world.now)
    assert world.simulation.check() is None


def test_a_rejection_without_an_edge_cancels_the_execution() -> None:
    world = started("start -> ask1; ask1 -#approve-> tool1").answer("ask1", "reject")
    assert world.status == "cancelled"


def test_an_action_without_an_edge_ends_the_branch_only_if_the_gate_has_no_edges() -> None:
    options = gate(options=[{"value": "later"}, {"value": "approve"}])
    assert started("start -> ask1", nodes=options).answer("ask1", "later").status == "completed"
    world = started("start -> ask1; ask1 -#approve-> tool1", nodes=options).answer("ask1", "later")
    assert (world.status, world.failure.code) == ("failed", "no-route")


def test_conditions_on_edges_count_as_labels() -> None:
    drawing = "start -> ask1; ask1 -nodes.ask1.branch == 'approve'-> tool1"
    assert started(drawing).answer("ask1", "approve").working == ["tool1"]


def test_a_person_can_change_the_editable_fields_of_a_gate() -> None:
    nodes = gate(actions=["approve", "edit"], editable=["draft.text", "draft.title"])
    drawing = "start -> ask1; ask1 -#approve-> tool1; ask1 -#edit-> tool1"
    world = started(drawing, nodes=nodes, input={"draft": {"text": "old", "kept": 1}})
    step, _ = world.at("ask1")
    with pytest.raises(AnswerInvalid, match=r"draft\.kept"):
        decide(
            world.simulation.plan,
            world.state,
            GateAnswered(step=step, action="edit", data={"draft.kept": 2}),
            world.now,
        )
    world.answer("ask1", "edit", {"draft.text": "new"})
    assert (world.data, world.working) == ({"draft": {"text": "new", "kept": 1}}, ["tool1"])


def test_a_single_editable_field_can_be_given_as_a_bare_value() -> None:
    nodes = gate(actions=["edit"], editable=["draft"])
    world = started("start -> ask1; ask1 -#edit-> tool1", nodes=nodes, input={"draft": "old"})
    assert world.answer("ask1", "edit", "new").data == {"draft": "new"}


@pytest.mark.requirement("T1-14")
@pytest.mark.parametrize(
    ("config", "working", "status"),
    [
        ({}, [], "failed"),
        ({"onTimeout": "fail"}, [], "failed"),
        ({"onTimeout": "approve"}, ["tool2"], "running"),
        ({"onTimeout": "reject"}, ["tool3"], "running"),
        ({"onTimeout": "tool2"}, ["tool2"], "running"),
        ({"autoProceed": True}, ["tool2"], "running"),
    ],
)
def test_an_unanswered_gate_times_out(config: dict[str, object], working: list[str], status: str) -> None:
    world = started(GATE, nodes=gate(timeout="1h", **config)).done("tool1")
    assert world.timers == [3600.0]
    world.ring()
    assert (world.working, world.status) == (working, status)
    if status == "failed":
        assert world.failure.code == "gate-timeout"


def test_a_gate_that_proceeds_automatically_needs_no_timeout() -> None:
    world = started(GATE, nodes=gate(autoProceed=True)).done("tool1").ring()
    assert (world.working, [event.by for event in world.events(GateClosed)]) == (["tool2"], ["timeout"])


def test_the_first_of_answer_and_timeout_closes_the_gate() -> None:
    world = started(GATE, nodes=gate(timeout="1h", onTimeout="approve")).done("tool1").answer("ask1", "reject")
    assert (world.timers, world.working) == ([], ["tool3"])


@pytest.mark.requirement("S1-67")
def test_a_gate_survives_a_crash() -> None:
    world = started(GATE, nodes=gate(timeout="1h")).done("tool1").crash()
    assert (world.gates, world.timers) == (["ask1"], [3600.0])
    assert world.answer("ask1", "approve").working == ["tool2"]


def test_a_gate_writes_its_answer_to_its_output_path() -> None:
    world = started("start -> ask1; ask1 -> tool1", nodes={"ask1": {"outputs": {"verdict": "result.response"}}})
    assert world.answer("ask1", "approve").data == {"verdict": "approve"}


def test_a_wait_lasts_for_its_duration() -> None:
    world = started("start -> wait1; wait1 -> tool1", nodes={"wait1": {"config": {"duration": "5m"}}})
    assert world.timers == [300.0]
    assert world.ring().working == ["tool1"]


def test_a_wait_until_a_time_that_has_passed_ends_at_once() -> None:
    world = started("start -> wait1; wait1 -> tool1", nodes={"wait1": {"config": {"until": "'1970-01-02T00:00:00Z'"}}})
    assert world.timers[0] < 0
    assert world.ring().working == ["tool1"]


def test_a_wait_for_an_event_consumes_the_matching_event() -> None:
    config = {"event": "paid-{{order}}", "match": "event.amount > 5"}
    nodes = {"wait1": {"config": config, "outputs": {"paid": "result.amount"}}}
    world = started("start -> wait1; wait1 -> tool1", nodes=nodes, input={"order": 7})
    assert world.signal("paid-8", {"amount": 9}).signal("paid-7", {"amount": 1}).working == []
    world.signal("paid-7", {"amount": 9})
    assert (world.working, world.data["paid"]) == (["tool1"], 9)


@pytest.mark.parametrize(("on_timeout", "working"), [("continue", ["tool1"]), ("fail", [])])
def test_a_wait_for_an_event_may_time_out(on_timeout: str, working: list[str]) -> None:
    config = {"event": "e", "timeout": "10s", "onTimeout": on_timeout}
    world = started("start -> wait1; wait1 -> tool1", nodes={"wait1": {"config": config}}).ring()
    assert world.working == working


def test_a_match_that_cannot_be_evaluated_fails_only_its_wait() -> None:
    nodes = {"wait1": {"config": {"event": "e", "match": "event + {}"}}, "wait2": {"config": {"event": "e"}}}
    world = started("start -> wait1, wait2; wait1 -error-> tool1; wait2 -> tool2", nodes=nodes).signal("e", 1)
    assert world.working == ["tool1", "tool2"]


def test_an_emitted_event_reaches_the_outside_and_waits_of_this_execution() -> None:
    nodes = {
        "wait1": {"config": {"event": "ready"}},
        "emit1": {"type": "emit", "config": {"event": "ready", "data": {"n": "{{n}}"}}},
    }
    drawing = "start -> wait1, tool1; tool1 -> emit1; emit1 -> tool2; wait1 -> tool3"
    world = started(drawing, nodes=nodes, input={"n": 4})
    step, _ = world.at("tool1")
    decision = decide(world.simulation.plan, world.state, WorkDone(step=step, attempt=1), world.now)
    assert [command for command in decision.commands if isinstance(command, Publish)] == [
        Publish(order="emit:emit1", name="ready", data={"n": 4})
    ]
    assert [event.data for event in decision.events if isinstance(event, EventEmitted)] == [{"n": 4}]
    assert {step.node for step in world.state.steps} == {"tool2", "tool3"}


CHILD = {
    "child": {"type": "workflow", "config": {"workflow": "other@2", "input": {"q": "goal"}}, "outputs": {"x": "result"}}
}


def test_a_sub_workflow_is_started_with_its_input_and_its_output_is_the_result() -> None:
    world = started("start -> child; child -> tool1", nodes=CHILD, input={"goal": "g"})
    (command,) = world.simulation.asked.children.values()
    assert (command.workflow, command.input, command.wait) == ("other@2", {"q": "g"}, True)
    assert world.child_ended("child", {"a": 1}).data["x"] == {"a": 1}


def test_a_failed_sub_workflow_is_retried_as_another_child() -> None:
    nodes = {"child": {**CHILD["child"], "execution": {"retries": 1}}}
    world = started("start -> child; child -error-> tool1", nodes=nodes)
    lost = Failure(code="lost", message="lost", retryable=True)
    world.child_ended("child", failure=lost)
    assert (world.simulation.asked.children, world.state.counters.running_steps) == ({}, 0)
    world.crash().ring()
    assert [one.attempt for one in world.simulation.asked.children.values()] == [2]
    assert world.state.counters.running_steps == 0, "nobody here works on a child"
    assert world.child_ended("child", failure=lost).working == ["tool1"]


def test_a_node_can_continue_with_the_failure_of_its_sub_workflow() -> None:
    nodes = {"child": {**CHILD["child"], "execution": {"errorHandler": "continue"}}}
    world = started("start -> child; child -> tool1", nodes=nodes)
    assert world.child_ended("child", failure=Failure(code="lost", message="lost")).working == ["tool1"]


def test_a_detached_sub_workflow_is_not_awaited() -> None:
    nodes = {"child": {"type": "workflow", "config": {"workflow": "other", "mode": "start"}}}
    world = started("start -> child; child -> tool1", nodes=nodes)
    assert [one.wait for one in world.simulation.asked.children.values()] == [False]
    assert world.child_ended("child", {"executionId": "exec-1"}).working == ["tool1"]


def test_a_sub_workflow_is_cancelled_with_its_parent() -> None:
    world = started("start -> child", nodes=CHILD)
    decision = decide(world.simulation.plan, world.state, CancelRequested(), world.now)
    assert [type(command) for command in decision.commands] == [StopChild]
    assert StartChild not in map(type, decision.commands)


SEVERAL = {
    "message": {"en": "Publish {{result}}?", "de": "{{result}} veröffentlichen?"},
    "options": [{"value": "approve", "label": {"en": "Yes", "de": "Ja"}}, {"value": "reject", "label": "No"}],
}


def test_a_gate_has_its_texts_in_every_language_of_the_definition() -> None:
    nodes = gate(**SEVERAL)
    nodes["ask1"]["name"] = {"en": "Review", "de": "Durchsicht"}
    world = started(GATE, nodes=nodes).done("tool1", "draft")
    (opened,) = world.events(GateOpened)
    assert opened.message == "Publish draft?"
    assert opened.messages == {"en": "Publish draft?", "de": "draft veröffentlichen?"}
    assert [option.get("labels") for option in opened.options] == [{"en": "Yes", "de": "Ja"}, None]
    assert opened.called == {"en": "Review", "de": "Durchsicht"}
    assert world.simulation.check() is None


def test_a_text_in_one_language_is_stored_once() -> None:
    world = started(GATE, nodes=gate(message={"de": "Gut?"})).done("tool1", "draft")
    (opened,) = world.events(GateOpened)
    assert (opened.message, opened.messages, opened.called) == ("Gut?", {}, None)
