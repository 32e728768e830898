"""Declared webhooks (by path) and event triggers (by name) of saved workflows, one entry of the store each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec
from msgspec import Struct

from pointsman.expressions.environment import Environment
from pointsman.expressions.formula import compile_expression
from pointsman.expressions.names import Names
from pointsman.triggers.signatures import Scheme
from pointsman.values import Json, JsonObject

WEBHOOK: Final = "webhook"
"""Kind of entry; its key is the path."""
EVENT: Final = "event-trigger"
"""Kind of entry; its key names workflow and trigger."""
NAMES: Final = Names(frozenset({"event", "headers"}))
"""Names that formulas of a trigger can use."""
FIELD: Final = "data"
"""The input field for event data that is not an object."""


class Declared(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trigger in effect. It contains no secret value: only a reference, or a note that the document has one."""

    workflow: str
    trigger: str
    event: str = ""
    """The event it waits for; for a webhook: the event it publishes instead of starting the workflow."""
    match: str = ""
    inputs: dict[str, str] = {}
    initial: Json = None
    secret: str = ""
    """`secret.NAME`; or `document`: in the document of the workflow; or empty."""
    open: bool = False
    """For a trigger without a secret: whether unsigned calls are accepted (`auth: none`) instead of refused."""
    scheme: Scheme = "standard"
    """The signature scheme of calls."""

    @property
    def id(self) -> str:
        return f"{self.workflow}/{self.trigger}"

    def accepts(self, data: Json, headers: Mapping[str, str]) -> bool:
        """Return whether `match` holds. Raises `ExpressionFailed`."""
        return not self.match or compile_expression(self.match, names=NAMES).holds(_seen(data, headers))

    def input_from(self, data: Json, headers: Mapping[str, str]) -> JsonObject:
        """Return the input of the execution to start. Values in the document override values from outside."""
        if self.inputs:
            seen = _seen(data, headers)
            found = {name: compile_expression(one, names=NAMES).evaluate(seen) for name, one in self.inputs.items()}
        else:
            found = dict(data) if isinstance(data, dict) else {} if data is None else {FIELD: data}
        return {**found, **(self.initial if isinstance(self.initial, dict) else {})}


def _seen(data: Json, headers: Mapping[str, str]) -> Environment:
    return Environment({}, names={"event": data, "headers": cast(JsonObject, dict(headers))})


def read_declared(value: Json) -> Declared:
    return msgspec.convert(value, Declared)
