"""Forking: an execution that begins as a copy of another one's rows, and goes on by itself.

    origin  1 ── 2 ── 3 ── 4 ── 5 …
    fork    1 ── 2 ── 3 ── Forked (edits) ── 5' …        at row 3: what was open there runs again

To run a step again, the report of the row in which it began is decided once more, short of that step:

    origin  1 ── 2 ── 3 [A done, B begins] …
    fork    1 ── 2 ── 3'[A done, B held] ── Forked (edits) ── B begins …
"""

from __future__ import annotations

from pointsman.engine import limits, moving, requests
from pointsman.engine.desk import Desk
from pointsman.engine.editing import check_edits
from pointsman.engine.facts import Edit
from pointsman.engine.life_events import Forked
from pointsman.engine.outstanding import outstanding
from pointsman.engine.reports import ForkRequested, ResumeRequested, RetryRequested
from pointsman.engine.requests import WrongStatus


def fork(desk: Desk, report: ForkRequested) -> None:
    """Go on: what was open is asked for again, what stood still is resumed, what failed is tried again."""
    state = desk.state
    if state.ended and not (state.status == "failed" and state.failed):
        raise WrongStatus(
            f"{report.origin!r} is {state.status} at row {report.row}: nothing is left to go on with",
            hint="Fork it from an earlier row (--at), or run a step again (retry --from).",
        )
    given = report.input or {}
    edits = (*(Edit((name,), value) for name, value in given.items()), *report.edits)
    check_edits(desk, edits)
    if report.onto is not None:
        moving.check_fits(desk.plan, state)
    stands, failed = state.stands_still, state.status == "failed"
    desk.emit(
        Forked(
            origin=report.origin,
            row=report.row,
            before=report.before,
            input={**state.input, **given} if given else None,
            edits=edits,
            session=report.session,
            by=report.by,
            undoes=report.undoes,
        )
    )
    if report.onto is not None:
        moving.settle_in(desk, report.onto)
    if failed:
        requests.retry(desk, RetryRequested(limits=report.limits, by=report.by))
        return
    if state.status != "interrupted":  # else they are asked for on resumption
        desk.commands += outstanding(desk.plan, state)
    if stands:
        requests.resume(desk, ResumeRequested(limits=report.limits, by=report.by))
        return
    requests.raise_limits(desk, report.limits)
    limits.watch(desk)
    for key in state.scopes:
        desk.touched[key] = None
