"""Approvers of a gate: who may answer, how long they have, and their votes."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from pointsman.values import Json

GateAbout: TypeAlias = Literal["node", "start", "calls", "client"]
"""`node`: a human node asks · `start`: approval to start a step · `calls`: approval of tool calls · `client`:
results of calls that the caller runs.
"""


class GateApprovers(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """The people who may answer a gate, and how many must. Without groups and users: anyone."""

    groups: tuple[str, ...] | None = None
    users: tuple[str, ...] | None = None
    quorum: int = 1
    """Votes for one action that close the gate; each person has one."""
    reject_quorum: int = 1
    """Votes for `reject` that close the gate."""
    delegable: bool = True
    """Whether an approver may delegate."""

    @property
    def named(self) -> bool:
        """Return whether the gate names its approvers."""
        return bool(self.groups or self.users)


class Vote(Struct, frozen=True, omit_defaults=True, gc=False):
    """The vote of one approver."""

    action: str
    data: Json = None
    comment: str = ""
    key: str = ""


class EscalationLevel(Struct, frozen=True, kw_only=True, gc=False):
    """The next approvers after a timeout, and the time they have."""

    approvers: GateApprovers
    timeout_s: float


class GateTerms(Struct, frozen=True, kw_only=True, gc=False):
    """Who may answer, how long they have, and what happens then."""

    approvers: GateApprovers | None = None
    timeout_s: float | None = None
    on_timeout: str = "fail"
    """After the last level: `fail`, an action taken automatically, or the label of a route."""
    levels: tuple[EscalationLevel, ...] = ()
    """Escalation levels before that, in order."""


ANYONE: Final = GateTerms()
