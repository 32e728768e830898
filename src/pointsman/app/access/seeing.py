"""What callers may see: a workflow's groups, and those of the definition an execution runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pointsman.app.access.callers import Caller
from pointsman.app.library import DefinitionGone, UnknownWorkflow
from pointsman.errors import AuthorError
from pointsman.journal.records import Summary
from pointsman.values import ExecutionId

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman


UNKNOWN: Final = ("\0",)
"""The group of what cannot be read any more, so that nobody knows whose it is: no key has it, admins need none."""


async def groups_of(app: Pointsman, reference: str) -> tuple[str, ...]:
    """For whom a saved workflow is there; empty: for everybody. Raises `UnknownWorkflow`."""
    try:
        workflow, _ = await app.library.saved(reference)
    except AuthorError:
        return UNKNOWN
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
        return UNKNOWN


async def sees(app: Pointsman, caller: Caller, summary: Summary) -> bool:
    """Whether an execution is listed: by the groups of the definition it runs on, as it was when it began; so also
    after its workflow was changed or deleted."""
    if caller.role == "admin":
        return True
    if summary.revision:
        return await visible(app, caller, f"{summary.workflow}@{summary.revision}")
    state = await app.runtime.load(summary.execution)
    return caller.is_among(await _groups(app, state.definition))
