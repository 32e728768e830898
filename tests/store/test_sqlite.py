"""Faults of the SQLite store: typed errors, reads continue, nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import threading
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from pointsman.errors import CallerError, OperatorError
from pointsman.store.errors import JournalMoved, StoreFull, StoreLocked, StoreMissing, StoreReadOnly
from pointsman.store.sqlite import SqliteStore, connection, open_sqlite, writer
from pointsman.store.sqlite.schema import BASELINE, MIGRATIONS, migrate, pragma
from pointsman.store.sqlite.writer import Transaction, WriterThread
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from pointsman.values import ExecutionId

pytestmark = pytest.mark.integration


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await open_sqlite(f"sqlite:///{tmp_path}/store.db")
    yield store
    await store.close()


def settle(store: SqliteStore, setting: str) -> None:
    """Change a setting of the idle writing connection."""
    writing = store.journal._writer._connection  # pyright: ignore[reportPrivateUsage] - the fault comes from inside
    writing.execute(setting).fetchall()


async def seqs(store: SqliteStore) -> list[int]:
    return [row.seq for row in await rows_in(store.journal, ONE)]


async def test_a_full_disk_stops_only_writes_and_only_while_full(store: SqliteStore) -> None:
    await store.journal.append(ONE, row_of(1))
    settle(store, "PRAGMA max_page_count = 60")
    with pytest.raises(StoreFull) as refused:
        await store.journal.append(ONE, row_of(2, Random(1).randbytes(500_000).hex()))
    assert isinstance(refused.value, OperatorError)
    assert "Free space" in refused.value.hint
    assert await seqs(store) == [1]
    settle(store, "PRAGMA max_page_count = 1000000")
    await store.journal.append(ONE, row_of(2))
    assert await seqs(store) == [1, 2]
    assert await store.verify() == []


async def test_a_read_only_store_is_still_readable(store: SqliteStore) -> None:
    await store.journal.append(ONE, row_of(1))
    settle(store, "PRAGMA query_only = 1")
    with pytest.raises(StoreReadOnly, match="readonly") as refused:
        await store.journal.append(ONE, row_of(2))
    assert "writable" in refused.value.hint
    assert await seqs(store) == [1]
    settle(store, "PRAGMA query_only = 0")
    await store.journal.append(ONE, row_of(2))


@pytest.mark.requirement("S1-70")
async def test_a_store_locked_by_another_process_is_reported_and_continues_after_release(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOCKED_WAIT_S", 0.0)
    await store.journal.append(ONE, row_of(1))
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLocked) as refused:
        await store.journal.append(ONE, row_of(2))
    assert "other process" in refused.value.hint
    assert await seqs(store) == [1]
    other.execute("ROLLBACK")
    other.close()
    await store.journal.append(ONE, row_of(2))
    assert await seqs(store) == [1, 2]


async def test_the_store_waits_for_a_lock_that_is_released_in_time(store: SqliteStore, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    asyncio.get_running_loop().call_later(0.05, other.execute, "ROLLBACK")
    await store.journal.append(ONE, row_of(1))
    assert await seqs(store) == [1]
    other.close()


async def test_a_missing_store_file_is_reported_and_used_again_when_restored(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LOOK_AT_FILE_S", -1.0)
    await store.journal.append(ONE, row_of(1))
    file, aside = tmp_path / "store.db", tmp_path / "aside.db"
    file.rename(aside)
    with pytest.raises(StoreMissing, match="does not exist any more"):
        await store.journal.append(ONE, row_of(2))
    assert await seqs(store) == [1]
    file.write_bytes(b"")
    with pytest.raises(StoreMissing, match="has replaced"):
        await store.journal.append(ONE, row_of(2))
    aside.rename(file)
    await store.journal.append(ONE, row_of(2))
    assert await seqs(store) == [1, 2]


@pytest.mark.requirement("S1-70")
async def test_one_bad_request_does_not_affect_others_of_its_commit(store: SqliteStore) -> None:
    def fail(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO executions (id) VALUES ('half')")
        raise ZeroDivisionError

    submit = store.journal._writer.submit  # pyright: ignore[reportPrivateUsage] - only a bug could do this from outside
    others = [store.journal.append(ExecutionId(f"exec-{number}"), row_of(1)) for number in range(20)]
    outcomes = await asyncio.gather(*others[:10], submit(fail), *others[10:], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [ZeroDivisionError]
    assert [await store.journal.last(ExecutionId(f"exec-{number}")) for number in range(20)] == [1] * 20
    assert await store.journal.last(ExecutionId("half")) == 0


@contextmanager
def gathered(store: SqliteStore) -> Generator[None, None, None]:
    """Delay the writer's thread, so that all pending requests are committed together."""
    go = threading.Event()

    def hold(_: Transaction) -> None:
        go.wait()

    store.journal._writer.submit(hold)  # pyright: ignore[reportPrivateUsage] - timing must not decide a test
    try:
        yield
    finally:
        go.set()


async def test_a_late_refusal_rolls_back_only_its_own_writes(store: SqliteStore) -> None:
    def refuse(transaction: Transaction) -> None:
        transaction.execute("INSERT INTO executions (id) VALUES ('half')")
        raise CallerError("no")

    with gathered(store):
        good = asyncio.ensure_future(store.journal.append(ONE, row_of(1)))
        await asyncio.sleep(0)
        bad = store.journal._writer.submit(refuse)  # pyright: ignore[reportPrivateUsage] - as above
    with pytest.raises(CallerError):
        await bad
    await good
    assert await seqs(store) == [1]
    looking = sqlite3.connect(store.journal._writer._path)  # pyright: ignore[reportPrivateUsage] - as above
    assert looking.execute("SELECT id FROM executions").fetchall() == [(ONE,)]
    looking.close()


async def test_a_row_written_first_by_another_process_refuses_only_its_own_request(
    store: SqliteStore, tmp_path: Path
) -> None:
    await store.journal.append(ONE, row_of(1))
    async with opened(f"sqlite:///{tmp_path}/store.db") as elsewhere:
        await elsewhere.journal.append(ONE, row_of(2, "elsewhere"))
    others = [ExecutionId(f"exec-{number}") for number in range(5)]
    with gathered(store):
        asked = [
            asyncio.ensure_future(store.journal.append(execution, row_of(seq)))
            for execution, seq in [(others[0], 1), (ONE, 2), (ONE, 3), *((other, 1) for other in others[1:])]
        ]
        await asyncio.sleep(0)
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [JournalMoved]
    assert isinstance(outcomes[1], JournalMoved)
    assert [row.events for row in await rows_in(store.journal, ONE)] == [
        row_of(1).events,
        row_of(2, "elsewhere").events,
        row_of(3).events,
    ]
    assert [await store.journal.last(other) for other in others] == [1] * 5
    assert await store.verify() == []


async def test_a_row_does_not_overtake_one_that_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    go.set()
    gather = WriterThread._gather  # pyright: ignore[reportPrivateUsage] - the moment between taking and committing

    def slow(self: WriterThread) -> object:
        batch = gather(self)
        go.wait()
        return batch

    monkeypatch.setattr(WriterThread, "_gather", slow)
    monkeypatch.setattr(writer, "AT_ONCE_S_MAX", math.inf)
    async with opened(f"sqlite:///{tmp_path}/store.db") as store:
        for seq in range(1, 101):
            await store.journal.append(ONE, row_of(seq))
        go.clear()
        asked = [asyncio.ensure_future(store.journal.append(ONE, row_of(seq))) for seq in range(101, 141)]
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*asked)
        assert [row.seq for row in await rows_in(store.journal, ONE)] == list(range(1, 141))


async def test_damage_is_reported_by_execution_and_row(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as store:
        for seq in range(1, 6):
            await store.journal.append(ONE, row_of(seq))
    intruder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    intruder.execute("DELETE FROM rows WHERE place & 4294967295 = 2")
    intruder.execute("UPDATE rows SET at = 0 WHERE place & 4294967295 = 4")
    intruder.close()
    async with opened(url) as store:
        assert await store.verify() == [
            "execution 'exec-one': row 2 is missing",
            "execution 'exec-one': row 4 was changed after it was written",
        ]


async def test_a_cancelled_waiter_does_not_affect_others(store: SqliteStore) -> None:
    asked = [asyncio.ensure_future(store.journal.append(ONE, row_of(seq))) for seq in (1, 2, 3)]
    await asyncio.sleep(0)
    asked[1].cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await store.journal.append(ONE, row_of(4))
    assert await seqs(store) == [1, 2, 3, 4]


async def test_rows_of_a_single_execution_keep_their_order_in_both_commit_paths(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "AT_ONCE_S_MAX", math.inf)
    for seq in range(1, 301):
        await store.journal.append(ONE, row_of(seq))
        if seq % 50 == 0:
            other = ExecutionId(f"exec-{seq}")
            await asyncio.gather(*(store.journal.append(other, row_of(number)) for number in range(1, 9)))
    assert await seqs(store) == list(range(1, 301))
    assert await store.verify() == []


@pytest.mark.parametrize(
    ("a_commit", "in_a_row", "through_the_thread"), [(math.inf, math.inf, 4), (math.inf, 0.0, 52), (0.0, math.inf, 100)]
)
async def test_a_single_execution_uses_the_writer_thread_only_on_a_slow_disk(
    a_commit: float, in_a_row: float, through_the_thread: int, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "AT_ONCE_S_MAX", a_commit)
    monkeypatch.setattr(writer, "AT_ONCE_IN_A_ROW_S_MAX", in_a_row)
    for seq in range(1, 101):
        await store.journal.append(ONE, row_of(seq))
    # The first four, while it may not be alone; then one each time others have waited long enough for the loop.
    asked = store.journal._writer._asked  # pyright: ignore[reportPrivateUsage] - a matter of cost, seen nowhere else
    assert asked == through_the_thread
    assert await seqs(store) == list(range(1, 101))


async def test_the_wal_is_checkpointed_during_writes(store: SqliteStore, tmp_path: Path) -> None:
    value = Random(1).randbytes(700).hex()
    for number in range(120):
        other = ExecutionId(f"exec-{number}")
        await asyncio.gather(*(store.journal.append(other, row_of(seq, value)) for seq in range(1, 101)))
    # 12 000 rows of 1.6 KB were written. Without folding all of them would be in the log and none in the file.
    assert (tmp_path / "store.db").stat().st_size > 10_000_000
    assert (tmp_path / "store.db-wal").stat().st_size < 10_000_000


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rows SET data = CAST(replace(data, 'one', 'two') AS BLOB) WHERE place & 4294967295 = 3",
        "UPDATE rows SET at = at + 1 WHERE place & 4294967295 = 3",
        "UPDATE rows SET hash = zeroblob(32) WHERE place & 4294967295 = 3",
        "UPDATE rows SET form = 1 WHERE place & 4294967295 = 3",
        "UPDATE rows SET shape = 1 WHERE place & 4294967295 = 3",
        "UPDATE rows SET place = place + 100 WHERE place & 4294967295 = 5",
        "DELETE FROM rows WHERE place & 4294967295 = 2",
        "UPDATE executions SET id = id || '-other'",
        "DELETE FROM executions",
        "UPDATE blobs SET data = zeroblob(10)",
        "UPDATE blobs SET form = 0",
        "DELETE FROM blobs",
    ],
)
@pytest.mark.requirement("S1-110")
async def test_every_foreign_change_is_detected(change: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as store:
        for seq in range(1, 6):
            await store.journal.append(ONE, row_of(seq, "one"))
        await store.journal.append(ExecutionId("exec-large"), row_of(1, "large" * 50_000))
        assert await store.verify() == []
    intruder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    changed = intruder.execute(change).rowcount
    intruder.close()
    assert changed >= 1
    async with opened(url) as store:
        assert await store.verify() != []


@pytest.mark.parametrize("column", ["at", "shape", "form", "data", "hash"])
async def test_a_column_of_another_type_is_reported(tmp_path: Path, column: str) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as store:
        for seq in (1, 2):
            await store.journal.append(ONE, row_of(seq))
    other = {"data": "7", "hash": "7"}.get(column, "x'00'")
    for change in (
        "UPDATE sqlite_schema SET sql = replace(sql, 'STRICT', '/*ST*/') WHERE name = 'rows'",
        f"UPDATE rows SET {column} = {other} WHERE place & 4294967295 = 1",
        "UPDATE sqlite_schema SET sql = replace(sql, '/*ST*/', 'STRICT') WHERE name = 'rows'",
    ):
        intruder = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        intruder.execute("PRAGMA writable_schema = ON")
        intruder.execute(change)
        intruder.close()
    async with opened(url) as store:
        assert "execution 'exec-one': row 1 was changed after it was written" in await store.verify()


async def test_a_flipped_bit_in_a_stored_value_is_detected(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1, "a remarkable sentence"))
    file = tmp_path / "store.db"
    content = bytearray(file.read_bytes())
    at = content.index(b"remarkable")
    for bit in range(8):
        content[at] ^= 1 << bit
        file.write_bytes(content)
        async with opened(url) as store:
            assert await store.verify() == ["execution 'exec-one': row 1 was changed after it was written"]
        content[at] ^= 1 << bit


def test_migrations_are_applied_once_in_order_and_all_or_nothing(tmp_path: Path) -> None:
    database = connection.connect_writer(tmp_path / "store.db")
    migrate(database, (BASELINE,))
    second = ("ALTER TABLE effects ADD COLUMN cost REAL", "CREATE TABLE extra (id INTEGER PRIMARY KEY) STRICT")
    with pytest.raises(sqlite3.OperationalError):
        migrate(database, (BASELINE, (*second, "CREATE TABLE extra (id) STRICT")))
    assert pragma(database, "user_version") == 1
    assert database.execute("SELECT count(*) FROM pragma_table_info('effects') WHERE name = 'cost'").fetchone() == (0,)
    migrate(database, (BASELINE, second))
    migrate(database, (BASELINE, second))
    assert pragma(database, "user_version") == 2
    assert database.execute("SELECT cost FROM effects").fetchall() == []
    database.close()


@pytest.mark.requirement("S1-70")
async def test_every_commit_is_synced_to_disk(store: SqliteStore) -> None:
    def settings(transaction: Transaction) -> tuple[object, ...]:
        names = ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync")
        return tuple(transaction.execute(f"PRAGMA {name}").fetchone()[0] for name in names)

    found = await store.journal._writer.submit(settings)  # pyright: ignore[reportPrivateUsage] - no other way to look
    assert found == ("wal", 2, 1, 1)


def test_an_old_sqlite_causes_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    (warning,) = connection.version_warnings()
    assert "3.51.3" in warning
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    assert connection.version_warnings() == []


async def test_the_file_is_readable_by_people(store: SqliteStore, tmp_path: Path) -> None:
    await store.journal.append(ONE, row_of(1, "hello"))
    shell = sqlite3.connect(tmp_path / "store.db")
    execution, seq, at, events = shell.execute("SELECT execution, seq, at, events FROM journal").fetchone()
    shell.close()
    assert (execution, seq, at) == (ONE, 1, "2023-11-14 22:13:21")
    assert '"hello"' in events


async def test_several_processes_can_open_a_new_store_concurrently(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'store.db'}"
    stores = await asyncio.gather(*(open_sqlite(address) for _ in range(4)))
    assert [await store.verify() for store in stores] == [[], [], [], []]
    for store in stores:
        await store.close()


@pytest.mark.parametrize("why", [sqlite3.DatabaseError("malformed"), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")])
async def test_a_brief_query_that_fails_on_the_loop_is_tried_and_explained_in_a_thread(
    tmp_path: Path, why: Exception
) -> None:
    await (await open_sqlite(f"sqlite:///{tmp_path}/store.db")).close()
    pool = connection.ReaderPool(tmp_path / "store.db")
    threads: list[int] = []

    def damaged(_: sqlite3.Connection) -> None:
        threads.append(threading.get_ident())
        raise why

    try:
        with pytest.raises(OperatorError):
            await pool.run_brief(damaged)
    finally:
        pool.close()
    assert threads[0] == threading.get_ident() != threads[1]


@pytest.mark.parametrize("look", ["application_id", "user_version", "sqlite_schema"])
def test_a_store_that_another_process_makes_between_two_looks_is_not_foreign(tmp_path: Path, look: str) -> None:
    path = tmp_path / "store.db"
    first, second = sqlite3.connect(path, isolation_level=None), sqlite3.connect(path, isolation_level=None)

    def make(statement: str) -> None:
        if look in statement:
            second.set_trace_callback(None)
            migrate(first)

    second.set_trace_callback(make)
    migrate(second)
    assert pragma(second, "user_version") == len(MIGRATIONS)
    first.close()
    second.close()
