"""Cloning: save a workflow again under another id, so that it can be changed."""

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
    """A workflow with this id exists."""

    code: ClassVar[str] = "workflow-exists"


async def clone_of(app: AppContext, reference: str, new: str, *, by: str = "") -> Workflow:
    """Return the document of a workflow (built-in or saved, any revision) under a free id, without saving it. `by`: the
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
    """Save a workflow as the first revision of another one. The clone is saved unchanged, even if it has errors. Raises
    the errors of `clone_of`."""
    return await save(app, await clone_of(app, reference, new), author=author, draft=True)
