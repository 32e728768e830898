"""Limits: the author's value or the default, capped by the operator, and the source of each value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pointsman.definition.model.base import Duration, Size
from pointsman.definition.model.policies import DEFAULTS, Budget, Config, More
from pointsman.definition.model.policies import Limits as Said
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.plan import PlanLimits

DEFAULT_OF: Final[Mapping[str, float | None]] = {
    "steps": DEFAULTS.steps,
    "visits": DEFAULTS.visits,
    "parallel": DEFAULTS.parallel,
    "executionTime": DEFAULTS.execution_time,
    "retryAfter": DEFAULTS.retry_after,
    "stateSize": DEFAULTS.state_size,
    "costUsd": DEFAULTS.cost_usd,
}
BUDGETS: Final = ("tokens", "modelCalls", "toolCalls", "costUsd")


def capped(workflow: WorkflowDefinition, operator: Said) -> WorkflowDefinition:
    """Return the workflow with every limit reduced to the operator's cap."""
    config = workflow.config or Config()
    said = config.limits or Said()
    change: dict[str, object] = {}
    for name, field in Said.model_fields.items():
        most, own = getattr(operator, name), getattr(said, name)
        allowed = amount(own) if own is not None else DEFAULT_OF.get(field.alias or name)
        if own is None and name == "node_time":
            continue  # its default depends on the kind of work: see `compile.work.times_of`
        if most is not None and (allowed is None or allowed > (amount(most) or 0)):
            change[name] = most
    if not change:
        return workflow
    return workflow.model_copy(update={"config": config.model_copy(update={"limits": said.model_copy(update=change)})})


def amount(value: object) -> float | None:
    """Return a limit in the unit of the engine: seconds, bytes, or the number itself."""
    match value:
        case Duration():
            return value.seconds
        case Size():
            return value.bytes
        case int() | float():
            return value
        case _:
            return None


def amounts(said: Said | More | None) -> dict[str, float]:
    """Return the limits that are set, by their names in documents."""
    if said is None:
        return {}
    found = {field.alias or name: amount(getattr(said, name, None)) for name, field in type(said).model_fields.items()}
    return {name: most for name, most in found.items() if most is not None}


def limits_of(workflow: WorkflowDefinition, original: WorkflowDefinition, operator: Said) -> PlanLimits:
    """Return the limits of a `capped` workflow; `original` is the workflow as its author wrote it."""
    config = workflow.config or Config()
    now = amounts(config.limits)
    own = amounts(original.config.limits if original.config is not None else None)
    budget = config.budget or Budget()
    steps = now.get("steps", DEFAULTS.steps)
    return PlanLimits(
        steps=None if steps is None else int(steps),
        parallel=int(now.get("parallel", DEFAULTS.parallel)),
        execution_time_s=now.get("executionTime", DEFAULTS.execution_time),
        deadline_s=now.get("deadline"),
        retry_after_s=now.get("retryAfter", DEFAULTS.retry_after),
        state_bytes=int(now.get("stateSize", DEFAULTS.state_size)),
        budgets=tuple((name, now[name]) for name in BUDGETS if name in now),
        budget_policy=budget.policy or "stop",
        budget_warn_at=0.8 if budget.warn_at is None else budget.warn_at,
        on_limit=config.on_limit,
        sources={name: "definition" if own.get(name) == most else "operator" for name, most in now.items()},
        caps=amounts(operator),
    )
