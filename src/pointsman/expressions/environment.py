"""Data that a formula can read, built once per step and never changed by an evaluation; and the names of its roots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pointsman.expressions.failures import VISITS_MAX, Spot, TooManyVisits
from pointsman.values import Json

ROOTS: Final[dict[str, str]] = {
    "input": "input",
    "state": "state",
    "data": "state",
    "result": "result",
    "nodes": "nodes",
    "nodeOutputs": "nodes",
    "outputs": "nodes",
    "item": "item",
    "current_fanout_item": "item",
    "index": "index",
    "key": "key",
    "loop": "loop",
    "config": "config",
    "settings": "config",
    "execution": "execution",
    "session": "session",
    "next": "next",
    "secret": "secret",
}
"""Reserved names and the root that each one means."""

ITEM_SEGMENT: Final = "current_fanout_item"
"""Path segment which, after a dot, stands for the key of this branch's item."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names that a workflow, or one position in it, declares."""

    as_names: frozenset[str] = frozenset()
    """Names that an enclosing parallel or loop gives to its items."""
    fields_first: frozenset[str] = frozenset()
    """Declared state fields that win over reserved names (dialects `steps` and `graph`)."""
    declared: frozenset[str] = frozenset()
    """All names that the workflow receives or writes: in a template, `{ x }` with blanks refers only to these."""

    def root(self, name: str) -> str:
        """Return the root that `name` means; "" for a state field, engine name or setting."""
        if name in self.as_names:
            return name
        if name in self.fields_first:
            return ""
        return ROOTS.get(name, "")


NATIVE: Final = Names()


class Missing(Enum):
    """Type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Value of a missing path inside this package; outside of it the value is `None`."""


@dataclass(slots=True)
class Environment:
    """Data over which one formula is evaluated."""

    state: dict[str, Json]
    """Root data of this scope."""
    nodes: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Latest results by node id. Read by id; copied only if a formula uses `nodes` as a whole."""
    names: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Reserved roots that exist here (`input`, `result`, `item` …), `as` names and names of the engine."""
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Read-only settings."""
    item_key: str | None = None
    """Key of this branch's item, for which the path segment `current_fanout_item` stands."""
    strict: bool = False
    """True if a missing path is an error, unless it is read under `??`, `exists`, `default` or `empty`."""
    missing: list[str] | None = None
    """If set, collects the missing paths that templates rendered as empty."""


class EvaluationFrame:
    """One evaluation: the environment, the remaining budget, and the variables of lambdas."""

    __slots__ = ("env", "slots", "visits_left")

    def __init__(self, env: Environment, slots: int) -> None:
        self.env = env
        self.visits_left = VISITS_MAX
        self.slots: list[Json] = [None] * slots if slots else NO_SLOTS

    def spend(self, visits: int, spot: Spot) -> None:
        """Deduct `visits` elements from the budget."""
        self.visits_left -= visits
        if self.visits_left < 0:
            raise TooManyVisits(
                f"the expression visits more than {VISITS_MAX} elements",
                spot=spot,
                hint="Narrow the data first, with a transform or a smaller path.",
            )


NO_SLOTS: Final[list[Json]] = []
