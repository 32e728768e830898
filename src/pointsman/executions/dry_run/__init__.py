"""Dry runs: the way an execution would go, and what it would cost, without a call of a model or a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pointsman.executions.dry_run.playing import DryRun, dry_view, play
from pointsman.executions.dry_run.standing_in import Quiet
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from pointsman.app import Pointsman
    from pointsman.executions.driving import Answer
    from pointsman.workflows.library import Prepared
    from pointsman.workflows.sources import Workflow

__all__ = ["DryRun", "dry_run", "dry_view"]


async def dry_run(
    app: Pointsman,
    workflow: Workflow,
    prepared: Prepared,
    input: Json,
    answers: Sequence[Answer],
    trial: JsonObject | None = None,
) -> DryRun:
    """Play it in an installation of its own, of which nothing is kept, and which has the workflows that may be called.

    `prepared` is the workflow as it would run for its caller. Raises `UnknownWorkflow` for calls of others.
    """
    called = {reference.partition("@")[0] for reference in await app.library.pins(prepared)}
    quiet = Quiet(app.tools, app.script, app.settings.model)
    aside = type(app)("memory:", model=app.model, settings=app.settings, clock=quiet.clock)
    aside.calls_models = False
    async with aside:
        aside.tools = app.tools
        if called:
            await app.library.copy_into(aside.store, called)
        aside.runtime.executors = quiet.executors(aside.runtime, app.settings.memory.quota)
        started = await aside.start(workflow, input, trial=trial)
        return await play(aside.runtime, started, quiet, answers, app.settings.price_list)
