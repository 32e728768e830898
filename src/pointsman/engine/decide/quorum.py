"""Quorum: who may answer an open gate, and whether an action has enough votes. Changes nothing.

    person ─▶ approver? ─▶ vote (one each, the latest counts) ─▶ enough for one action? ─▶ the gate closes
                └─ delegated ─▶ another person has the right now

Votes for one action must carry the same data; a later vote with other data is refused.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from pointsman.engine.approvers import GateApprovers, Vote
from pointsman.engine.decide.human_task_answers import is_same_answer
from pointsman.engine.state import GateState
from pointsman.errors import CallerError

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
        hint = f"The right was passed on to {gate.delegations[by]!r}."
    else:
        hint = f"It asks {asked_of(gate, approvers)}."
    raise NotAnApprover(f"{by!r} may not answer this gate" if by else "this gate must know who answers", hint=hint)


def has_right(gate: GateState, approvers: GateApprovers, by: str, groups: tuple[str, ...]) -> bool:
    """Return whether the person is an approver: by name, by group, or by delegation."""
    if by in gate.delegates:
        return True
    if by in gate.delegations:
        return False
    return by in (approvers.users or ()) or any(group in (approvers.groups or ()) for group in groups)


def rightful(gate: GateState, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the groups that are approvers of the gate."""
    asked = (gate.approvers.groups if gate.approvers is not None else None) or ()
    return tuple(group for group in asked if group in groups)


def asked_of(gate: GateState, approvers: GateApprovers) -> str:
    """Return the approvers of a gate as text for people."""
    users = sorted({*(approvers.users or ()), *gate.delegates} - {*gate.delegations} | {*gate.delegates})
    names = [repr(user) for user in users] + [f"the group {group!r}" for group in approvers.groups or ()]
    return ", ".join(names) or "a person by name"


def needed(approvers: GateApprovers | None, action: str) -> int:
    """Return how many votes for the action close the gate."""
    if approvers is None:
        return 1
    return approvers.reject_quorum if action == REJECT else approvers.quorum


def cast(gate: GateState, by: str, vote: Vote) -> Vote:
    """Return the vote as it counts. Raises `VotesDiffer`."""
    for other, voted in gate.votes.items():
        if other != by and voted.action == vote.action and not is_same_answer(gate, vote.action, voted.data, vote.data):
            raise VotesDiffer(
                f"{other!r} voted {vote.action!r} with other data, and both must approve the same",
                hint="Vote with the same data, or let them change their vote.",
            )
    return vote


def enough(gate: GateState, action: str) -> bool:
    """Return whether the action has enough votes to close the gate."""
    return sum(vote.action == action for vote in gate.votes.values()) >= needed(gate.approvers, action)


def out_of_reach(gate: GateState) -> bool:
    """Return whether no action can reach its quorum unless a vote changes; only known if all approvers are listed
    users.
    """
    left = voters(gate)
    if left is None:
        return False
    votes = Counter(vote.action for vote in gate.votes.values())
    undecided = len(left - {*gate.votes})
    actions = [str(option["value"]) for option in gate.options]
    return all(votes[action] + undecided < needed(gate.approvers, action) for action in actions)


def voters(gate: GateState) -> set[str] | None:
    """Return everyone who may vote; None if unknown, because members of groups are not known here."""
    approvers = gate.approvers
    if approvers is None or approvers.groups or not approvers.users:
        return None
    return ({*approvers.users} - {*gate.delegations}) | {*gate.delegates}


def must_pass_on(gate: GateState, by: str, to: str) -> None:
    """Raise `NotDelegable` if `by` may not delegate the right to `to`."""
    approvers = gate.approvers
    if approvers is None or not approvers.named:
        raise NotDelegable("anyone may answer this gate", hint="There is nothing to pass on.")
    if not approvers.delegable:
        raise NotDelegable("this gate must be answered by the approvers themselves", hint="See its `approvers`.")
    if not to or to == by:
        raise NotDelegable("a right is passed on to another person", hint="Name them.")
    after = voters(gate)
    if after is not None and len((after - {by}) | {to}) < approvers.quorum:
        raise NotDelegable(
            f"{approvers.quorum} different people must answer, and then {to!r} would have the right twice",
            hint="Pass it on to somebody who is not asked yet.",
        )
