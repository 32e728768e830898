"""The cause of a row: the report from which the row was decided.

    report ── decide ──▶ events ─▶ row (events, cause)        row ── report_of ──▶ report ── decide ──▶ the same events?

The input of an execution and the results of work are stored once, in the events: the cause of such a row holds no
report, and `report_of` builds it from the events. All other causes hold their report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.engine.events.steps import Event, StepSucceeded
from pointsman.engine.events.waits import WarningRaised
from pointsman.engine.reports import ChildEnded, Report, Start, WorkDone
from pointsman.engine.state import ExecutionState

WORK: Final = "work"
"""Code of the warnings that an executor reports."""


class Cause(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Which report caused a row, and who sent it."""

    kind: str
    """The tag of the report."""
    by: str = ""
    """The person who sent it; empty: not a person, or an unnamed one."""
    key: str = ""
    """Its idempotency key."""
    report: Report | None = None
    """The report; None: the events hold all of it."""


STARTED: Final = Cause(kind="start")
WORK_DONE: Final = Cause(kind="work_done")
CHILD_ENDED: Final = Cause(kind="child_ended")


def cause_of(report: Report, events: Sequence[Event]) -> Cause:
    """Return the cause of a row with these events."""
    if type(report) is WorkDone:
        first = events[0]
        success = first if type(first) is StepSucceeded else _success(events)  # saves a call for almost every row
        if success is not None and success.result is report.result:
            return WORK_DONE
    elif type(report) is ChildEnded:
        success = _success(events)
        if success is not None and success.result is report.output:
            return CHILD_ENDED
    elif type(report) is Start:
        return STARTED
    by, key = getattr(report, "by", ""), getattr(report, "key", "")
    return Cause(kind=str(report.__struct_config__.tag), by=by, key=key, report=report)


def report_of(state: ExecutionState, cause: Cause | None, events: Sequence[Event]) -> Report | None:
    """Return the report that caused a row, from the state before the row.

    None: a row from before causes were stored, whose events do not hold all of it.
    """
    if cause is not None and cause.report is not None:
        return cause.report
    if isinstance(events[0], ExecutionStarted):
        return _start(events[0])
    success = _success(events)
    at = None if success is None else state.steps.get(success.step)
    if success is None or at is None or at.phase == "recover":
        return None
    if at.child:
        return ChildEnded(step=success.step, attempt=success.attempt, output=success.result, usage=success.usage)
    text = (success.annotations or {}).get("text")
    return WorkDone(
        step=success.step,
        attempt=success.attempt,
        result=success.result,
        next=success.next,
        labels=success.labels,
        text=text if isinstance(text, str) else None,
        pending=success.pending,
        messages=success.messages,
        warnings=tuple(event.message for event in events if isinstance(event, WarningRaised) and event.code == WORK),
        usage=success.usage,
        cached=success.cached,
        printed=success.printed,
    )


def _success(events: Sequence[Event]) -> StepSucceeded | None:
    """Return the success with which a row begins; only warnings may precede it."""
    first = events[0]
    if type(first) is WarningRaised:
        first = next((event for event in events if type(event) is not WarningRaised), first)
    return first if type(first) is StepSucceeded else None


def _start(first: ExecutionStarted) -> Start:
    return Start(
        input=first.input,
        config=first.config,
        session=first.session,
        messages=first.messages or [],
        parent=first.parent,
        definition=first.definition,
        options=first.options,
        seed=first.seed,
        attempt=first.attempt,
        queued=first.queued,
    )
