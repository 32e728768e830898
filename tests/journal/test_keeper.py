"""A keeper that was superseded without knowing it: a zombie. It writes nothing after the new one's first row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pointsman.errors import PointsmanError
from pointsman.journal.faults import KeeperSuperseded
from pointsman.journal.keeping import Keep
from pointsman.journal.postgres import keeper
from pointsman.journal.store import Store
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from pointsman.testing.stores import draft_of, summary_of
from pointsman.values import ExecutionId
from tests import postgres
from tests.patience import PATIENCE_S

Takeover = Callable[[Store], Awaitable[Keep]]
Refusal = Callable[[str, Takeover], Awaitable[None]]
HELD = f"FROM pg_locks WHERE locktype = 'advisory' AND classid = {keeper.LOCK} AND objsubid = 2"
BREAK = f"SELECT pg_terminate_backend(pid) {HELD}"


async def a_zombie_is_refused(url: str, take_over: Takeover) -> None:
    async with opened(url) as old, opened(url) as new:
        kept = await old.keep("old")
        await old.journal.append(ONE, row_of(1))
        fresh = await take_over(new)
        assert fresh.epoch == kept.epoch + 1
        for write in (
            old.journal.append(ONE, row_of(2)),
            old.journal.append(ExecutionId("exec-new"), row_of(1)),
            old.effects.record(ONE, "write#1", 1, "paid"),
            old.executions.put(summary_of(1)),
            old.memory.put("session", "ann", "name", "Ann"),
            old.sessions.append("talk", ("hello",), after=0),
            old.workflows.save(draft_of("one")),
            old.entries.put("schedule", "daily", {}),
        ):
            with pytest.raises(KeeperSuperseded):
                await write
        await asyncio.wait_for(kept.lost.wait(), PATIENCE_S)
        await kept.release()
        with pytest.raises(KeeperSuperseded):
            await old.journal.append(ONE, row_of(2))
        assert [row.seq for row in await rows_in(old.journal, ONE)] == [1], "reading goes on"
        assert not fresh.lost.is_set()
        await new.journal.append(ONE, row_of(2))
        assert await new.effects.recorded(ONE, "write#1") == {}


async def no_row_follows_the_takeover(url: str, take_over: Takeover) -> None:
    """The old keeper writes for sixteen executions as fast as it can while the new one takes over."""
    async with opened(url) as old, opened(url) as new:
        await old.keep("old")
        executions = [ExecutionId(f"exec-{number}") for number in range(16)]
        under_way = asyncio.Event()

        async def write(execution: ExecutionId) -> PointsmanError:
            seq = 0
            while True:
                seq += 1
                try:
                    await old.journal.append(execution, row_of(seq, "old"))
                except PointsmanError as why:
                    return why
                if seq == 5:
                    under_way.set()

        writing = [asyncio.ensure_future(write(execution)) for execution in executions]
        await under_way.wait()
        await take_over(new)
        ends = [await new.journal.last(execution) for execution in executions]
        assert {type(why) for why in await asyncio.gather(*writing)} == {KeeperSuperseded}
        assert [await new.journal.last(execution) for execution in executions] == ends
        for execution, end in zip(executions, ends, strict=True):
            await new.journal.append(execution, row_of(end + 1, "new"))
        assert await new.verify() == []


@pytest.mark.parametrize("rule", [a_zombie_is_refused, no_row_follows_the_takeover])
async def test_on_sqlite_when_the_lock_was_lost(rule: Refusal, tmp_path: Path) -> None:
    async def take_over(new: Store) -> Keep:
        (tmp_path / "store.db-keeper").unlink()
        return await new.keep("new")

    await rule(f"sqlite:///{tmp_path}/store.db", take_over)


@pytest.mark.parametrize("rule", [a_zombie_is_refused, no_row_follows_the_takeover])
async def test_on_postgresql_when_the_session_was_lost(
    rule: Refusal, cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "WATCH_S", 3600.0)

    async def take_over(new: Store) -> Keep:
        await asyncio.to_thread(cluster.sql, BREAK)
        return await new.keep("new", wait=True)

    await rule(cluster.url(), take_over)


async def test_a_keeper_that_loses_its_session_stays_the_keeper_while_nobody_else_wants_to_be(
    cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "WATCH_S", 0.01)
    monkeypatch.setattr(keeper, "STANDBY_S", 0.01)
    async with opened(cluster.url()) as store:
        kept = await store.keep("first")
        before = await asyncio.to_thread(cluster.value, f"SELECT pid {HELD}")
        await asyncio.to_thread(cluster.sql, BREAK)
        while await asyncio.to_thread(cluster.value, f"SELECT pid {HELD}") in ("", before):
            pass  # Each look takes its time.
        await store.journal.append(ONE, row_of(1))
        assert not kept.lost.is_set()


async def test_a_standby_outlasts_a_server_that_restarts(
    cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "STANDBY_S", 0.01)
    async with opened(cluster.url()) as one, opened(cluster.url()) as other:
        kept = await one.keep("one")
        waiting = asyncio.ensure_future(other.keep("other", wait=True))
        await asyncio.sleep(0)
        await asyncio.to_thread(cluster.stop)
        await asyncio.to_thread(cluster.start)
        await kept.release()
        assert (await waiting).holder == "other"
        await other.journal.append(ONE, row_of(1))
