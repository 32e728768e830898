"""Saved workflows and their revisions: list, filter, sort, compare, publish, clone, delete."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import ClassVar, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_see_workflow
from pointsman.auth.sharing import folders_of, is_within, sharing_of
from pointsman.context import AppContext
from pointsman.definition.graph.analysis import GraphView
from pointsman.definition.problems import CheckReport, ProblemView, invalid
from pointsman.errors import CallerError
from pointsman.etags import etag_of
from pointsman.paging import has_words
from pointsman.store.errors import EntryMoved
from pointsman.store.errors import RevisionMoved as RevisionMoved
from pointsman.store.records import SavedWorkflow, WorkflowEntry
from pointsman.values import Instant, Json, WorkflowId
from pointsman.workflows.builtin import is_built_in, read_only, with_id
from pointsman.workflows.definitions import DECLARED_TRIGGERS, check, put_triggers, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.library import LIBRARY, disabled
from pointsman.workflows.sources import Workflow
from pointsman.workflows.versions import (
    NONE,
    VERSIONS,
    NamedVersion,
    NamedVersions,
    NamedVersionView,
    all_versions,
    must_be_valid,
    version_view,
    versions_of,
)


class RevisionFacts(TypedDict):
    """What every list shows of a saved workflow."""

    id: str
    revision: int
    names: dict[str, str] | None
    """By language, where the document has more than one."""
    version: str | None
    dialect: str
    builtIn: bool
    """Whether it is part of the product: read-only, to be run and cloned."""
    createdAt: float | None
    """Unix seconds; null: it is built in."""
    author: str
    digest: str
    enabled: bool
    tags: list[str]
    published: NamedVersionView | None
    """The version of the workflow that runs by id; null: none is published, and the newest revision runs."""
    label: NamedVersionView | None
    """The name of this revision; null: it has none."""
    folder: str
    """The path of its folder; empty: it lies in none."""


class WorkflowEntryView(RevisionFacts):
    """A saved workflow in a list."""

    name: str
    description: Json
    """A text, or one by language; null: there is none."""


class WorkflowRevisions(TypedDict):
    """The revisions of a saved workflow, newest first."""

    workflows: list[WorkflowEntryView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


class SavedRevision(TypedDict):
    """A revision that was saved."""

    id: str
    revision: int
    digest: str


class PatchedRevision(SavedRevision):
    """A revision that was saved, and what its text does not keep."""

    losses: list[str]


class WorkflowView(WorkflowEntryView):
    """A saved workflow with its document."""

    document: Json
    text: str
    """As its author wrote it."""
    problems: list[ProblemView]


class WrittenWorkflow(TypedDict):
    """A workflow in another dialect, and what that cannot express."""

    document: Json
    losses: list[ProblemView]
    graph: GraphView | None
    """Regions and implied edges, for a picture; only of the native dialect."""


class DocumentCheck(CheckReport):
    """The findings about a document, and the workflow that saving it would change."""

    id: str | None
    """The id under which it would be saved; null: it cannot be read."""
    revision: int | None
    """The latest revision of that id that the caller may see: saving makes the next one; null: none yet."""


class NoSuchRevision(CallerError):
    """The saved workflow does not have this revision."""

    code = "no-such-revision"


async def list_workflows(
    app: AppContext, workflow: str | None = None, *, include_disabled: bool = False, built_in: bool | None = None
) -> list[WorkflowEntryView]:
    """Return the latest revision of each workflow, saved ones first; with `workflow` all its revisions, newest first.

    Disabled workflows are omitted unless `include_disabled`. `built_in`: only built-in workflows, or only the others.
    """
    entries = await app[LIBRARY].workflows.list(None if workflow is None else WorkflowId(workflow))
    if workflow is not None and not entries:
        await app[LIBRARY].found(workflow)  # Raises with the known names.
    versions = await all_versions(app.store.entries) if workflow is None else {}
    if workflow is not None:
        versions[workflow] = await versions_of(app.store.entries, workflow)
    if workflow is None:
        folders = await folders_of(app.store.entries)
    else:
        folders = {workflow: (await sharing_of(app, workflow)).folder}
    views = [entry_view(entry, versions.get(entry.id, NONE), folders.get(entry.id, "")) for entry in entries]
    if workflow is not None:
        return views
    shown = [view for view in views if include_disabled or view["enabled"]]
    return [one for one in shown if built_in is None or one["builtIn"] is built_in]


def entry_view(entry: WorkflowEntry, versions: NamedVersions, folder: str) -> WorkflowEntryView:
    published, label = versions.of(versions.published), versions.of(entry.revision)
    return {
        "id": entry.id,
        "revision": entry.revision,
        "name": entry.name,
        "names": None if entry.names is None else {**entry.names},
        "version": entry.version or None,
        "dialect": entry.dialect,
        "builtIn": is_built_in(entry.id),
        "createdAt": None if is_built_in(entry.id) else entry.created,
        "author": entry.author,
        "digest": entry.digest,
        "enabled": entry.enabled,
        "description": entry.description,
        "tags": [*entry.tags],
        "published": None if published is None else version_view(published),
        "label": None if label is None else version_view(label),
        "folder": folder,
    }


def shown_revisions(entry: WorkflowEntryView) -> set[int]:
    """Return the newest and the published revision of a list entry."""
    return {entry["revision"], (entry["published"] or entry)["revision"]}


def saved_view(saved: SavedWorkflow) -> SavedRevision:
    return {"id": saved.draft.id, "revision": saved.revision, "digest": saved.digest}


def etag_of_revision(entry: WorkflowEntryView | SavedRevision) -> str:
    """Return the ETag of a revision of a workflow."""
    return etag_of(f"{entry['revision']}-{entry['digest'][:16]}")


def workflow_sort_key(entry: WorkflowEntryView) -> str:
    """Return the sort key of lists of workflows: the saved ones by id, then the built-in ones."""
    return f"{1 if entry['builtIn'] else 0} {entry['id']}"


async def diff_revisions(app: AppContext, workflow: str, old: int | None, new: int | None, *, by: str = "") -> str:
    """Return the line differences of the authors' documents of two revisions, by default the latest two."""
    revisions = [entry.revision for entry in await app[LIBRARY].workflows.list(WorkflowId(workflow))]
    if not revisions:
        await app[LIBRARY].found(workflow)
    to = new if new is not None else revisions[0]
    since = old if old is not None else max((r for r in revisions if r < to), default=to)
    sources: list[Workflow] = []
    for revision in (since, to):
        if revision not in revisions:
            listed = ", ".join(map(str, revisions))
            raise NoSuchRevision(f"{workflow!r} has no revision {revision}", hint=f"It has {listed}.")
        sources.append(await source_of_saved(app, f"{workflow}@{revision}"))
    names, chars = (f"{workflow}@{since}", f"{workflow}@{to}"), sum(source.chars for source in sources)
    return await app[DOCUMENTS].run(line_differences, *sources, *names, by=by, chars=chars)


def line_differences(old: Workflow, new: Workflow, old_name: str, new_name: str) -> str:
    """Job: return the line differences of two documents."""
    before, after = (one.document.text.splitlines(keepends=True) for one in (old, new))
    return "".join(difflib.unified_diff(before, after, old_name, new_name))


async def old_revision(app: AppContext, workflow: str, revision: int) -> Workflow:
    """Return the document of a revision. Raises `UnknownWorkflow`, `NoSuchRevision`."""
    revisions = [entry.revision for entry in await app.store.workflows.list(WorkflowId(workflow))]
    if not revisions:
        await app[LIBRARY].found(workflow)
    if revision not in revisions:
        raise NoSuchRevision(
            f"{workflow!r} has no revision {revision}", hint=f"Revisions: {', '.join(map(str, revisions[:20]))}."
        )
    return await source_of_saved(app, f"{workflow}@{revision}")


async def delete_workflow(app: AppContext, workflow: str, *, after: int | None = None) -> None:
    """Delete a workflow. Executions keep their pinned definitions; saving restores the workflow. `after`: the revision
    that it must be at. Raises `UnknownWorkflow`, `RevisionMoved`, `NoSuchRevision` for a reference to one revision."""
    if "@" in workflow:
        raise NoSuchRevision(
            f"{workflow!r} is one revision; only a whole workflow can be deleted",
            hint=f"Omit the revision: {workflow.partition('@')[0]}.",
        )
    if not await app[LIBRARY].workflows.delete(WorkflowId(workflow), after=after):
        await app[LIBRARY].found(workflow)
    await app[DECLARED_TRIGGERS].drop(workflow)
    await change_versions(app, workflow, lambda versions: replace(versions, published=0))


async def publish_version(
    app: AppContext, caller: Caller, workflow: str, revision: int, *, name: str, note: str = ""
) -> NamedVersion:
    """Name a revision, and let it run by id from now on, also for triggers, forms and other workflows.

    Executions keep theirs. A revision that has a name gets this one instead. Raises `UnknownWorkflow`,
    `NoSuchRevision`, `Disabled`, `WorkflowInvalid` for a revision with errors, `VersionInvalid`, `VersionNameTaken`,
    `WebhookTaken`, `BuiltIn`.
    """
    if is_built_in(workflow):
        raise read_only(workflow)
    must_be_valid(name, note)
    source = await old_revision(app, workflow, revision)
    await must_see_workflow(app, caller, f"{workflow}@{revision}")
    checked = await check(app, source, reader=caller)
    if not checked.ok:
        raise invalid(checked.problems)
    if source.head.enabled is False:
        raise disabled(workflow)
    await app[DECLARED_TRIGGERS].check(source.head)
    version = NamedVersion(revision=revision, name=name, note=note, at=Instant(app.clock.now()), by=caller.name)
    await change_versions(app, workflow, lambda versions: versions.with_published(version))
    await put_triggers(app, workflow)
    return version


async def unpublish_version(app: AppContext, workflow: str) -> None:
    """Let the newest revision run by id again. Names stay. Idempotent."""
    await change_versions(app, workflow, lambda versions: replace(versions, published=0))
    await put_triggers(app, workflow)


async def change_versions(app: AppContext, workflow: str, change: Callable[[NamedVersions], NamedVersions]) -> None:
    """Replace the named versions of a workflow; `change` is called again if another caller changed them meanwhile."""
    entries = app.store.entries
    while True:
        entry = await entries.find(VERSIONS, workflow)
        before = NONE if entry is None else msgspec.convert(entry.value, NamedVersions)
        after = change(before)
        if after == before:
            return
        with suppress(EntryMoved):
            await entries.put(VERSIONS, workflow, msgspec.to_builtins(after), after=entry.version if entry else 0)
            return


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
        raise WorkflowExists(
            f"the workflow {new!r} already exists", hint="Choose another id for the clone, or delete that workflow."
        )
    return clone


Entry = TypeVar("Entry", bound=WorkflowEntryView)
Sort: TypeAlias = Literal["id", "name", "saved"]
NAME_CHARS: Final = 300
"""Characters of a name that determine its order; a bound for the length of list cursors."""


def _by_name(entry: WorkflowEntryView) -> str:
    return f"{entry['name'].casefold()[:NAME_CHARS]}\t{entry['id']}"


def _by_saving(entry: WorkflowEntryView) -> str:
    return f"{entry['createdAt'] or 0.0:020.6f} {entry['id']}"


PLACES: Final[dict[Sort, Callable[[WorkflowEntryView], str]]] = {
    "id": workflow_sort_key,
    "name": _by_name,
    "saved": _by_saving,
}
"""Sort key -> position of an entry in the list. Each position ends with the id, so that entries with equal keys have
distinct positions and no page omits one."""


def fitting(
    entries: Iterable[Entry],
    *,
    words: str = "",
    tags: Collection[str] = (),
    ids: Collection[str] | None = None,
    folder: str = "",
) -> list[Entry]:
    """Return the entries that contain all `words` in id, name, description, tags or folder, and have all `tags`. `ids`
    limits the result to these workflows, `folder` to those in this folder and the folders in it."""
    return [
        entry
        for entry in entries
        if (ids is None or entry["id"] in ids)
        and set(tags) <= set(entry["tags"])
        and (not folder or is_within(entry["folder"], folder))
        and has_words(
            words, entry["id"], entry["name"], entry["names"], entry["description"], entry["tags"], entry["folder"]
        )
    ]
