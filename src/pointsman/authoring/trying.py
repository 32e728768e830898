"""Trying what is being made: what is on the screen is what runs, saved or not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.app.access.beginning import take_start
from pointsman.app.access.callers import Caller
from pointsman.app.access.seeing import must_see_workflow
from pointsman.app.dry import DryRun
from pointsman.app.library import UnknownWorkflow
from pointsman.app.trials import try_out
from pointsman.authoring.editing import edit
from pointsman.authoring.operations import AnyOperation
from pointsman.authoring.workbench import document_of
from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject


async def drafted(
    app: Pointsman, caller: Caller, workflow: str, *, operations: Sequence[AnyOperation] = (), document: Json = None
) -> Workflow:
    """A saved workflow as it is, or a document of its own id, changed by operations. Nothing is saved.

    Raises `UnknownWorkflow`, `NotAllowed` (also where it calls workflows that the caller may not see),
    `OperationRefused`.
    """
    await must_see_workflow(app, caller, workflow)
    if document is not None:
        source = document_of(document, name=workflow)
        name = workflow.partition("@")[0]
        if source.definition.id != name:
            raise AuthorError(f"the document is of {source.definition.id!r}, not of {name!r}", hint="Correct its `id`.")
    else:
        source = await app.source(workflow)
    if operations:
        source = (await edit(app, source, operations, reader=caller)).source
    for called in await app.library.called(source.definition):
        with suppress(UnknownWorkflow):
            await must_see_workflow(app, caller, called)
    return source


async def try_draft(
    app: Pointsman, caller: Caller, source: Workflow, input: Json, trial: JsonObject, *, model: str | None = None
) -> Execution:
    """Begin a trial of what `drafted` gave. Raises `TrialUnfit`, `WorkflowInvalid`, `TooManyRequests`."""
    caller.must_have("editor", "try workflows")
    take_start(app, caller)
    return await try_out(app, source, input, trial, by=caller.name, model=model)


async def play_draft(app: Pointsman, caller: Caller, source: Workflow, input: Json, trial: JsonObject) -> DryRun:
    """The way the trial would go, past its breakpoints, and what it would cost; nothing is called or kept."""
    caller.must_have("editor", "try workflows")
    return await app.dry_run(source, input, trial={**trial, "breakpoints": []})
