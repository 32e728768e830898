"""A read-only store: all reads work, and all writes are refused with the reason."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from pointsman import Pointsman, Workflow
from pointsman.auth.callers import LOCAL
from pointsman.errors import PointsmanError
from pointsman.operations.backup import back_up
from pointsman.operations.readiness import Lifecycle, readiness
from pointsman.settings import Settings
from pointsman.store.errors import StoreReadOnly
from pointsman.store.sqlite import schema
from pointsman.values import ExecutionId
from tests import postgres
from tests.patience import PATIENCE_S

ASKS: Final = Workflow.of({"id": "asks", "nodes": [{"id": "ask", "type": "human", "config": {"message": "Go on?"}}]})
FLOW: Final = Workflow.of({"id": "one", "nodes": [{"id": "a", "type": "agent", "config": {"prompt": "Say {x}."}}]})
QUIET: Final = Settings(delays=False)


@pytest.fixture
def primary() -> Iterator[postgres.Cluster]:
    yield from postgres.own_cluster()


def frozen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse all writes in the folder, also for root, who may otherwise write everywhere."""
    really = os.access
    for path in (*folder.iterdir(), folder):
        path.chmod(path.stat().st_mode & ~0o222)

    def access(path: str | os.PathLike[str], mode: int) -> bool:
        inside = folder in (Path(path), *Path(path).parents)
        return really(path, mode) and not (inside and mode & os.W_OK)

    monkeypatch.setattr(os, "access", access)
    os.chmod(folder, 0o755)  # So that pytest can delete it.


def contents(folder: Path) -> dict[str, bytes]:
    # Root writes into the index of the log although the folder is read-only.
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


async def everything_is_read(app: Pointsman, execution: str) -> None:
    assert [one.execution for one in await app.executions()] == [execution]
    assert (await app.view(execution))["status"] == "completed"
    assert (await app.state_and_events(execution))[1]
    assert await app.public_events(execution)
    assert [line async for line in app.storage.export(execution)]
    operations = app.acting_as(LOCAL).operations
    assert [line async for line in await operations.export(execution)]
    assert [(one.get("workflow"), one["steps"]) for one in await operations.usage()] == [("one", 1)]
    found = await app.acting_as(LOCAL).executions.search("scripted", workflow="one")
    assert [one["executionId"] for one in found["executions"]] == [execution]
    assert await app.store.verify() == []
    assert await app.workflows() == []
    assert (await app.replay(execution)).differences == []


async def nothing_is_written(app: Pointsman, execution: str) -> None:
    verbs: list[Callable[[], Awaitable[object]]] = [
        lambda: app.start(FLOW, {"x": 2}),
        lambda: app.save(FLOW),
        lambda: app.store.lead("here"),
        lambda: app.vault.set("NAME", "a-long-value"),
        lambda: app.store.memory.put("workflow", "one", "key", "value"),
        lambda: app.storage.delete(execution),
    ]
    for verb in verbs:
        with pytest.raises(PointsmanError) as caught:
            await verb()
        assert caught.value.code == "store-read-only", caught.value
        assert caught.value.hint
    found = await readiness(app.context, Lifecycle())
    assert (found.ready, found.writable, found.store) == (False, False, True)


@pytest.mark.integration
@pytest.mark.parametrize("left", ["", "-wal", "-wal -shm"], ids=["closed", "with its log", "with log and index"])
async def test_a_read_only_file_can_be_read(left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    async with Pointsman(f"sqlite:///{there}/s.db", settings=QUIET, model="scripted") as app:
        execution = await app.start(FLOW, {"x": 1})
        await execution.settled()
        for end in left.split():  # As after a crash.
            shutil.copy(there / f"s.db{end}", here / f"s.db{end}")
        if left:
            shutil.copy(there / "s.db", here / "s.db")
    if not left:
        shutil.copy(there / "s.db", here / "s.db")
    frozen(here, monkeypatch)
    before = contents(here)
    async with Pointsman(f"sqlite:///{here}/s.db", settings=QUIET, model="scripted") as app:
        assert app.store.read_only
        await everything_is_read(app, execution.id)
        await nothing_is_written(app, execution.id)
        await back_up(app.context, tmp_path / "backup")
    assert contents(here) == before, "nothing was made or changed beside it"


async def test_a_read_only_database_can_be_read(cluster: postgres.Cluster) -> None:
    async with Pointsman(cluster.url(), settings=QUIET, model="scripted") as app:
        execution = await app.start(FLOW, {"x": 1})
        await execution.settled()
    url = cluster.url(options="-c default_transaction_read_only=on")
    async with Pointsman(url, settings=QUIET, model="scripted") as app:
        assert app.store.read_only
        await everything_is_read(app, execution.id)
        await nothing_is_written(app, execution.id)


@pytest.mark.integration
async def test_an_older_read_only_store_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Pointsman(f"sqlite:///{tmp_path}/s.db", settings=QUIET, model="scripted"):
        pass
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    connection.close()
    frozen(tmp_path, monkeypatch)
    monkeypatch.setattr(schema.is_current, "__defaults__", ((*schema.MIGRATIONS, ("SELECT 1",)),))
    with pytest.raises(StoreReadOnly, match="older version"):
        async with Pointsman(f"sqlite:///{tmp_path}/s.db", settings=QUIET, model="scripted"):
            pass


@pytest.mark.integration
async def test_a_store_that_becomes_read_only_under_a_process_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Pointsman(f"sqlite:///{tmp_path}/s.db", settings=QUIET, model="scripted") as app:
        assert (await readiness(app.context, Lifecycle())).ready
        frozen(tmp_path, monkeypatch)
        found = await readiness(app.context, Lifecycle())
    assert (found.ready, found.writable, found.store) == (False, False, True)


async def test_a_database_that_becomes_read_only_under_a_process_is_not_ready(cluster: postgres.Cluster) -> None:
    async with Pointsman(cluster.url(schema="fails_over"), settings=QUIET, model="scripted") as app:
        assert (await readiness(app.context, Lifecycle())).ready
        cluster.sql("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
        try:
            async with asyncio.timeout(PATIENCE_S):
                while (found := await readiness(app.context, Lifecycle())).writable:  # noqa: ASYNC110 - no notification
                    await asyncio.sleep(0.02)
        finally:
            cluster.sql("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
        assert (found.ready, found.store) == (False, True)
        async with asyncio.timeout(PATIENCE_S):
            while not (await readiness(app.context, Lifecycle())).ready:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)


@pytest.mark.integration
async def test_a_standby_server_is_read_and_follows_what_the_primary_writes(primary: postgres.Cluster) -> None:
    folder = postgres.own_folder()
    standby = primary.copied_to(folder)
    try:
        url, at_standby = (one.url(schema="replicated") for one in (primary, standby))
        async with Pointsman(url, settings=QUIET, model="scripted") as writes:
            execution = await writes.start(ASKS)
            await execution.settled()
            rows = len(await execution.rows())
            await until_there(at_standby, execution.id, rows)
            async with Pointsman(at_standby, settings=QUIET, model="scripted") as reads:
                assert reads.store.read_only
                assert not (await readiness(reads.context, Lifecycle())).writable
                told = asyncio.Event()
                leave = reads.store.follow(execution.id, told.set)
                await asyncio.wait_for(told.wait(), PATIENCE_S)
                told.clear()
                await execution.answer("ask", "approve")
                await execution.settled()
                await asyncio.wait_for(told.wait(), PATIENCE_S)
                leave()
                assert (await reads.view(execution.id))["executionId"] == execution.id
    finally:
        postgres.take_away(folder)


async def until_there(url: str, execution: str, rows: int) -> None:
    """Wait until the standby has received the tables and rows of the primary."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with Pointsman(url, settings=QUIET) as app:
                    if await app.store.journal.last(ExecutionId(execution)) == rows:
                        return
            except PointsmanError:
                pass
            await asyncio.sleep(0.05)
