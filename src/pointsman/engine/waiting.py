"""Waiting: for a length of time, a point in time, or an event from outside. A wait costs nothing while it lasts."""

from __future__ import annotations

from pointsman.engine.commands import DropTimer
from pointsman.engine.desk import Desk, Leave
from pointsman.engine.entry import Entry, fail_open_step, set_timer
from pointsman.engine.events import StepSucceeded
from pointsman.engine.failures import Failure
from pointsman.engine.outputs import StepRefused, accept, failure_from, written
from pointsman.engine.plan import Wait
from pointsman.engine.state import StepState
from pointsman.engine.wait_events import EventAwaited
from pointsman.errors import PointsmanError
from pointsman.values import Json, JsonObject


def begin(entry: Entry, does: Wait) -> None:
    """Open the wait and set its timer."""
    desk, scope = entry.desk, entry.scope
    env = entry.environment()
    now = desk.state.at
    if does.event is not None:
        name = str(desk.value(scope, does.event, env))
        entry.began()
        desk.emit(EventAwaited(step=entry.step, name=name))
        if does.timeout_s is not None:
            set_timer(desk, entry.step, "event", now + does.timeout_s)
        return
    at = now
    if does.duration is not None:
        at = now + _seconds(entry, desk.value(scope, does.duration, env))
    elif does.until is not None:
        at = _seconds(entry, desk.value(scope, does.until, env))
    entry.began()
    set_timer(desk, entry.step, "wait", at)


def _seconds(entry: Entry, value: Json) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise StepRefused(
        Failure(
            code="not-a-time",
            message=f"{entry.node.id!r} cannot wait for {value!r}",
            hint="Give a number with a unit (`30s`, `5m`) or a time like 2027-01-31T12:00:00Z.",
        )
    )


def deliver(desk: Desk, name: str, data: Json) -> None:
    """An event came: every step that waits for its name and accepts it goes on."""
    if name not in desk.state.awaited:
        return
    for at in list(desk.state.steps.values()):
        if at.event != name:
            continue
        try:
            accepted = _accepts(desk, at, data)
        except PointsmanError as why:
            fail_open_step(desk, at.step, failure_from(why))
            continue
        if accepted:
            done(desk, at, {"event": name, "data": data}, data)


def _accepts(desk: Desk, at: StepState, data: Json) -> bool:
    node = desk.node(at.step)
    does = node.does
    if not isinstance(does, Wait) or does.match is None:
        return True
    return does.match(desk.environment(at.scope, node, at.left.value, {"event": data, "data": data}))


def done(desk: Desk, at: StepState, said: JsonObject, data: Json) -> None:
    """The wait is over."""
    node = desk.node(at.step)
    try:
        writes = written(desk, at.scope, node, data, shown=said)
        accept(desk, at.scope, node, at.left.thread, writes, data)
    except PointsmanError as why:
        fail_open_step(desk, at.step, failure_from(why))
        return
    for timer in at.timers:
        desk.command(DropTimer(timer=timer))
    desk.emit(StepSucceeded(step=at.step, attempt=at.attempt, result=data, keeps=True, said=said, writes=writes))
    desk.touched[at.step.scope] = None
    desk.go(Leave(at.step))


def timed_out(desk: Desk, at: StepState) -> None:
    """The event did not come in time."""
    does = desk.node(at.step).does
    if isinstance(does, Wait) and does.goes_on_timeout:
        done(desk, at, {"timedOut": True}, None)
        return
    failure = Failure(code="wait-timeout", message=f"{at.step.node!r} waited too long for {at.event!r}")
    fail_open_step(desk, at.step, failure)
