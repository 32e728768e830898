"""Attempts that this process cannot perform wait for a worker that can.

    attempt ─▶ WorkerMissing ─▶ WorkerAwaited          no work runs; the execution waits
    a worker with the missing part ─▶ WorkerOffered ─▶ AttemptStarted(worker) ─▶ the same attempt is executed again

The same attempt is repeated, so its paid effects are answered from the record. A missing worker never fails a step.
"""

from __future__ import annotations

from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import execute
from pointsman.engine.events.steps import AttemptStarted
from pointsman.engine.events.waits import WorkerAwaited
from pointsman.engine.failures import Failure
from pointsman.engine.reports import WorkerOffered
from pointsman.engine.state import StepState


def missing(ctx: DecisionContext, at: StepState, failure: Failure) -> None:
    """Leave the attempt to a worker that has what this process lacks."""
    ctx.emit(
        WorkerAwaited(step=at.step, attempt=at.attempt, needs=failure.needs, message=failure.message, hint=failure.hint)
    )


def offered(ctx: DecisionContext, report: WorkerOffered) -> None:
    """Perform the attempt here. An offer that is late, or made while the execution is halted, has no effect."""
    at = ctx.state.steps.get(report.step)
    if at is None or not at.needs or at.attempt != report.attempt or ctx.state.status != "running":
        return
    advised = at.advised if at.phase == "recover" else None
    ctx.emit(AttemptStarted(step=at.step, attempt=at.attempt, reason="worker", phase=at.phase, input=advised))
    execute(ctx, at.step)
