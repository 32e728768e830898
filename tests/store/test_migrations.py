"""Migrations of the SQL stores: numbered statements, applied once, all or none, under a lock."""

from __future__ import annotations

import asyncio
from typing import Final, LiteralString, cast

import psycopg
import pytest

from pointsman.store.api import open_store
from pointsman.store.errors import StoreNewer
from pointsman.store.postgres import schema
from pointsman.store.postgres.connections import address_of
from pointsman.store.postgres.schema import MIGRATIONS
from pointsman.store.sql.schema import Migration, Migrations, missing
from pointsman.testing.journals import ONE, row_of
from pointsman.testing.stores import summary_of

SECOND: Final[Migration] = ("ALTER TABLE effects ADD COLUMN cost double precision", "CREATE TABLE extra (id integer)")


def test_pending_migrations_are_those_after_the_version_of_the_store() -> None:
    assert missing([SECOND, SECOND], 0) == [SECOND, SECOND]
    assert missing([("a",), SECOND], 1) == [SECOND]
    assert missing([SECOND], 1) == []


def test_a_newer_store_is_refused() -> None:
    with pytest.raises(StoreNewer, match="version 3; this Pointsman supports versions up to 1"):
        missing([SECOND], 3)


@pytest.mark.integration
async def test_a_failed_migration_of_postgresql_changes_nothing(postgres_url: str) -> None:
    await (await open_store(postgres_url)).close()
    address = address_of(postgres_url)
    version = len(MIGRATIONS)
    broken: Migrations = (*MIGRATIONS, (*SECOND, "CREATE TABLE extra (id integer)"))
    with psycopg.connect(address.within(address.schema), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DuplicateTable):
            schema.migrate(connection, version, broken)
        assert schema.found_in(connection)[1] == version
        schema.migrate(connection, version, (*MIGRATIONS, SECOND))
        assert schema.found_in(connection)[1] == version + 1
        assert connection.execute("SELECT cost FROM effects").fetchall() == []
    with pytest.raises(StoreNewer):
        await open_store(postgres_url)


@pytest.mark.integration
async def test_several_processes_migrate_a_new_postgresql_store_concurrently(postgres_url: str) -> None:
    stores = await asyncio.gather(*(open_store(postgres_url) for _ in range(4)))
    assert [await store.verify() for store in stores] == [[], [], [], []]
    for store in stores:
        await store.close()


@pytest.mark.integration
async def test_a_user_without_rights_to_change_tables_can_use_a_store(postgres_url: str) -> None:
    await (await open_store(postgres_url)).close()
    address = address_of(postgres_url)
    rights = f"""
        DROP ROLE IF EXISTS clerk; CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA {address.schema} TO clerk;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {address.schema} TO clerk;
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA {address.schema} TO clerk;
    """
    with psycopg.connect(address.conninfo, autocommit=True) as connection:
        connection.execute(cast("LiteralString", rights))
    try:
        store = await open_store(f"{postgres_url}&user=clerk")
        await store.journal.append(ONE, row_of(1), summary=summary_of(1))
        await store.memory.put("user", "ann", "tone", "short")
        assert await store.entries.put("schedule", "daily", {"at": 7}) == 1
        leadership = await store.lead("clerk")
        await leadership.release()
        assert await store.verify() == []
        await store.close()
    finally:
        with psycopg.connect(address.conninfo, autocommit=True) as connection:
            connection.execute("DROP OWNED BY clerk; DROP ROLE clerk")
