"""Owners of triggers: a trigger starts its workflow only while its owner may execute it.

A schedule that was added belongs to the person who added it. A trigger that a document declares belongs to the author
of the latest revision. The owner's rights are checked each time the trigger is about to start something.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pointsman.auth.callers import Caller
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.executions.authority import may_execute
from pointsman.workflows.authors import Party, all_of, authors_of
from pointsman.workflows.library import LIBRARY


class TriggerStopped(CallerError):
    """The trigger starts nothing, because its owner may not execute its workflow (any more)."""

    code: ClassVar[str] = "trigger-stopped"


async def owner_for(app: AppContext, owners: Iterable[Party], workflow: str) -> Caller:
    """Return the owner of a trigger as the caller that it starts a workflow for. Raises `TriggerStopped`."""
    people = tuple(owners)
    owner = await all_of(app, people)
    if not await may_execute(app, owner, workflow):
        names = ", ".join(sorted({repr(one.name) for one in people}))
        raise TriggerStopped(
            f"its owner {names} may not execute the workflow {workflow!r} any more",
            hint="Give the owner the role and the sharing again, or let somebody who has them own it: save the "
            "workflow, or add the schedule, as them.",
        )
    return owner


async def author_for(app: AppContext, workflow: str) -> Caller:
    """Return the owner of a trigger that a saved document declares, as `owner_for` does. Raises
    `UnknownWorkflow` too."""
    return await owner_for(app, await authors_of(app, await app[LIBRARY].found(workflow)), workflow)


async def why_stopped(app: AppContext, workflow: str) -> str | None:
    """Return why the triggers that a document declares start nothing; None if they work."""
    try:
        await author_for(app, workflow)
    except CallerError as why:
        return str(why)
    return None
