"""Tool calls that wait for a person: what is proposed, and what was decided."""

from __future__ import annotations

from msgspec import Struct

from pointsman.values import JsonObject


class ProposedCall(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A call that may not be made before a person agreed. `number` is its effect number inside the attempt."""

    number: int
    name: str
    arguments: JsonObject
    description: str = ""


class CallVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a person decided about one call. `arguments` are what it is made with, where they were changed."""

    number: int
    approved: bool
    arguments: JsonObject | None = None
    reason: str = ""
    """What whoever wanted the call is told about a rejection."""
