"""Check the sizes of input, answers and events before they become part of the state.

Outputs of steps are checked in `outputs`, where a violation fails the step; here the caller receives the error.
"""

from __future__ import annotations

from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.outputs import largest_of, limit_of, size_of
from pointsman.engine.reports import EventReceived, GateAnswered, Start
from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject


class StateTooLarge(CallerError):
    """Input, an answer or an event is larger than the state of the execution may be. Nothing was written."""

    code = "state-too-large"


def input_must_fit(ctx: DecisionContext, report: Start) -> None:
    """Raise `StateTooLarge` for an input that, with the initial state, exceeds the limit of the state."""
    messages: JsonObject = {} if not report.messages else {"messages": [*report.messages]}
    _must_fit(ctx, "the input", {**ctx.plan.initial, **report.input, **messages})


def answer_must_fit(ctx: DecisionContext, report: GateAnswered) -> None:
    """Raise `StateTooLarge` for a person's answer that exceeds the limit of the state."""
    _must_fit(ctx, "the answer", {"data": report.data, "comment": report.comment})


def size_of_answer(value: Json) -> int:
    """Return the bytes of one value as JSON."""
    return size_of({"": value})


def event_must_fit(ctx: DecisionContext, report: EventReceived) -> None:
    """Raise `StateTooLarge` for an event whose data exceed the limit of the state."""
    _must_fit(ctx, f"the event {report.name!r}", {"data": report.data})


def _must_fit(ctx: DecisionContext, what: str, given: JsonObject) -> None:
    limit = limit_of(ctx)
    if limit is None or (size := size_of(given)) <= limit:
        return
    shown = ", ".join(f"{name} ({bytes_} bytes)" for name, bytes_ in largest_of(given).items())
    raise StateTooLarge(
        f"{what} has {size} bytes, over the limit of the state, {limit}; largest fields: {shown}",
        hint="Give less, or raise limits.stateSize.",
    )
