"""Export of an execution: everything it needs to continue elsewhere, as the lines of one file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec
from msgspec import Raw

from pointsman.auth.subjects import DefinitionGone
from pointsman.context import AppContext
from pointsman.engine.events.steps import Event
from pointsman.executions.deletion import family, known
from pointsman.operations.archive import (
    FORMAT,
    WITH_FILES,
    Chains,
    EffectLine,
    HeaderLine,
    Line,
    MemoryLine,
    RowLine,
    Tally,
    blob_line,
    line_of,
)
from pointsman.operations.archive_files import file_lines, kept_by
from pointsman.store.codec import UPCASTERS, Codec, blobs_named
from pointsman.values import ExecutionId

SCOPES: Final = ("execution", "session")
"""Memory scopes whose namespace is an execution id, so that they belong to it alone."""


async def export(app: AppContext, execution: str) -> AsyncIterator[bytes]:
    """Yield the lines of the file, including their line ends. Raises `UnknownExecution` before the first one.

    A running execution is exported in its present state. Long-term memory and the memory of its session are not
    exported.
    """
    tally = Tally()
    top = await known(app, ExecutionId(execution))
    members = [one.execution async for one in family(app, top)]
    async for line in _lines(app, members):
        yield tally.add(line_of(line))
    yield line_of(tally.end)


async def _lines(app: AppContext, members: list[ExecutionId]) -> AsyncIterator[Line]:
    kept = await kept_by(app, members)
    yield HeaderLine("export", WITH_FILES if kept else FORMAT, tuple(members))
    codec, chains = Codec[Event](Event, UPCASTERS), Chains()
    told: set[bytes] = set()
    for execution in members:
        async for row in app.store.journal.read(execution):
            for digest in blobs_named(row.events):
                if digest not in told:
                    told.add(digest)
                    yield await _blob(app, digest)
            text = codec.encode(row.events, row.cause)
            hashed = chains.next(execution, row.seq, row.at, codec.shape, text)
            yield RowLine(execution, row.seq, row.at, codec.shape, Raw(text), hashed)
        for attempt in await app.store.effects.attempts(execution):
            for number, value in (await app.store.effects.recorded(execution, attempt)).items():
                yield EffectLine(execution, attempt, number, msgspec.to_builtins(value))
        for scope in SCOPES:
            for one in await app.store.memory.every(scope, execution):
                yield MemoryLine(execution, scope, one.key, one.value, one.changed, one.expires)
    if kept:
        async for line in file_lines(app, kept):
            yield line


async def _blob(app: AppContext, digest: bytes) -> Line:
    content = await app.store.blobs.get(digest.hex())
    if content is None:
        raise DefinitionGone(f"the store has no content {digest.hex()[:12]}", hint="Restore a backup.")
    return blob_line(digest, content)
