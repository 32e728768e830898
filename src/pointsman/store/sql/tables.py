"""Tables of both SQL stores that need few statements: workflows, configuration, conversations, recorded effects."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, Final, LiteralString, NamedTuple, TypeAlias

import msgspec

from pointsman.caches import BoundedCache
from pointsman.store.codec import decode_json, encode_json
from pointsman.store.compression import PACKED_BYTES_MAX, Packed, large_values, pack
from pointsman.store.errors import EntryMoved, RevisionMoved, SessionClosed, SessionMoved
from pointsman.store.records import (
    ConfigEntry,
    Conversation,
    SavedWorkflow,
    WorkflowDraft,
    WorkflowEntry,
    names_in,
    revision_named,
    tags_in,
)
from pointsman.store.sql.work import (
    NO_LIMIT,
    Database,
    KeepBlobs,
    Lock,
    Many,
    Statement,
    Work,
    count,
    first,
    marks,
    opened,
)
from pointsman.values import ExecutionId, Instant, Json, WorkflowId

REVISION: Final = "id, revision, name, version, dialect, created, author, digest"
WHOLE_REVISION: Final = f"{REVISION}, text, native"
INSERT_REVISION: Final = f"INSERT INTO workflows ({WHOLE_REVISION}) VALUES ({marks(10)})"
NEWEST_REVISION: Final = f"SELECT {WHOLE_REVISION} FROM workflows WHERE id = %s"
NEWEST_KEY: Final = "SELECT id, revision, digest FROM workflows WHERE id = %s"
NOT_DELETED: Final = " AND NOT EXISTS (SELECT 1 FROM deleted_workflows AS d WHERE d.id = workflows.id)"
IS_WORKFLOW_DELETED: Final = "SELECT 1 FROM deleted_workflows WHERE id = %s"
LIVING_WORKFLOWS: Final = (
    "id NOT IN (SELECT id FROM deleted_workflows)"
    " AND revision = (SELECT max(revision) FROM workflows WHERE id = w.id) ORDER BY id"
)

CACHED_CHARS_MAX: Final = 4_000_000
"""Sum of the texts of all cached revisions."""

Columns: TypeAlias = tuple[Any, ...]


class RevisionKey(NamedTuple):
    """Identity of a revision, which never changes."""

    id: str
    revision: int
    digest: str


class SqlWorkflows:
    """`Workflows` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached = BoundedCache[RevisionKey, SavedWorkflow](CACHED_CHARS_MAX, lambda saved: len(saved.draft.text))

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        return await self._database.write(partial(save_revision, draft, encode_json(draft.native), after))

    async def find(self, reference: str) -> SavedWorkflow | None:
        key = await self._database.read(partial(find_revision, reference), brief=True)
        if key is None:
            return None
        definition = self._cached.get(key)
        if definition is None:
            definition = await self._database.read(partial(read_revision, key))
            self._cached.put(key, definition)
        return definition

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        statement: LiteralString = (
            f"SELECT {REVISION}, {self._database.dialect.workflow_fields} FROM workflows AS w WHERE "
        )
        if workflow is None:
            return await self._database.read(partial(list_revisions, Statement(statement + LIVING_WORKFLOWS)))
        revisions = Statement(f"{statement}id = %s ORDER BY revision DESC", (workflow,))
        return await self._database.read(partial(list_revisions, revisions))

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        return await self._database.write(partial(delete_workflow, workflow, after))


def save_revision(draft: WorkflowDraft, native: bytes, after: int | None) -> Work[SavedWorkflow]:
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
    yield Statement(INSERT_REVISION, (*about, digest, draft.text, native))
    yield Statement("DELETE FROM deleted_workflows WHERE id = %s", (draft.id,))
    return SavedWorkflow(draft=draft, revision=revision, digest=digest)


def find_revision(reference: str) -> Work[RevisionKey | None]:
    """Find `id`, `id@3` or `id@1.2.0`; a deleted one by its revision only."""
    name, _, version = reference.partition("@")
    if (revision := revision_named(version)) is not None:
        return (yield from key_of(name, " AND revision = %s", revision))
    if version:
        return (yield from key_of(name, f"{NOT_DELETED} AND version = %s", version))
    return (yield from key_of(name, NOT_DELETED))


def key_of(workflow: str, narrowing: LiteralString = "", *values: str | int) -> Work[RevisionKey | None]:
    row = yield from first(f"{NEWEST_KEY}{narrowing} ORDER BY revision DESC LIMIT 1", workflow, *values)
    return None if row is None else RevisionKey(*row)


def read_revision(key: RevisionKey) -> Work[SavedWorkflow]:
    row = yield from newest(key.id, " AND revision = %s", key.revision)
    assert row is not None, "revisions are not removed"
    return row


def delete_workflow(workflow: WorkflowId, after: int | None) -> Work[bool]:
    yield Lock(("workflow", workflow))
    latest = yield from newest(workflow)
    now = 0 if latest is None or (yield from is_deleted(workflow)) else latest.revision
    if after is not None and after != now:
        raise RevisionMoved.of(workflow, now)
    if now:
        yield Statement("INSERT INTO deleted_workflows (id) VALUES (%s)", (workflow,))
    return now > 0


def newest(workflow: str, narrowing: LiteralString = "", *values: str | int) -> Work[SavedWorkflow | None]:
    row = yield from first(f"{NEWEST_REVISION}{narrowing} ORDER BY revision DESC LIMIT 1", workflow, *values)
    return None if row is None else saved_of(row)


def is_deleted(workflow: str) -> Work[bool]:
    return (yield from first(IS_WORKFLOW_DELETED, workflow)) is not None


def list_revisions(statement: Statement) -> Work[list[WorkflowEntry]]:
    result = yield statement
    return [entry_of(row) for row in result.rows]


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


FIND_ENTRY: Final = "SELECT version, value FROM entries WHERE kind = %s AND key = %s"
LIST_ENTRIES: Final = "SELECT version, value, key FROM entries WHERE kind = %s ORDER BY key"
DELETE_ENTRY: Final = "DELETE FROM entries WHERE kind = %s AND key = %s"


class SqlConfigStore:
    """`ConfigStore` of the SQL stores. Changes of one entry wait for each other."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, kind: str, key: str, value: Json, *, after: int | None = None) -> int:
        work = partial(put_entry, self._database.dialect.put_entry, kind, key, encode_json(value), after)
        # If repeated after a commit whose answer was lost, `after` would reject what this very call wrote.
        return await self._database.write(work, repeatable=after is None)

    async def find(self, kind: str, key: str) -> ConfigEntry | None:
        row = await self._database.read(partial(first, FIND_ENTRY, kind, key), brief=True)
        return None if row is None else ConfigEntry(kind=kind, key=key, value=decode_json(row[1]), version=row[0])

    async def list(self, kind: str) -> list[ConfigEntry]:
        return await self._database.read(partial(config_entries, kind))

    async def delete(self, kind: str, key: str, *, after: int | None = None) -> bool:
        return await self._database.write(partial(delete_entry, kind, key, after), repeatable=False)


def put_entry(statement: LiteralString, kind: str, key: str, data: bytes, after: int | None) -> Work[int]:
    """Write an entry and return its version."""
    yield from expect_version(kind, key, after)
    written = yield Statement(statement, (kind, key, data))
    return int(written.rows[0][0])


def config_entries(kind: str) -> Work[list[ConfigEntry]]:
    result = yield Statement(LIST_ENTRIES, (kind,))
    return [
        ConfigEntry(kind=kind, key=key, value=decode_json(data), version=version) for version, data, key in result.rows
    ]


def delete_entry(kind: str, key: str, after: int | None) -> Work[bool]:
    yield from expect_version(kind, key, after)
    return (yield Statement(DELETE_ENTRY, (kind, key))).changed > 0


def expect_version(kind: str, key: str, after: int | None) -> Work[None]:
    """Raise `EntryMoved` unless the entry has the version that its writer read; lock it."""
    yield Lock(("entry", kind, key))
    if after is None:
        return
    row = yield from first(FIND_ENTRY, kind, key)
    if after != (0 if row is None else row[0]):
        raise EntryMoved(f"{kind} {key!r} was changed meanwhile", hint="Read it again.")


MESSAGES: Final = "SELECT message FROM messages WHERE session = %s AND number > %s ORDER BY number LIMIT %s"
LAST_MESSAGE: Final = "SELECT coalesce(max(number), 0) FROM messages WHERE session = %s"
INSERT_MESSAGE: Final = "INSERT INTO messages (session, number, message) VALUES (%s, %s, %s)"
IS_SESSION_CLOSED: Final = "SELECT 1 FROM closed_sessions WHERE session = %s"
CLOSE_SESSION: Final = "INSERT INTO closed_sessions (session) VALUES (%s) ON CONFLICT DO NOTHING"
REOPEN_SESSION: Final = "DELETE FROM closed_sessions WHERE session = %s"
FORGET_SESSION: Final = "DELETE FROM messages WHERE session = %s"


class SqlSessions:
    """`Sessions` of the SQL stores. A closed session is listed in a table of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, session: str) -> Conversation:
        return await self._database.read(partial(load_conversation, session))

    async def append(self, session: str, messages: tuple[Json, ...], *, after: int) -> None:
        encoded = [encode_json(message) for message in messages]
        await self._database.write(partial(append_messages, session, encoded, after))

    async def close(self, session: str, *, closed: bool = True) -> None:
        await self._database.write(partial(close_session, session, closed=closed))

    async def forget(self, session: str) -> bool:
        return await self._database.write(partial(forget_session, session))


def load_conversation(session: str) -> Work[Conversation]:
    messages = yield from read_messages(session, 0)
    closed = yield from first(IS_SESSION_CLOSED, session)
    return Conversation(session=session, messages=tuple(map(decode_json, messages)), closed=closed is not None)


def read_messages(session: str, after: int, limit: int = NO_LIMIT) -> Work[list[bytes]]:
    result = yield Statement(MESSAGES, (session, after, limit))
    return [message for (message,) in result.rows]


def append_messages(session: str, messages: list[bytes], after: int) -> Work[None]:
    """Add messages behind number `after`, unless the same ones are there. Raises `SessionClosed`, `SessionMoved`."""
    yield Lock(("session", session))
    last = yield from count(LAST_MESSAGE, session)
    if last >= after + len(messages) and (yield from read_messages(session, after, len(messages))) == messages:
        return
    if (yield from first(IS_SESSION_CLOSED, session)) is not None:
        raise SessionClosed(f"session {session!r} is closed", hint="Reopen it, or start another one.")
    if last != after:
        raise SessionMoved(f"session {session!r} has {last} messages, not {after}")
    yield Many(INSERT_MESSAGE, [(session, number, message) for number, message in enumerate(messages, start=after + 1)])


def close_session(session: str, *, closed: bool) -> Work[None]:
    yield Lock(("session", session))
    yield Statement(CLOSE_SESSION if closed else REOPEN_SESSION, (session,))


def forget_session(session: str) -> Work[bool]:
    yield Lock(("session", session))
    yield Statement(REOPEN_SESSION, (session,))
    return (yield Statement(FORGET_SESSION, (session,))).changed > 0


RECORDED_EFFECTS: Final = "SELECT number, form, data FROM effects WHERE execution = %s AND attempt = %s ORDER BY number"
RECORDED_ATTEMPTS: Final = "SELECT DISTINCT attempt FROM effects WHERE execution = %s ORDER BY attempt"
RECORD_EFFECT: Final = (
    "INSERT INTO effects (execution, attempt, number, form, data) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)


class SqlEffects:
    """`Effects` of the SQL stores."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        await self._database.write(partial(record_effect, execution, attempt, number, packed_value(value)))

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]:
        return await self._database.read(partial(recorded_effects, execution, attempt))

    async def attempts(self, execution: ExecutionId) -> list[str]:
        return await self._database.read(partial(recorded_attempts, execution))


def packed_value(value: Json) -> Packed:
    """Encode and pack a value. Raises `UnstorableValue`."""
    plain = encode_json(value)
    return pack(plain, large_values((value,)) if len(plain) > PACKED_BYTES_MAX else ())


def record_effect(execution: ExecutionId, attempt: str, number: int, packed: Packed) -> Work[None]:
    """Store the answer of an effect, unless it has one."""
    if packed.blobs:
        yield KeepBlobs(execution, packed.blobs)
    yield Statement(RECORD_EFFECT, (execution, attempt, number, int(packed.form), packed.data))


def recorded_effects(execution: ExecutionId, attempt: str) -> Work[dict[int, Json]]:
    result = yield Statement(RECORDED_EFFECTS, (execution, attempt))
    answers: dict[int, Json] = {}
    for number, form, data in result.rows:
        answers[number] = decode_json((yield from opened(form, data)))
    return answers


def recorded_attempts(execution: ExecutionId) -> Work[list[str]]:
    result = yield Statement(RECORDED_ATTEMPTS, (execution,))
    return [attempt for (attempt,) in result.rows]
