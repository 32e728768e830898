"""Human tasks: a step waits at a gate for the answer of a person. The execution may wait for months at no cost.

    gate opens ─▶ GateOpened ─▶ … ─▶ GateAnswered (report) ─▶ GateClosed, StepSucceeded ─▶ exit by the action
                      │                    └─ quorum: GateVoted, until one action has enough votes
                      └─ timeout ─▶ GateEscalated, level by level, then the action of `onTimeout`, or the
                                    failure `gate-timeout`

One row closes a gate. A later answer or timer finds it closed. Each approver has one vote, the latest counts; votes for
one action must carry the same data. An approver who delegates passes the right on to another person.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec.structs import replace

from pointsman.engine.actions import GateApprovers, HumanTaskAction, Vote
from pointsman.engine.commands import AnnounceGate, DropTimer
from pointsman.engine.decide import human_task_answers, lifecycle, tool_approval
from pointsman.engine.decide.context import DecisionContext, ExitStep
from pointsman.engine.decide.entry import Entry, fail_open_step
from pointsman.engine.decide.gate_questions import announce_gate, set_deadline, shown_of, terms_of
from pointsman.engine.decide.human_task_answers import AnswerInvalid, check_answer, edits_of, is_same_answer
from pointsman.engine.decide.outputs import (
    EditRefused,
    answer_must_fit,
    check_edits,
    check_writes,
    evaluate_outputs,
    failure_from,
)
from pointsman.engine.digests import SHORT_CHARS, is_same, names
from pointsman.engine.events.steps import StepSucceeded
from pointsman.engine.events.waits import (
    FieldEdit,
    GateClosed,
    GateDelegated,
    GateEscalated,
    GateOpened,
    GateVoted,
)
from pointsman.engine.failures import Failure
from pointsman.engine.fold.waits import gate_of
from pointsman.engine.reports import DelegationRequested, GateAnswered
from pointsman.engine.state import GateState, StepState
from pointsman.engine.steps import DataEdit, Write
from pointsman.errors import CallerError, PointsmanError
from pointsman.values import Json, JsonObject


class GateClosedAlready(CallerError):
    """The gate is not open: answered, timed out, cancelled, or never opened."""

    code = "gate-closed"


class GateChangedMeanwhile(CallerError):
    """The answer refers to contents that the gate no longer shows. Nothing was written."""

    code = "gate-changed"


class AnswerDiffers(CallerError):
    """The key of this answer was used for a different answer."""

    code = "answer-differs"


def open_gate(entry: Entry, action: HumanTaskAction) -> None:
    """Evaluate the contents of a gate and open it."""
    now = shown_of(entry.ctx, entry, action, entry.environment())
    entry.open_step()
    announce_gate(
        entry.ctx,
        GateOpened(
            step=entry.step,
            gate=f"gate-{entry.step}",
            message=now.message,
            messages=now.messages,
            options=action.options,
            form=action.form,
            shown=now.shown,
            editable=now.editable,
        ),
        action.terms,
    )


def step_at_gate(ctx: DecisionContext, report: GateAnswered | DelegationRequested) -> StepState:
    """Return the step whose open gate the report names. Raises `GateClosedAlready`."""
    step = report.step
    at = ctx.state.steps.get(step)
    if at is None or at.gate is None or ctx.state.ended or report.gate not in ("", at.gate.id):
        raise GateClosedAlready(
            f"the gate of {str(step)!r} is not open", hint="It was answered, timed out, or never opened."
        )
    return at


def answered(ctx: DecisionContext, report: GateAnswered) -> None:
    """Process a person's answer. Raises `CallerError` if the gate does not accept it; then nothing is decided."""
    answer_must_fit(ctx, report)
    at = step_at_gate(ctx, report)
    gate = gate_of(at)
    if _is_repeated_vote(at, report):
        return
    if report.digest and len(report.digest) < SHORT_CHARS:
        raise AnswerInvalid(
            f"the digest {report.digest!r} is too short", hint=f"Give at least its first {SHORT_CHARS} characters."
        )
    if report.digest and not names(report.digest, gate.digest):
        raise GateChangedMeanwhile(
            f"the contents of the gate {report.step.node!r} have changed since they were read",
            hint="Read the gate again and answer with its present `digest`. Nothing was changed.",
        )
    check_answer(gate, report.action, report.data, ctx.plan.declared)
    _check_writes(ctx, at, edits_of(gate, report.action, report.data))
    must_approve(gate, report.by, report.groups)
    report = replace(report, groups=approving_groups(gate, report.groups))
    lifecycle.must_allow_raises(ctx, at, report.action)
    approvers = gate.approvers
    if approvers is None or (approvers.quorum == 1 and votes_needed(approvers, report.action) == 1):
        close(ctx, at, report)
        return
    vote = effective_vote(gate, report.by, Vote(report.action, report.data, report.comment, report.key))
    previous = gate.votes.get(report.by)
    if previous is not None and not vote.key and replace(previous, key="") == vote:
        return  # the same vote again
    ctx.emit(
        GateVoted(
            step=at.step,
            by=report.by,
            action=vote.action,
            data=vote.data,
            comment=vote.comment,
            groups=report.groups,
            key=vote.key,
            digest=gate.digest,
        )
    )
    if has_quorum(gate, vote.action):
        close(ctx, at, replace(report, data=vote.data))
    elif is_quorum_unreachable(gate):
        ctx.warn("quorum-out-of-reach", f"no answer to {gate.id!r} can get enough votes unless one changes", at.step)


def _check_writes(ctx: DecisionContext, at: StepState, edits: tuple[Write, ...]) -> None:
    """Raise `AnswerInvalid` for fields that cannot be written."""
    try:
        check_edits(ctx, (DataEdit(edit.path, edit.value, at.scope.key) for edit in edits))
    except EditRefused as why:
        raise AnswerInvalid(str(why), hint=why.hint) from why


def _is_repeated_vote(at: StepState, report: GateAnswered) -> bool:
    """Return whether a vote with this key was recorded, even if its voter has changed it or the gate asks again.

    A request that is sent twice must not undo what happened in between. Raises `AnswerDiffers` if that vote is
    different.
    """
    vote = gate_of(at).keyed_votes.get(report.key) if report.key else None
    if vote is None:
        return False
    same_answer(report.key, vote, (report.by, report.action, report.data))
    return True


def same_answer(key: str, first: tuple[str, str, Json], other: tuple[str, str, Json]) -> None:
    """Raise `AnswerDiffers` unless both are (person, action, data) of the same answer."""
    if first[:2] != other[:2] or not (is_same(first[2], other[2]) or _is_without_data(first[2], other[2])):
        raise AnswerDiffers(
            f"the key {key!r} was used for another answer ({first[1]!r} by {first[0]!r})",
            hint="Use a new key for each answer.",
        )


def _is_without_data(*data: Json) -> bool:
    """Return whether no answer has data; an empty object counts as none."""
    return all(value is None or value == {} for value in data)


def delegated(ctx: DecisionContext, report: DelegationRequested) -> None:
    """Pass an approver's right on to another person."""
    at = step_at_gate(ctx, report)
    gate = gate_of(at)
    must_approve(gate, report.by, report.groups)
    check_delegation(gate, report.by, report.to)
    groups = approving_groups(gate, report.groups)
    ctx.emit(GateDelegated(step=at.step, by=report.by, to=report.to, groups=groups, comment=report.comment))


def close(ctx: DecisionContext, at: StepState, report: GateAnswered, *, by_clock: bool = False) -> None:
    """Close a gate with its answer: write it and exit by the action, or continue the work that waited for it."""
    gate = gate_of(at)
    if gate.about != "node":
        _shut(ctx, at, report, (), by_clock=by_clock)
        tool_approval.decided(ctx, at, gate, report, by_clock=by_clock)
        return
    node = ctx.node(at.step)
    scope = at.scope
    action, data = report.action, report.data
    edits = () if by_clock else edits_of(gate, action, data)
    answer: JsonObject = {"response": action, "data": data}
    writes = list(edits)
    entry = _node_entry(at, report, data)
    try:
        writes += evaluate_outputs(ctx, scope, node, answer, displayed=entry)
        check_writes(ctx, scope, node, at.incoming.lineage, tuple(writes), answer)
    except CallerError:
        raise
    except PointsmanError as why:
        fail_open_step(ctx, at.step, failure_from(why))
        return
    _shut(ctx, at, report, edits, by_clock=by_clock)
    ctx.emit(
        StepSucceeded(
            step=at.step,
            attempt=at.attempt,
            result=answer,
            keeps=True,
            annotations=entry,
            writes=tuple(writes),
            undone_by=node.policy.compensate,
        )
    )
    ctx.dirty_scopes[at.step.scope] = None
    ctx.enqueue(ExitStep(at.step, (action,)))


def _node_entry(at: StepState, report: GateAnswered, data: Json) -> JsonObject:
    """Return the entry `nodes.<id>` of an answer; after a quorum it includes the votes."""
    view: JsonObject = {"branch": report.action, "action": report.action, "response": report.action, "data": data}
    if report.comment:
        view["comment"] = report.comment
    if report.by:
        view["by"] = report.by
    votes = gate_of(at).votes
    if votes:
        view["votes"] = [{"by": by, "action": vote.action, "comment": vote.comment} for by, vote in votes.items()]
    return view


def _shut(
    ctx: DecisionContext, at: StepState, report: GateAnswered, edits: tuple[Write, ...], *, by_clock: bool
) -> None:
    for timer in at.timers:
        ctx.command(DropTimer(timer=timer))
    changes = tuple(
        FieldEdit(path=write.path, before=at.scope.data.at(write.path), after=write.value) for write in edits
    )
    if changes:
        at.scope.data.shared()  # the event keeps the former value
    ctx.emit(
        GateClosed(
            step=at.step,
            action=report.action,
            data=report.data,
            comment=report.comment,
            by=report.by,
            groups=report.groups,
            cause="timeout" if by_clock else "answer",
            key=report.key,
            changes=changes,
            digest=gate_of(at).digest,
        )
    )


def timed_out(ctx: DecisionContext, at: StepState) -> None:
    """Escalate a gate without enough answers in time, or take the action of `onTimeout`."""
    gate, terms = gate_of(at), terms_of(ctx, at)
    if gate.about == "client":
        close(ctx, at, human_task_answers.results_timed_out(at), by_clock=True)
        return
    if gate.level < len(terms.levels):
        level = terms.levels[gate.level]
        deadline = ctx.state.at + level.timeout_s
        ctx.emit(GateEscalated(step=at.step, level=gate.level + 1, approvers=level.approvers, deadline=deadline))
        ctx.command(AnnounceGate(step=at.step))
        set_deadline(ctx, at.step, deadline)
        return
    offered = [str(option["value"]) for option in gate.options]
    if terms.on_timeout == "fail" or terms.on_timeout not in [*offered, *ctx.node(at.step).exits.labels]:
        failure = Failure(code="gate-timeout", message=f"the gate {at.step.node!r} was not answered in time")
        fail_open_step(ctx, at.step, failure)
    else:
        close(ctx, at, GateAnswered(step=at.step, action=terms.on_timeout, by="timeout"), by_clock=True)


REJECT: Final = "reject"


class NotAnApprover(CallerError):
    """This person may not answer the gate."""

    code = "not-an-approver"


class NotDelegable(CallerError):
    """The right to answer this gate cannot be delegated in this way."""

    code = "not-delegable"


class VotesDiffer(CallerError):
    """Another approver voted for the same action with other data."""

    code = "votes-differ"


def must_approve(gate: GateState, by: str, groups: tuple[str, ...]) -> None:
    """Raise `NotAnApprover` unless this person may answer.

    An anonymous answer is accepted only if the gate names no approvers and one answer is enough.
    """
    approvers = gate.approvers
    if approvers is None or (not approvers.named and (by or approvers.quorum == 1)):
        return
    if by and has_right(gate, approvers, by, groups):
        return
    if by in gate.delegations:
        hint = f"The right was delegated to {gate.delegations[by]!r}."
    else:
        hint = f"Approvers: {approvers_text(gate, approvers)}."
    raise NotAnApprover(
        f"{by!r} may not answer this gate" if by else "this gate requires the name of the person who answers", hint=hint
    )


def has_right(gate: GateState, approvers: GateApprovers, by: str, groups: tuple[str, ...]) -> bool:
    """Return whether the person is an approver: by name, by group, or by delegation."""
    if by in gate.delegates:
        return True
    if by in gate.delegations:
        return False
    return by in (approvers.users or ()) or any(group in (approvers.groups or ()) for group in groups)


def approving_groups(gate: GateState, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the groups that are approvers of the gate."""
    approver_groups = (gate.approvers.groups if gate.approvers is not None else None) or ()
    return tuple(group for group in approver_groups if group in groups)


def approvers_text(gate: GateState, approvers: GateApprovers) -> str:
    """Return the approvers of a gate as text for people."""
    users = sorted({*(approvers.users or ()), *gate.delegates} - {*gate.delegations} | {*gate.delegates})
    names = [repr(user) for user in users] + [f"the group {group!r}" for group in approvers.groups or ()]
    return ", ".join(names) or "a person by name"


def votes_needed(approvers: GateApprovers | None, action: str) -> int:
    """Return how many votes for the action close the gate."""
    if approvers is None:
        return 1
    return approvers.reject_quorum if action == REJECT else approvers.quorum


def effective_vote(gate: GateState, by: str, vote: Vote) -> Vote:
    """Return the vote as it counts. Raises `VotesDiffer`."""
    for other, voted in gate.votes.items():
        if other != by and voted.action == vote.action and not is_same_answer(gate, vote.action, voted.data, vote.data):
            raise VotesDiffer(
                f"{other!r} voted {vote.action!r} with different data; only votes with the same data count together",
                hint="Vote with the same data, or let them change their vote.",
            )
    return vote


def has_quorum(gate: GateState, action: str) -> bool:
    """Return whether the action has enough votes to close the gate."""
    return sum(vote.action == action for vote in gate.votes.values()) >= votes_needed(gate.approvers, action)


def is_quorum_unreachable(gate: GateState) -> bool:
    """Return whether no action can reach its quorum unless a vote changes; only known if all approvers are listed
    users.
    """
    remaining = voters(gate)
    if remaining is None:
        return False
    votes = Counter(vote.action for vote in gate.votes.values())
    undecided = len(remaining - {*gate.votes})
    actions = [str(option["value"]) for option in gate.options]
    return all(votes[action] + undecided < votes_needed(gate.approvers, action) for action in actions)


def voters(gate: GateState) -> set[str] | None:
    """Return everyone who may vote; None if unknown, because members of groups are not known here."""
    approvers = gate.approvers
    if approvers is None or approvers.groups or not approvers.users:
        return None
    return ({*approvers.users} - {*gate.delegations}) | {*gate.delegates}


def check_delegation(gate: GateState, by: str, to: str) -> None:
    """Raise `NotDelegable` if `by` may not delegate the right to `to`."""
    approvers = gate.approvers
    if approvers is None or not approvers.named:
        raise NotDelegable("anyone may answer this gate", hint="Delegation is not needed.")
    if not approvers.delegable:
        raise NotDelegable("this gate must be answered by the approvers themselves", hint="See its `approvers`.")
    if not to or to == by:
        raise NotDelegable("the right must be delegated to another person", hint="Give the name of that person.")
    after = voters(gate)
    if after is not None and len((after - {by}) | {to}) < approvers.quorum:
        raise NotDelegable(
            f"{approvers.quorum} different people must answer, and {to!r} would have two votes",
            hint="Delegate to a person who is not an approver yet.",
        )
