"""Deletion in SQLite: nothing remains on the disk; it works in slices, beside other writers, and across a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.ports import Row
from pointsman.store import memory
from pointsman.store.api import Store, open_store
from pointsman.store.errors import JournalMoved
from pointsman.store.records import SweepResult
from pointsman.store.sqlite import SqliteStore, journal, open_sqlite, writer
from pointsman.store.sqlite.journal import erase_slice
from pointsman.store.sqlite.writer import Transaction
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from pointsman.values import ExecutionId, JsonObject

pytestmark = pytest.mark.integration

CANARY = "canary7f3a"
TWO = ExecutionId("exec-two")


def in_files(path: Path, text: str) -> list[str]:
    return [one.name for one in path.iterdir() if text.encode() in one.read_bytes()]


async def fill(store: Store, execution: ExecutionId, text: str, rows: int = 30) -> None:
    """Write rows of every size (plain, compressed, in pieces) and effects."""
    for seq in range(1, rows + 1):
        size = (10, 5_000, 100_000)[seq % 3]
        await store.journal.append(execution, row_of(seq, {"plain": text, "more": f"{text} {seq}" * (size // 10)}))
    await store.effects.record(execution, "write:1", 1, {"answer": text})


class Interrupted(Exception):
    """Simulates the end of a process."""


def interrupted_after(slices: int) -> Callable[..., bool]:
    left = iter(range(slices))

    def erase(transaction: Transaction, no: int) -> bool:
        if next(left, None) is None:
            raise Interrupted
        return erase_slice(transaction, no)

    return erase


async def test_a_removed_execution_leaves_no_trace_in_the_files(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/store.db") as store:
        await fill(store, ONE, CANARY)
        await fill(store, TWO, "harmless")
        assert in_files(tmp_path, CANARY)
        assert await store.removal.remove(ONE, at=30)
        given_back = await store.removal.compact()
        assert in_files(tmp_path, CANARY) == []
        assert given_back > 0
        assert len(await rows_in(store.journal, TWO)) == 30
        assert await store.verify() == []
    assert in_files(tmp_path, CANARY) == []
    assert in_files(tmp_path, str(ONE)) == []


async def test_the_rest_of_a_crashed_removal_is_swept_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "ROWS_AT_ONCE", 7)
    url = f"sqlite:///{tmp_path}/store.db"
    store = await open_sqlite(url)
    await fill(store, ONE, CANARY)
    monkeypatch.setattr(journal, "erase_slice", interrupted_after(2))
    with pytest.raises(Interrupted):
        await store.removal.remove(ONE, at=30)
    monkeypatch.setattr(journal, "erase_slice", erase_slice)
    await store.close()
    async with opened(url) as again:
        assert await rows_in(again.journal, ONE) == [], "for everyone who looks it is gone at once"
        assert in_files(tmp_path, CANARY)
        assert await again.verify() == []
        await again.removal.sweep()
        await again.removal.compact()
        assert in_files(tmp_path, CANARY) == []
        assert await again.verify() == []


async def test_other_executions_write_while_a_long_one_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "ROWS_AT_ONCE", 10)
    async with opened(f"sqlite:///{tmp_path}/store.db") as store:
        for seq in range(1, 501):
            await store.journal.append(ONE, row_of(seq))
        removing = asyncio.ensure_future(store.removal.remove(ONE, at=500))
        written = 0
        while not removing.done():
            written += 1
            await store.journal.append(TWO, row_of(written))
        assert await removing
        assert written > 5, "they took turns"
        assert len(await rows_in(store.journal, TWO)) == written


async def test_another_process_cannot_append_to_a_deleted_execution(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as server, opened(url) as command:
        await server.journal.append(ONE, row_of(1))
        await server.journal.append(ONE, row_of(2))
        assert await command.removal.remove(ONE, at=2)
        await command.journal.append(TWO, row_of(1, "another"))
        with pytest.raises(JournalMoved):
            await server.journal.append(ONE, row_of(3))
        assert await rows_in(server.journal, ONE) == []
        assert await rows_in(server.journal, TWO) == [row_of(1, "another")]
        assert await server.verify() == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_only_unreferenced_blobs_are_swept(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "HOLD_S", -1.0)
    monkeypatch.setattr(writer, "HOLD_S", -1.0)
    store = await open_store("memory:" if kind == "memory" else f"sqlite:///{tmp_path}/store.db")
    definition, called, script, unused = [
        await store.blobs.put(text) for text in (b"definition", b"called", b"script", b"unused")
    ]
    options: JsonObject = {"script": script, "pins": {"other@1": {"definition": called, "revision": 1}}}
    started = ExecutionStarted(workflow="desk", version="1", input={}, definition=definition, options=options)
    await store.journal.append(ONE, Row(1, 1.0, (started,)))
    assert (await store.removal.sweep(dry_run=True)).blobs == 1
    assert (await store.removal.sweep()).blobs == 1
    assert [await store.blobs.get(digest) is not None for digest in (definition, called, script, unused)] == [
        True,
        True,
        True,
        False,
    ]
    await store.removal.remove(ONE, at=1)
    await store.removal.sweep()
    assert await store.blobs.get(definition) is None
    assert await store.removal.sweep() == SweepResult()
    await store.close()


async def test_blobs_of_other_executions_are_kept(tmp_path: Path) -> None:
    store: SqliteStore = await open_sqlite(f"sqlite:///{tmp_path}/store.db")
    shared = "both say this " * 10_000
    await store.journal.append(ONE, row_of(1, {"text": shared}))
    await store.journal.append(TWO, row_of(1, {"said": [shared]}))
    await store.removal.remove(ONE, at=1)
    assert await rows_in(store.journal, TWO) == [row_of(1, {"said": [shared]})]
    await store.removal.remove(TWO, at=1)
    await store.removal.compact()
    await store.close()
    assert in_files(tmp_path, "both say this") == []
