"""All triggers of one app: those that the latest revision of each workflow declares are in effect.

Saving a revision puts them into effect; a draft and a disabled or deleted workflow have none in effect.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final

import msgspec
from msgspec.structs import replace

from pointsman.context import AppContext, Part
from pointsman.definition.model.workflow import Trigger, WorkflowDefinition
from pointsman.errors import AuthorError, CallerError
from pointsman.settings import HANDLE
from pointsman.triggers.events import Events
from pointsman.triggers.publications import drop_publication
from pointsman.triggers.schedules import CATCH_UP_S, CATCH_UP_S_MAX, Schedule, Scheduler, Schedules, StoredSchedule
from pointsman.triggers.starts import EVENT, WEBHOOK, CausedStarts, Declared, read_declared
from pointsman.triggers.webhooks import IN_DOCUMENT, Deliveries, Webhooks
from pointsman.values import Json
from pointsman.workflows.calendar import timing_of
from pointsman.workflows.definitions import put_triggers
from pointsman.workflows.library import LIBRARY, VariableUnresolved


class WebhookTaken(CallerError):
    """Another workflow has this path."""

    code: ClassVar[str] = "webhook-taken"


def schedule_id(workflow: str, trigger: str) -> str:
    """Return the id of the schedule of a workflow's trigger."""
    return f"{workflow}/{trigger}"


def in_effect(workflow: WorkflowDefinition, trigger: Trigger) -> bool:
    return workflow.enabled is not False and workflow.status != "draft" and trigger.enabled is not False


async def put_schedules(app: AppContext, schedules: Schedules, workflow: WorkflowDefinition) -> None:
    """Update the schedules of a workflow to match its document. Paused and stopped schedules stay so."""
    there = {stored.id: stored for stored in await schedules.list() if stored.schedule.workflow == workflow.id}
    declared: set[str] = set()
    for trigger in workflow.triggers or ():
        if trigger.type != "schedule":
            continue
        try:
            timing = timing_of(cron=trigger.cron, timezone=trigger.timezone or "UTC")
        except AuthorError:
            continue  # A draft may have an invalid one; the check reported it to its author.
        id = schedule_id(workflow.id, trigger.id)
        declared.add(id)
        schedule = Schedule(
            workflow=workflow.id,
            timing=timing,
            input=trigger.initial_data,
            missed=trigger.missed or "once",
            overlap=trigger.overlap or "skip",
            catch_up_s=min(trigger.catch_up.seconds, CATCH_UP_S_MAX) if trigger.catch_up is not None else CATCH_UP_S,
            enabled=in_effect(workflow, trigger),
            trigger=trigger.id,
        )
        await _put(app, schedules, id, schedule, there.get(id))
    for id, stored in there.items():
        if stored.schedule.trigger and id not in declared:
            await schedules.remove(id)


async def drop_schedules(schedules: Schedules, workflow: str) -> None:
    """Delete the schedules that a deleted workflow declared."""
    for stored in await schedules.list():
        if stored.schedule.workflow == workflow and stored.schedule.trigger:
            await schedules.remove(stored.id)


async def _put(
    app: AppContext, schedules: Schedules, id: str, schedule: Schedule, there: StoredSchedule | None
) -> None:
    now = app.clock.now()
    if there is None:
        await schedules.put(id, replace(schedule, begin=now, settled=now), after=0)
        return

    def changed(stored: Schedule) -> Schedule:
        same = stored.timing == schedule.timing and stored.active == (schedule.enabled and not stored.rests)
        return replace(
            schedule,
            paused=stored.paused,
            stopped=stored.stopped,
            begin=stored.begin if stored.timing == schedule.timing else now,
            settled=stored.settled if same else max(stored.settled, now),
            open=stored.open,
            queued=stored.queued,
            results=stored.results,
        )

    await schedules.change(id, changed)


async def put_declared(app: AppContext, workflow: WorkflowDefinition, deliveries: Deliveries) -> None:
    """Update the webhooks and event triggers of a workflow to match its document."""
    triggers: dict[tuple[str, str], Declared] = {}
    for trigger in workflow.triggers or ():
        declared = declared_of(workflow, trigger)
        if declared is not None and in_effect(workflow, trigger):
            key = str(trigger.path) if trigger.type == "webhook" else declared.id
            triggers[WEBHOOK if trigger.type == "webhook" else EVENT, key] = declared
    await drop_declared(app, workflow.id, deliveries, besides=triggers)
    for (kind, key), declared in triggers.items():
        value: Json = msgspec.to_builtins(declared)
        there = await app.store.entries.find(kind, key)
        if there is None or there.value != value:
            await app.store.entries.put(kind, key, value)


async def drop_declared(
    app: AppContext, workflow: str, deliveries: Deliveries, *, besides: Collection[tuple[str, str]] = ()
) -> None:
    """Delete the webhooks and event triggers of a workflow, and the calls of its webhooks."""
    for kind in (WEBHOOK, EVENT):
        for entry in await app.store.entries.list(kind):
            if read_declared(entry.value).workflow == workflow and (kind, entry.key) not in besides:
                await app.store.entries.delete(kind, entry.key)
                if kind == WEBHOOK:
                    await deliveries.forget(entry.key)


def declared_of(workflow: WorkflowDefinition, trigger: Trigger) -> Declared | None:
    """Return the declared webhook or event trigger; None for a schedule, and for a trigger without path or event."""
    if trigger.type == "schedule" or not (trigger.path if trigger.type == "webhook" else trigger.event):
        return None
    # An empty secret, for example from a variable, counts as unknown: it must not open the webhook to everybody.
    secret = "" if trigger.secret is None else trigger.secret if trigger.secret.startswith(HANDLE) else IN_DOCUMENT
    return Declared(
        workflow=workflow.id,
        trigger=trigger.id,
        event=trigger.event or "",
        match=trigger.match or "",
        inputs=dict(trigger.inputs or {}),
        initial=trigger.initial_data,
        secret=secret,
        open=not secret and trigger.auth == "none",
        scheme=trigger.scheme or "standard",
    )


async def paths_must_be_free(app: AppContext, workflow: WorkflowDefinition) -> None:
    """Raise `WebhookTaken` if another workflow has a path that this one declares."""
    for trigger in workflow.triggers or ():
        if trigger.type != "webhook" or not trigger.path:
            continue
        entry = await app.store.entries.find(WEBHOOK, trigger.path)
        if entry is not None and read_declared(entry.value).workflow != workflow.id:
            # The error does not name the other workflow: the caller may not be allowed to see it.
            raise WebhookTaken(f"another workflow already has the path {trigger.path!r}", hint="Choose another path.")


class Triggers:
    """Triggers of one app: schedules, events and webhooks."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self.starts = CausedStarts(app)
        self.schedules = Schedules(app)
        self.scheduler = Scheduler(app, self.schedules, self.starts)
        self.events = Events(app, self.starts)
        self.webhooks = Webhooks(app, self.events)

    async def put(self, workflow: WorkflowDefinition) -> None:
        """Put the triggers of a saved workflow into effect, and remove those that it no longer declares."""
        try:
            resolved = self._app[LIBRARY].resolved(workflow)
        except VariableUnresolved:
            resolved = workflow.model_copy(update={"enabled": False})  # The workflow could not run.
        await put_schedules(self._app, self.schedules, resolved)
        await put_declared(self._app, resolved, self.webhooks.deliveries)

    async def drop(self, workflow: str) -> None:
        """Remove the triggers and the publication of a deleted workflow."""
        await drop_publication(self._app, workflow)
        await drop_schedules(self.schedules, workflow)
        await drop_declared(self._app, workflow, self.webhooks.deliveries)

    async def close(self) -> None:
        """Write the buffered deliveries."""
        await self.webhooks.deliveries.close()

    async def check(self, workflow: WorkflowDefinition) -> None:
        """Raise `WebhookTaken` if the triggers cannot be put into effect."""
        await paths_must_be_free(self._app, workflow)

    async def put_all(self) -> None:
        """Put the triggers of every saved workflow into effect, in case a process crashed between
        saving and this step."""
        for entry in await self._app.store.workflows.list():
            await put_triggers(self._app, entry.id)


TRIGGERS: Final = Part[Triggers]("triggers", Triggers, close=Triggers.close)
