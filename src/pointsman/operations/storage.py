"""Operations on stored data, such as `app.storage.delete(…)`, and retention, which deletes old and unused data."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pointsman.arguments import checks_arguments
from pointsman.auth.people import LOGINS
from pointsman.context import AppContext
from pointsman.engine.state import ENDED
from pointsman.executions import deletion
from pointsman.executions.deletion import PAGE, ExecutionUnfinished, delete_with_children, summaries, with_children
from pointsman.executions.fork_migrate_replay import interrupted, undo_interrupted
from pointsman.executions.opening import IdempotencyKeys, finish_last_turn, new_id, open_turn
from pointsman.operations.archive import archived_files
from pointsman.operations.export_import import export, import_file
from pointsman.settings import Settings
from pointsman.settings.sections import RetentionRule
from pointsman.store.records import Conversation, ExecutionQuery, Summary
from pointsman.values import ExecutionId, JsonObject

if TYPE_CHECKING:
    from pointsman.operations.backup import Backup


@checks_arguments
class Storage:
    """Operations on the data in an app's store."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def delete(self, *executions: str) -> list[ExecutionId]:
        """Delete ended executions permanently, with their sub-workflows. Return the ids of all deleted executions. All
        are deleted, or none if one is unknown or has not ended."""
        return await deletion.delete(self._app, executions)

    async def delete_session(self, session: str) -> list[ExecutionId]:
        """Delete a conversation permanently, with its executions. Return their ids."""
        return await deletion.delete_session(self._app, session)

    async def conversation(self, session: str) -> Conversation:
        """Return the messages of a session; empty and open if the session is unknown."""
        await finish_last_turn(self._app.runtime, session)
        return await self._app.store.sessions.load(session)

    async def open_turn(self, session: str) -> ExecutionId | None:
        """Return the turn of a conversation that is running or waiting."""
        return await open_turn(self._app.runtime, session)

    async def reopen(self, session: str) -> None:
        """Reopen a conversation that an agent closed."""
        await self._app.store.sessions.close(session, closed=False)

    async def collect(self, *, dry_run: bool = False) -> Collected:
        """Delete what the `retention` settings do not keep, and what is not used any more."""
        return await collect(self._app, dry_run=dry_run)

    def export(self, execution: str) -> AsyncIterator[bytes]:
        """Yield the lines of an export file of an execution. Raises `UnknownExecution` at the first line."""
        return export(self._app, execution)

    async def left_out(self, execution: str) -> list[JsonObject]:
        """Return the files of an execution and its sub-workflows that are too large for its export."""
        top = await deletion.existing_summary(self._app, ExecutionId(execution))
        members = [child.execution async for child in deletion.with_children(self._app, top)]
        return [
            {"executionId": file.execution, "path": file.path, "bytes": file.bytes}
            for file in await archived_files(self._app, members)
            if not file.goes
        ]

    async def bring_in(self, path: Path, *, name: ExecutionId | None = None) -> ExecutionId:
        """Import an export file, under its own id or another one (see `new_id`). Return the id in this store."""
        return await import_file(self._app, path, name=name)

    async def back_up(self, path: Path) -> Backup:
        """Back up the whole store to a new file. Safe while other processes use the store."""
        from pointsman.operations import backup  # Deferred: most processes never need it.

        return await backup.back_up(self._app, path)

    async def restore(self, path: Path) -> Backup:
        """Restore a backup file into this store, which must be empty."""
        from pointsman.operations import backup  # As above.

        return await backup.restore(self._app, path)

    def new_id(self) -> ExecutionId:
        """Return a new execution id."""
        return new_id()

    async def compact(self) -> int:
        """Return the space of deleted data to the operating system, and remove its traces from the files. Return the
        bytes."""
        return await self._app.store.removal.compact()


@dataclass(frozen=True, slots=True)
class Collected:
    """What was deleted, or would be."""

    executions: tuple[ExecutionId, ...]
    blobs: int
    blob_bytes: int
    copies: int
    """Interrupted forks and imports."""
    memories: int
    """Expired memory values."""
    logins: int
    """Expired browser logins."""
    keys: int
    """Expired idempotency keys with their stored answers, which are kept for a day."""
    given_back: int
    """Bytes by which the store's files shrank."""
    dry_run: bool

    def to_json(self) -> JsonObject:
        return {
            "dryRun": self.dry_run,
            "executions": [*self.executions],
            "blobs": self.blobs,
            "blobBytes": self.blob_bytes,
            "copies": self.copies,
            "memories": self.memories,
            "logins": self.logins,
            "idempotencyKeys": self.keys,
            "bytesGivenBack": self.given_back,
        }


async def collect(app: AppContext, *, dry_run: bool = False) -> Collected:
    """Delete what retention does not keep. Safe while a server runs, and idempotent after a crash."""
    await app.settings.refresh()
    deleted: list[ExecutionId] = []
    # All are collected before any is deleted, because deletions would change the count of the newest ones.
    for top in [one async for one in expired(app)]:
        members = [child async for child in with_children(app, top)]
        if any(member.status not in ENDED for member in members):
            continue  # A detached sub-workflow is still running.
        if dry_run:
            deleted += [member.execution for member in members]
            continue
        try:
            deleted += await delete_with_children(app, members)
        except ExecutionUnfinished:
            continue  # It was resumed meanwhile.
    copies = len(await interrupted(app)) if dry_run else await undo_interrupted(app)
    memories = await app.store.memory.purge(app.clock.now(), dry_run=dry_run)
    logins = 0 if dry_run else await app[LOGINS].purge()
    keys = await IdempotencyKeys(app.store.entries, app.clock).purge(dry_run=dry_run)
    swept = await app.store.removal.sweep(dry_run=dry_run)
    given_back = 0 if dry_run else await app.store.removal.compact()
    return Collected(tuple(deleted), swept.blobs, swept.bytes, copies, memories, logins, keys, given_back, dry_run)


async def expired(app: AppContext) -> AsyncIterator[Summary]:
    """Yield top-level executions that exceed the age or the number that the settings keep."""
    now = app.clock.now()
    newer: Counter[tuple[str, str]] = Counter()
    query = ExecutionQuery(statuses=frozenset(ENDED), limit=PAGE)
    async for summary in summaries(app, query):
        if summary.parent is not None and await app.store.executions.find(summary.parent) is not None:
            continue
        keep = retention_rule(app.settings, summary)
        newer[summary.workflow, summary.status] += 1
        if keep is None:
            continue
        old = keep.age is not None and summary.updated < now - keep.age.seconds
        if old or (keep.count is not None and newer[summary.workflow, summary.status] > keep.count):
            yield summary


def retention_rule(settings: Settings, summary: Summary) -> RetentionRule | None:
    """Return the retention rule of an execution: that of its workflow, else the general one. None: kept for ever."""
    kept = settings.current.retention
    own = kept.workflows.get(summary.workflow)
    own_rule = getattr(own, summary.status, None) if own is not None else None
    return own_rule if own_rule is not None else getattr(kept, summary.status, None)
