"""Fork: an execution that starts as a copy of the rows of another one and continues independently.

    origin  1 ── 2 ── 3 ── 4 ── 5 …
    fork    1 ── 2 ── 3 ── ExecutionForked (edits) ── 5' …        at row 3: what was open there runs again

To run a step again, the report of the row in which it started is decided once more, up to that step:

    origin  1 ── 2 ── 3 [A completed, B starts] …
    fork    1 ── 2 ── 3'[A completed, B held] ── ExecutionForked (edits) ── B starts …
"""

from __future__ import annotations

from pointsman.engine.decide import lifecycle, limits, migrate
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.data_edits import check_edits
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.decide.outstanding import outstanding
from pointsman.engine.events.lifecycle import ExecutionForked
from pointsman.engine.reports import ForkRequested, ResumeRequested, RetryRequested
from pointsman.engine.writes import DataEdit


def fork(ctx: DecisionContext, report: ForkRequested) -> None:
    """Continue the copy: request open work again, resume a halted execution, retry a failed one."""
    state = ctx.state
    if state.ended and not (state.status == "failed" and state.outcome.failed_work):
        raise WrongStatus(
            f"{report.origin!r} is {state.status} at row {report.row}: nothing is left to go on with",
            hint="Fork it from an earlier row (--at), or run a step again (retry --from).",
        )
    given = report.input or {}
    edits = (*(DataEdit((name,), value) for name, value in given.items()), *report.edits)
    check_edits(ctx, edits)
    if report.onto is not None:
        migrate.check_fits(ctx.plan, state)
    stands, failed = state.is_halted, state.status == "failed"
    ctx.emit(
        ExecutionForked(
            origin=report.origin,
            row=report.row,
            before=report.before,
            input={**state.setup.input, **given} if given else None,
            edits=edits,
            session=report.session,
            by=report.by,
            undoes=report.undoes,
        )
    )
    if report.onto is not None:
        migrate.settle_in(ctx, report.onto)
    if failed:
        lifecycle.retry(ctx, RetryRequested(limits=report.limits, by=report.by))
        return
    if state.status != "interrupted":  # otherwise they are requested on resumption
        ctx.commands += outstanding(ctx.plan, state)
    if stands:
        lifecycle.resume(ctx, ResumeRequested(limits=report.limits, by=report.by))
        return
    lifecycle.raise_limits(ctx, report.limits)
    limits.set_limit_timers(ctx)
    for key in state.scopes:
        ctx.dirty_scopes[key] = None
