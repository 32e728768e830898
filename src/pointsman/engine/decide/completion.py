"""Ending: when no token is left, or someone says so."""

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


def complete(desk: DecisionContext, *, closes_session: bool = False) -> None:
    """It is done, whatever still runs."""
    if desk.state.ended:
        return
    cancellation.cancel_steps(desk, ())
    desk.drop_all()
    try:
        output = output_of(desk)
    except PointsmanError as why:
        _failed(desk, failure_from(why))
        return
    until = () if desk.plan.trial is None else tuple(sorted(desk.plan.trial.until))
    desk.emit(ExecutionCompleted(output=output, closes_session=closes_session, until=until))


def fail(desk: DecisionContext, failure: Failure, step: Step | None = None) -> None:
    """It cannot go on. A workflow-level handler gets control first; else everything is kept for a retry."""
    state, plan = desk.state, desk.plan
    if state.ended:
        return
    if plan.on_error is not None and not state.handed_off and step is not None and step.node != plan.on_error:
        cancellation.cancel_steps(desk, ())
        desk.drop_all()
        desk.emit(WarningRaised(code="handled-by-workflow", message=failure.message, step=step))
        hand_over(desk, plan.on_error, failure_of(failure))
        return
    desk.fatal.append(PropagateFailure(step or NOBODY, failure))


def conclude(desk: DecisionContext) -> None:
    """Control stands still after failures nobody caught: the execution has failed."""
    state = desk.state
    first = desk.fatal[0]
    steps = tuple(one.step for one in desk.fatal if one.step in state.fallen)
    step = None if first.step == NOBODY else first.step
    if not state.undo:
        for at in state.steps.values():
            cancellation.stop(desk, at)
    _failed(desk, first.failure, step, steps)


def _failed(desk: DecisionContext, failure: Failure, step: Step | None = None, steps: tuple[Step, ...] = ()) -> None:
    """It has failed. What can be undone is undone first; else everything is kept for a retry."""
    if desk.state.undo:
        _compensate(desk, CompensationBegan(failure=failure, step=step))
    else:
        desk.emit(ExecutionFailed(failure=failure, step=step, steps=steps))


def _compensate(desk: DecisionContext, began: CompensationBegan) -> None:
    """Nothing else moves from here on."""
    cancellation.cancel_steps(desk, ())
    desk.drop_all()
    desk.fatal.clear()
    desk.touched.clear()
    desk.emit(began)


def come_to_an_end(desk: DecisionContext) -> None:
    """No token is left."""
    if desk.state.compensation is not None:
        compensation.proceed(desk)
    else:
        complete(desk)


def hand_over(desk: DecisionContext, node: str, value: Json) -> None:
    """Send control to a node of last resort."""
    desk.emit(LimitEscalated(node=node, value=value))
    desk.go(EnterNode(node, (), None, NOBODY))


def cancel(desk: DecisionContext, *, reason: str, by: str = "", now: bool = False) -> None:
    """Someone wants it to stop for good. What was done is undone first, where the workflow does not say otherwise."""
    state = desk.state
    if state.ended or (state.compensating and not now):
        return
    if state.undo and not state.compensating and not now and desk.plan.on_cancel == "compensate":
        _compensate(desk, CompensationBegan(reason=reason, by=by))
        return
    cancellation.cancel_steps(desk, ())
    desk.drop_all()
    if state.compensating:
        compensation.abandon(desk)
    else:
        desk.emit(ExecutionCancelled(reason=reason, by=by))


def output_of(desk: DecisionContext) -> Json:
    """The output mapping, else what `end` nodes produced, else written output fields, else the last results."""
    state, plan = desk.state, desk.plan
    root = state.root
    if plan.trial is not None and plan.trial.until:
        return _only(_sorted(desk, state.outputs))
    if plan.output is not None:
        names = {**root.names, "result": _only(_sorted(desk, state.answers))}
        env = Environment(root.data.root, root.nodes, names, state.config, None, plan.strict)
        return desk.value(root, plan.output, env)
    if state.outputs:
        return _only(_sorted(desk, state.outputs))
    for name in plan.output_fields:
        found = root.data.root.get(name)
        if found not in (None, "", [], {}):
            return found
    return _only(_sorted(desk, state.answers))


def _sorted(desk: DecisionContext, found: dict[TerminalKey, TerminalValue]) -> list[Json]:
    """In document order of the nodes, then by branch and thread; never in the order in which they came."""
    places = sorted(found, key=lambda place: (desk.plan.nodes[place[0]].index, *place[1:]))
    return [found[place].value for place in places]


def _only(values: list[Json]) -> Json:
    if not values:
        return None
    return values[0] if len(values) == 1 else [*values]
