"""Budgets: bounds on tokens, cost and calls of models and tools, child executions included.

    attempt requests a call ─▶ budget exceeded? ─▶ fails with `budget-spent`; the step itself has not failed ─┐
    step is about to start ─▶ budget used up? ─────────────────────────────────────────────────────────────────┴▶ trip

A budget that is used up exactly is not exceeded: only further spending is stopped. Each budget warns once near its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

from pointsman.engine.actions import ASKING_MODELS, Action, WorkAction, WorkflowAction
from pointsman.engine.decide import limits
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.limits import ReachedLimit, allowed_in, limit_message
from pointsman.engine.events.waits import ChildUsageCounted, LimitHit, WarningRaised
from pointsman.engine.failures import Failure
from pointsman.engine.plan import Plan
from pointsman.engine.reports import ChildUsageReported, Usage
from pointsman.engine.state import ExecutionState, StepState, UsageTotal

SPENT: Final = "budget-spent"
"""Code of a refused attempt: the step has not failed, it waits for more budget."""

Spending: TypeAlias = Usage | UsageTotal
Kind: TypeAlias = Literal["model", "tool"]

AMOUNT: Final[Mapping[str, Callable[[Spending], float]]] = {
    "tokens": lambda usage: usage.input_tokens + usage.output_tokens,
    "modelCalls": lambda usage: usage.model_calls,
    "toolCalls": lambda usage: usage.tool_calls,
    "costUsd": lambda usage: usage.cost_usd or 0.0,
}
"""Function per budget that returns the part of a usage that counts against it."""

COUNTED: Final[Mapping[Kind, str]] = {"model": "modelCalls", "tool": "toolCalls"}

UNITS: Final = {
    "tokens": "tokens",
    "modelCalls": "calls of models",
    "toolCalls": "calls of tools",
    "costUsd": "US dollars",
}


def used_up(ctx: DecisionContext, does: Action) -> ReachedLimit | None:
    """Return the used-up budget that forbids starting an action which would spend more of it; None if there is none."""
    if not isinstance(does, WorkAction | WorkflowAction) or ctx.plan.limits.budget_policy == "warn":
        return None
    tools = isinstance(does, WorkAction) and does.spec.kind in ("tool", "tool_executor")
    models = isinstance(does, WorkAction) and does.spec.kind in ASKING_MODELS
    for name, most in _in_force(ctx.plan, ctx.state):
        matters = (
            name in ("tokens", "costUsd")
            or isinstance(does, WorkflowAction)
            or (tools if name == "toolCalls" else models)
        )
        if matters and AMOUNT[name](ctx.state.usage) >= most:
            return _tripped(ctx.plan, ctx.state, name, most)
    return None


def refused(
    plan: Plan, state: ExecutionState, kind: Kind, calls: int, under_way: Iterable[Spending]
) -> ReachedLimit | None:
    """Return the budget that forbids further calls inside an attempt. `under_way`: usage of open attempts so far."""
    if plan.limits.budget_policy == "warn" or state.is_escalated or state.compensation is not None:
        return None
    spent = [state.usage, *under_way]
    for name, most in _in_force(plan, state):
        total = sum(AMOUNT[name](usage) for usage in spent)
        over = total + calls > most if name == COUNTED[kind] else name in ("tokens", "costUsd") and total >= most
        if over:
            return _tripped(plan, state, name, most)
    return None


def failure_of(tripped: ReachedLimit) -> Failure:
    """Return the failure by which a refused attempt reports the limit."""
    return Failure(code=SPENT, message=tripped.message, details={"limit": tripped.limit})


def tripped_by(at: StepState, failure: Failure) -> ReachedLimit:
    """Return the limit that a refused attempt reported."""
    limit = (failure.details or {}).get("limit")
    return ReachedLimit(str(limit), failure.message, at.step)


def wait_for_more(ctx: DecisionContext, at: StepState, failure: Failure) -> None:
    """Handle an attempt refused half-way. It is repeated from its recorded effects once the budget allows more."""
    tripped = tripped_by(at, failure)
    if ctx.state.status != "paused":
        limits.trip(ctx, tripped)
    elif at.step not in ctx.state.limits.budget_stopped:
        ctx.emit(LimitHit(limit=tripped.limit, message=tripped.message, step=at.step))


def note(ctx: DecisionContext) -> None:
    """Warn once per budget: it is nearly or fully spent, or the price of a model is unknown."""
    state, plan = ctx.state, ctx.plan
    for name, most in _in_force(plan, state):
        amount = AMOUNT[name](state.usage)
        if name == "costUsd" and state.usage.unpriced_calls:
            _warn(ctx, "cost-unknown", name, "a model was called whose price nobody knows: the budget cannot see it")
        if amount >= most * plan.limits.budget_warn_at and amount < most:
            said = f"{_number(amount)} of {_number(most)} {UNITS[name]} are spent"
            _warn(ctx, "budget-low", f"{name}:{_number(most)}", said)
        elif amount >= most and plan.limits.budget_policy == "warn":
            said = f"{_number(amount)} {UNITS[name]} are spent, and the budget is {_number(most)}"
            _warn(ctx, SPENT, f"{name}:{_number(most)}", said)


def spent_below(ctx: DecisionContext, at: StepState, report: ChildUsageReported) -> ReachedLimit | None:
    """Count the present usage of a running sub-workflow here, and return the budget that it exceeds, if any."""
    ctx.emit(ChildUsageCounted(step=at.step, usage=report.usage, call=report.call))
    if ctx.plan.limits.budget_policy == "warn":
        return None
    for name, most in _in_force(ctx.plan, ctx.state):
        if AMOUNT[name](ctx.state.usage) > most:
            return _tripped(ctx.plan, ctx.state, name, most)
    return None


def _in_force(plan: Plan, state: ExecutionState) -> Iterable[tuple[str, float]]:
    budgets = plan.limits.budgets
    if not state.limits.raised:
        return budgets
    return [(name, allowed_in(plan, state, name, most) or most) for name, most in budgets]


def _tripped(plan: Plan, state: ExecutionState, name: str, most: float) -> ReachedLimit:
    return ReachedLimit(name, limit_message(plan, state, name, f"the budget of {_number(most)} {UNITS[name]} is spent"))


def _warn(ctx: DecisionContext, code: str, about: str, message: str) -> None:
    if f"{code}:{about}" not in ctx.state.warning_keys:
        ctx.emit(WarningRaised(code=code, message=message, about=about))


def _number(number: float) -> str:
    return f"{number:g}" if number < 1e6 else str(int(number))
