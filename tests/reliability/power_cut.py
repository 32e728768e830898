"""Power cuts on SQLite: one recorded sequence of writes, cut at a hundred moments. All acknowledged data must be there.

The sequence mixes the work of the writer: single rows and batches, rows large enough for blobs, effects, memories, and
checkpoints far more often than usual.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Final
from unittest.mock import patch

from pointsman.errors import PointsmanError
from pointsman.store.api import Store
from pointsman.store.sqlite import open_sqlite, writer
from pointsman.testing.journals import row_of, rows_in
from pointsman.values import ExecutionId, Json
from tests.reliability.findings import Finding
from tests.reliability.recording_disk import Deed, RecordingDisk, Said, disk_after

FILE: Final = "store.db"
EXECUTIONS: Final = 4
ROWS: Final = 40
LOG_PAGES: Final = 60
"""Pages of the write-ahead log between checkpoints: few, so that power cuts hit checkpoints."""
LARGE: Final = 11
"""One of this many rows is too large for the table of rows."""


def value_of(number: int, seq: int) -> Json:
    """Return the content of row `seq` of an execution."""
    return Random(f"{number}:{seq}").randbytes(50_000).hex() if seq % LARGE == 0 else f"{number}:{seq}"


async def work(store: Store, disk: RecordingDisk) -> None:
    """Write rows, effects and memories of several executions, and note each acknowledgement."""

    async def execute(number: int) -> None:
        name = ExecutionId(f"exec-{number}")
        for seq in range(1, ROWS + 1):
            await store.journal.append(name, row_of(seq, value_of(number, seq)))
            disk.say(f"row {number} {seq}")
            if seq % 5 == 0:
                await store.effects.record(name, "work:1", seq, value_of(number, seq))
                disk.say(f"effect {number} {seq}")
            if seq % 7 == 0:
                await store.memory.put("long_term", "cuts", f"{number}", seq)
                disk.say(f"memory {number} {seq}")

    await execute(0)
    await asyncio.gather(*(execute(number) for number in range(1, EXECUTIONS)))


async def recorded(directory: Path) -> list[Deed]:
    disk = RecordingDisk()
    with disk.registered(), patch.object(writer, "LOG_PAGES_MAX", LOG_PAGES):
        store = await open_sqlite(f"sqlite:///{directory}/{FILE}")
        try:
            await work(store, disk)
        finally:
            await store.close()
    return disk.deeds


async def lost_at(deeds: list[Deed], random: Random) -> list[str]:
    """Cut the power after these operations, open what is left, and compare it with the acknowledgements."""
    said = [deed.what.split() for deed in deeds if isinstance(deed, Said)]
    with tempfile.TemporaryDirectory() as name:
        for file, content in disk_after(deeds, random).items():
            (Path(name) / file).write_bytes(content)
        try:
            store = await open_sqlite(f"sqlite:///{name}/{FILE}")
        except PointsmanError as why:
            return [f"cannot be opened: {why}"]
        try:
            return [*await store.verify(), *await missing(store, said)]
        except PointsmanError as why:
            return [f"cannot be read: {why}"]
        finally:
            await store.close()


async def missing(store: Store, said: list[list[str]]) -> list[str]:
    """Return acknowledged data that is missing or different."""
    newest: dict[tuple[str, int], int] = defaultdict(int)
    for kind, number, seq in said:
        newest[kind, int(number)] = int(seq)
    wrong: list[str] = []
    for (kind, number), seq in newest.items():
        name = ExecutionId(f"exec-{number}")
        if kind == "row":
            rows = await rows_in(store.journal, name)
            if rows[:seq] != [row_of(one, value_of(number, one)) for one in range(1, seq + 1)]:
                wrong.append(f"{name}: {len(rows)} rows, {seq} were acknowledged")
        elif kind == "effect":
            known = await store.effects.recorded(name, "work:1")
            if any(known.get(one) != value_of(number, one) for one in range(5, seq + 1, 5)):
                wrong.append(f"{name}: an acknowledged effect is lost")
        else:
            kept = await store.memory.get("long_term", "cuts", f"{number}")
            if not isinstance(kept, int) or kept < seq:
                wrong.append(f"memory {number} is {kept}, {seq} was acknowledged")
    return wrong


async def cut(count: int, seed: int) -> tuple[list[str], int]:
    """Return the losses of that many power cuts, and the number of recorded disk operations."""
    with tempfile.TemporaryDirectory() as name:
        deeds = await recorded(Path(name))
    violations: list[str] = []
    spoken = [at for at, deed in enumerate(deeds, start=1) if isinstance(deed, Said)]
    for number in range(count):
        random = Random(f"{seed}:{number}")
        # Half of the cuts follow an acknowledgement directly: the worst moment for a premature one.
        at = random.choice(spoken) if number % 2 else random.randrange(len(deeds) + 1)
        lost = await lost_at(deeds[:at], random)
        violations += [f"cut {number} behind deed {at}: {line}" for line in lost]
    return violations, len(deeds)


def examine(size: int, seed: int) -> Finding:
    """Simulate `size` power cuts."""
    violations, deeds = asyncio.run(cut(size, seed))
    return Finding(f"{size} cuts in {deeds} writes and syncs, {len(violations)} losses", tuple(violations))
