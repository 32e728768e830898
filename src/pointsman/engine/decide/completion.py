"""Complete, fail or cancel an execution: when no token is left, or when a caller or a limit requires it."""

from __future__ import annotations

from pointsman.engine.decide import cancellation, compensation
from pointsman.engine.decide.context import DecisionContext, EnterNode, PropagateFailure
from pointsman.engine.decide.outputs import failure_from
from pointsman.engine.events.lifecycle import (
    CompensationBegan,
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionFailed,
    LimitEscalated,
)
from pointsman.engine.events.waits import WarningRaised
from pointsman.engine.failures import Failure
from pointsman.engine.fold.arrivals import NOBODY
from pointsman.engine.fold.scopes import failure_of
from pointsman.engine.state import TerminalKey, TerminalValue
from pointsman.engine.steps import Step
from pointsman.errors import PointsmanError
from pointsman.expressions.environment import Environment
from pointsman.values import Json


def complete(ctx: DecisionContext, *, closes_session: bool = False) -> None:
    """Complete the execution and cancel everything that still runs."""
    if ctx.state.ended:
        return
    cancellation.cancel_steps(ctx, ())
    ctx.discard_all()
    try:
        output = output_of(ctx)
    except PointsmanError as why:
        _failed(ctx, failure_from(why))
        return
    until = () if ctx.plan.partial_run is None else tuple(sorted(ctx.plan.partial_run.until))
    ctx.emit(ExecutionCompleted(output=output, closes_session=closes_session, until=until))


def fail(ctx: DecisionContext, failure: Failure, step: Step | None = None) -> None:
    """Fail the execution. A workflow-level error handler gets control first; otherwise the state is kept for a
    retry.
    """
    state, plan = ctx.state, ctx.plan
    if state.ended:
        return
    if plan.on_error is not None and not state.is_escalated and step is not None and step.node != plan.on_error:
        cancellation.cancel_steps(ctx, ())
        ctx.discard_all()
        ctx.emit(WarningRaised(code="handled-by-workflow", message=failure.message, step=step))
        hand_over(ctx, plan.on_error, failure_of(failure))
        return
    ctx.uncaught.append(PropagateFailure(step or NOBODY, failure))


def conclude(ctx: DecisionContext) -> None:
    """Fail the execution once nothing moves any more, with its uncaught failures."""
    state = ctx.state
    first = ctx.uncaught[0]
    steps = tuple(one.step for one in ctx.uncaught if one.step in state.row.failures)
    step = None if first.step == NOBODY else first.step
    if not state.undo_log:
        for at in state.steps.values():
            cancellation.stop(ctx, at)
    _failed(ctx, first.failure, step, steps)


def _failed(ctx: DecisionContext, failure: Failure, step: Step | None = None, steps: tuple[Step, ...] = ()) -> None:
    """Undo completed steps before the execution fails; without an undo log, fail at once and keep the state for a
    retry.
    """
    if ctx.state.undo_log:
        _compensate(ctx, CompensationBegan(failure=failure, step=step))
    else:
        ctx.emit(ExecutionFailed(failure=failure, step=step, steps=steps))


def _compensate(ctx: DecisionContext, began: CompensationBegan) -> None:
    """Start the compensation and stop everything else."""
    cancellation.cancel_steps(ctx, ())
    ctx.discard_all()
    ctx.uncaught.clear()
    ctx.dirty_scopes.clear()
    ctx.emit(began)


def come_to_an_end(ctx: DecisionContext) -> None:
    """Continue the compensation or complete the execution, when no token is left."""
    if ctx.state.compensation is not None:
        compensation.proceed(ctx)
    else:
        complete(ctx)


def hand_over(ctx: DecisionContext, node: str, value: Json) -> None:
    """Route control to the fallback node."""
    ctx.emit(LimitEscalated(node=node, value=value))
    ctx.enqueue(EnterNode(node, (), None, NOBODY))


def cancel(ctx: DecisionContext, *, reason: str, by: str = "", now: bool = False) -> None:
    """Cancel the execution for good. Completed steps are undone first, unless the workflow or `now` forbids it."""
    state = ctx.state
    if state.ended or (state.compensating and not now):
        return
    if state.undo_log and not state.compensating and not now and ctx.plan.on_cancel == "compensate":
        _compensate(ctx, CompensationBegan(reason=reason, by=by))
        return
    cancellation.cancel_steps(ctx, ())
    ctx.discard_all()
    if state.compensating:
        compensation.abandon(ctx)
    else:
        ctx.emit(ExecutionCancelled(reason=reason, by=by))


def output_of(ctx: DecisionContext) -> Json:
    """Return the output mapping, else the values of `end` nodes, else written output fields, else the last results."""
    state, plan = ctx.state, ctx.plan
    root = state.root
    if plan.partial_run is not None and plan.partial_run.until:
        return _only(_sorted(ctx, state.outcome.terminal_values))
    if plan.output is not None:
        names = {**root.names, "result": _only(_sorted(ctx, state.outcome.branch_results))}
        env = Environment(root.data.root, root.nodes, names, state.setup.config, None, plan.strict)
        return ctx.value(root, plan.output, env)
    if state.outcome.terminal_values:
        return _only(_sorted(ctx, state.outcome.terminal_values))
    for name in plan.output_fields:
        found = root.data.root.get(name)
        if found not in (None, "", [], {}):
            return found
    return _only(_sorted(ctx, state.outcome.branch_results))


def _sorted(ctx: DecisionContext, found: dict[TerminalKey, TerminalValue]) -> list[Json]:
    """Return values in document order of their nodes, then by branch and lineage; never in arrival order."""
    places = sorted(found, key=lambda place: (ctx.plan.nodes[place[0]].index, *place[1:]))
    return [found[place].value for place in places]


def _only(values: list[Json]) -> Json:
    if not values:
        return None
    return values[0] if len(values) == 1 else [*values]
