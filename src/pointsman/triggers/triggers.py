"""All triggers of one installation, wired together."""

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
    """What starts executions by itself."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self.starts = CausedStarts(app)
        self.schedules = Schedules(app)
        self.scheduler = Scheduler(app, self.schedules, self.starts)
        self.events = Events(app, self.starts)
        self.webhooks = Webhooks(app, self.events)

    async def put(self, workflow: WorkflowDefinition) -> None:
        """Put the triggers of a saved workflow into effect, and those it had and has no more out of it."""
        try:
            resolved = self._app[LIBRARY].resolved(workflow)
        except VariableUnresolved:
            resolved = workflow.model_copy(update={"enabled": False})  # Nothing of it could run.
        await put_schedules(self._app, self.schedules, resolved)
        await put_declared(self._app, resolved, self.webhooks.deliveries)

    async def drop(self, workflow: str) -> None:
        """The workflow was deleted."""
        await drop_schedules(self.schedules, workflow)
        await drop_declared(self._app, workflow, self.webhooks.deliveries)

    async def close(self) -> None:
        """Let nothing be lost that was to be written later."""
        await self.webhooks.deliveries.close()

    async def check(self, workflow: WorkflowDefinition) -> None:
        """Raises `WebhookTaken` where it cannot be put into effect."""
        await paths_must_be_free(self._app, workflow)

    async def put_all(self) -> None:
        """What a process that died between saving and this left undone."""
        for entry in await self._app.store.workflows.list():
            saved, _ = await self._app[LIBRARY].saved(entry.id)
            await self.put(saved)


TRIGGERS: Final = Part[Triggers]("triggers", Triggers, close=Triggers.close)
