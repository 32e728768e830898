"""Clones: a workflow saved once more under an id of its own, free to be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pointsman.errors import CallerError
from pointsman.store.records import SavedWorkflow
from pointsman.workflows.builtin.documents import is_built_in
from pointsman.workflows.builtin.library import read_only
from pointsman.workflows.builtin.renaming import with_id
from pointsman.workflows.sources import Workflow

if TYPE_CHECKING:
    from pointsman.app import Pointsman


class WorkflowExists(CallerError):
    """There is a workflow of that id."""

    code: ClassVar[str] = "workflow-exists"


async def clone_of(app: Pointsman, reference: str, new: str, *, by: str = "") -> Workflow:
    """The document of a workflow (of the shelf or saved, any revision) under a free id; nothing is saved yet. `by`: the
    caller.

    Raises `UnknownWorkflow`, `WorkflowExists`, `BuiltIn`, `WorkflowInvalid`.
    """
    if is_built_in(new):
        raise read_only(new)
    source = await app.source(reference)
    clone = await app.documents.run(with_id, source, new, by=by, chars=source.chars)
    if await app.library.workflows.find(new) is not None:
        raise WorkflowExists(f"there is a workflow {new!r}", hint="Name the clone differently, or delete that one.")
    return clone


async def clone_workflow(app: Pointsman, reference: str, new: str, *, author: str = "") -> SavedWorkflow:
    """Save a workflow as the first revision of another one, also where it has errors: it is as its author wrote it.
    Raises what `clone_of` does."""
    return await app.save(await clone_of(app, reference, new), author=author, draft=True)
