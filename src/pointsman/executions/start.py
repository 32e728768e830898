"""The start of an execution: from a document or a saved workflow to an execution whose first row is durable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import TypedDict, Unpack

import msgspec

from pointsman.auth.callers import LOCAL, Caller, together
from pointsman.auth.policy import must_see_workflow
from pointsman.context import AppContext
from pointsman.engine.state import SCRIPT_OPTION
from pointsman.executions.authority import OF_DOCUMENT
from pointsman.executions.ephemeral import EPHEMERAL, is_fleeting
from pointsman.executions.execution import Execution
from pointsman.executions.opening import PLACES, driver_for
from pointsman.executions.start_quota import own_session, take_start
from pointsman.executions.starting import StartRequest, Starts
from pointsman.runtime.driver import Driver
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.authors import Party, all_of, author_of, recorded
from pointsman.workflows.definitions import model_of, runnable
from pointsman.workflows.library import ACTORS, LIBRARY, Library, Prepared
from pointsman.workflows.scripts import keep_script
from pointsman.workflows.sources import Workflow, source_of


class StartOptions(TypedDict, total=False):
    """Options of a start."""

    session: str | None
    """The conversation that it belongs to."""
    config: Mapping[str, Json] | None
    durability: str | None
    language: str | None
    """The language of its texts; absent: that of the settings."""
    lenient: bool
    execution: ExecutionId | None
    """The id of the new execution. Raises `JournalMoved` if an execution with that id exists."""
    key: str | None
    """Idempotency key: return the execution that was started under it, if any; raises `KeyReused` if the input
    differs."""
    trigger: JsonObject | None
    """What started it: `kind`, `id`."""
    by: str
    """The name of the caller, as lists show it."""
    caller: Caller
    """The caller that it acts for."""
    written_by: Iterable[Party]
    """The authors of a document, if it is not the caller's own."""
    model: str | None
    """The model that answers all its agents. Raises `ModelFixed` if the application has another one."""
    trial: JsonObject | None
    """The part of the workflow that is performed, see `executions.partial_runs`."""


async def start(
    app: AppContext, workflow: Workflow | str, input: Json = None, **how: Unpack[StartOptions]
) -> Execution:
    """Start an execution. Return when its start is durable."""
    caller = how.get("caller", LOCAL)
    lenient, written_by = how.get("lenient", False), how.get("written_by", ())
    prepared = await prepared_for(app, workflow, lenient=lenient, caller=caller, written_by=written_by)
    definition = prepared.definition
    fleeting = app[EPHEMERAL] if is_fleeting(definition) and app.store.shared else None
    options = await _options(app, fleeting.library if fleeting else app[LIBRARY], prepared, how.get("model"))
    given: JsonObject = {name: how.get(name) for name in ("durability", "language", "trigger", "trial")}
    given |= {"by": how.get("by") or None, ACTORS: recorded(caller) or None}
    options |= {name: value for name, value in given.items() if value is not None}
    wish = StartRequest(options, how.get("session"), how.get("config") or {}, how.get("execution"), how.get("key"))
    if fleeting is not None:
        return await fleeting.start(prepared.runnable, input, wish)
    if app.services.script is not None:
        options[SCRIPT_OPTION] = await keep_script(app.store, app.services.script)

    async def opened(execution: ExecutionId) -> Driver:
        return await driver_for(app, execution)

    starts = Starts(app.runtime, app[LIBRARY], app[PLACES], opened, app.services.models_to_check)
    return await starts.start(prepared.runnable, input, wish)


async def prepared_for(
    app: AppContext,
    workflow: Workflow | str,
    *,
    lenient: bool = False,
    caller: Caller = LOCAL,
    written_by: Iterable[Party] = (),
) -> Prepared:
    """Return the definition that runs for a caller, and its saved revision; 0 for a document."""
    if not isinstance(workflow, str):
        authors = tuple(written_by)
        reader = together(caller, await all_of(app, authors)) if authors else caller
        prepared = await runnable(app, workflow, lenient=lenient, reader=reader)
        said: Json = msgspec.to_builtins(authors)
        return prepared._replace(authors={**prepared.authors, OF_DOCUMENT: said}) if authors else prepared
    found = await app[LIBRARY].startable(workflow)
    reader = together(caller, await author_of(app, found))
    return await runnable(app, source_of(found.draft), lenient=lenient, revision=found.revision, reader=reader)


async def must_run_revision(app: AppContext, caller: Caller, workflow: str, revision: int) -> None:
    """Raise `NotAllowed` if a caller below an editor runs an earlier revision of a workflow, which may lack a gate that
    an editor has added since."""
    if not caller.has("editor") and not await app[LIBRARY].is_latest(workflow, revision):
        caller.must_have("editor", f"run an earlier revision of {workflow!r}")


async def _options(app: AppContext, library: Library, prepared: Prepared, model: str | None) -> JsonObject:
    options = await library.options(prepared)
    model = model_of(app, model)
    if model is not None:
        options["model"] = model
    return options


class CallerOptions(TypedDict, total=False):
    """What a caller may choose for a start; see `StartOptions`."""

    config: Mapping[str, Json] | None
    durability: str | None
    language: str | None
    model: str | None


async def start_as(
    app: AppContext,
    caller: Caller,
    workflow: str,
    input: Json = None,
    *,
    session: str | None = None,
    key: str | None = None,
    trigger: JsonObject | None = None,
    **how: Unpack[CallerOptions],
) -> Execution:
    """Start an execution of a saved workflow for a caller, who becomes its owner. Keys are separate for each caller.

    Raises `UnknownWorkflow` also if the caller may not see it, `NotAllowed` if the session belongs to another caller or
    for an earlier revision, which takes an editor, and `TooManyRequests`.
    """
    caller.must_have("operator", "start executions")
    await must_see_workflow(app, caller, workflow)
    if "@" in workflow:
        found = await app[LIBRARY].found(workflow)
        await must_run_revision(app, caller, found.draft.id, found.revision)
    take_start(app, caller)
    async with nullcontext() if session is None else own_session(app, caller, session):
        return await start(
            app,
            workflow,
            input,
            session=session,
            key=None if key is None else f"{caller.name}|{key}",
            trigger={"kind": "api", "by": caller.name} if trigger is None else trigger,
            by=caller.name,
            caller=caller,
            **how,
        )
