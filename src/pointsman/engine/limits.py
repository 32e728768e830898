"""Limits: what no prompt can talk away. Checked before a step starts; what they stop is held, and can go on later."""

from __future__ import annotations

from typing import NamedTuple

from pointsman.engine import cancelling, ending
from pointsman.engine.commands import SetTimer
from pointsman.engine.desk import Arrive, Desk
from pointsman.engine.events import ExecutionInterrupted, Held, LimitHit, TimerSet
from pointsman.engine.plan import PlanNode
from pointsman.engine.state import ScopeState
from pointsman.engine.steps import Step

DEADLINE = "deadline"


class Tripped(NamedTuple):
    """A limit that was reached."""

    limit: str
    message: str
    step: Step | None = None


def allowed(desk: Desk, name: str, planned: float | None) -> float | None:
    """The limit in force: what was raised for this execution, else the plan's; None = unlimited."""
    raised = desk.state.limits.get(name)
    return planned if raised is None else raised


def before_step(desk: Desk, node: PlanNode, scope: ScopeState, move: Arrive) -> Tripped | None:
    """A limit that forbids to start this node now."""
    state, limits = desk.state, desk.plan.limits
    if state.handed_off:
        return None
    steps = allowed(desk, "steps", limits.steps)
    if steps is not None and state.taken >= steps:
        return Tripped("steps", f"the limit of {int(steps)} steps is reached")
    visits = allowed(desk, f"visits:{node.id}", allowed(desk, "visits", node.visits_max))
    if visits is not None:
        done = scope.visits.get((node.id, move.thread if node.threaded else ()), 0)
        if done >= visits:
            return Tripped("visits", f"{node.id!r} was visited {done} times, its limit")
    cost = allowed(desk, "costUsd", limits.cost_usd)
    if cost is not None and state.usage.cost_usd is not None and state.usage.cost_usd >= cost:
        return Tripped("costUsd", f"the budget of {cost} US dollars is spent")
    return None


def hold(desk: Desk, move: Arrive) -> None:
    """Keep the arrival that a limit stopped."""
    edge = "" if move.edge is None else move.edge.id
    desk.emit(
        Held(node=move.node, scope=move.scope, edge=edge, after=move.after, thread=move.thread, caller=move.caller)
    )


def trip(desk: Desk, tripped: Tripped) -> None:
    """A limit was reached: the node of last resort takes over, else the execution is interrupted, all kept."""
    if desk.state.ended or desk.state.stands_still:
        return
    handler = desk.plan.limits.on_limit
    if handler is not None:
        desk.emit(LimitHit(limit=tripped.limit, message=tripped.message, step=tripped.step))
        cancelling.cancel_steps(desk, ())
        ending.drop_moves(desk)
        ending.hand_over(desk, handler, tripped.message)
        return
    for at in desk.state.steps.values():
        cancelling.stop(desk, at)
    desk.emit(ExecutionInterrupted(limit=tripped.limit, message=tripped.message))


def watch(desk: Desk) -> None:
    """See that the clock is asked about the execution time while anything works."""
    most = allowed(desk, "executionTime", desk.plan.limits.execution_time_s)
    if most is None or DEADLINE in desk.state.timers:
        return
    at = desk.state.at + max(0.0, most - desk.state.worked_s)
    desk.emit(TimerSet(timer=DEADLINE, purpose="deadline", at=at))
    desk.command(SetTimer(timer=DEADLINE, at=at))


def deadline(desk: Desk) -> None:
    """The deadline timer fired: has work really run that long?"""
    state = desk.state
    most = allowed(desk, "executionTime", desk.plan.limits.execution_time_s)
    if most is None or state.ended or state.working == 0:
        return
    worked = state.worked_s + (state.at - state.working_since)
    if worked + 1e-9 >= most:
        trip(desk, Tripped("executionTime", f"work ran for {most:g} seconds, the limit"))
    else:
        watch(desk)
