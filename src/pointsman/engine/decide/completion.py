"""End an execution, its steps and its branches: complete, fail, cancel, compensate.

    failed or cancelled ─▶ CompensationBegan ─▶ ┌ UndoBegan ─▶ step of a compensation ─▶ UndoEnded ┐ ─▶ ExecutionFailed
                                                └──────── next entry of the undo log ──────────────┘    or …Cancelled

A late result of a cancelled step decides nothing. Compensation undoes completed steps, the last one first. A step that
succeeds at a node with `compensate` adds an entry to the undo log in the state, so a crash loses none. An undo is
ordinary work: one step at a time in the outermost scope, with the retries of its own node; limits do not stop it. A
failed undo is reported and the others still run. A compensated execution cannot be retried.
"""

from __future__ import annotations

from pointsman.engine.commands import DropTimer, Stop
from pointsman.engine.decide import context
from pointsman.engine.decide.context import DecisionContext, EnterNode, PropagateFailure
from pointsman.engine.decide.outputs import failure_from
from pointsman.engine.events.lifecycle import (
    CompensationBegan,
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionFailed,
    LimitEscalated,
    UndoBegan,
    UndoEnded,
)
from pointsman.engine.events.steps import BranchSettled, StepCancelled
from pointsman.engine.events.waits import WarningRaised
from pointsman.engine.failures import Failure
from pointsman.engine.fold.scopes import NOBODY, failure_of
from pointsman.engine.state import Compensation, ParallelFrame, StepState, TerminalKey, TerminalValue
from pointsman.engine.steps import Scope, Step
from pointsman.errors import PointsmanError
from pointsman.expressions.environment import Environment
from pointsman.values import Json, JsonObject


def complete(ctx: DecisionContext, *, closes_session: bool = False) -> None:
    """Complete the execution and cancel everything that still runs."""
    if ctx.state.ended:
        return
    cancel_steps(ctx, ())
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
        cancel_steps(ctx, ())
        ctx.discard_all()
        ctx.emit(WarningRaised(code="handled-by-workflow", message=failure.message, step=step))
        hand_over(ctx, plan.on_error, failure_of(failure))
        return
    ctx.uncaught.append(PropagateFailure(step or NOBODY, failure))


def conclude(ctx: DecisionContext) -> None:
    """Fail the execution once nothing moves any more, with its uncaught failures."""
    state = ctx.state
    first = ctx.uncaught[0]
    steps = tuple(step_state.step for step_state in ctx.uncaught if step_state.step in state.row.failures)
    step = None if first.step == NOBODY else first.step
    if not state.undo_log:
        for at in state.steps.values():
            stop_step(ctx, at)
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
    cancel_steps(ctx, ())
    ctx.discard_all()
    ctx.uncaught.clear()
    ctx.dirty_scopes.clear()
    ctx.emit(began)


def end_when_idle(ctx: DecisionContext) -> None:
    """Continue the compensation or complete the execution, when no token is left."""
    if ctx.state.compensation is not None:
        undo_next(ctx)
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
    cancel_steps(ctx, ())
    ctx.discard_all()
    if state.compensating:
        abandon_compensation(ctx)
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
        value = root.data.root.get(name)
        if value not in (None, "", [], {}):
            return value
    return _only(_sorted(ctx, state.outcome.branch_results))


def _sorted(ctx: DecisionContext, values: dict[TerminalKey, TerminalValue]) -> list[Json]:
    """Return values in document order of their nodes, then by branch and lineage; never in arrival order."""
    places = sorted(values, key=lambda place: (ctx.plan.nodes[place[0]].index, *place[1:]))
    return [values[place].value for place in places]


def _only(values: list[Json]) -> Json:
    if not values:
        return None
    return values[0] if len(values) == 1 else [*values]


def cancel_steps(ctx: DecisionContext, scope: Scope, *, within: frozenset[str] | None = None) -> None:
    """Cancel every open step in a scope and its inner scopes, innermost first. `within`: only at these nodes."""
    width = len(scope)
    inside = [at for at in ctx.state.steps.values() if at.step.scope[:width] == scope]
    if within is not None:
        inside = [at for at in inside if _place_in(at.step, width) in within]
    for at in sorted(inside, key=lambda a: -len(a.step.scope)):
        stop_step(ctx, at)
        if at.step in ctx.state.parallel_frames:
            cancel_branches(ctx, ctx.state.parallel_frames[at.step])
        ctx.emit(StepCancelled(step=at.step))


def _place_in(step: Step, width: int) -> str:
    """Return the node that represents a step in the scope of that depth: its own, or that of the parallel around it."""
    return step.node if len(step.scope) == width else step.scope[width].parallel


def stop_step(ctx: DecisionContext, at: StepState, *, children: bool = True) -> None:
    """Command the world to stop all work for a step."""
    if at.is_running:
        ctx.command(Stop(step=at.step))
    if children:
        context.stop_children(ctx, at)
    for timer in at.timers:
        ctx.command(DropTimer(timer=timer))


def cancel_branches(ctx: DecisionContext, opening: ParallelFrame) -> None:
    """Cancel the running branches of a parallel; branches that have not started never start."""
    width = len(opening.step.scope) + 1
    open_scopes = [key for key, scope in ctx.state.scopes.items() if len(key) == width and scope.opening is opening]
    for key in sorted(open_scopes):
        cancel_steps(ctx, key)
        ctx.emit(BranchSettled(step=opening.step, branch=key[-1].branch, outcome="cancelled"))
        ctx.dirty_scopes.pop(key, None)


REJECTED = Failure(code="compensation-rejected", message="a person reported that it cannot be undone")


def undo_next(ctx: DecisionContext) -> None:
    """Undo the next step when nothing else moves, or end the execution."""
    state = ctx.state
    if not state.undo_log:
        _finish_compensation(ctx)
        return
    entry = state.undo_log[-1]
    ctx.emit(UndoBegan(step=entry.step, node=entry.by))
    ctx.enqueue(EnterNode(entry.by, (), None, NOBODY))


def end_undo(ctx: DecisionContext, failure: Failure | None = None) -> None:
    """Record the end of a compensation step."""
    compensation = _compensation_of(ctx)
    assert compensation.current is not None
    ctx.emit(UndoEnded(step=compensation.current.step, failure=failure))


def exit_undo(ctx: DecisionContext, labels: tuple[str, ...]) -> None:
    """Handle the exit of a compensation step. In a human task, `reject` means that the step cannot be undone."""
    end_undo(ctx, REJECTED if "reject" in labels else None)


def _finish_compensation(ctx: DecisionContext) -> None:
    """End with the original outcome, and report the steps that could not be undone."""
    compensation = _compensation_of(ctx)
    left_undone = [step for step, _ in compensation.failed] + [entry.step for entry in reversed(ctx.state.undo_log)]
    if compensation.failure is not None:
        failure = _with_outcome(compensation, compensation.failure, left_undone)
        ctx.emit(ExecutionFailed(failure=failure, step=compensation.step))
    elif left_undone:
        why = Failure(code="compensation-failed", message="it was cancelled", hint="Undo the named steps by hand.")
        ctx.emit(ExecutionFailed(failure=_with_outcome(compensation, why, left_undone)))
    else:
        ctx.emit(ExecutionCancelled(reason=compensation.reason, by=compensation.by))


def abandon_compensation(ctx: DecisionContext) -> None:
    """Stop undoing at a caller's request; running work was stopped before."""
    current = _compensation_of(ctx).current
    if current is not None:
        stopped = Failure(code="compensation-stopped", message="the compensation was stopped while it ran")
        ctx.emit(UndoEnded(step=current.step, failure=stopped))
    _finish_compensation(ctx)


def _compensation_of(ctx: DecisionContext) -> Compensation:
    assert ctx.state.compensation is not None
    return ctx.state.compensation


def _with_outcome(compensation: Compensation, failure: Failure, left_undone: list[Step]) -> Failure:
    """Return the failure with the outcome of the compensation."""
    why = dict(compensation.failed)
    undone: list[Json] = [str(step) for step in compensation.undone]
    steps: list[Json] = []
    for step in left_undone:
        reason = why.get(step)
        steps.append(
            {
                "step": str(step),
                "code": reason.code if reason is not None else "not-tried",
                "message": reason.message if reason is not None else "its compensation did not run",
            }
        )
    details: JsonObject = {
        **(failure.details or {}),
        "compensation": {"undone": undone, "notUndone": steps},
    }
    names = ", ".join(repr(str(step)) for step in left_undone)
    message = f"{failure.message}; could not be undone: {names}" if left_undone else failure.message
    return Failure(code=failure.code, message=message, hint=failure.hint, details=details)
