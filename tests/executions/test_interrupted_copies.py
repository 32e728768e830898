"""Forks and imports that a crash interrupts: they are invisible, `doctor` reports them, and `gc` deletes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.errors import PointsmanError
from pointsman.executions.fork_migrate_replay import COPY_KIND, COPY_S_MAX
from pointsman.operations.health import findings, repair
from pointsman.ports import Row
from pointsman.runtime import local
from pointsman.settings import Settings
from pointsman.store.api import open_store
from pointsman.store.errors import JournalMoved, StoreFull
from pointsman.store.records import Summary
from pointsman.values import ExecutionId
from tests import postgres
from tests.installation import HandClock, asking
from tests.installation import opened as at
from tests.operations.test_export import begun, exported, finished

COPY = ExecutionId("exec-copy")
HOUR = COPY_S_MAX
Opened = Callable[[], AbstractAsyncContextManager[Pointsman]]


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Opened:
    """Opens the same store each time, like a restart."""
    if request.param == "postgres":
        postgres.need_binaries()
        url: str = request.getfixturevalue("postgres_url")
    else:
        url = f"sqlite:///{tmp_path / 'store.db'}"

    @asynccontextmanager
    async def opening() -> AsyncGenerator[Pointsman, None]:
        async with Pointsman(url, settings=Settings(), clock=clock) as app:
            yield app

    return opening


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


async def fork_that_dies(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> ExecutionId:
    """Return an execution whose fork was interrupted by a crash after some rows."""

    async def dies(*_: object) -> None:
        raise KeyboardInterrupt

    async with opened() as app:
        origin = await app.start(asking())
        await origin.settled()
        await app.store.memory.put("execution", COPY, "note", 7)
        with monkeypatch.context() as patched:
            patched.setattr("pointsman.executions.fork_migrate_replay.new_id", lambda: COPY)
            patched.setattr(local.Driver, "deliver", dies)
            with pytest.raises(KeyboardInterrupt):
                await app.fork(origin.id)
    return origin.id


async def told(app: Pointsman) -> list[str]:
    return [one.message for one in await findings(app.context) if one.code == "interrupted-copies"]


async def test_a_fork_interrupted_by_a_crash_is_reported_and_deleted(
    opened: Opened, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = await fork_that_dies(opened, monkeypatch)
    async with opened() as app:
        assert [one.execution for one in await app.executions()] == [origin]
        assert await app.store.journal.last(COPY) > 0
        assert (await told(app), (await app.storage.collect()).copies) == ([], 0), "it may be under way"
    clock.move(HOUR + 1)
    async with opened() as app:
        (message,) = await told(app)
        assert str(COPY) in message
        assert (await app.storage.collect(dry_run=True)).copies == 1
        assert (await app.storage.collect()).copies == 1
    async with opened() as app:
        assert await app.store.journal.last(COPY) == 0
        assert await app.store.memory.get("execution", COPY, "note") is None
        assert (await told(app), (await app.storage.collect()).copies, await app.store.verify()) == ([], 0, [])
        assert await app.store.journal.last(origin) > 0


async def test_the_doctor_repairs_an_interrupted_fork(
    opened: Opened, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fork_that_dies(opened, monkeypatch)
    clock.move(HOUR + 1)
    async with opened() as app:
        await repair(app.context, await findings(app.context))
        assert (await told(app), await app.store.journal.last(COPY)) == ([], 0)


async def test_a_finished_fork_is_not_deleted_when_its_mark_is_missing(
    opened: Opened, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    async with opened() as app:
        origin = await app.start(asking())
        await origin.settled()
        with monkeypatch.context() as patched:
            patched.setattr("pointsman.executions.fork_migrate_replay.new_id", lambda: COPY)
            patched.setattr(type(app.store.entries), "delete", dies)
            with pytest.raises(KeyboardInterrupt):
                await app.fork(origin.id)
    clock.move(HOUR + 1)
    async with opened() as app:
        assert (await app.storage.collect()).copies == 0
        assert await app.store.entries.list(COPY_KIND) == []
        assert await (await app.open(COPY)).settled() == "waiting"


async def test_a_very_slow_fork_is_refused_after_it_was_given_up(
    opened: Opened, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fork_that_dies(opened, monkeypatch)
    clock.move(HOUR + 1)
    async with opened() as app, opened() as slow:
        last = await slow.store.journal.last(COPY)
        (*_, end) = [row async for row in slow.store.journal.read(COPY)]
        assert (await app.storage.collect()).copies == 1
        with pytest.raises(JournalMoved):
            await slow.store.journal.append(COPY, Row(last + 1, end.at, end.events))


@pytest.mark.integration
async def test_an_interrupted_import_starts_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    async with at(tmp_path / "one", HandClock()) as app:
        top = await begun(app)
        file = await exported(app, top, tmp_path)
    async with at(tmp_path / "other", HandClock()) as app:
        real = app.store.journal.append

        async def full_for_the_last(execution: ExecutionId, row: Row, *, summary: Summary | None = None) -> None:
            if execution == top and summary is not None:
                raise StoreFull("no room")
            await real(execution, row, summary=summary)

        with monkeypatch.context() as patched:
            patched.setattr(app.store.journal, "append", full_for_the_last)
            with pytest.raises(PointsmanError):
                await app.storage.bring_in(file)
        assert [one.execution for one in await app.executions()] != [], "the sub-workflow is listed"
    async with at(tmp_path / "other", HandClock()) as app:
        assert await app.storage.bring_in(file) == top
        assert await finished(app, top) == "completed"
    store = await open_store(f"sqlite:///{tmp_path / 'other' / 'store.db'}")
    try:
        assert (await store.entries.list(COPY_KIND), await store.verify()) == ([], [])
    finally:
        await store.close()
