"""Raising limits: which there are, what the operator allows, and what is used already.

used 5 of 5 steps ─▶ interrupted ─▶ resume steps=5   refused: it would stop again before anything happens
                                 └▶ resume steps=20  goes on
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pointsman.engine import budgets, limits
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


class UnknownLimit(CallerError):
    """A limit is to be raised that does not exist."""

    code = "unknown-limit"


class LimitCapped(CallerError):
    """A limit is to be raised above what the operator allows."""

    code = "limit-capped"


class LimitUsed(CallerError):
    """As much is used already as is to be allowed."""

    code = "limit-used"


def may_raise(plan: Plan, state: ExecutionState, wanted: Mapping[str, float]) -> None:
    """Raises `UnknownLimit`, `LimitCapped`, `LimitUsed`; nothing is raised then."""
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


def used(state: ExecutionState) -> dict[str, float]:
    """How much of each limit that counts something is used."""
    return {
        "steps": float(state.taken),
        "executionTime": limits.worked_s(state),
        "deadline": state.at - state.started_at,
        **{name: amount(state.usage) for name, amount in budgets.AMOUNT.items()},
    }


def _visited(state: ExecutionState, node: str) -> float:
    """How often this node was visited at most in one scope; without a name the one that was visited most."""
    found = (
        done for scope in state.scopes.values() for (visited, _), done in scope.visits.items() if node in ("", visited)
    )
    return float(max(found, default=0))
