"""Compensation: after a failure or a cancellation, undo completed steps, the last one first.

    failed or cancelled ─▶ CompensationBegan ─▶ ┌ UndoBegan ─▶ step of a compensation ─▶ UndoEnded ┐ ─▶ ExecutionFailed
                                                └──────── next entry of the undo log ──────────────┘    or …Cancelled

A step that succeeds at a node with `compensate` adds an entry to the undo log in the state, so a crash loses none. An
undo is ordinary work: one step at a time in the outermost scope, with the retries of its own node; limits do not stop
it. A failed undo is reported and the others still run. A compensated execution cannot be retried.
"""

from __future__ import annotations

from pointsman.engine.decide.context import DecisionContext, EnterNode
from pointsman.engine.events.lifecycle import ExecutionCancelled, ExecutionFailed, UndoBegan, UndoEnded
from pointsman.engine.failures import Failure
from pointsman.engine.fold.arrivals import NOBODY
from pointsman.engine.state import Compensation
from pointsman.engine.steps import Step
from pointsman.values import Json, JsonObject

REJECTED = Failure(code="compensation-rejected", message="a person said that it cannot be undone")


def proceed(ctx: DecisionContext) -> None:
    """Undo the next step when nothing else moves, or end the execution."""
    state = ctx.state
    if not state.undo_log:
        _finish(ctx)
        return
    owed = state.undo_log[-1]
    ctx.emit(UndoBegan(step=owed.step, node=owed.by))
    ctx.enqueue(EnterNode(owed.by, (), None, NOBODY))


def ended(ctx: DecisionContext, failure: Failure | None = None) -> None:
    """Record the end of a compensation step."""
    compensation = _of(ctx)
    assert compensation.current is not None
    ctx.emit(UndoEnded(step=compensation.current.step, failure=failure))


def left(ctx: DecisionContext, labels: tuple[str, ...]) -> None:
    """Handle the exit of a compensation step. In a human task, `reject` means that the step cannot be undone."""
    ended(ctx, REJECTED if "reject" in labels else None)


def _finish(ctx: DecisionContext) -> None:
    """End with the original outcome, and report the steps that could not be undone."""
    compensation = _of(ctx)
    left_undone = [step for step, _ in compensation.failed] + [owed.step for owed in reversed(ctx.state.undo_log)]
    if compensation.failure is not None:
        failure = _told(compensation, compensation.failure, left_undone)
        ctx.emit(ExecutionFailed(failure=failure, step=compensation.step))
    elif left_undone:
        why = Failure(code="compensation-failed", message="it was cancelled", hint="Undo by hand what is named.")
        ctx.emit(ExecutionFailed(failure=_told(compensation, why, left_undone)))
    else:
        ctx.emit(ExecutionCancelled(reason=compensation.reason, by=compensation.by))


def abandon(ctx: DecisionContext) -> None:
    """Stop undoing at a caller's request; running work was stopped before."""
    current = _of(ctx).current
    if current is not None:
        stopped = Failure(code="compensation-stopped", message="it was stopped while it was being undone")
        ctx.emit(UndoEnded(step=current.step, failure=stopped))
    _finish(ctx)


def _of(ctx: DecisionContext) -> Compensation:
    assert ctx.state.compensation is not None
    return ctx.state.compensation


def _told(compensation: Compensation, failure: Failure, left_undone: list[Step]) -> Failure:
    """Return the failure with the outcome of the compensation."""
    why = dict(compensation.failed)
    undone: list[Json] = [str(step) for step in compensation.undone]
    told: list[Json] = []
    for step in left_undone:
        reason = why.get(step)
        told.append(
            {
                "step": str(step),
                "code": reason.code if reason is not None else "not-tried",
                "message": reason.message if reason is not None else "nobody tried",
            }
        )
    details: JsonObject = {
        **(failure.details or {}),
        "compensation": {"undone": undone, "notUndone": told},
    }
    names = ", ".join(repr(str(step)) for step in left_undone)
    message = f"{failure.message}; could not be undone: {names}" if left_undone else failure.message
    return Failure(code=failure.code, message=message, hint=failure.hint, details=details)
