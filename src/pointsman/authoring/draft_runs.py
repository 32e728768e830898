"""Trying what is being made: what is on the screen is what runs, saved or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.auth.authority import Party, authors_of
from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_see_workflow
from pointsman.authoring.edits import edit
from pointsman.authoring.operations import AnyOperation
from pointsman.authoring.texts import document_of
from pointsman.errors import AuthorError
from pointsman.executions.dry_run import DryRun
from pointsman.executions.partial_runs import try_out
from pointsman.executions.start_quota import take_start
from pointsman.values import Json, JsonObject


class Draft(NamedTuple):
    """A workflow as it is being made."""

    source: Workflow
    written_by: tuple[Party, ...] = ()
    """Its authors, where the caller did not bring the text along."""


async def drafted(
    app: Pointsman, caller: Caller, workflow: str, *, operations: Sequence[AnyOperation] = (), document: Json = None
) -> Draft:
    """A saved workflow as it is, or a document of its own id, changed by operations. Nothing is saved.

    Raises `UnknownWorkflow`, `OperationRefused`.
    """
    await must_see_workflow(app, caller, workflow)
    written_by: tuple[Party, ...] = ()
    if document is not None:
        source = document_of(document, name=workflow)
        await app.outline(source, by=caller.name)
        name = workflow.partition("@")[0]
        if source.head.id != name:
            raise AuthorError(f"the document is of {source.head.id!r}, not of {name!r}", hint="Correct its `id`.")
    else:
        source, written_by = await app.source(workflow), await authors_of(app, await app.library.found(workflow))
    if operations:
        source = (await edit(app, source, operations, reader=caller)).source
    return Draft(source, written_by)


async def try_draft(
    app: Pointsman, caller: Caller, draft: Draft, input: Json, trial: JsonObject, *, model: str | None = None
) -> Execution:
    """Begin a trial of what `drafted` gave. Raises `TrialUnfit`, `WorkflowInvalid`, `TooManyRequests`."""
    caller.must_have("editor", "try workflows")
    take_start(app, caller)
    return await try_out(app, draft.source, input, trial, caller=caller, written_by=draft.written_by, model=model)


async def play_draft(app: Pointsman, caller: Caller, draft: Draft, input: Json, trial: JsonObject) -> DryRun:
    """The way the trial would go, past its breakpoints, and what it would cost; nothing is called or kept."""
    caller.must_have("editor", "try workflows")
    shown: JsonObject = {**trial, "breakpoints": []}
    return await app.dry_run(draft.source, input, trial=shown, caller=caller, written_by=draft.written_by)
