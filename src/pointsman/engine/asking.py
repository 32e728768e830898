"""Asking: gates. A person owes an answer; the execution may wait for months and cost nothing.

gate opens ─▶ GateOpened ─▶ … ─▶ GateAnswered ─▶ GateClosed, StepSucceeded ─▶ leaves by the action's label
                  └─ timeout ─▶ the action of `onTimeout`, or failure `gate-timeout`
"""

from __future__ import annotations

from typing import Final

from pointsman.engine.commands import DropTimer, OpenGate
from pointsman.engine.desk import Desk, Leave
from pointsman.engine.entry import Entry, fail_open_step, set_timer
from pointsman.engine.events import StepSucceeded
from pointsman.engine.facts import Write
from pointsman.engine.failures import Failure
from pointsman.engine.outputs import accept, failure_from, written
from pointsman.engine.plan import Ask
from pointsman.engine.reports import GateAnswered
from pointsman.engine.state import StepState
from pointsman.engine.wait_events import GateClosed, GateOpened
from pointsman.errors import CallerError, PointsmanError
from pointsman.values import Json, JsonObject

EDIT: Final = "edit"


class GateClosedAlready(CallerError):
    """The gate is not open: answered, timed out, cancelled, or never there."""

    code = "gate-closed"


class ActionNotOffered(CallerError):
    """The answer names an action that the gate does not offer."""

    code = "action-not-offered"


class FieldNotEditable(CallerError):
    """The answer changes a field that the gate does not let anyone edit."""

    code = "field-not-editable"


def open_gate(entry: Entry, does: Ask) -> None:
    """Resolve what is shown, and wait."""
    desk, scope = entry.desk, entry.scope
    env = entry.environment()
    message = str(desk.value(scope, does.message, env) or "")
    shown = None if does.shown is None else desk.value(scope, does.shown, env)
    editable = tuple(path.resolve(env) for path in does.editable)
    entry.began()
    desk.emit(
        GateOpened(
            step=entry.step,
            gate=f"gate-{entry.step}",
            message=message,
            options=does.options,
            form=does.form,
            shown=shown,
            editable=editable,
            approvers=does.approvers,
        )
    )
    desk.command(OpenGate(step=entry.step))
    if does.timeout_s is not None:
        set_timer(desk, entry.step, "gate", desk.state.at + does.timeout_s)


def answered(desk: Desk, report: GateAnswered) -> None:
    """A person's answer. Raises `CallerError` and decides nothing where the gate does not take it."""
    at = desk.state.steps.get(report.step)
    if at is None or at.gate is None or desk.state.ended:
        raise GateClosedAlready(
            f"the gate of {str(report.step)!r} is not open", hint="It was answered, timed out, or never opened."
        )
    offered = [str(option["value"]) for option in at.gate.options]
    if report.action not in offered:
        raise ActionNotOffered(f"{report.action!r} is not offered by this gate", hint=f"Offered: {', '.join(offered)}.")
    close(desk, at, report.action, report.data, report.comment, report.by)


def close(desk: Desk, at: StepState, action: str, data: Json, comment: str = "", by: str = "") -> None:
    """The gate has its answer: write it, and leave by the action."""
    node = desk.node(at.step)
    does = node.does
    assert isinstance(does, Ask)
    scope = at.scope
    edits = _edits(desk, at, data) if action == EDIT else ()
    answer: JsonObject = {"response": action, "data": data}
    writes = list(edits)
    said: JsonObject = {"branch": action, "action": action, "response": action, "data": data}
    if comment:
        said["comment"] = comment
    if by:
        said["by"] = by
    try:
        writes += written(desk, scope, node, answer, shown=said)
        accept(desk, scope, node, at.left.thread, tuple(writes), answer)
    except CallerError:
        raise
    except PointsmanError as why:
        fail_open_step(desk, at.step, failure_from(why))
        return
    for timer in at.timers:
        desk.command(DropTimer(timer=timer))
    desk.emit(GateClosed(step=at.step, action=action, data=data, comment=comment, by=by))
    desk.emit(
        StepSucceeded(step=at.step, attempt=at.attempt, result=answer, keeps=True, said=said, writes=tuple(writes))
    )
    desk.touched[at.step.scope] = None
    desk.go(Leave(at.step, (action,)))


def _edits(desk: Desk, at: StepState, data: Json) -> tuple[Write, ...]:
    """The fields a person changed. Only editable ones; a lone editable field may be given as the bare value."""
    gate = at.gate
    assert gate is not None
    by_name = {".".join(str(part) for part in path): path for path in gate.editable}
    if not by_name:
        return ()
    given = data if isinstance(data, dict) else None
    if given is None or (len(by_name) == 1 and not set(given) & set(by_name)):
        if len(by_name) == 1 and data is not None:
            return (Write(next(iter(by_name.values())), "last", data),)
        return ()
    unknown = sorted(set(given) - set(by_name))
    if unknown:
        raise FieldNotEditable(
            f"{', '.join(unknown)} cannot be edited at this gate", hint=f"Editable: {', '.join(sorted(by_name))}."
        )
    return tuple(Write(by_name[name], "last", value) for name, value in given.items())


def timed_out(desk: Desk, at: StepState) -> None:
    """Nobody answered in time."""
    does = desk.node(at.step).does
    assert isinstance(does, Ask)
    offered = [str(option["value"]) for option in does.options]
    if does.on_timeout == "fail" or does.on_timeout not in [*offered, *desk.node(at.step).labels]:
        failure = Failure(code="gate-timeout", message=f"nobody answered {at.step.node!r} in time")
        fail_open_step(desk, at.step, failure)
    else:
        close(desk, at, does.on_timeout, None, by="timeout")
