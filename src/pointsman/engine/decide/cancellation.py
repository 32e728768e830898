"""Cancelling: taking tokens off the tracks. What runs for them is stopped; a late result finds nobody."""

from __future__ import annotations

from pointsman.engine.commands import DropTimer, Stop
from pointsman.engine.decide import outbox
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.events.steps import BranchSettled, StepCancelled
from pointsman.engine.state import ParallelFrame, StepState
from pointsman.engine.steps import Scope, Step


def cancel_steps(desk: DecisionContext, scope: Scope, *, within: frozenset[str] | None = None) -> None:
    """Cancel every open step in a scope and the scopes inside it, innermost first. `within`: only at these nodes."""
    width = len(scope)
    inside = [at for at in desk.state.steps.values() if at.step.scope[:width] == scope]
    if within is not None:
        inside = [at for at in inside if _place_in(at.step, width) in within]
    for at in sorted(inside, key=lambda a: -len(a.step.scope)):
        stop(desk, at)
        if at.step in desk.state.openings:
            cancel_branches(desk, desk.state.openings[at.step])
        desk.emit(StepCancelled(step=at.step))


def _place_in(step: Step, width: int) -> str:
    """The node where a step, or the parallel it is in, stands in the scope of that depth."""
    return step.node if len(step.scope) == width else step.scope[width].parallel


def stop(desk: DecisionContext, at: StepState, *, children: bool = True) -> None:
    """Ask the world to stop what runs for a step."""
    if at.runs:
        desk.command(Stop(step=at.step))
    if children:
        outbox.stop_children(desk, at)
    for timer in at.timers:
        desk.command(DropTimer(timer=timer))


def cancel_branches(desk: DecisionContext, opening: ParallelFrame) -> None:
    """Cancel the branches of an opening that still run; those that have not begun never will."""
    width = len(opening.step.scope) + 1
    open_scopes = [key for key, scope in desk.state.scopes.items() if len(key) == width and scope.opening is opening]
    for key in sorted(open_scopes):
        cancel_steps(desk, key)
        desk.emit(BranchSettled(step=opening.step, branch=key[-1].branch, outcome="cancelled"))
        desk.touched.pop(key, None)
