"""Faults of the PostgreSQL store: typed errors, reads continue, nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import psycopg
import pytest
from msgspec.structs import replace

from pointsman.errors import PointsmanError
from pointsman.store.api import Store, open_store
from pointsman.store.errors import (
    JournalMoved,
    StoreClosed,
    StoreForbidden,
    StoreForeign,
    StoreFull,
    StoreMissing,
    StoreNewer,
    StoreOverloaded,
    StoreReadOnly,
    StoreUnknown,
    StoreUnreachable,
    UnstorableValue,
    masked_address,
)
from pointsman.store.postgres import PostgresStore, open_postgres
from pointsman.store.postgres.connections import Connection, Connections, address_of
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from pointsman.testing.stores import summary_of
from pointsman.values import ExecutionId
from tests import postgres
from tests.postgres_wire import Message, Wire


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(postgres_url)
    yield store
    await store.close()


async def run(url: str, *statements: str) -> None:
    """Run statements of another program in the schema of the store."""
    given, _, schema = url.partition("&schema=")
    async with await psycopg.AsyncConnection.connect(given, autocommit=True) as connection:
        await connection.execute(f"SET search_path = {schema}".encode())
        for statement in statements:
            await connection.execute(statement.encode())


async def seqs(store: Store, execution: ExecutionId = ONE) -> list[int]:
    return [row.seq for row in await rows_in(store.journal, execution)]


def failing(state: str) -> tuple[str, ...]:
    """Return statements that make the server refuse every row with an error of that kind."""
    body = f"BEGIN RAISE EXCEPTION 'no row today' USING ERRCODE = '{state}'; END"
    return (
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$",
        "CREATE TRIGGER refusing BEFORE INSERT ON rows EXECUTE FUNCTION refuse()",
    )


@pytest.mark.parametrize(
    ("state", "kind"),
    [("53100", StoreFull), ("53200", StoreOverloaded), ("25006", StoreReadOnly), ("42501", StoreReadOnly)],
)
async def test_refusals_of_the_server_are_reported_by_kind(
    state: str, kind: type[PointsmanError], store: PostgresStore, postgres_url: str
) -> None:
    await store.journal.append(ONE, row_of(1))
    await run(postgres_url, *failing(state))
    both = (store.journal.append(ONE, row_of(2)), store.journal.append(ExecutionId("exec-two"), row_of(1)))
    for why in await asyncio.gather(*both, return_exceptions=True):
        assert isinstance(why, kind)
        assert "no row today" in str(why)
        assert why.hint != ""
    assert await seqs(store) == [1]
    await run(postgres_url, "DROP TRIGGER refusing ON rows")
    await store.journal.append(ONE, row_of(2))
    assert await seqs(store) == [1, 2]
    assert await store.verify() == []


async def test_one_bad_request_does_not_affect_others_of_its_batch(store: PostgresStore) -> None:
    bad = replace(summary_of(1), revision=2**40)  # The column has four bytes.
    asked = [store.journal.append(ExecutionId(f"exec-{number}"), row_of(1)) for number in range(10)]
    asked.insert(5, store.journal.append(ONE, row_of(1), summary=bad))
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes if outcome is not None] == [UnstorableValue]
    assert [await store.journal.last(ExecutionId(f"exec-{number}")) for number in range(10)] == [1] * 10
    assert await store.journal.last(ONE) == 0


async def test_rows_after_a_refused_row_are_not_written(store: PostgresStore, postgres_url: str) -> None:
    await store.journal.append(ONE, row_of(1))
    async with opened(postgres_url) as elsewhere:
        await elsewhere.journal.append(ONE, row_of(2, "elsewhere"))
    others = [ExecutionId(f"exec-{number}") for number in range(5)]
    asked = [
        store.journal.append(execution, row_of(seq))
        for execution, seq in [(others[0], 1), (ONE, 2), (ONE, 3), *((other, 1) for other in others[1:])]
    ]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes[:3]] == [type(None), JournalMoved, type(None)]
    assert [row.events for row in await rows_in(store.journal, ONE)] == [
        row_of(1).events,
        row_of(2, "elsewhere").events,
        row_of(3).events,
    ]
    assert [await store.journal.last(other) for other in others] == [1] * 5
    assert await store.verify() == []


async def test_a_cancelled_waiter_does_not_affect_others(store: PostgresStore) -> None:
    asked = [asyncio.ensure_future(store.journal.append(ONE, row_of(seq))) for seq in (1, 2, 3)]
    reading = asyncio.ensure_future(store.journal.last(ONE))
    await asyncio.sleep(0)
    asked[1].cancel()
    reading.cancel()
    await asyncio.wait([*asked, reading])
    await store.journal.append(ONE, row_of(4))
    assert await seqs(store) == [1, 2, 3, 4]


@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_a_database_restart_under_load_loses_and_repeats_nothing(how: str, cluster: postgres.Cluster) -> None:
    async with opened(cluster.url()) as store:
        executions = [ExecutionId(f"exec-{number}") for number in range(20)]
        stopped, going = asyncio.Event(), asyncio.Event()

        async def write(execution: ExecutionId) -> int:
            seq = 0
            while not stopped.is_set():
                seq += 1
                await store.journal.append(execution, row_of(seq, execution))
                await store.effects.record(execution, "write#1", seq, seq)
                if seq == 5:
                    going.set()
            return seq

        writing = [asyncio.ensure_future(write(execution)) for execution in executions]
        await going.wait()
        for _ in range(2):
            await asyncio.to_thread(cluster.stop, how=how)
            await asyncio.to_thread(cluster.start)
            await store.journal.append(ExecutionId(f"exec-{_}-after"), row_of(1))
        stopped.set()
        acknowledged = await asyncio.gather(*writing)
        for execution, last in zip(executions, acknowledged, strict=True):
            assert await rows_in(store.journal, execution) == [row_of(seq, execution) for seq in range(1, last + 1)]
            assert await store.effects.recorded(execution, "write#1") == {seq: seq for seq in range(1, last + 1)}
        assert await store.verify() == []


@pytest.mark.parametrize("lost", ["answer", "question"])
async def test_the_store_determines_the_result_of_a_commit_whose_connection_was_lost(
    lost: Message, cluster: postgres.Cluster, tmp_path: Path
) -> None:
    """The connection is cut after or before the server received the commit."""
    async with Wire(cluster.folder) as wire, opened(cluster.url(host=str(wire.folder))) as store:
        for seq in range(1, 4):
            await store.journal.append(ONE, row_of(seq))
        wire.cut(lost)
        await store.journal.append(ONE, row_of(4, "once"))
        assert wire.cuts == 1
        await asyncio.gather(*(store.journal.append(ONE, row_of(seq)) for seq in range(5, 8)))
        assert await seqs(store) == [*range(1, 8)]
        wire.cut(lost)
        async with opened(cluster.url()) as elsewhere:
            await elsewhere.journal.append(ONE, row_of(8, "elsewhere"))
        with pytest.raises(JournalMoved):
            await store.journal.append(ONE, row_of(8, "here"))
        assert wire.cuts == 2
        assert await store.verify() == []


async def test_a_long_outage_of_the_database_is_reported_and_recovered(cluster: postgres.Cluster) -> None:
    store = await open_postgres(cluster.url(patience="0.2"))
    await store.journal.append(ONE, row_of(1))
    await asyncio.to_thread(cluster.stop)
    for call in (store.journal.append(ONE, row_of(2)), store.journal.last(ONE), store.memory.put("a", "b", "c", 1)):
        with pytest.raises(StoreUnreachable) as refused:
            await call
        assert "server" in refused.value.hint
    with pytest.raises(StoreUnreachable):
        await open_store(cluster.url())
    await asyncio.to_thread(cluster.start)
    await store.journal.append(ONE, row_of(2))
    assert await seqs(store) == [1, 2]
    await store.close()
    with pytest.raises(StoreClosed):
        await store.journal.append(ONE, row_of(3))
    with pytest.raises(StoreClosed):
        await store.journal.last(ONE)
    await store.close()


async def test_a_read_only_store_can_be_read(cluster: postgres.Cluster) -> None:
    async with opened(cluster.url()) as store:
        await store.journal.append(ONE, row_of(1))
        cluster.sql("CREATE ROLE reader LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
        async with opened(cluster.url(user="reader")) as reading:
            assert await seqs(reading) == [1]
            with pytest.raises(StoreReadOnly, match="permission denied"):
                await reading.journal.append(ONE, row_of(2))
            with pytest.raises(StoreReadOnly):
                await reading.memory.put("a", "b", "c", 1)
        with pytest.raises(StoreReadOnly):
            await open_store(cluster.url(user="reader", schema="mine"))


async def test_a_user_without_the_right_to_create_schemas_uses_a_schema_that_was_made_for_it(
    cluster: postgres.Cluster,
) -> None:
    cluster.sql("CREATE ROLE app LOGIN", "CREATE SCHEMA made AUTHORIZATION app", "CREATE SCHEMA closed")
    async with opened(cluster.url(user="app", schema="made")) as store:
        await store.journal.append(ONE, row_of(1))
    for schema in ("closed", "missing"):
        with pytest.raises(StoreForbidden) as refused:
            await open_store(cluster.url(user="app", schema=schema))
        assert refused.value.code == "store-forbidden"
        assert "rant" in refused.value.hint.lower()
    cluster.sql("GRANT USAGE ON SCHEMA closed TO app")
    with pytest.raises(StoreForbidden):
        await open_store(cluster.url(user="app", schema="closed"))


async def test_the_server_limits_the_sessions_of_a_store(cluster: postgres.Cluster) -> None:
    connections = Connections(address_of(cluster.url()).conninfo, "here", patience_s=1)

    async def work(connection: Connection) -> list[object]:
        names = ("statement_timeout", "idle_in_transaction_session_timeout")
        return [await (await connection.execute(f"SHOW {name}")).fetchone() for name in names]

    assert await connections.read(work) == [("1min",), ("15s",)]
    await connections.close()


async def test_a_database_without_a_free_connection_is_reported(cluster: postgres.Cluster) -> None:
    async with opened(cluster.url()):
        cluster.sql("CREATE ROLE few LOGIN CONNECTION LIMIT 0", "GRANT ALL ON ALL TABLES IN SCHEMA public TO few")
        with pytest.raises(StoreOverloaded, match="too many connections") as refused:
            await open_store(cluster.url(user="few"))
        assert "max_connections" in refused.value.hint


async def test_no_error_shows_a_password(cluster: postgres.Cluster) -> None:
    for url, kind in (
        (cluster.url(user="guarded:s3cret"), StoreUnreachable),
        (cluster.url(user="nobody:s3cret").replace("/postgres?", "/nowhere?"), StoreMissing),
        ("postgresql://ann:s3cret@127.0.0.1:1/store", StoreUnreachable),
        ("postgresql://ann:s3cret@host:port/store", StoreUnknown),
        ("postgresql://ann:s3cret@[host/store", StoreUnknown),
        ("postgresql://ann:s3cret@host/store?nonsense=1", StoreUnknown),
        ("postgresql://ann:s3cret@host/store?schema=a b", StoreUnknown),
        ("postgresql+x://ann:s3cret@host/store", StoreUnknown),
    ):
        with pytest.raises(kind) as refused:
            await open_store(url)
        told = f"{refused.value} {refused.value.hint} {refused.value.__cause__}"
        assert "s3cret" not in told
    assert (
        masked_address("postgresql://ann:s3@cr/et@host/db?password=s3cret&x=1")
        == "postgresql://ann:***@host/db?password=***&x=1"
    )
    right = cluster.url(user=f"guarded:{postgres.PASSWORD}")
    with pytest.raises(StoreReadOnly):
        await open_store(right)


async def test_several_processes_can_open_a_new_store_concurrently(postgres_url: str) -> None:
    stores = await asyncio.gather(*(open_postgres(postgres_url) for _ in range(4)))
    assert [await store.verify() for store in stores] == [[], [], [], []]
    for store in stores:
        await store.close()


async def test_a_schema_of_another_program_is_not_changed(cluster: postgres.Cluster) -> None:
    cluster.sql("CREATE TABLE accounts (id int)")
    with pytest.raises(StoreForeign, match="another application") as refused:
        await open_store(cluster.url())
    assert "?schema=pointsman" in refused.value.hint
    assert cluster.value("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace") == "accounts"
    async with opened(cluster.url(schema="beside")) as store:
        await store.journal.append(ONE, row_of(1))
    async with opened(cluster.url(options="-c search_path=beside")) as store:
        assert await seqs(store) == [1]


async def test_a_store_of_a_newer_version_is_not_changed(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await store.journal.append(ONE, row_of(1))
    await run(postgres_url, "UPDATE pointsman_version SET version = 999")
    with pytest.raises(StoreNewer, match="version 999") as refused:
        await open_store(postgres_url)
    assert "Upgrade" in refused.value.hint


async def test_missing_tables_are_reported(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        await store.journal.append(ONE, row_of(1))
        await run(postgres_url, "DROP TABLE rows CASCADE")
        with pytest.raises(StoreMissing):
            await store.journal.append(ONE, row_of(2))
        with pytest.raises(StoreMissing):
            await store.journal.last(ONE)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE rows SET data = 'two' WHERE seq = 3",
        "UPDATE rows SET at = at + 1 WHERE seq = 3",
        "UPDATE rows SET hash = 'x' WHERE seq = 3",
        "UPDATE rows SET form = 1 WHERE seq = 3",
        "UPDATE rows SET shape = 1 WHERE seq = 3",
        "UPDATE rows SET seq = seq + 100 WHERE seq = 5",
        "DELETE FROM rows WHERE seq = 2",
        "UPDATE executions SET id = id || '-other'",
        "DELETE FROM executions",
        "UPDATE blobs SET data = 'x'",
        "UPDATE blobs SET form = 0",
        "DELETE FROM blobs",
    ],
)
@pytest.mark.requirement("S1-110")
async def test_every_foreign_change_is_detected(change: str, postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        for seq in range(1, 6):
            await store.journal.append(ONE, row_of(seq, "one"))
        await store.journal.append(ExecutionId("exec-large"), row_of(1, "large" * 50_000))
        assert await store.verify() == []
        await run(postgres_url, change)
        assert await store.verify() != []


async def test_the_tables_are_readable_by_people(store: PostgresStore, postgres_url: str) -> None:
    await store.journal.append(ONE, row_of(1, "hello"))
    given, _, schema = postgres_url.partition("&schema=")
    async with await psycopg.AsyncConnection.connect(given) as connection:
        found = await connection.execute(
            f"SELECT execution, seq, at::date::text, events FROM {schema}.journal".encode()
        )
        execution, seq, day, events = await found.fetchone() or ("", 0, "", "")
    assert (execution, seq, day, '"hello"' in events) == (ONE, 1, "2023-11-14", True)


async def test_a_large_value_is_sent_once_and_a_long_page_in_parts(store: PostgresStore) -> None:
    large = Random(1).randbytes(100_000).hex()
    rows = [row_of(seq, {"document": large, "seq": seq}) for seq in range(1, 31)]
    for row in rows:
        await store.journal.append(ONE, row)
    assert await rows_in(store.journal, ONE) == rows
    assert await store.verify() == []


@pytest.mark.parametrize("patience", ["soon", "-1", "1e9", "nan", ""])
def test_an_invalid_timeout_is_refused(patience: str) -> None:
    with pytest.raises(StoreUnknown, match="not a number of seconds"):
        address_of(f"postgresql://host/desk?patience={patience}")
    assert address_of("postgresql://host/desk?patience=2.5").patience_s == 2.5


@pytest.mark.parametrize("setting", ["synchronous_commit", "full_page_writes"])
async def test_a_database_without_durable_commits_causes_a_warning(setting: str, cluster: postgres.Cluster) -> None:
    warned = f"{setting!r} is off"
    async with opened(cluster.url()) as store:
        assert not any(warned in line for line in store.warnings())
    cluster.sql(f"ALTER SYSTEM SET {setting} = off", "SELECT pg_reload_conf()")
    await asyncio.to_thread(cluster.stop, how="fast")
    await asyncio.to_thread(cluster.start)
    async with opened(cluster.url()) as store:
        assert any(warned in line for line in store.warnings())
