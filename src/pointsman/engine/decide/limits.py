"""Limits that no prompt can override. Checked before a step starts; a stopped arrival is held and can continue."""

from __future__ import annotations

from typing import Final, NamedTuple

from pointsman.engine.actions import HumanTaskAction
from pointsman.engine.commands import HoldChild, SetTimer
from pointsman.engine.decide import cancellation, completion
from pointsman.engine.decide.context import DecisionContext, EnterNode
from pointsman.engine.events.lifecycle import ExecutionInterrupted, ExecutionPaused, LimitEscalated
from pointsman.engine.events.steps import ArrivalHeld
from pointsman.engine.events.waits import LimitHit, TimerSet
from pointsman.engine.fold.arrivals import NOBODY
from pointsman.engine.plan import Plan, PlanNode
from pointsman.engine.state import ExecutionState, ScopeState
from pointsman.engine.steps import Step

WORKED: Final = "executionTime"
CLOCK: Final = "deadline"
"""Timers of the whole execution: for working time and for clock time."""


TOLERANCE_S: Final = 1e-6


class ReachedLimit(NamedTuple):
    """A limit that was reached."""

    limit: str
    message: str
    step: Step | None = None


SOURCES: Final = {"definition": "set by the workflow", "operator": "set by the operator", "": "the default"}


def allowed(ctx: DecisionContext, name: str, planned: float | None) -> float | None:
    """Return the limit in force: the raised value of this execution, else the plan's; None = unlimited."""
    return allowed_in(ctx.plan, ctx.state, name, planned)


def allowed_in(plan: Plan, state: ExecutionState, name: str, planned: float | None) -> float | None:
    """Return the limit in force without a context. A lowered cap of the operator applies at once."""
    raised = state.limits.raised.get(name)
    if raised is None:
        return planned
    most = plan.limits.caps.get(name)
    return raised if most is None else min(raised, most)


def planned(plan: Plan, name: str) -> float | None:
    """Return the plan's value of a limit that interrupts; for visits, the highest of all nodes."""
    match name:
        case "steps":
            return plan.limits.steps
        case "executionTime":
            return plan.limits.execution_time_s
        case "deadline":
            return plan.limits.deadline_s
        case "visits":
            bounds = (node.policy.visits_max for node in plan.nodes.values())
            return max((bound for bound in bounds if bound is not None), default=None)
        case _:
            return dict(plan.limits.budgets).get(name)


def limit_message(plan: Plan, state: ExecutionState, name: str, what: str) -> str:
    """Return a message about a reached limit, with its source."""
    source = "raised before" if name in state.limits.raised else SOURCES[plan.limits.sources.get(name, "")]
    return f"{what} (`{name}`, {source})"


def before_step(
    ctx: DecisionContext, node: PlanNode, scope: ScopeState, move: EnterNode, *, beside: int = 0
) -> ReachedLimit | None:
    """Return a limit that forbids starting this node now, given `beside` other nodes that start with it."""
    state, limits, reached = ctx.state, ctx.plan.limits, ctx.state.limits
    if reached.escalation_gate is not None and state.status == "interrupted":
        return None  # this is the gate that asks whether to continue: nothing else starts meanwhile
    raised = reached.raised
    steps = limits.steps if not raised else allowed(ctx, "steps", limits.steps)
    if steps is not None and state.counters.steps + beside - (reached.escalated_at_step or 0) >= steps:
        return ReachedLimit(
            "steps", limit_message(ctx.plan, state, "steps", f"the limit of {int(steps)} steps is reached")
        )
    if reached.escalated_at_step is not None:
        return None
    visits = node.policy.visits_max
    if raised:
        visits = raised.get(f"visits:{node.id}", raised.get("visits", visits))
    if visits is not None:
        done = scope.visits.get((node.id, move.lineage if node.position.has_lineage else ()), 0)
        if done >= visits:
            said = f"{node.id!r} was visited {done} times, its limit"
            return ReachedLimit("visits", limit_message(ctx.plan, state, "visits", said))
    return None


def hold(ctx: DecisionContext, move: EnterNode) -> None:
    """Hold an arrival until the execution continues."""
    edge = "" if move.edge is None else move.edge.id
    ctx.emit(
        ArrivalHeld(
            node=move.node,
            scope=move.scope,
            edge=edge,
            after=move.after,
            lineage=move.lineage,
            caller=move.caller,
            again=move.starts_node,
        )
    )


def trip(ctx: DecisionContext, tripped: ReachedLimit) -> None:
    """Handle a reached limit: route to the fallback node, or interrupt the execution and keep its state."""
    if ctx.state.ended or ctx.state.is_halted or ctx.uncaught or ctx.state.compensation is not None:
        return
    if tripped.limit in dict(ctx.plan.limits.budgets) and ctx.plan.limits.budget_policy == "pause":
        ctx.emit(LimitHit(limit=tripped.limit, message=tripped.message, step=tripped.step))
        ctx.emit(ExecutionPaused(by=f"limits.{tripped.limit}"))
        ctx.commands += held_below(ctx.state)
        return
    handler = ctx.plan.limits.on_limit if not ctx.state.is_escalated else None
    asked = handler is not None and _asks(ctx.plan.nodes[handler])
    if handler is not None and not asked:
        ctx.emit(LimitHit(limit=tripped.limit, message=tripped.message, step=tripped.step))
        cancellation.cancel_steps(ctx, ())
        ctx.discard_all()
        completion.hand_over(ctx, handler, tripped.message)
        return
    for at in ctx.state.steps.values():
        cancellation.stop(ctx, at, children=False)
    ctx.commands += held_below(ctx.state)
    ctx.emit(ExecutionInterrupted(limit=tripped.limit, message=tripped.message))
    if handler is not None:
        gate = ctx.visit(ctx.state.root, ctx.plan.nodes[handler], ())
        ctx.emit(LimitEscalated(node=handler, value=tripped.message, gate=gate))
        ctx.enqueue(EnterNode(handler, (), None, NOBODY, starts_node=True))


def _asks(node: PlanNode) -> bool:
    """Return whether people may let the execution continue at this gate."""
    return isinstance(node.action, HumanTaskAction) and bool(node.action.limit_raises)


def held_below(state: ExecutionState) -> list[HoldChild]:
    """Return commands that also halt the child executions of a halted execution."""
    return [
        HoldChild(step=at.step, attempt=at.attempt, call=call) for at in state.steps.values() for call in at.children
    ]


def set_limit_timers(ctx: DecisionContext) -> None:
    """Set the timers of the time limits."""
    state, limits = ctx.state, ctx.plan.limits
    if limits.execution_time_s is None and limits.deadline_s is None and not state.limits.raised:
        return
    worked, most = allowed(ctx, WORKED, limits.execution_time_s), allowed(ctx, CLOCK, limits.deadline_s)
    if state.is_escalated or state.compensation is not None:
        return
    if worked is not None and state.counters.running_steps and WORKED not in state.timers:
        _set(ctx, WORKED, state.at + max(0.0, worked - worked_s(state)))
    if most is not None and CLOCK not in state.timers:
        _set(ctx, CLOCK, state.setup.started_at + most)


def _set(ctx: DecisionContext, timer: str, at: float) -> None:
    ctx.emit(TimerSet(timer=timer, purpose="deadline", at=at))
    ctx.command(SetTimer(timer=timer, at=at))


def worked_s(state: ExecutionState) -> float:
    """Return the seconds until now during which any step ran."""
    works = state.counters.running_steps and state.status != "interrupted"
    return state.counters.worked_s + (state.at - state.counters.working_since if works else 0.0)


def timer_fired(ctx: DecisionContext, timer: str) -> None:
    """Check on a timer of the execution whether the time limit is reached; otherwise set the timer again."""
    state, limits = ctx.state, ctx.plan.limits
    if timer == CLOCK:
        most, spent, what = allowed(ctx, CLOCK, limits.deadline_s), state.at - state.setup.started_at, "it has lasted"
    else:
        most, spent, what = allowed(ctx, WORKED, limits.execution_time_s), worked_s(state), "work ran for"
        if state.counters.running_steps == 0:
            return
    if most is None or state.is_escalated or state.compensation is not None:
        return
    if spent + TOLERANCE_S >= most:
        trip(ctx, ReachedLimit(timer, limit_message(ctx.plan, state, timer, f"{what} {most:g} seconds, the limit")))
    else:
        set_limit_timers(ctx)
