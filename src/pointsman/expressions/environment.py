"""What a formula can see: the data of one scope, built once per step, never changed by an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pointsman.expressions.failures import Spot, TooManyVisits
from pointsman.expressions.limits import VISITS_MAX
from pointsman.values import Json


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""What a path that leads nowhere gives inside this package. It never leaves it: outside it is `None`."""


@dataclass(slots=True)
class Environment:
    """The data one formula is evaluated over."""

    state: dict[str, Json]
    """Root data of this scope."""
    nodes: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Latest results by node id. Read by id; copied only when a formula uses `nodes` as a whole."""
    names: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Reserved roots present here (`input`, `result`, `item` …), `as` names and names of the engine."""
    config: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Read-only settings."""
    item_key: str | None = None
    """Key of this branch's item: what the path segment `current_fanout_item` stands for."""
    strict: bool = False
    """A missing path is an error, unless it is read under `??`, `exists`, `default` or `empty`."""
    missing: list[str] | None = None
    """Collects the paths that templates left empty, where someone wants to know."""


class EvaluationFrame:
    """One evaluation: the environment, what is left of the budget, and the variables of lambdas."""

    __slots__ = ("env", "slots", "visits_left")

    def __init__(self, env: Environment, slots: int) -> None:
        self.env = env
        self.visits_left = VISITS_MAX
        self.slots: list[Json] = [None] * slots if slots else NO_SLOTS

    def spend(self, visits: int, spot: Spot) -> None:
        """Pay for touching `visits` elements."""
        self.visits_left -= visits
        if self.visits_left < 0:
            raise TooManyVisits(
                f"this touches more than {VISITS_MAX} elements",
                spot=spot,
                hint="Narrow the data first, with a transform or a smaller path.",
            )


NO_SLOTS: Final[list[Json]] = []
