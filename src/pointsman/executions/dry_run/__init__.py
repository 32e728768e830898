"""Dry runs: the way an execution would go, and what it would cost, without a call of a model or a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, TypeAlias

from pointsman.auth.callers import LOCAL, Caller
from pointsman.context import AppContext, Part
from pointsman.executions.dry_run.playing import DryRun, dry_view, play
from pointsman.executions.dry_run.standing_in import Quiet
from pointsman.executions.start import prepared_for, start
from pointsman.ports import Clock
from pointsman.values import Json, JsonObject
from pointsman.workflows.authors import Party
from pointsman.workflows.definitions import source_of_saved
from pointsman.workflows.library import LIBRARY

if TYPE_CHECKING:
    from pointsman.executions.driving import GivenAnswer
    from pointsman.workflows.sources import Workflow

OpenAside: TypeAlias = Callable[[AppContext, Clock], AbstractAsyncContextManager[AppContext]]
"""Opens an application in memory, with the settings and tools of another one, that checks no models."""
ASIDE: Final = Part[OpenAside]("aside")

__all__ = ["DryRun", "dry_run", "dry_view"]


async def dry_run(
    app: AppContext,
    workflow: Workflow | str,
    input: Json = None,
    *,
    answers: Sequence[GivenAnswer] = (),
    trial: JsonObject | None = None,
    caller: Caller = LOCAL,
    written_by: Iterable[Party] = (),
) -> DryRun:
    """Run a workflow in an application of its own that keeps nothing and has the workflows that may be called.

    Returns the path that the execution, or a partial run, takes, its calls and its cost. Raises `UnknownWorkflow` for
    calls of workflows that the caller may not see.
    """
    source = await source_of_saved(app, workflow) if isinstance(workflow, str) else workflow
    prepared = await prepared_for(app, workflow, caller=caller, written_by=written_by)
    called = {reference.partition("@")[0] for reference in await app[LIBRARY].pins(prepared)}
    quiet = Quiet(app.tools, app.services.script, app.settings.model)
    async with app[ASIDE](app, quiet.clock) as aside:
        if called:
            await app[LIBRARY].copy_into(aside.store, called)
        aside.runtime.executors = quiet.executors(aside.runtime, app.settings.memory.quota)
        started = await start(aside, source, input, trial=trial)
        return await play(aside.runtime, started, quiet, answers, app.settings.price_list)
