"""Stores whose memory had no owners yet: what workflows remembered is theirs, what had a name is shared."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from pointsman.store.api import Store, open_store
from pointsman.store.codec import encode_json
from pointsman.store.postgres.address import address_of
from pointsman.store.postgres.migration import run_migrations
from pointsman.store.sqlite.schema import MIGRATIONS, migrate
from pointsman.store.sqlite.seals import bring_seal

OLD = (("long_term", "desk", "tone"), ("long_term", "style", "tone"), ("session", "desk", "tone"), ("cache", "x", "k"))


async def check(store: Store) -> None:
    kept = {(one.scope, one.namespace) for one in await store.memory.holdings()}
    assert kept == {("workflow", "desk"), ("shared", "style"), ("session", "desk"), ("cache", "x")}
    assert await store.memory.get("workflow", "desk", "tone", at=9e9) == "plain"
    [one] = await store.memory.every("shared", "style")
    assert (one.changed, one.expires) == (0.0, None)
    assert [key for key, _ in await store.memory.search("workflow", "desk", "plain")] == ["tone"]
    assert await store.verify() == []


@pytest.mark.integration
async def test_a_file_of_before_is_brought_up_and_stays_sealed(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as database:
        bring_seal(database)
        database.isolation_level = None
        migrate(database, MIGRATIONS[:2])
        database.execute(
            "INSERT INTO workflows (id, revision, version, name, dialect, created, author, digest, text, native)"
            " VALUES ('desk', 1, '', 'Desk', 'native', 0, '', '', '', x'')"
        )
        for number, place in enumerate(OLD, start=1):
            database.execute(
                "INSERT INTO memory (no, scope, namespace, key, value) VALUES (?, ?, ?, ?, ?)",
                (number, *place, encode_json("plain")),
            )
            database.execute("INSERT INTO memory_words (rowid, words) VALUES (?, 'tone plain')", (number,))
    database.close()
    store = await open_store(f"sqlite:///{path}")
    await check(store)
    await store.close()
    with sqlite3.connect(path) as database:
        bring_seal(database)
        sealed = database.execute("SELECT seal FROM memory WHERE scope = 'shared'").fetchone()[0]
        database.execute("UPDATE memory SET expires = 1.0, seal = ? WHERE scope = 'shared'", (sealed,))
        database.execute("DROP TRIGGER memory_resealed")
        database.execute("UPDATE memory SET seal = ? WHERE scope = 'shared'", (sealed,))
    database.close()
    store = await open_store(f"sqlite:///{path}")
    assert [line for line in await store.verify() if "memory" in line] != [], "the time is under the seal too"
    await store.close()


async def test_a_database_of_before_is_brought_up(postgres_url: str) -> None:
    address = address_of(postgres_url)
    with psycopg.connect(address.within(address.schema), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(address.schema)))
        run_migrations(connection, to="1")
    with psycopg.connect(address.within(address.schema), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO workflows"
            " (id, revision, version, name, dialect, created, author, digest, text, native, enabled)"
            " VALUES ('desk', 1, '', 'Desk', 'native', 0, '', '', '', '', true)"
        )
        for place in OLD:
            connection.execute(
                "INSERT INTO memory (scope, namespace, key, value, words)"
                " VALUES (%s, %s, %s, %s, array_to_tsvector(ARRAY['tone', 'plain']))",
                (*place, encode_json("plain")),
            )
    store = await open_store(postgres_url)
    await check(store)
    await store.close()
