"""Saved and built-in workflows as one library, with the interface of `Workflows`."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import ClassVar

from pointsman.errors import CallerError
from pointsman.store.api import Workflows
from pointsman.store.records import SavedWorkflow, WorkflowDraft, WorkflowEntry, names_in, tags_in
from pointsman.values import WorkflowId
from pointsman.workflows.builtin.documents import IDS, PREFIX, is_built_in, shipped
from pointsman.workflows.sources import draft_of

REVISION = 1
"""The revision of every built-in workflow. A new version of the product may ship other definitions; executions keep the
one that they started with."""


class BuiltIn(CallerError):
    """Built-in workflows cannot be changed, replaced or deleted."""

    code: ClassVar[str] = "built-in-workflow"


class WithShelf:
    """The `Workflows` of a store, extended by the built-in workflows. A built-in workflow never hides a saved one."""

    def __init__(self, saved: Workflows, language: str) -> None:
        """`language`: the language of names in lists."""
        self._saved = saved
        self._language = language

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        """Save as `Workflows.save` does. Raises `BuiltIn`."""
        if is_built_in(draft.id):
            raise read_only(draft.id)
        return await self._saved.save(draft, after=after)

    async def find(self, reference: str) -> SavedWorkflow | None:
        """Find as `Workflows.find` does."""
        if not is_built_in(reference):
            return await self._saved.find(reference)
        workflow, at, which = reference.partition("@")
        found = _on_shelf(workflow, self._language)
        if found is None or (at and which not in (str(REVISION), found.draft.version)):
            return None
        return found

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        """List as `Workflows.list` does: the saved workflows, then the built-in ones."""
        if workflow is None:
            shelf = [_on_shelf(one, self._language) for one in IDS]
            return [*await self._saved.list(), *(_entry(one) for one in shelf if one is not None)]
        if not is_built_in(workflow):
            return await self._saved.list(workflow)
        found = _on_shelf(workflow, self._language)
        return [] if found is None else [_entry(found)]

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        """Delete as `Workflows.delete` does. Raises `BuiltIn`."""
        if workflow in IDS:
            raise read_only(workflow)
        return await self._saved.delete(workflow, after=after)


def read_only(workflow: str) -> BuiltIn:
    """Return the error for an attempt to change a built-in workflow or to use the prefix of their ids."""
    if workflow in IDS:
        hint = f"Clone it, and change that: pointsman workflows clone {workflow} my-{workflow.removeprefix(PREFIX)}"
        return BuiltIn(f"{workflow!r} is built in: it is read-only", hint=hint)
    hint = "Take another id."
    return BuiltIn(f"ids that begin with {PREFIX!r} are those of built-in workflows, {workflow!r} too", hint=hint)


@cache
def _on_shelf(workflow: str, language: str) -> SavedWorkflow | None:
    source = shipped(workflow)
    if source is None:
        return None
    draft = draft_of(source, language)
    return SavedWorkflow(draft=draft, revision=REVISION, digest=sha256(draft.text.encode()).hexdigest())


def _entry(found: SavedWorkflow) -> WorkflowEntry:
    draft = found.draft
    return WorkflowEntry(
        id=draft.id,
        revision=found.revision,
        name=draft.name,
        version=draft.version,
        dialect=draft.dialect,
        created=draft.created,
        author=draft.author,
        digest=found.digest,
        description=draft.native.get("description"),
        tags=tags_in(draft.native.get("tags")),
        names=names_in(draft.native.get("name")),
    )
