"""Flipped bits in the file of a store: if a value then reads differently, `verify` reports it or the read is refused.

Flips alternate between a bit of any page and one inside a value: of a row, a recorded effect, a memory, a message, or a
setting.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeAlias

from pointsman.errors import PointsmanError
from pointsman.store.api import Store
from pointsman.store.sqlite import open_sqlite
from pointsman.testing.journals import row_of, rows_in
from pointsman.values import ExecutionId, Json
from tests.reliability.findings import Finding

FILE: Final = "store.db"
EXECUTIONS: Final = 3
ROWS: Final = 60
SIZES: Final = (40, 400, 5_000, 90_000)
"""Sizes of the values: stored as they are, compressed, and as blobs."""
BESIDE: Final = 20
"""Number of values of each kind besides the rows."""
KINDS: Final = ("rows", "effects", "memory", "sessions", "entries")

Contents: TypeAlias = "dict[str, object]"


class Flip(NamedTuple):
    """One flipped bit and the kind of value that contains it."""

    kind: str
    bit: int


class Count(NamedTuple):
    """Results of the flips."""

    unnoticed: list[str]
    """Flips after which a value reads differently and no error is reported."""
    noticed: int
    changed: Counter[str]
    """Flips that changed a value, by kind."""


def value_of(number: int, seq: int) -> Json:
    size = SIZES[seq % len(SIZES)] if seq % 10 == 0 else SIZES[seq % 2]
    return Random(f"{number}:{seq}").randbytes(size // 2).hex()


def mark(kind: str, number: int) -> str:
    """Return a value that occurs exactly once in the file, uncompressed."""
    return Random(f"{kind}:{number}").randbytes(30).hex()


async def fill(store: Store) -> None:
    for number in range(EXECUTIONS):
        for seq in range(1, ROWS + 1):
            await store.journal.append(ExecutionId(f"exec-{number}"), row_of(seq, value_of(number, seq)))
    for number in range(BESIDE):
        await store.journal.append(ExecutionId("exec-rows"), row_of(number + 1, mark("rows", number)))
        await store.effects.record(ExecutionId("exec-0"), "step:1", number, {"paid": mark("effects", number)})
        await store.memory.put("long_term", "desk", f"key{number}", {"kept": mark("memory", number)})
        await store.sessions.append("talk", ({"said": mark("sessions", number)},), after=number)
        await store.entries.put("schedule", f"key{number}", {"does": mark("entries", number)})


async def contents(store: Store) -> Contents:
    names = ["exec-rows", *(f"exec-{number}" for number in range(EXECUTIONS))]
    return {
        **{name: await rows_in(store.journal, ExecutionId(name)) for name in names},
        "effects": await store.effects.recorded(ExecutionId("exec-0"), "step:1"),
        "memory": await store.memory.every("long_term", "desk"),
        "sessions": await store.sessions.load("talk"),
        "entries": [(one.key, one.value) for one in await store.entries.list("schedule")],
    }


def aimed(number: int, seed: int, data: bytes) -> Flip:
    """Aim every second flip at a value of one kind."""
    random = Random(f"{seed}:{number}")
    if number % 2:
        return Flip("any page", random.randrange(len(data) * 8))
    kind = KINDS[number // 2 % len(KINDS)]
    value = mark(kind, random.randrange(BESIDE)).encode()
    at = data.find(b'"' + value + b'"') + 1
    assert at > 0, f"a value of {kind} is not in the file as it is"
    # The low bits turn the text into another valid text, which only a checksum detects.
    return Flip(kind, (at + random.randrange(len(value))) * 8 + random.randrange(3))


async def after_flip(file: Path, truth: Contents) -> tuple[bool, bool]:
    """Return whether a value reads differently, and whether an error is reported."""
    try:
        store = await open_sqlite(f"sqlite:///{file}")
    except PointsmanError:
        return True, True
    try:
        told = bool(await store.verify())
        try:
            differs = await contents(store) != truth
        except PointsmanError:
            return True, True
        return differs, told
    except PointsmanError:
        return True, True
    finally:
        await store.close()


async def flip(count: int, seed: int) -> Count:
    found = Count([], 0, Counter())
    with tempfile.TemporaryDirectory() as name:
        original = Path(name) / FILE
        store = await open_sqlite(f"sqlite:///{original}")
        await fill(store)
        truth = await contents(store)
        await store.close()
        data = original.read_bytes()
        for number in range(count):
            kind, bit = aimed(number, seed, data)
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << bit % 8
            folder = Path(name) / str(number)
            folder.mkdir()
            (folder / FILE).write_bytes(broken)
            differs, told = await after_flip(folder / FILE, truth)
            found.changed[kind] += differs
            found = found._replace(noticed=found.noticed + told)
            if differs and not told:
                where = f"{kind}: bit {bit % 8} of byte {bit // 8} of {len(data)}"
                found.unnoticed.append(f"{where}: a value changed and nobody is told")
            shutil.rmtree(folder)
    return found


def examine(size: int, seed: int) -> Finding:
    """Flip `size` bits, one at a time."""
    found = asyncio.run(flip(size, seed))
    violations = list(found.unnoticed)
    if size >= 2 * len(KINDS):
        violations += [f"no flip changed anything of {kind}" for kind in KINDS if not found.changed[kind]]
    figure = f"{size} flips, {found.changed.total()} changed a value, {found.noticed} noticed"
    return Finding(f"{figure}, {len(found.unnoticed)} changed a value unnoticed", tuple(violations))
