"""Saved workflows and their revisions: listed, compared, deleted."""

from __future__ import annotations

import difflib

from pointsman.app.installation import Pointsman
from pointsman.errors import CallerError
from pointsman.journal.faults import RevisionMoved as RevisionMoved
from pointsman.journal.records import WorkflowEntry
from pointsman.values import JsonObject, WorkflowId


class NoSuchRevision(CallerError):
    """A saved workflow does not have that revision."""

    code = "no-such-revision"


async def list_workflows(
    app: Pointsman, workflow: str | None = None, *, include_disabled: bool = False
) -> list[JsonObject]:
    """The latest revision of each saved workflow that is not switched off; or all revisions of one, newest first."""
    entries = await app.workflows(workflow)
    if workflow is None and not include_disabled:
        entries = [entry for entry in entries if entry.enabled]
    if workflow is not None and not entries:
        await app.library.saved(workflow)  # raises, with the names that are known
    return [entry_view(entry) for entry in entries]


def entry_view(entry: WorkflowEntry) -> JsonObject:
    return {
        "id": entry.id,
        "revision": entry.revision,
        "name": entry.name,
        "version": entry.version or None,
        "dialect": entry.dialect,
        "createdAt": entry.created,
        "author": entry.author,
        "digest": entry.digest,
        "enabled": entry.enabled,
    }


async def diff_revisions(app: Pointsman, workflow: str, old: int | None, new: int | None) -> str:
    """The authors' documents of two revisions compared line by line; absent: the latest two."""
    revisions = [entry.revision for entry in await app.workflows(workflow)]
    if not revisions:
        await app.library.saved(workflow)
    to = new if new is not None else revisions[0]
    since = old if old is not None else max((r for r in revisions if r < to), default=to)
    texts: list[list[str]] = []
    for revision in (since, to):
        if revision not in revisions:
            known = ", ".join(map(str, revisions))
            raise NoSuchRevision(f"{workflow!r} has no revision {revision}", hint=f"It has {known}.")
        texts.append((await app.source(f"{workflow}@{revision}")).document.text.splitlines(keepends=True))
    names = (f"{workflow}@{since}", f"{workflow}@{to}")
    return "".join(difflib.unified_diff(texts[0], texts[1], *names))


async def delete_workflow(app: Pointsman, workflow: str) -> None:
    """Hide it: executions keep what they are pinned to, saving brings it back. Raises `UnknownWorkflow`."""
    if "@" in workflow:
        raise NoSuchRevision(
            f"{workflow!r} is one revision, and a workflow is deleted as a whole",
            hint=f"Name it without the revision: {workflow.partition('@')[0]}.",
        )
    if not await app.store.workflows.delete(WorkflowId(workflow)):
        await app.library.saved(workflow)
    await app.triggers.drop(workflow)
