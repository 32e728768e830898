"""Saved workflows in PostgreSQL: revisions that never change."""

from __future__ import annotations

import hashlib
from typing import Final, LiteralString, cast

import msgspec

from pointsman.store.codec import encode_json
from pointsman.store.errors import RevisionMoved
from pointsman.store.postgres.connections import Connection, Connections, alone
from pointsman.store.records import SavedWorkflow, WorkflowDraft, WorkflowEntry, names_in, revision_named, tags_in
from pointsman.values import Instant, Json, WorkflowId

LISTED: Final = "id, revision, name, version, dialect, created, author, digest, enabled"
WHOLE: Final = f"{LISTED}, text, native"
SAID: Final = """
    (SELECT json_build_array(said->'description', said->'tags', said->'name')::text
     FROM (SELECT convert_from(native, 'UTF8')::json AS said) AS document)
"""
LATEST: Final = f"""
    SELECT DISTINCT ON (id) {LISTED}, {SAID} FROM workflows
    WHERE id NOT IN (SELECT id FROM deleted_workflows) ORDER BY id, revision DESC
"""
REVISIONS: Final = f"SELECT {LISTED}, {SAID} FROM workflows WHERE id = %s ORDER BY revision DESC"
NEWEST: Final = f"SELECT {WHOLE} FROM workflows WHERE id = %s ORDER BY revision DESC LIMIT 1"
INSERT: Final = f"INSERT INTO workflows ({WHOLE}) VALUES (%b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)"

EntryRow = tuple[str, int, str, str, str, float, str, str, bool, str]
WholeRow = tuple[str, int, str, str, str, float, str, str, bool, str, bytes]


class PostgresWorkflows:
    """One row per revision; a deleted id is listed in a table of its own."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        native = encode_json(draft.native)
        digest = hashlib.sha256(draft.text.encode()).hexdigest()
        return await self._connections.write(lambda connection: save(connection, draft, native, digest, after))

    async def find(self, reference: str) -> SavedWorkflow | None:
        found = await self._connections.read(lambda connection: find(connection, reference))
        return None if found is None else saved_of(found)

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        async def query(connection: Connection) -> list[WorkflowEntry]:
            cursor = await (
                connection.execute(LATEST) if workflow is None else connection.execute(REVISIONS, (workflow,))
            )
            return [entry_of(cast("EntryRow", row)) for row in await cursor.fetchall()]

        return await self._connections.read(query)

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        async def work(connection: Connection) -> bool:
            if after is not None:
                await must_be_at(connection, workflow, after)
            cursor = await connection.execute(
                "INSERT INTO deleted_workflows (id) SELECT DISTINCT id FROM workflows WHERE id = %s"
                " ON CONFLICT DO NOTHING",
                (workflow,),
            )
            return cursor.rowcount == 1

        return await self._connections.write(work)


async def save(
    connection: Connection, draft: WorkflowDraft, native: bytes, digest: str, after: int | None
) -> SavedWorkflow:
    await alone(connection, "workflow", draft.id)
    latest = await one(
        connection, f"SELECT {WHOLE} FROM workflows WHERE id = %s ORDER BY revision DESC LIMIT 1", draft.id
    )
    deleted = await is_deleted(connection, draft.id)
    now = 0 if latest is None or deleted else latest[1]
    if after is not None and after != now:
        raise RevisionMoved.of(draft.id, now)
    if latest is not None and not deleted and (latest[7], latest[3]) == (digest, draft.version):
        return saved_of(latest)
    revision = latest[1] + 1 if latest is not None else 1
    await connection.execute(
        INSERT,
        (
            draft.id,
            revision,
            draft.name,
            draft.version,
            draft.dialect,
            draft.created,
            draft.author,
            digest,
            draft.native.get("enabled") is not False,
            draft.text,
            native,
        ),
    )
    await connection.execute("DELETE FROM deleted_workflows WHERE id = %s", (draft.id,))
    return SavedWorkflow(draft=draft, revision=revision, digest=digest)


async def must_be_at(connection: Connection, workflow: WorkflowId, after: int) -> None:
    """Raises `RevisionMoved`. Nobody saves it until the transaction ends."""
    await alone(connection, "workflow", workflow)
    latest = await one(
        connection, f"SELECT {WHOLE} FROM workflows WHERE id = %s ORDER BY revision DESC LIMIT 1", workflow
    )
    now = 0 if latest is None or await is_deleted(connection, workflow) else latest[1]
    if after != now:
        raise RevisionMoved.of(workflow, now)


async def find(connection: Connection, reference: str) -> WholeRow | None:
    name, _, wanted = reference.partition("@")
    narrowing: LiteralString = ""
    values: list[str | int] = [name]
    if (revision := revision_named(wanted)) is not None:
        narrowing = "AND revision = %s::numeric"
        values.append(revision)
    elif await is_deleted(connection, name):
        return None
    elif wanted:
        narrowing = "AND version = %s"
        values.append(wanted)
    statement: LiteralString = f"SELECT {WHOLE} FROM workflows WHERE id = %s {narrowing} ORDER BY revision DESC LIMIT 1"
    return await one(connection, statement, *values)


async def one(connection: Connection, statement: LiteralString, *values: str | int) -> WholeRow | None:
    return cast("WholeRow | None", await (await connection.execute(statement, values)).fetchone())


async def is_deleted(connection: Connection, workflow: str) -> bool:
    cursor = await connection.execute("SELECT 1 FROM deleted_workflows WHERE id = %s", (workflow,))
    return await cursor.fetchone() is not None


def saved_of(row: WholeRow) -> SavedWorkflow:
    identifier, revision, name, version, dialect, created, author, digest, _, text, native = row
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
    identifier, revision, name, version, dialect, created, author, digest, enabled, said = row
    description, tags, called = msgspec.json.decode(said, type=tuple[Json, Json, Json])
    return WorkflowEntry(
        id=WorkflowId(identifier),
        revision=revision,
        name=name,
        version=version,
        dialect=dialect,
        created=Instant(created),
        author=author,
        digest=digest,
        enabled=enabled,
        description=description,
        tags=tags_in(tags),
        names=names_in(called),
    )
