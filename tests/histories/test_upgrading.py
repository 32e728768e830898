"""Stores of earlier releases: opening one upgrades it, loses nothing, and its executions continue."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.executions.deletion import summaries
from pointsman.operations.backup import ABOUT, KEPT_FILES, hash_of
from pointsman.operations.health import damage
from pointsman.settings import Settings
from pointsman.store.api import open_store
from pointsman.store.errors import StoreNewer
from pointsman.store.postgres.connections import address_of
from pointsman.store.postgres.schema import MIGRATIONS as OF_POSTGRES
from pointsman.store.records import ExecutionQuery
from pointsman.store.sqlite.schema import MIGRATIONS
from tests import postgres
from tests.cli import flows
from tests.histories.stores import releases, thaw_dump, thaw_file


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        postgres.need_binaries()
    return str(request.param)


@pytest.fixture(params=releases())
def old(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> str:
    """Return the address of a store as that release left it."""
    if kind == "sqlite":
        return thaw_file(request.param, tmp_path / "old.db")
    return thaw_dump(request.param, request.getfixturevalue("postgres_url"))


def opened(url: str) -> Pointsman:
    return Pointsman(url, settings=Settings(delays=False), model="scripted")


async def by_workflow(app: Pointsman) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    async for one in summaries(app.context, ExecutionQuery()):
        found.setdefault(one.workflow, []).append(one.execution)
    return found


async def test_an_old_store_is_upgraded_and_its_executions_continue(old: str) -> None:
    async with opened(old) as app:
        assert await damage(app.context) == []
        found = await by_workflow(app)
        assert {name: len(some) for name, some in found.items()} == {
            "letter": 2,
            "parent": 1,
            "waits": 1,
            "nap": 1,
            "chain": 1,
            "fans": 1,
        }
        for execution in found["letter"]:
            letter = await app.open(execution)
            await letter.answer("review", "approve", by="ada")
            assert await letter.settled() == "completed"
        heard = await app.publish("door", {"who": "ann"})
        assert len(heard.delivered) == 1
        nap = await app.open(found["nap"][0])
        await nap.cancel()
    async with opened(old) as app:
        for name in ("parent", "waits"):
            execution = await app.open(found[name][0])
            assert await execution.settled() == "completed"
        assert [entry.id for entry in await app.workflows()] == ["letter"]
        assert [entry.revision for entry in await app.workflows("letter")] == [2, 1]
        assert await app.store.memory.get("workflow", "letter", "tone") == {"likes": "plain words"}
        assert await app.store.memory.get("shared", "style", "tone") == "short"
        assert (await app.store.sessions.load("closed")).closed
        fresh = await app.start(Workflow.parse(flows.CHAIN), {})
        assert await fresh.settled() == "completed"
        assert await damage(app.context) == []


async def test_several_processes_open_an_old_store_at_once(old: str) -> None:
    stores = await asyncio.gather(*(open_store(old) for _ in range(3)))
    assert [await store.verify() for store in stores] == [[], [], []]
    for store in stores:
        await store.close()


@pytest.mark.integration
@pytest.mark.parametrize("release", releases())
async def test_an_old_file_is_migrated_during_reads(release: str, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    url = thaw_file(release, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT count(*) FROM rows").fetchone()
        store = await open_store(url)
        assert reader.execute("SELECT count(*) FROM rows").fetchone() == before
        reader.execute("COMMIT")
        assert reader.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert await store.verify() == []
        await store.close()


async def test_an_older_program_refuses_a_newer_store_without_changing_it(old: str, tmp_path: Path) -> None:
    await (await open_store(old)).close()
    if old.startswith("sqlite"):
        path = tmp_path / "old.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    else:
        address = address_of(old)
        with psycopg.connect(address.within(address.schema)) as connection:
            connection.execute("UPDATE pointsman_version SET version = %s", (len(OF_POSTGRES) + 1,))
    with pytest.raises(StoreNewer):
        await open_store(old)


@pytest.mark.parametrize("release", releases())
async def test_a_backup_of_an_old_store_is_restored_into_todays(release: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "old.backup"
    thaw_file(release, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.execute(KEPT_FILES)
        connection.execute(ABOUT)
        connection.execute("INSERT INTO backup VALUES (0, '0.1.0', ?)", (hash_of(connection),))
    async with opened(f"sqlite:///{tmp_path / 'new.db'}") as app:
        restored = await app.storage.restore(path)
        assert (restored.about.executions, restored.about.workflows) == (7, 1)
        assert await damage(app.context) == []
