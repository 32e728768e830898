"""Replays: decide a stored journal again and compare."""

from __future__ import annotations

from pointsman.engine.events.lifecycle import ExecutionMigrated, ExecutionStarted
from pointsman.engine.plan import Plan
from pointsman.engine.replay import Replay, ReplayDifference, replay
from pointsman.engine.state import status_of
from pointsman.ports import Row
from pointsman.values import ExecutionId, JsonObject
from pointsman.workflows.library import Library


async def replay_rows(library: Library, execution: ExecutionId, rows: list[Row], against: Plan | None) -> Replay:
    """Decide every row again: with the definitions it was decided with, or all rows with another one."""
    if against is not None:
        return replay(lambda _: against, execution, rows, other=True)
    plans: dict[str, Plan] = {}
    options: JsonObject = {}
    for row in rows:
        for event in row.events:
            if isinstance(event, ExecutionStarted | ExecutionMigrated):
                options = event.options or options
                plans[event.definition] = await library.pinned(event.definition, options)
    return replay(plans.__getitem__, execution, rows)


def replay_view(found: Replay) -> JsonObject:
    """Return the outcome of a replay as JSON."""
    return {
        "executionId": found.state.id,
        "same": not found.differences,
        "rows": found.rows,
        "status": status_of(found.state),
        "differences": [difference_view(one) for one in found.differences],
        "untold": [*found.untold],
    }


def difference_view(one: ReplayDifference) -> JsonObject:
    return {
        "row": one.row,
        "event": one.event,
        "kind": one.kind,
        "field": one.field,
        "recorded": one.recorded,
        "now": one.now,
    }
