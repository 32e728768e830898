"""Tool calls that wait for a person, the caller or a child execution: the proposed call, and the verdict on it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from pointsman.values import Json, JsonObject


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
