"""Cancel open steps: stop their work, timers and child executions. A late result of such a step decides nothing."""

from __future__ import annotations

from pointsman.engine.commands import DropTimer, Stop
from pointsman.engine.decide import outbox
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.events.steps import BranchSettled, StepCancelled
from pointsman.engine.state import ParallelFrame, StepState
from pointsman.engine.steps import Scope, Step


def cancel_steps(ctx: DecisionContext, scope: Scope, *, within: frozenset[str] | None = None) -> None:
    """Cancel every open step in a scope and its inner scopes, innermost first. `within`: only at these nodes."""
    width = len(scope)
    inside = [at for at in ctx.state.steps.values() if at.step.scope[:width] == scope]
    if within is not None:
        inside = [at for at in inside if _place_in(at.step, width) in within]
    for at in sorted(inside, key=lambda a: -len(a.step.scope)):
        stop(ctx, at)
        if at.step in ctx.state.parallel_frames:
            cancel_branches(ctx, ctx.state.parallel_frames[at.step])
        ctx.emit(StepCancelled(step=at.step))


def _place_in(step: Step, width: int) -> str:
    """Return the node that represents a step in the scope of that depth: its own, or that of the parallel around it."""
    return step.node if len(step.scope) == width else step.scope[width].parallel


def stop(ctx: DecisionContext, at: StepState, *, children: bool = True) -> None:
    """Command the world to stop all work for a step."""
    if at.is_running:
        ctx.command(Stop(step=at.step))
    if children:
        outbox.stop_children(ctx, at)
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
