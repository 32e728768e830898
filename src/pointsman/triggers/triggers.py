"""All triggers of one app, wired together."""

from __future__ import annotations

from typing import Final

from pointsman.context import AppContext, Part
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.triggers.events import Events
from pointsman.triggers.firing import Scheduler
from pointsman.triggers.saved import (
    drop_declared,
    drop_schedules,
    paths_must_be_free,
    put_declared,
    put_schedules,
)
from pointsman.triggers.schedules import Schedules
from pointsman.triggers.starts import CausedStarts
from pointsman.triggers.webhooks import Webhooks
from pointsman.workflows.library import LIBRARY, VariableUnresolved


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
        """Remove the triggers of a deleted workflow."""
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
            saved, _ = await self._app[LIBRARY].saved(entry.id)
            await self.put(saved)


TRIGGERS: Final = Part[Triggers]("triggers", Triggers, close=Triggers.close)
