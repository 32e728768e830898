"""Values of gates: approvers and their votes, proposed tool calls and the verdicts on them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from pointsman.values import Json, JsonObject

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
    """The approvers, their deadline, and the effect of the timeout."""

    approvers: GateApprovers | None = None
    timeout_s: float | None = None
    on_timeout: str = "fail"
    """After the last level: `fail`, an action taken automatically, or the label of a route."""
    levels: tuple[EscalationLevel, ...] = ()
    """Escalation levels before that, in order."""


ANYONE: Final = GateTerms()


class ProposedCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A tool call that waits for approval or is performed outside. `number` is its effect number in the attempt."""

    number: int
    name: str
    arguments: JsonObject
    description: str = ""
    wants: Literal["approval", "result", "workflow"] = "approval"
    """`result`: the caller performs the call and returns its result; `workflow`: a sub-workflow does."""
    workflow: str = ""
    """The sub-workflow."""
    timeout_s: float | None = None
    """Time limit for that, in seconds."""
    bytes_max: int | None = None
    """Size limit of the result as JSON, in bytes."""
    parameters: JsonObject | None = None
    """JSON Schema of the arguments; arguments that a person substitutes must fit it."""


class CallVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The decision about one call. `arguments` are set if a person changed them."""

    number: int
    approved: bool
    arguments: JsonObject | None = None
    reason: str = ""
    """The reason for a rejection, as reported to the model."""
    returned: bool = False
    """Whether the caller or a sub-workflow performed it: `result` is its result."""
    result: Json = None
    of: str = ""
    """Digest of the call that was decided; empty in older journals."""
    tool: str = ""
    """Name of its tool; empty in older journals."""
    code: str = ""
    """Failure code of a call that is not approved; empty: `call-rejected`."""
