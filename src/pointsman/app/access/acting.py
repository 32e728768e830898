"""What callers do with workflows: the verbs of the application, for somebody, if they may."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, TypedDict, Unpack

from pointsman.app.access.beginning import own_session, take_start
from pointsman.app.access.callers import Caller
from pointsman.app.access.seeing import must_see_workflow
from pointsman.app.access.sharing import EVERYONES, claim, disclaim, must_own, sharing_of
from pointsman.app.library import UnknownWorkflow
from pointsman.app.revisions import delete_workflow
from pointsman.app.shelf.cloning import clone_of
from pointsman.app.sources import Workflow
from pointsman.journal.records import SavedWorkflow
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pointsman.app.executions import Execution
    from pointsman.app.installation import Pointsman


class How(TypedDict, total=False):
    """What may be said of a start, as for `Pointsman.start`."""

    config: Mapping[str, Json] | None
    durability: str | None
    language: str | None
    model: str | None


async def start_as(
    app: Pointsman,
    caller: Caller,
    workflow: str,
    input: Json = None,
    *,
    session: str | None = None,
    key: str | None = None,
    trigger: JsonObject | None = None,
    **how: Unpack[How],
) -> Execution:
    """Begin an execution of a saved workflow for a caller, whose it is then. Keys of two callers are two keys.

    Raises `NotAllowed` where the workflow is not there for them, or the session is somebody else's, and
    `TooManyRequests`.
    """
    await must_see_workflow(app, caller, workflow)
    take_start(app, caller)
    async with nullcontext() if session is None else own_session(app, caller, session):
        return await app.start(
            workflow,
            input,
            session=session,
            key=None if key is None else f"{caller.name}|{key}",
            trigger={"kind": "api", "by": caller.name} if trigger is None else trigger,
            by=caller.name,
            **how,
        )


async def save_as(
    app: Pointsman,
    caller: Caller,
    source: Workflow,
    *,
    author: str | None = None,
    draft: bool = False,
    after: int | None = None,
) -> SavedWorkflow:
    """Save a revision. A new workflow is the caller's from its first revision on. `after`: as for `Pointsman.save`.

    Raises `NotAllowed` over one that they may not see, and where it calls such a one: what a workflow calls, everybody
    who runs it sees.
    """
    definition = source.definition
    with suppress(UnknownWorkflow):
        await must_see_workflow(app, caller, definition.id)
    for called in await app.library.called(definition):
        with suppress(UnknownWorkflow):
            await must_see_workflow(app, caller, called)
    claimed = await _is_new(app, definition.id) and await claim(app, caller, definition.id)
    try:
        return await app.save(source, author=caller.name if author is None else author, draft=draft, after=after)
    except BaseException:
        if claimed:
            await disclaim(app, definition.id)
        raise


async def clone_as(
    app: Pointsman, caller: Caller, reference: str, new: str, *, author: str | None = None
) -> SavedWorkflow:
    """Save a workflow that they may see once more, under an id of its own: it is theirs. Raises as `clone_workflow`."""
    await must_see_workflow(app, caller, reference)
    return await save_as(app, caller, await clone_of(app, reference, new), author=author, draft=True)


async def delete_as(app: Pointsman, caller: Caller, workflow: str, *, after: int | None = None) -> None:
    """Hide it. What has an owner only they and admins delete. `after`: the revision it must be at.

    Raises `UnknownWorkflow`, `NotAllowed`, `RevisionMoved`.
    """
    await must_see_workflow(app, caller, workflow)
    if (await sharing_of(app, workflow)).owner:
        await must_own(app, caller, workflow.partition("@")[0], "delete it")
    await delete_workflow(app, workflow, after=after)


async def _is_new(app: Pointsman, workflow: str) -> bool:
    """Nothing was ever saved under this id, and nobody claims it: what was there without an owner stays everyone's."""
    return await sharing_of(app, workflow) is EVERYONES and not await app.workflows(workflow)
