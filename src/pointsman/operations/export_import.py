"""Export of an execution with everything it needs to continue elsewhere, and its import.

An import reads the file twice: first to verify everything, then to write.

An execution is listed only with its last row, and sub-workflows before their parents. So a crash leaves nothing
visible: importing again starts over, and `gc` deletes the remains (see `executions.fork_migrate_replay`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from pointsman.auth.subjects import DefinitionMissing
from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.engine.events.steps import Event
from pointsman.engine.events.waits import ChildRequested, ToolChildrenRequested
from pointsman.engine.fold.dispatch import begin_decision, fold
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.executions.deletion import existing_summary, with_children
from pointsman.executions.fork_migrate_replay import announced, make_room
from pointsman.operations.archive import (
    DAMAGED,
    FORMAT,
    WITH_FILES,
    BlobLine,
    Chains,
    EffectLine,
    FileLine,
    HeaderLine,
    ImportRefused,
    Line,
    MemoryLine,
    RowLine,
    Sizes,
    Tally,
    archived_files,
    blob_line,
    bring_file,
    content_of,
    file_lines,
    learn_file,
    line_of,
    must_have_room,
    read_lines,
)
from pointsman.ports import MemoryChange, Row
from pointsman.runtime.local import child_id
from pointsman.runtime.passivation import Passivation
from pointsman.store.codec import UPCASTERS, Codec, blobs_named
from pointsman.store.remembered_values import UNBOUNDED
from pointsman.values import ExecutionId, Json
from pointsman.workflows.library import LIBRARY

SCOPES: Final = ("execution", "session")
"""Memory scopes whose namespace is an execution id, so that they belong to it alone."""


async def export(app: AppContext, execution: str) -> AsyncIterator[bytes]:
    """Yield the lines of the file, including their line ends. Raises `UnknownExecution` before the first one.

    A running execution is exported in its present state. Long-term memory and the memory of its session are not
    exported.
    """
    tally = Tally()
    top = await existing_summary(app, ExecutionId(execution))
    members = [child.execution async for child in with_children(app, top)]
    async for line in _lines(app, members):
        yield tally.add(line_of(line))
    yield line_of(tally.end)


async def _lines(app: AppContext, members: list[ExecutionId]) -> AsyncIterator[Line]:
    files = await archived_files(app, members)
    yield HeaderLine("export", WITH_FILES if files else FORMAT, tuple(members))
    codec, chains = Codec[Event](Event, UPCASTERS), Chains()
    exported: set[bytes] = set()
    for execution in members:
        async for row in app.store.journal.read(execution):
            for digest in blobs_named(row.events):
                if digest not in exported:
                    exported.add(digest)
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
    if files:
        async for line in file_lines(app, files):
            yield line


async def _blob(app: AppContext, digest: bytes) -> Line:
    content = await app.store.blobs.get(digest.hex())
    if content is None:
        raise DefinitionMissing(f"the store has no content {digest.hex()[:12]}", hint="Restore a backup.")
    return blob_line(digest, content)


AT_ONCE: Final = 500
"""Writes to the store that are pending at once."""
ATTEMPTS_MAX: Final = 100
"""How many attempts of a step are tried when searching the attempt that started a child execution."""


class ExecutionExists(CallerError):
    """The store already contains an execution of this id."""

    code: ClassVar[str] = "execution-exists"


@dataclass(slots=True)
class ArchiveContents:
    """Result of the first reading."""

    names: list[ExecutionId] = field(default_factory=list[ExecutionId])
    """The execution, then its sub-workflows."""
    states: dict[str, ExecutionState] = field(default_factory=dict[str, ExecutionState])
    started: dict[str, ExecutionStarted] = field(default_factory=dict[str, ExecutionStarted])
    asked: defaultdict[str, list[tuple[Step, int]]] = field(default_factory=lambda: defaultdict(list))
    """The steps of each execution that called a sub-workflow, with the number of the tool call."""
    contents: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    files: Sizes = field(default_factory=Sizes)
    named: set[bytes] = field(default_factory=set[bytes])
    new: dict[str, ExecutionId] = field(default_factory=dict[str, ExecutionId])
    """Old id -> id in this store."""


async def import_file(app: AppContext, path: Path, *, name: ExecutionId | None) -> ExecutionId:
    """Import an execution with its sub-workflows, under its own id or as `name`. Return its id in this store.

    Raises `ImportRefused`, `ExecutionExists`, `FileUnreadable`, `SessionMoved`; in these cases no execution is
    imported.
    """
    contents = await asyncio.to_thread(verified, path)
    _rename(contents, name)
    await _make_room(app, contents)
    await must_have_room(app.settings, contents.files, contents.new)
    await _bring_contents(app, contents)
    await _bring_conversation(app, contents)
    async with announced(app.store, app.clock, [contents.new[name] for name in contents.names]):
        await _bring_rows(app, path, contents)
    return contents.new[contents.names[0]]


def verified(path: Path) -> ArchiveContents:
    """Read and verify the whole file, and fold every journal. Raises `ImportRefused`."""
    contents, codec = ArchiveContents(), Codec[Event](Event, UPCASTERS)
    for line in read_lines(path):
        match line:
            case HeaderLine():
                contents.names = [ExecutionId(name) for name in line.executions]
            case BlobLine():
                contents.contents[bytes.fromhex(line.blob)] = content_of(line)
            case RowLine():
                _learn(contents, line, codec.decode(bytes(line.events), line.shape).events)
            case FileLine():
                learn_file(contents.files, line)
            case MemoryLine() if line.scope not in SCOPES:
                raise ImportRefused(f"{line.scope!r} is not a memory scope of an execution", hint=DAMAGED)
            case _:
                pass
    empty = [name for name in contents.names if name not in contents.states]
    if empty:
        raise ImportRefused(f"the export has no rows of {empty[0]!r}", hint=DAMAGED)
    return contents


def _learn(contents: ArchiveContents, line: RowLine, events: tuple[Event, ...]) -> None:
    if not events:
        raise ImportRefused(f"row {line.seq} of {line.execution!r} contains no events", hint=DAMAGED)
    if line.seq == 1:
        first = events[0]
        if not isinstance(first, ExecutionStarted):
            raise ImportRefused(f"the journal of {line.execution!r} does not begin with its start", hint=DAMAGED)
        contents.started[line.execution] = first
    state = contents.states.setdefault(line.execution, ExecutionState(line.execution))
    try:
        begin_decision(state, line.seq, line.at)
        for event in events:
            fold(state, event)
    except (LookupError, AttributeError, TypeError, ValueError, AssertionError, RecursionError) as why:
        # Rows with valid hashes may still be fabricated, so that they fold to no valid state.
        raise ImportRefused(f"row {line.seq} of {line.execution!r} is inconsistent: {why!r}", hint=DAMAGED) from why
    contents.named.update(blobs_named(events))
    for event in events:
        if isinstance(event, ChildRequested):
            contents.asked[line.execution].append((event.step, 0))
        elif isinstance(event, ToolChildrenRequested):
            contents.asked[line.execution] += [(event.step, call.number) for call in event.calls]


def _rename(contents: ArchiveContents, name: ExecutionId | None) -> None:
    """Determine the new ids. The id of a sub-workflow derives from its parent's, so a new name renames all its
    descendants."""
    top = contents.names[0]
    contents.new[top] = name if name is not None else top
    for child in contents.names[1:]:
        parent = contents.started[child].parent or ""
        if parent not in contents.new:
            raise ImportRefused(f"the parent of {child!r} is not exported before it", hint=DAMAGED)
        above = ExecutionId(parent)
        step, attempt, call = _caller(contents, above, child)
        contents.new[child] = child_id(contents.new[parent], step, attempt, call)


def _caller(contents: ArchiveContents, parent: ExecutionId, child: ExecutionId) -> tuple[Step, int, int]:
    for step, call in contents.asked[parent]:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            if child_id(parent, step, attempt, call) == child:
                return step, attempt, call
    raise ImportRefused(f"no step of {parent!r} called {child!r}", hint=DAMAGED)


async def _make_room(app: AppContext, contents: ArchiveContents) -> None:
    await make_room(app, contents.new[contents.names[0]])
    for name in contents.new.values():
        if await app.store.executions.find(name) is not None:
            raise ExecutionExists(f"{name!r} already exists here", hint="Import it under a new id: --new-id.")


async def _bring_contents(app: AppContext, contents: ArchiveContents) -> None:
    """Store the blobs, and check that the definitions can be used. Blobs of a refused import are deleted by the next
    `gc`."""
    for content in contents.contents.values():
        await app.store.blobs.put(content)
    for digest in contents.named - set(contents.contents):
        if await app.store.blobs.get(digest.hex()) is None:
            raise ImportRefused(f"the content {digest.hex()[:12]} is not in the export", hint=DAMAGED)
    for state in contents.states.values():
        await app[LIBRARY].pinned(state.setup.definition, state.setup.options)


async def _bring_conversation(app: AppContext, contents: ArchiveContents) -> None:
    """Append the messages before this turn, if the session of this store does not have them."""
    started = contents.started[contents.names[0]]
    history_length = started.options.get("history")
    if started.session is not None and isinstance(history_length, int) and started.messages:
        await app.store.sessions.append(started.session, tuple(started.messages[:history_length]), after=0)


async def _bring_rows(app: AppContext, path: Path, contents: ArchiveContents) -> None:
    """Read the file again and write the rows. The last row of each execution, which lists it, is written at the end,
    and that of the top execution last of all."""
    codec, pending = Codec[Event](Event, UPCASTERS), list[asyncio.Future[None]]()
    last: dict[str, Row] = {}
    for line in read_lines(path):
        if isinstance(line, HeaderLine | BlobLine):
            continue
        name = contents.new[line.execution]
        match line:
            case RowLine():
                content = codec.decode(bytes(line.events), line.shape)
                row = Row(line.seq, line.at, _renamed(contents, content.events), content.cause)
                if line.seq == contents.states[line.execution].seq:
                    last[line.execution] = row
                    continue
                pending.append(asyncio.ensure_future(app.store.journal.append(name, row)))
            case EffectLine():
                pending.append(_effect(app, name, line.attempt, line.number, line.value))
            case FileLine():
                await bring_file(app.settings, name, line)
            case MemoryLine():
                pending.append(_memory(app, name, line))
        if len(pending) >= AT_ONCE:
            await asyncio.gather(*pending)
            pending.clear()
    await asyncio.gather(*pending)
    for old in reversed(contents.names):
        state, name = contents.states[old], contents.new[old]
        summary = Passivation(state).summary(name, state)
        parent = contents.new.get(state.setup.parent or "")
        await app.store.journal.append(name, last[old], summary=replace(summary, parent=parent))


def _effect(app: AppContext, name: ExecutionId, attempt: str, number: int, value: Json) -> asyncio.Future[None]:
    return asyncio.ensure_future(app.store.effects.record(name, attempt, number, value))


async def _remember(app: AppContext, name: ExecutionId, line: MemoryLine) -> None:
    change = MemoryChange(
        scope=line.scope,
        namespace=name,
        key=line.key,
        operation="set",
        value=line.value,
        at=line.changed,
        expires=line.expires,
        quota=UNBOUNDED,
    )
    await app.store.memory.change(change)


def _memory(app: AppContext, name: ExecutionId, line: MemoryLine) -> asyncio.Future[None]:
    return asyncio.ensure_future(_remember(app, name, line))


def _renamed(contents: ArchiveContents, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Replace the parent's id in the start event; None if the parent was not exported."""
    first = events[0] if events else None
    if not isinstance(first, ExecutionStarted):
        return events
    return (replace(first, parent=contents.new.get(first.parent or "")), *events[1:])
