"""Limit escalation: a limit stopped an execution, and a gate asks people whether it may continue.

    limit ─▶ ExecutionInterrupted ─▶ LimitEscalated(gate) ─▶ gate ─┬─ an action that raises limits ─▶ everything resumes
                                     other steps are kept          ├─ another action ─▶ other steps are cancelled
                                                                   └─ timeout ─▶ the execution stays interrupted

While the gate is open the execution is interrupted: nothing starts, and no other timer counts. Resuming the execution
also answers the gate.
"""

from __future__ import annotations

from collections.abc import Mapping

from pointsman.engine.actions import HumanTaskAction
from pointsman.engine.decide import cancellation, lifecycle, limit_raises, limits
from pointsman.engine.decide.context import DecisionContext, ExitStep
from pointsman.engine.decide.stall_detection import REPEATS_MAX
from pointsman.engine.events.lifecycle import LimitEscalated, LimitsRaised
from pointsman.engine.state import StepState


def must_be_allowed(ctx: DecisionContext, at: StepState, action: str) -> None:
    """Raise `LimitCapped` if the action would raise a limit above the operator's cap."""
    more = _more(ctx, action) if ctx.state.limits.escalation_gate == at.step and ctx.state.awaits_escalation else None
    if more is not None:
        limit_raises.may_raise(ctx.plan, ctx.state, _raised(ctx, more))


def over(ctx: DecisionContext, move: ExitStep) -> bool:
    """Handle the answer of the escalation gate.

    Return True if control leaves the gate and is nowhere else, False if the execution resumes as it was.
    """
    if ctx.state.status != "interrupted":
        return True
    more = _more(ctx, move.labels[0]) if move.labels else None
    if more is None:
        told = ctx.state.row.outputs[move.step].value
        cancellation.cancel_steps(ctx, ())
        ctx.discard_all()
        ctx.emit(LimitEscalated(node=move.step.node, value=told))
        return True
    raised = _raised(ctx, more)
    if raised:
        ctx.emit(LimitsRaised(limits=raised))
    ctx.end_token(move.step, reason="swallowed")
    lifecycle.go_on(ctx, by="")
    return False


def _more(ctx: DecisionContext, action: str) -> Mapping[str, float] | None:
    assert ctx.state.limits.escalation_gate is not None
    does = ctx.node(ctx.state.limits.escalation_gate).action
    return does.limit_raises.get(action) if isinstance(does, HumanTaskAction) else None


def _raised(ctx: DecisionContext, more: Mapping[str, float]) -> dict[str, float]:
    """Return the limits in force plus the granted amounts, counted from the present usage if that is higher."""
    state, plan = ctx.state, ctx.plan
    used = limit_raises.used(state)
    raised: dict[str, float] = {}
    for name, amount in more.items():
        planned = limits.allowed(ctx, name, limits.planned(plan, name))
        if planned is not None:
            raised[name] = max(planned, used.get(name, 0.0)) + amount
    if state.limits.interruption == "no-progress":
        raised["no-progress"] = (limits.allowed(ctx, "no-progress", REPEATS_MAX) or 0) + REPEATS_MAX
    return raised
