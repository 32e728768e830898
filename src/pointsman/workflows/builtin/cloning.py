"""Clones: a workflow saved once more under an id of its own, free to be changed."""

from __future__ import annotations

from typing import ClassVar

from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.store.records import SavedWorkflow
from pointsman.workflows.builtin.documents import is_built_in
from pointsman.workflows.builtin.library import read_only
from pointsman.workflows.builtin.renaming import with_id
from pointsman.workflows.definitions import save, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.sources import Workflow


class WorkflowExists(CallerError):
    """There is a workflow of that id."""

    code: ClassVar[str] = "workflow-exists"


async def clone_of(app: AppContext, reference: str, new: str, *, by: str = "") -> Workflow:
    """The document of a workflow (of the shelf or saved, any revision) under a free id; nothing is saved yet. `by`: the
    caller.

    Raises `UnknownWorkflow`, `WorkflowExists`, `BuiltIn`, `WorkflowInvalid`.
    """
    if is_built_in(new):
        raise read_only(new)
    source = await source_of_saved(app, reference)
    clone = await app[DOCUMENTS].run(with_id, source, new, by=by, chars=source.chars)
    if await app[LIBRARY].workflows.find(new) is not None:
        raise WorkflowExists(f"there is a workflow {new!r}", hint="Name the clone differently, or delete that one.")
    return clone


async def clone_workflow(app: AppContext, reference: str, new: str, *, author: str = "") -> SavedWorkflow:
    """Save a workflow as the first revision of another one, also where it has errors: it is as its author wrote it.
    Raises what `clone_of` does."""
    return await save(app, await clone_of(app, reference, new), author=author, draft=True)
