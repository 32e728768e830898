"""Retention: deletes executions that ended long ago, and everything that is not used any more.

Executions are deleted only if the settings say so (`retention`). An execution that waits, however long, has not ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

from pointsman.auth.logins import LOGINS
from pointsman.context import AppContext
from pointsman.engine.state import ENDED
from pointsman.executions.copies import interrupted, undo_interrupted
from pointsman.executions.deletion import PAGE, ExecutionUnfinished, delete_family, family, summaries
from pointsman.executions.idempotency import IdempotencyKeys
from pointsman.settings import Settings
from pointsman.settings.sections import Keep
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, JsonObject


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
    gone: list[ExecutionId] = []
    # All are collected before any is deleted, because deletions would change the count of the newest ones.
    for top in [one async for one in expired(app)]:
        members = [one async for one in family(app, top)]
        if any(one.status not in ENDED for one in members):
            continue  # A detached sub-workflow is still running.
        if dry_run:
            gone += [one.execution for one in members]
            continue
        try:
            gone += await delete_family(app, members)
        except ExecutionUnfinished:
            continue  # It was resumed meanwhile.
    copies = len(await interrupted(app)) if dry_run else await undo_interrupted(app)
    memories = await app.store.memory.purge(app.clock.now(), dry_run=dry_run)
    logins = 0 if dry_run else await app[LOGINS].purge()
    keys = await IdempotencyKeys(app.store.entries, app.clock).purge(dry_run=dry_run)
    swept = await app.store.removal.sweep(dry_run=dry_run)
    given_back = 0 if dry_run else await app.store.removal.compact()
    return Collected(tuple(gone), swept.blobs, swept.bytes, copies, memories, logins, keys, given_back, dry_run)


async def expired(app: AppContext) -> AsyncIterator[Summary]:
    """Yield top-level executions that exceed the age or the number that the settings keep."""
    now = app.clock.now()
    newer: Counter[tuple[str, str]] = Counter()
    query = ExecutionQuery(statuses=frozenset(ENDED), limit=PAGE)
    async for one in summaries(app, query):
        if one.parent is not None and await app.store.executions.find(one.parent) is not None:
            continue
        keep = kept_for(app.settings, one)
        newer[one.workflow, one.status] += 1
        if keep is None:
            continue
        old = keep.age is not None and one.updated < now - keep.age.seconds
        if old or (keep.count is not None and newer[one.workflow, one.status] > keep.count):
            yield one


def kept_for(settings: Settings, summary: Summary) -> Keep | None:
    """Return the retention rule of an execution: that of its workflow, else the general one. None: kept for ever."""
    own = settings.retention.workflows.get(summary.workflow)
    said = getattr(own, summary.status, None) if own is not None else None
    return said if said is not None else getattr(settings.retention, summary.status, None)
