"""Saved workflows in SQLite: revisions that never change."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Final

import msgspec

from pointsman.store.codec import encode_json
from pointsman.store.errors import RevisionMoved
from pointsman.store.records import SavedWorkflow, WorkflowDraft, WorkflowEntry, names_in, revision_named, tags_in
from pointsman.store.sqlite.reader import Reader
from pointsman.store.sqlite.transaction import Transaction
from pointsman.store.sqlite.writer import Writer
from pointsman.values import Instant, Json, WorkflowId

ENTRY: Final = "id, revision, name, version, dialect, created, author, digest"
WHOLE: Final = f"{ENTRY}, text, native"
LISTED: Final = f"{ENTRY}, json_extract(CAST(native AS TEXT), '$.enabled', '$.description', '$.tags', '$.name')"
LATEST: Final = f"""
    SELECT {LISTED} FROM workflows AS w
    WHERE id NOT IN (SELECT id FROM deleted_workflows)
        AND revision = (SELECT max(revision) FROM workflows WHERE id = w.id)
    ORDER BY id
"""

EntryRow = tuple[str, int, str, str, str, float, str, str, str]
WholeRow = tuple[str, int, str, str, str, float, str, str, str, bytes]


class SqliteWorkflows:
    """One row per revision; a deleted id is listed in a table of its own."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._submit = writer.submit
        self._read = reader.run

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        native = encode_json(draft.native)
        digest = hashlib.sha256(draft.text.encode()).hexdigest()
        return await self._submit(lambda transaction: save(transaction, draft, native, digest, after))

    async def find(self, reference: str) -> SavedWorkflow | None:
        found = await self._read(lambda connection: find(connection, reference))
        return None if found is None else saved_of(found)

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        statement, values = LATEST, ()
        if workflow is not None:
            statement, values = f"SELECT {LISTED} FROM workflows WHERE id = ? ORDER BY revision DESC", (workflow,)
        rows: list[EntryRow] = await self._read(lambda connection: connection.execute(statement, values).fetchall())
        return [entry_of(row) for row in rows]

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        return await self._submit(lambda transaction: delete(transaction, workflow, after))


def save(
    transaction: Transaction, draft: WorkflowDraft, native: bytes, digest: str, after: int | None
) -> SavedWorkflow:
    latest: WholeRow | None = transaction.execute(
        f"SELECT {WHOLE} FROM workflows WHERE id = ? ORDER BY revision DESC LIMIT 1", (draft.id,)
    ).fetchone()
    deleted = is_deleted(transaction.connection, draft.id)
    now = 0 if latest is None or deleted else latest[1]
    if after is not None and after != now:
        raise RevisionMoved.of(draft.id, now)
    if latest is not None and not deleted and (latest[7], latest[3]) == (digest, draft.version):
        return saved_of(latest)
    revision = latest[1] + 1 if latest is not None else 1
    transaction.execute(
        f"INSERT INTO workflows ({WHOLE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            draft.id,
            revision,
            draft.name,
            draft.version,
            draft.dialect,
            draft.created,
            draft.author,
            digest,
            draft.text,
            native,
        ),
    )
    transaction.execute("DELETE FROM deleted_workflows WHERE id = ?", (draft.id,))
    return SavedWorkflow(draft=draft, revision=revision, digest=digest)


def find(connection: sqlite3.Connection, reference: str) -> WholeRow | None:
    name, _, wanted = reference.partition("@")
    narrowing, values = "", (name,)
    if (revision := revision_named(wanted)) is not None:
        narrowing, values = "AND revision = ?", (name, revision)
    elif is_deleted(connection, name):
        return None
    elif wanted:
        narrowing, values = "AND version = ?", (name, wanted)
    statement = f"SELECT {WHOLE} FROM workflows WHERE id = ? {narrowing} ORDER BY revision DESC LIMIT 1"
    return connection.execute(statement, values).fetchone()


def delete(transaction: Transaction, workflow: WorkflowId, after: int | None) -> bool:
    latest: tuple[int | None] = transaction.execute(
        "SELECT max(revision) FROM workflows WHERE id = ?", (workflow,)
    ).fetchone()
    now = 0 if is_deleted(transaction.connection, workflow) else latest[0] or 0
    if after is not None and after != now:
        raise RevisionMoved.of(workflow, now)
    if not now:
        return False
    transaction.execute("INSERT INTO deleted_workflows (id) VALUES (?)", (workflow,))
    return True


def is_deleted(connection: sqlite3.Connection, workflow: str) -> bool:
    return connection.execute("SELECT 1 FROM deleted_workflows WHERE id = ?", (workflow,)).fetchone() is not None


def saved_of(row: WholeRow) -> SavedWorkflow:
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


def entry_of(row: EntryRow) -> WorkflowEntry:
    identifier, revision, name, version, dialect, created, author, digest, said = row
    enabled, description, tags, called = msgspec.json.decode(said, type=tuple[Json, Json, Json, Json])
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
        names=names_in(called),
    )
