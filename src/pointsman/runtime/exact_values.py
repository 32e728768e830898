"""Accept only values that a journal stores exactly, checked before anything is decided and in every store alike.

NaN, infinity, lone surrogates and unbounded nesting in the result of work fail the step. In input, answers and events
they are refused with the position of the value.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from pointsman.engine.failures import failure_by
from pointsman.engine.reports import ChildEnded, EventReceived, GateAnswered, Report, Start, WorkDone, WorkFailed
from pointsman.store.codec import encode_json
from pointsman.store.errors import UnstorableValue
from pointsman.values import CONTAINERS, Json

INTEGER_MAX: Final = 2**63


def storable(report: Report) -> Report:
    """Return the report, or a failure in place of a result that cannot be stored.

    Raises `UnstorableValue` if the sender can be notified of the error.
    """
    match report:
        case WorkDone():
            if report.text is None and not report.messages and is_plain(report.result):
                return report
            return _kept(report)
        case ChildEnded():
            prove(report.output)
        case GateAnswered():
            prove(report.data)
            prove(report.comment)
        case EventReceived():
            prove(report.data)
        case Start():
            prove(report.input)
            prove(report.session)
            for message in report.messages or ():
                prove(message)
        case _:
            pass
    return report


def _kept(report: WorkDone) -> Report:
    """Return the report with the size of its result; a failure if the journal cannot store it."""
    result = report.result
    said: list[Json] = [*report.messages] if report.text is None else [report.text, *report.messages]
    try:
        if isinstance(result, CONTAINERS):
            report = replace(report, result_bytes=len(encode_json(result)))
        else:
            prove(result)
        if said:
            encode_json(said)
    except UnstorableValue as why:
        failure = failure_by(why)
        return WorkFailed(step=report.step, attempt=report.attempt, failure=failure, usage=report.usage)
    return report


def prove(value: Json) -> None:
    """Raise `UnstorableValue` unless the journal returns the value unchanged. Plain values cost almost nothing."""
    if not is_plain(value):
        encode_json(value)


def is_plain(value: Json) -> bool:
    """Return whether the value is always storable."""
    if isinstance(value, str):
        return value.isascii()
    if isinstance(value, int):
        return -INTEGER_MAX < value < INTEGER_MAX
    return value is None
