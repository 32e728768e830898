"""Trial runs of a draft: the document in the editor runs, saved or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pointsman.auth.callers import Caller
from pointsman.authoring.edits import document_of, edit
from pointsman.authoring.operations import AnyOperation
from pointsman.context import AppContext
from pointsman.errors import AuthorError
from pointsman.executions.dry_run import DryRun, dry_run
from pointsman.executions.execution import Execution
from pointsman.executions.partial_runs import try_out
from pointsman.executions.start_quota import take_start
from pointsman.values import Json, JsonObject
from pointsman.workflows.authors import Party, authors_of
from pointsman.workflows.definitions import outlined, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.sources import Workflow


class DraftRun(NamedTuple):
    """A workflow that is being edited."""

    source: Workflow
    written_by: tuple[Party, ...] = ()
    """Its authors, if the document is a saved one."""


async def drafted(
    app: AppContext, caller: Caller, workflow: str, *, operations: Sequence[AnyOperation] = (), document: Json = None
) -> DraftRun:
    """Return a saved workflow, or a given document with its id, changed by operations. Nothing is saved.

    Raises `UnknownWorkflow`, `OperationRefused`.
    """
    written_by: tuple[Party, ...] = ()
    if document is not None:
        source = document_of(document, name=workflow)
        await outlined(app[DOCUMENTS], source, by=caller.name)
        name = workflow.partition("@")[0]
        if source.head.id != name:
            raise AuthorError(f"the document is of {source.head.id!r}, not of {name!r}", hint="Correct its `id`.")
    else:
        source, written_by = (
            await source_of_saved(app, workflow),
            await authors_of(app, await app[LIBRARY].found(workflow)),
        )
    if operations:
        source = (await edit(app, source, operations, reader=caller)).source
    return DraftRun(source, written_by)


async def try_draft(
    app: AppContext, caller: Caller, draft: DraftRun, input: Json, trial: JsonObject, *, model: str | None = None
) -> Execution:
    """Start a partial run of a result of `drafted`. Raises `TrialUnfit`, `WorkflowInvalid`, `TooManyRequests`."""
    take_start(app, caller)
    return await try_out(app, draft.source, input, trial, caller=caller, written_by=draft.written_by, model=model)


async def play_draft(app: AppContext, caller: Caller, draft: DraftRun, input: Json, trial: JsonObject) -> DryRun:
    """Return the path that the partial run would take, past its breakpoints, and its estimated cost. Nothing is called
    or stored."""
    shown: JsonObject = {**trial, "breakpoints": []}
    return await dry_run(app, draft.source, input, trial=shown, caller=caller, written_by=draft.written_by)
