"""What callers may see: a workflow's groups, and those of the definition an execution runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointsman.app.access.callers import Caller
from pointsman.app.library import DefinitionGone, UnknownWorkflow
from pointsman.errors import AuthorError
from pointsman.values import ExecutionId, WorkflowId

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman


async def groups_of(app: Pointsman, reference: str) -> tuple[str, ...]:
    """For whom a saved workflow is there; empty: for everybody. A draft that cannot be read is for everybody who may
    see drafts. Raises `UnknownWorkflow`."""
    try:
        workflow, _ = await app.library.saved(reference)
    except AuthorError:
        return ()
    except UnknownWorkflow as why:
        # Its hint lists all there are, and the caller may not see all.
        raise UnknownWorkflow(str(why), hint="GET /api/workflows lists those you may see.") from None
    return tuple(workflow.allowed_groups or ())


async def visible(app: Pointsman, caller: Caller, reference: str) -> bool:
    return caller.is_among(await groups_of(app, reference))


async def must_see(app: Pointsman, caller: Caller, execution: str) -> None:
    """Raises `UnknownExecution`, `NotAllowed`."""
    state = await app.runtime.load(ExecutionId(execution))
    caller.must_be_among(await _groups(app, state.definition), f"the execution {execution!r}")


async def _groups(app: Pointsman, definition: str) -> tuple[str, ...]:
    try:
        return tuple((await app.library.kept(definition)).allowed_groups or ())
    except DefinitionGone:
        return ()


async def sees_workflow(app: Pointsman, caller: Caller, workflow: WorkflowId) -> bool:
    """Whether executions of a workflow are listed. Those of documents that were never saved are."""
    saved = await app.store.workflows.find(workflow)
    return saved is None or await visible(app, caller, workflow)
