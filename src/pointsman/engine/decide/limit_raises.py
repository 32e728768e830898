"""Raise limits: which limits exist, which values the operator allows, and how much is already used.

    used 5 of 5 steps ─▶ interrupted ─▶ resume steps=5   refused: it would stop again at once
                                     └▶ resume steps=20  continues

The suggested value adds the limit once more to what is used, within the operator's bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from pointsman.engine.decide import budgets, limits
from pointsman.engine.decide.stall_detection import REPEATS_MAX
from pointsman.engine.plan import Plan
from pointsman.engine.state import ExecutionState
from pointsman.errors import CallerError

RAISABLE: Final = (
    "steps",
    "visits",
    "executionTime",
    "deadline",
    "nodeTime",
    "stateSize",
    "tokens",
    "modelCalls",
    "toolCalls",
    "costUsd",
    "no-progress",
)
VISITS: Final = "visits"
NO_PROGRESS: Final = "no-progress"
SMALLEST: Final[Mapping[str, float]] = {"costUsd": 0.0001}
"""The unit to which a suggested value is rounded up; 1 for all others."""


class UnknownLimit(CallerError):
    """A limit to raise does not exist."""

    code = "unknown-limit"


class LimitCapped(CallerError):
    """A limit would be raised above the operator's cap."""

    code = "limit-capped"


class LimitUsed(CallerError):
    """The usage has already reached the requested value."""

    code = "limit-used"


class RaisableLimit(NamedTuple):
    """The limit that stopped an execution, and a value that is enough to continue."""

    name: str
    now: float
    used: float
    next: float | None
    """None: the operator allows no more than is used."""
    most: float | None
    """The operator's cap; None: no cap."""


def may_raise(plan: Plan, state: ExecutionState, wanted: Mapping[str, float]) -> None:
    """Check that limits can be raised. Raises `UnknownLimit`, `LimitCapped`, `LimitUsed`; then nothing is raised."""
    for name, number in wanted.items():
        kind, _, node = name.partition(":")
        if name not in RAISABLE and not (kind == VISITS and node in plan.nodes):
            raise UnknownLimit(f"there is no limit {name!r}", hint=f"Limits: {', '.join(RAISABLE)}, visits:NODE.")
        most = plan.limits.caps.get(kind)
        if most is not None and number > most:
            raise LimitCapped(
                f"{name!r} cannot be raised to {number:g}: the operator allows {most:g}",
                hint="The operator's limits are under [limits] in pointsman.toml.",
            )
        spent = _visited(state, node) if kind == VISITS else used(state).get(name, 0.0)
        if spent > 0 and number <= spent:
            raise LimitUsed(
                f"{name!r} cannot be {number:g}: {spent:g} are used already", hint=f"Give more than {spent:g}."
            )


def offer(plan: Plan, state: ExecutionState, name: str, at: float) -> RaisableLimit | None:
    """Return the suggested raise of a limit; None if the plan has no number for it. `at`: the present time."""
    planned = REPEATS_MAX if name == NO_PROGRESS else limits.planned(plan, name)
    now = limits.allowed_in(plan, state, name, planned)
    if now is None:
        return None
    spent = _spent(state, name, at)
    most = plan.limits.caps.get(name)
    base, unit = max(now, spent), SMALLEST.get(name, 1.0)
    if most is not None and base >= most:
        return RaisableLimit(name, now, spent, None, most)
    # Floats leave a remainder of much less than a unit; it must not add one more unit.
    wanted = round(math.ceil((base + now) / unit - 1e-6) * unit, 6)
    return RaisableLimit(name, now, spent, wanted if most is None else min(wanted, most), most)


def _spent(state: ExecutionState, name: str, at: float) -> float:
    """Return the usage of one limit. Clock time is counted until now."""
    match name:
        case "visits":
            return _visited(state, "")
        case limits.CLOCK:
            return max(0.0, at - state.setup.started_at)
        case _:
            return used(state).get(name, 0.0)


def used(state: ExecutionState) -> dict[str, float]:
    """Return the usage of each countable limit."""
    return {
        "steps": float(state.counters.steps),
        "executionTime": limits.worked_s(state),
        "deadline": state.at - state.setup.started_at,
        **{name: amount(state.usage) for name, amount in budgets.AMOUNT.items()},
    }


def _visited(state: ExecutionState, node: str) -> float:
    """Return the most visits to this node in one scope; without a name, those of the most visited node."""
    found = (
        done for scope in state.scopes.values() for (visited, _), done in scope.visits.items() if node in ("", visited)
    )
    return float(max(found, default=0))
