"""Bits that flip in the file of a store: whatever then reads differently must be told by `verify`, or refused."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

from pointsman.errors import PointsmanError
from pointsman.journal.sqlite import open_sqlite
from pointsman.journal.store import Store
from pointsman.ports import Row
from pointsman.testing.journals import row_of, rows_in
from pointsman.values import ExecutionId, Json
from tests.reliability.findings import Finding

FILE: Final = "store.db"
EXECUTIONS: Final = 3
ROWS: Final = 60
SIZES: Final = (40, 400, 5_000, 90_000)
"""Of the values: as they are, compressed, and blobs."""

Contents: TypeAlias = "dict[str, list[Row]]"


def value_of(number: int, seq: int) -> Json:
    size = SIZES[seq % len(SIZES)] if seq % 10 == 0 else SIZES[seq % 2]
    return Random(f"{number}:{seq}").randbytes(size // 2).hex()


async def fill(store: Store) -> None:
    for number in range(EXECUTIONS):
        for seq in range(1, ROWS + 1):
            await store.journal.append(ExecutionId(f"exec-{number}"), row_of(seq, value_of(number, seq)))


async def contents(store: Store) -> Contents:
    names = [ExecutionId(f"exec-{number}") for number in range(EXECUTIONS)]
    return {name: await rows_in(store.journal, name) for name in names}


async def after_flip(file: Path, truth: Contents) -> tuple[bool, bool]:
    """Whether anything reads differently, and whether anybody is told."""
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


async def flip(count: int, seed: int) -> tuple[list[str], int]:
    """The flips nobody noticed though something reads differently; and how many were noticed."""
    unnoticed, noticed = list[str](), 0
    with tempfile.TemporaryDirectory() as name:
        original = Path(name) / FILE
        store = await open_sqlite(f"sqlite:///{original}")
        await fill(store)
        truth = await contents(store)
        await store.close()
        data = original.read_bytes()
        for number in range(count):
            bit = Random(f"{seed}:{number}").randrange(len(data) * 8)
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << bit % 8
            folder = Path(name) / str(number)
            folder.mkdir()
            (folder / FILE).write_bytes(broken)
            differs, told = await after_flip(folder / FILE, truth)
            noticed += told
            if differs and not told:
                unnoticed.append(f"bit {bit % 8} of byte {bit // 8} of {len(data)}: a value changed and nobody is told")
            shutil.rmtree(folder)
    return unnoticed, noticed


def examine(size: int, seed: int) -> Finding:
    """`size` flips, one at a time."""
    unnoticed, noticed = asyncio.run(flip(size, seed))
    return Finding(f"{size} flips, {noticed} noticed, {len(unnoticed)} changed a value unnoticed", tuple(unnoticed))
