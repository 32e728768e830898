"""Dry runs: the way an execution would go, and what it would cost, without a call of a model or a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pointsman.app.checking import workflow_tools_in
from pointsman.app.dry.playing import DryRun, dry_view, play
from pointsman.app.dry.standing_in import Quiet
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pointsman.app.driving import Answer
    from pointsman.app.installation import Pointsman
    from pointsman.app.sources import Workflow

__all__ = ["DryRun", "dry_run", "dry_view"]


async def dry_run(
    app: Pointsman, workflow: Workflow, input: Json, answers: Sequence[Answer], trial: JsonObject | None = None
) -> DryRun:
    """Play it in an installation of its own, of which nothing is kept."""
    await app.runnable(workflow)  # What is wrong is told here: aside nothing has an owner, and all would be suggested.
    quiet = Quiet(app.tools, app.script, app.settings.model_in_effect)
    aside = type(app)("memory:", model=app.model, settings=app.settings, clock=quiet.clock)
    async with aside:
        aside.tools = app.tools
        if workflow.calls or workflow_tools_in(workflow):
            await app.library.copy_into(aside.store)
        aside.runtime.executors = quiet.executors(aside.runtime, app.settings.memory.quota)
        started = await aside.start(workflow, input, trial=trial)
        return await play(aside.runtime, started, quiet, answers, app.settings.price_list)
