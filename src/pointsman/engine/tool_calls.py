"""Tool calls that wait for a person, the caller or a child execution: the proposed call, and the verdict on it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from pointsman.values import Json, JsonObject


class ProposedCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A call that may not be made before a person agreed. `number` is its effect number inside the attempt."""

    number: int
    name: str
    arguments: JsonObject
    description: str = ""
    wants: Literal["approval", "result", "workflow"] = "approval"
    """`result`: the caller carries it out, and says what came of it; `workflow`: a sub-workflow does."""
    workflow: str = ""
    """Which one."""
    timeout_s: float | None = None
    """How long they have for that."""
    bytes_max: int | None = None
    """Of the result, as JSON."""
    parameters: JsonObject | None = None
    """The JSON Schema of the arguments, which arguments that a person gives instead must fit."""


class CallVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a person decided about one call. `arguments` are what it is made with, where they were changed."""

    number: int
    approved: bool
    arguments: JsonObject | None = None
    reason: str = ""
    """The reason for a rejection, as reported to the model."""
    returned: bool = False
    """The caller or a sub-workflow carried it out: `result` is what came of it."""
    result: Json = None
    of: str = ""
    """The digest of the call that was decided about; empty in journals that are older than it."""
    code: str = ""
    """Of the failure that it is where it is not approved; empty: `call-rejected`."""
