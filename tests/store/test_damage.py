"""One flipped bit in the file: `verify` reports every changed value. `POINTSMAN_LONG=1`: 300 bits."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from random import Random

import pytest

from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.errors import PointsmanError
from pointsman.ports import Row
from pointsman.store.sqlite.journal import BY_EXECUTION
from pointsman.store.sqlite.schema import SEALED
from pointsman.testing.journals import ONE, ended_summary, opened, row_of
from pointsman.testing.stores import draft_of, taking
from pointsman.values import ExecutionId

pytestmark = pytest.mark.integration

FLIPS = 300 if os.environ.get("POINTSMAN_LONG") else 40
DERIVED = ("summaries", "awaited", "gates", "gate_people", "keeper", "sqlite_sequence", "deleted_executions")
"""Tables that follow from the journals, or describe running processes: not compared here."""
OUTLIVING = ("usage",)
"""The usage of an execution remains after its deletion."""


@pytest.fixture
async def whole(tmp_path: Path) -> bytes:
    """Return the bytes of a store with rows in every table."""
    path, noise = tmp_path / "whole.db", Random(5).randbytes
    async with opened(f"sqlite:///{path}") as store:
        for execution in (ONE, ExecutionId("exec-two")):
            start = ExecutionStarted(workflow="desk", version="1", input={"goal": noise(40).hex()})
            await store.journal.append(execution, Row(1, 1.0, (start,)), summary=ended_summary(execution))
            for seq in range(2, 30):
                await store.journal.append(execution, row_of(seq, noise((20, 2_000, 40_000)[seq % 3]).hex()))
            for number in range(5):
                await store.effects.record(execution, "write:1", number, {"said": noise(1_500).hex()})
        for number in range(10):
            await store.memory.put("session", "talk", f"key{number}", noise(800).hex())
            await store.entries.put("schedule", f"s{number}", {"cron": noise(300).hex()})
        await store.sessions.append("talk", tuple(noise(700).hex() for _ in range(10)), after=0)
        await store.workflows.save(draft_of(noise(3_000).hex()))
        for number in range(20):
            await store.usage.put(taking(number, owner=noise(20).hex(), node=noise(2).hex()))
        assert await store.verify() == []
    return _read(path)


def contents(path: Path) -> dict[str, list[tuple[object, ...]]] | None:
    """Return everything stored, as a reader reads it; None if it cannot be read."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            if name not in DERIVED and not name.startswith("memory_words")
        ]
        return {table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    finally:
        connection.close()


async def damage(path: Path) -> list[str]:
    try:
        async with opened(f"sqlite:///{path}") as store:
            return await store.verify()
    except PointsmanError as why:
        return [why.code]


async def test_every_changed_value_is_detected(whole: bytes, tmp_path: Path) -> None:
    random = Random(41)
    original = tmp_path / "original.db"
    _write(original, whole)
    expected = contents(original)
    assert expected is not None
    assert set(SEALED) <= set(expected)
    changed = 0
    for number in range(FLIPS):
        flipped = bytearray(whole)
        bit = random.randrange(100 * 8, len(whole) * 8)
        flipped[bit // 8] ^= 1 << bit % 8
        path = tmp_path / f"flipped{number}.db"
        _write(path, bytes(flipped))
        if contents(path) != expected:
            changed += 1
            assert await damage(path) != [], f"bit {bit} changed a value, and nobody noticed"
        path.unlink()
    assert changed > FLIPS / 2, "most bits of the file are values"


CHANGES = {
    "effects": ("data", "x'31'"),
    "messages": ("message", "x'31'"),
    "memory": ("value", "x'31'"),
    "entries": ("value", "x'31'"),
    "workflows": ("native", "x'7b7d20'"),
    "usage": ("owner", "'eve'"),
}


@pytest.mark.parametrize("table", SEALED)
async def test_a_changed_value_in_a_table_without_a_chain_is_detected(table: str, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    _write(path, whole)
    intruder = sqlite3.connect(path, isolation_level=None)
    intruder.execute(f"DROP TRIGGER {table}_resealed")
    column, value = CHANGES[table]
    intruder.execute(f"UPDATE {table} SET {column} = {value}")
    intruder.close()
    assert any(f"rows of {table} are not what was written" in line for line in await damage(path))


async def test_deleting_an_execution_empties_every_table_that_names_it(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    _write(path, whole)
    connection = sqlite3.connect(path)
    naming = {
        table
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({table})")
        if (column, kind) == ("execution", "TEXT")
    }
    connection.close()
    assert naming == {*BY_EXECUTION, *OUTLIVING}


def _read(path: Path) -> bytes:
    return path.read_bytes()


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
