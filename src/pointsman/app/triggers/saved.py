"""The triggers of saved workflows: what a document declares is in effect when its latest revision is.

Saving a revision puts them in place; a draft, a workflow that is switched off or deleted has none in effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pointsman.app.triggers.calendar import timing_of
from pointsman.app.triggers.schedules import CATCH_UP_S, CATCH_UP_S_MAX, Kept, Schedule, Schedules
from pointsman.definition.workflow import Trigger, Workflow
from pointsman.errors import AuthorError

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman


def schedule_id(workflow: str, trigger: str) -> str:
    """The schedule of a workflow's trigger."""
    return f"{workflow}/{trigger}"


def in_effect(workflow: Workflow, trigger: Trigger) -> bool:
    return workflow.enabled is not False and workflow.status != "draft" and trigger.enabled is not False


async def put_schedules(app: Pointsman, schedules: Schedules, workflow: Workflow) -> None:
    """Make the schedules of a workflow what its document says. What people paused stays so."""
    there = {kept.id: kept for kept in await schedules.list() if kept.schedule.workflow == workflow.id}
    declared: set[str] = set()
    for trigger in workflow.triggers or ():
        if trigger.type != "schedule":
            continue
        try:
            timing = timing_of(cron=trigger.cron, timezone=trigger.timezone or "UTC")
        except AuthorError:
            continue  # A draft may have it; the check told its author.
        id = schedule_id(workflow.id, trigger.id)
        declared.add(id)
        wanted = Schedule(
            workflow=workflow.id,
            timing=timing,
            input=trigger.initial_data,
            missed=trigger.missed or "once",
            overlap=trigger.overlap or "skip",
            catch_up_s=min(trigger.catch_up.seconds, CATCH_UP_S_MAX) if trigger.catch_up is not None else CATCH_UP_S,
            enabled=in_effect(workflow, trigger),
            trigger=trigger.id,
        )
        await _put(app, schedules, id, wanted, there.get(id))
    for id, kept in there.items():
        if kept.schedule.trigger and id not in declared:
            await schedules.remove(id)


async def drop_schedules(schedules: Schedules, workflow: str) -> None:
    """The workflow is gone: its own schedules are too."""
    for kept in await schedules.list():
        if kept.schedule.workflow == workflow and kept.schedule.trigger:
            await schedules.remove(kept.id)


async def _put(app: Pointsman, schedules: Schedules, id: str, wanted: Schedule, there: Kept | None) -> None:
    now = app.clock.now()
    if there is None:
        await schedules.put(id, replace(wanted, begin=now, settled=now), after=0)
        return

    def changed(known: Schedule) -> Schedule:
        same = known.timing == wanted.timing and known.active == (wanted.enabled and not known.paused)
        return replace(
            wanted,
            paused=known.paused,
            begin=known.begin if known.timing == wanted.timing else now,
            settled=known.settled if same else max(known.settled, now),
            open=known.open,
            queued=known.queued,
            results=known.results,
        )

    await schedules.change(id, changed)
