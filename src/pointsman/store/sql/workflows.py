"""Saved workflows: one row for each revision, which never changes. A deleted id is listed in a table of its own."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, Final, LiteralString, TypeAlias

import msgspec

from pointsman.store.codec import encode_json
from pointsman.store.errors import RevisionMoved
from pointsman.store.records import SavedWorkflow, WorkflowDraft, WorkflowEntry, names_in, revision_named, tags_in
from pointsman.store.sql.work import Database, Lock, Statement, Work, first, marks
from pointsman.values import Instant, Json, WorkflowId

ENTRY: Final = "id, revision, name, version, dialect, created, author, digest"
WHOLE: Final = f"{ENTRY}, text, native"
INSERT: Final = f"INSERT INTO workflows ({WHOLE}) VALUES ({marks(10)})"
NEWEST: Final = f"SELECT {WHOLE} FROM workflows WHERE id = %s"
IS_DELETED: Final = "SELECT 1 FROM deleted_workflows WHERE id = %s"
LIVING: Final = (
    "id NOT IN (SELECT id FROM deleted_workflows)"
    " AND revision = (SELECT max(revision) FROM workflows WHERE id = w.id) ORDER BY id"
)

Columns: TypeAlias = tuple[Any, ...]


class SqlWorkflows:
    """`Workflows` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        return await self._database.write(partial(save, draft, encode_json(draft.native), after))

    async def find(self, reference: str) -> SavedWorkflow | None:
        return await self._database.read(partial(find, reference))

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        statement: LiteralString = (
            f"SELECT {ENTRY}, {self._database.dialect.workflow_fields} FROM workflows AS w WHERE "
        )
        if workflow is None:
            return await self._database.read(partial(list_entries, Statement(statement + LIVING)))
        revisions = Statement(f"{statement}id = %s ORDER BY revision DESC", (workflow,))
        return await self._database.read(partial(list_entries, revisions))

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        return await self._database.write(partial(delete, workflow, after))


def save(draft: WorkflowDraft, native: bytes, after: int | None) -> Work[SavedWorkflow]:
    """Add a revision, unless the latest one has the same text and version. Raises `RevisionMoved`."""
    yield Lock(("workflow", draft.id))
    digest = hashlib.sha256(draft.text.encode()).hexdigest()
    latest = yield from newest(draft.id)
    deleted = yield from is_deleted(draft.id)
    now = 0 if latest is None or deleted else latest.revision
    if after is not None and after != now:
        raise RevisionMoved.of(draft.id, now)
    if latest is not None and not deleted and (latest.digest, latest.draft.version) == (digest, draft.version):
        return latest
    revision = latest.revision + 1 if latest is not None else 1
    about = (draft.id, revision, draft.name, draft.version, draft.dialect, draft.created, draft.author)
    yield Statement(INSERT, (*about, digest, draft.text, native))
    yield Statement("DELETE FROM deleted_workflows WHERE id = %s", (draft.id,))
    return SavedWorkflow(draft=draft, revision=revision, digest=digest)


def find(reference: str) -> Work[SavedWorkflow | None]:
    """Find `id`, `id@3` or `id@1.2.0`; a deleted one by its revision only."""
    name, _, wanted = reference.partition("@")
    if (revision := revision_named(wanted)) is not None:
        return (yield from newest(name, " AND revision = %s", revision))
    if (yield from is_deleted(name)):
        return None
    if wanted:
        return (yield from newest(name, " AND version = %s", wanted))
    return (yield from newest(name))


def delete(workflow: WorkflowId, after: int | None) -> Work[bool]:
    yield Lock(("workflow", workflow))
    latest = yield from newest(workflow)
    now = 0 if latest is None or (yield from is_deleted(workflow)) else latest.revision
    if after is not None and after != now:
        raise RevisionMoved.of(workflow, now)
    if now:
        yield Statement("INSERT INTO deleted_workflows (id) VALUES (%s)", (workflow,))
    return now > 0


def newest(workflow: str, narrowing: LiteralString = "", *values: str | int) -> Work[SavedWorkflow | None]:
    found = yield from first(f"{NEWEST}{narrowing} ORDER BY revision DESC LIMIT 1", workflow, *values)
    return None if found is None else saved_of(found)


def is_deleted(workflow: str) -> Work[bool]:
    return (yield from first(IS_DELETED, workflow)) is not None


def list_entries(statement: Statement) -> Work[list[WorkflowEntry]]:
    found = yield statement
    return [entry_of(row) for row in found.rows]


def saved_of(row: Columns) -> SavedWorkflow:
    identifier, revision, name, version, dialect, created, author, digest, text, native = row
    draft = WorkflowDraft(
        id=WorkflowId(identifier),
        name=name,
        version=version,
        dialect=dialect,
        text=text,
        native=msgspec.json.decode(native, type=dict[str, Json]),
        created=Instant(created),
        author=author,
    )
    return SavedWorkflow(draft=draft, revision=revision, digest=digest)


def entry_of(row: Columns) -> WorkflowEntry:
    identifier, revision, name, version, dialect, created, author, digest, fields = row
    enabled, description, tags, names = msgspec.json.decode(fields, type=tuple[Json, Json, Json, Json])
    return WorkflowEntry(
        id=WorkflowId(identifier),
        revision=revision,
        name=name,
        version=version,
        dialect=dialect,
        created=Instant(created),
        author=author,
        digest=digest,
        enabled=enabled is not False,
        description=description,
        tags=tags_in(tags),
        names=names_in(names),
    )
