"""JSON views of triggers."""

from __future__ import annotations

from pointsman.triggers.events import Published
from pointsman.triggers.schedules import Fired, StoredSchedule
from pointsman.values import Json, JsonObject


def schedule_view(kept: StoredSchedule) -> JsonObject:
    """Return the JSON of a schedule. `next` is null if nothing is due any more, and for a paused or
    stopped schedule."""
    schedule = kept.schedule
    results: list[Json] = [fired_view(one) for one in schedule.results]
    return {
        "id": kept.id,
        "workflowId": schedule.workflow,
        "trigger": schedule.trigger or None,
        "when": str(schedule.timing),
        "cron": schedule.timing.cron,
        "every": schedule.timing.every_s,
        "at": schedule.timing.at,
        "timezone": schedule.timing.timezone,
        "input": schedule.input,
        "missed": schedule.missed,
        "overlap": schedule.overlap,
        "paused": schedule.paused,
        "enabled": schedule.enabled,
        "owner": schedule.owners[0].name if schedule.owners else None,
        "stopped": schedule.stopped or None,
        "next": schedule.next_due() if schedule.active else None,
        "queued": [*schedule.queued],
        "results": results,
    }


def fired_view(fired: Fired) -> JsonObject:
    """Return the JSON of an outcome. `count` is the number of due times it stands for, if they were missed."""
    return {
        "due": fired.due,
        "at": fired.at,
        "outcome": fired.outcome,
        "executionId": fired.execution or None,
        "count": fired.count,
        "error": {"code": fired.code, "message": fired.message, "hint": fired.hint or None} if fired.code else None,
        "note": fired.message if fired.message and not fired.code else None,
    }


def published_view(published: Published) -> JsonObject:
    untold: list[Json] = [
        {"who": one.who, "code": one.code, "message": one.message, "hint": one.hint or None} for one in published.untold
    ]
    return {
        "key": published.key,
        "delivered": [*published.delivered],
        "started": [*published.started],
        "untold": untold,
    }
