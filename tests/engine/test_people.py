"""People at gates: approvers, quorum, delegation, escalation."""

from __future__ import annotations

import pytest

from pointsman.engine.actions import ProposedCall
from pointsman.engine.decide.dispatch import Decision, decide
from pointsman.engine.decide.human_task_answers import AnswerInvalid
from pointsman.engine.decide.human_tasks import (
    AnswerDiffers,
    GateClosedAlready,
    NotAnApprover,
    NotDelegable,
    VotesDiffer,
)
from pointsman.engine.events.waits import GateClosed, GateEscalated, GateVoted
from pointsman.engine.replay import ReplayDifference
from pointsman.engine.reports import DelegationRequested, GateAnswered, TimerFired, ToolCallsProposed
from pointsman.values import Json
from tests.engine.replays import replay
from tests.engine.world import World, started

GATE = "start -> ask1; ask1 -#approve-> tool1; ask1 -#edit-> tool1; ask1 -#reject-> tool2"
THREE = {"users": ["ada", "ben", "cleo"], "quorum": 2}


def gated(**config: object) -> World:
    actions = {} if "options" in config else {"actions": ["approve", "edit", "reject"]}
    return started(GATE, nodes={"ask1": {"config": {**actions, **config}}}, input={"text": "old", "kept": 1})


def said(
    world: World,
    action: str,
    by: str = "",
    *,
    groups: tuple[str, ...] = (),
    data: Json = None,
    key: str = "",
) -> Decision:
    """Decide an answer as the world would report it."""
    step, _ = world.at("ask1")
    rows = len(world.simulation.rows)
    world.simulation.asked.gates.pop(step, None)
    report = GateAnswered(step=step, action=action, by=by, groups=groups, data=data, key=key)
    try:
        decide(world.simulation.plan, world.state, report, world.now)
    finally:
        world.crash()  # Discard the trial decision; the gate asks again.
    world.tell(report)
    if world.state.steps.get(step) is not None and world.state.steps[step].gate is not None:
        world.simulation.asked.gates[step] = None
    else:
        world.simulation.asked.gates.pop(step, None)
    assert world.simulation.check() is None
    new = world.simulation.rows[rows:]
    return Decision(tuple(event for row in new for event in row.events), ())


def passed_on(world: World, by: str, to: str) -> None:
    step, _ = world.at("ask1")
    report = DelegationRequested(step=step, by=by, to=to)
    decide(world.simulation.plan, world.state, report, world.now)
    world.crash()
    world.tell(report)


@pytest.mark.parametrize(
    ("approvers", "by", "groups", "may"),
    [
        ({"users": ["ada"]}, "ada", (), True),
        ({"users": ["ada"]}, "ben", (), False),
        ({"users": ["ada"]}, "", (), False),
        ({"groups": ["editors"]}, "ben", ("editors",), True),
        ({"groups": ["editors"]}, "ben", ("readers",), False),
        ({"groups": ["editors"]}, "", ("editors",), False),
        ({"groups": ["editors"], "users": ["ada"]}, "ada", (), True),
        ({"quorum": 1}, "", (), True),
    ],
)
def test_a_gate_accepts_answers_only_from_its_approvers(
    approvers: dict[str, object],
    by: str,
    groups: tuple[str, ...],
    may: bool,
) -> None:
    world = gated(approvers=approvers)
    if may:
        said(world, "approve", by, groups=groups)
        assert world.working == ["tool1"]
        return
    with pytest.raises(NotAnApprover):
        said(world, "approve", by, groups=groups)
    assert world.gates == ["ask1"]


def test_two_of_three_must_agree_and_a_changed_vote_replaces_the_first() -> None:
    world = gated(approvers={**THREE, "rejectQuorum": 2})
    said(world, "reject", "ada")
    said(world, "approve", "ada")
    said(world, "approve", "ada")
    assert world.gates == ["ask1"], "one person has one vote"
    said(world, "reject", "cleo")
    assert world.gates == ["ask1"]
    said(world, "approve", "ben")
    assert world.working == ["tool1"]
    assert [(event.by, event.action) for event in world.events(GateVoted)] == [
        ("ada", "reject"),
        ("ada", "approve"),
        ("cleo", "reject"),
        ("ben", "approve"),
    ]
    shown = world.state.root.nodes["ask1"]
    assert isinstance(shown, dict)
    assert shown["votes"] == [
        {"by": "ada", "action": "approve", "comment": ""},
        {"by": "cleo", "action": "reject", "comment": ""},
        {"by": "ben", "action": "approve", "comment": ""},
    ]


def test_one_rejection_is_enough_unless_the_gate_requires_more() -> None:
    world = gated(approvers=THREE)
    said(world, "approve", "ada")
    said(world, "reject", "ben")
    assert world.working == ["tool2"]


def test_a_vote_without_a_name_does_not_count() -> None:
    with pytest.raises(NotAnApprover, match="who answers"):
        said(gated(approvers={"quorum": 2}), "approve")


def test_a_gate_reports_when_no_action_can_reach_its_quorum() -> None:
    world = gated(approvers={"users": ["ada", "ben"], "quorum": 2, "rejectQuorum": 2})
    said(world, "approve", "ada")
    assert world.warnings == []
    said(world, "reject", "ben")
    assert world.warnings == ["quorum-out-of-reach"]
    said(world, "approve", "ben")
    assert world.working == ["tool1"]


def test_votes_for_one_action_carry_the_same_data() -> None:
    world = gated(approvers=THREE, editable=["text"])
    said(world, "edit", "ada", data={"text": "new"})
    with pytest.raises(VotesDiffer, match="'ada'"):
        said(world, "edit", "ben", data={"text": "other"})
    said(world, "edit", "ben", data={"text": "new"})
    assert (world.working, world.data["text"]) == (["tool1"], "new")


def test_the_right_to_answer_is_delegated_and_delegated_back() -> None:
    world = gated(approvers={"users": ["ada"]})
    passed_on(world, "ada", "dan")
    with pytest.raises(NotAnApprover, match="'ada'"):
        said(world, "approve", "ada")
    passed_on(world, "dan", "ada")
    with pytest.raises(NotAnApprover):
        said(world, "approve", "dan")
    said(world, "approve", "ada")
    assert world.working == ["tool1"]


def test_a_delegation_withdraws_the_vote() -> None:
    world = gated(approvers=THREE)
    said(world, "approve", "ada")
    passed_on(world, "ada", "dan")
    said(world, "approve", "ben")
    assert world.gates == ["ask1"]
    said(world, "approve", "dan")
    assert world.working == ["tool1"]


@pytest.mark.parametrize(
    ("approvers", "to"),
    [
        (None, "ben"),
        ({"users": ["ada"], "delegable": False}, "ben"),
        ({"users": ["ada"]}, "ada"),
        ({"users": ["ada", "ben"], "quorum": 2}, "ben"),
    ],
)
def test_a_right_that_is_not_delegable_stays(approvers: dict[str, object] | None, to: str) -> None:
    world = gated(**({} if approvers is None else {"approvers": approvers}))
    with pytest.raises(NotDelegable):
        passed_on(world, "ada", to)


def test_an_answer_with_a_key_counts_once() -> None:
    world = gated(approvers=THREE)
    assert said(world, "approve", "ada", key="k1").events
    assert said(world, "approve", "ada", key="k1").events == ()
    with pytest.raises(AnswerDiffers, match="'k1'"):
        said(world, "reject", "ada", key="k1")


def test_a_vote_sent_twice_does_not_undo_a_later_vote() -> None:
    world = gated(approvers=THREE, actions=["approve", "edit", "skip", "reject"])
    assert said(world, "approve", "ada", key="k1").events
    assert said(world, "skip", "ada", key="k2").events
    assert said(world, "approve", "ada", key="k1").events == ()
    step, _ = world.at("ask1")
    gate = world.state.steps[step].gate
    assert gate is not None
    assert {by: vote.action for by, vote in gate.votes.items()} == {"ada": "skip"}
    with pytest.raises(AnswerDiffers, match="'k1'"):
        said(world, "skip", "ada", key="k1")


def test_a_gate_escalates_level_by_level_before_its_timeout_applies() -> None:
    levels = [{"approvers": {"users": ["boss"]}, "timeout": "2h"}, {"approvers": {"groups": ["board"]}}]
    world = gated(approvers=THREE, timeout="1h", escalation=levels, onTimeout="reject")
    said(world, "approve", "ada")
    first = TimerFired(timer=next(iter(world.simulation.asked.timers)))
    world.ring()
    assert (world.gates, world.timers) == (["ask1"], [7200.0])
    world.tell(first)
    assert len(world.events(GateEscalated)) == 1, "the clock of the first level is not heard twice"
    with pytest.raises(NotAnApprover):
        said(world, "approve", "ben")
    world.crash().ring()
    assert [event.level for event in world.events(GateEscalated)] == [1, 2]
    assert world.timers == [3600.0]
    world.ring()
    (closed,) = world.events(GateClosed)
    assert (world.working, closed.action, closed.cause) == (["tool2"], "reject", "timeout")


def test_approvers_of_the_escalation_level_can_answer() -> None:
    world = gated(timeout="1h", escalation=[{"approvers": {"users": ["boss"]}}]).ring()
    said(world, "approve", "boss")
    assert (world.working, world.timers) == (["tool1"], [])


FORM = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer"}}}


def test_the_engine_validates_a_form() -> None:
    world = gated(form=FORM)
    with pytest.raises(AnswerInvalid, match="amount"):
        said(world, "approve")
    with pytest.raises(AnswerInvalid, match="integer"):
        said(world, "approve", data={"amount": "much"})
    said(world, "approve", data={"amount": 3})
    assert world.working == ["tool1"]


def test_a_rejection_needs_no_form_data() -> None:
    assert (said(gated(form=FORM), "reject")).events
    with pytest.raises(AnswerInvalid):
        said(gated(form=FORM), "reject", data={"amount": "much"})


def test_a_change_of_a_person_is_recorded_with_the_previous_value() -> None:
    world = gated(editable=["text", "note"])
    said(world, "edit", "ada", data={"text": "new", "note": "n"})
    (closed,) = world.events(GateClosed)
    assert [(one.path, one.before, one.after) for one in closed.changes] == [
        (("text",), "old", "new"),
        (("note",), None, "n"),
    ]


def test_an_answer_to_one_gate_of_a_step_does_not_count_for_the_next() -> None:
    """The approval of a step's start is not the approval of its tool calls."""
    world = started("start -> tool1", nodes={"tool1": {"requiresApproval": True}})
    step, _ = world.at("tool1")
    begin = GateAnswered(step=step, action="approve", gate="gate-tool1")
    world.simulation.asked.gates.clear()
    world.tell(begin)
    assert world.working == ["tool1"]
    world.simulation.asked.work.clear()
    call = ProposedCall(number=1, name="pay", arguments={})
    world.tell(ToolCallsProposed(step=step, attempt=1, calls=(call,)))
    with pytest.raises(GateClosedAlready):
        decide(world.simulation.plan, world.state, begin, world.now)
    assert (world.working, world.gates) == ([], ["tool1"])


def test_an_approval_of_a_step_covers_its_attempts_and_an_approval_of_a_call_only_one() -> None:
    world = started("start -> tool1", nodes={"tool1": {"requiresApproval": True, "execution": {"retries": 2}}})
    world.answer("tool1", "approve")
    world.fails("tool1", retryable=True).ring()
    step, attempt = world.at("tool1")
    assert (world.working, world.gates, attempt) == (["tool1"], [], 2)
    call = ProposedCall(number=1, name="pay", arguments={"to": "ada"})
    world.simulation.asked.work.clear()
    world.tell(ToolCallsProposed(step=step, attempt=2, calls=(call,)))
    world.answer("tool1", "approve")
    world.tell(ToolCallsProposed(step=step, attempt=2, calls=(call,)))
    assert world.gates == [], "the same attempt repeats the approved call"
    world.fails("tool1", retryable=True).ring()
    world.simulation.asked.work.clear()
    world.tell(ToolCallsProposed(step=step, attempt=3, calls=(call,)))
    assert world.gates == ["tool1"]


def replayed(world: World) -> tuple[list[ReplayDifference], list[int]]:
    again = replay(lambda _: world.simulation.plan, world.state.id, world.simulation.rows)
    return again.differences, again.rows_without_report


def test_replay_decides_the_actions_of_people_again() -> None:
    world = gated(approvers={"users": ["ada"], "groups": ["editors"], "quorum": 2})
    said(world, "approve", "ada", key="k")
    passed_on(world, "ada", "dan")
    said(world, "approve", "dan")
    said(world, "approve", "eve", groups=("readers", "editors"))
    assert (world.working, replayed(world)) == (["tool1"], ([], []))


def test_a_fallback_gate_shows_the_reached_limit() -> None:
    """The approvers see which limit was reached, and their answer decides how the execution continues."""
    config = {"limits": {"steps": 2}, "onLimit": "ask9"}
    drawing = "start -> tool1; tool1 -> tool2; tool2 -> tool3; ask9 -#approve-> tool4"
    world = started(drawing, nodes={"ask9": {"config": {"message": "Go on? {result}"}}}, config=config)
    world.done("tool1")
    step, _ = world.at("ask9")
    gate = world.state.steps[step].gate
    assert gate is not None
    assert gate.message == "Go on? the limit of 2 steps is reached (`steps`, set by the workflow)"
    assert world.crash().answer("ask9", "approve").working == ["tool4"]


DECLARED = {"n": {"schema": {"type": "integer"}}, "text": {"schema": {"type": "string", "minLength": 2}}}


def test_an_edit_that_does_not_match_the_declared_field_is_refused_and_the_gate_stays_open() -> None:
    world = started(
        GATE,
        nodes={"ask1": {"config": {"actions": ["approve", "edit", "reject"], "editable": ["text"]}}},
        input={"text": "old"},
        state=DECLARED,
    )
    with pytest.raises(AnswerInvalid, match=r"^text: "):
        said(world, "edit", data={"text": 3})
    assert world.working == []
    said(world, "edit", data={"text": "new"})
    assert (world.data["text"], world.working) == ("new", ["tool1"])


def test_a_vote_for_an_invalid_edit_is_refused() -> None:
    world = started(
        GATE,
        nodes={"ask1": {"config": {"actions": ["approve", "edit"], "editable": ["text"], "approvers": THREE}}},
        input={"text": "old"},
        state=DECLARED,
    )
    with pytest.raises(AnswerInvalid):
        said(world, "edit", "ada", data={"text": "x"})
    said(world, "edit", "ada", data={"text": "xy"})
    said(world, "edit", "ben", data={"text": "xy"})
    assert world.data["text"] == "xy"
