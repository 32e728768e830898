"""A leader that was superseded without its knowledge writes nothing after the first row of the new one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from pointsman.errors import PointsmanError
from pointsman.store import coordination
from pointsman.store.api import Store
from pointsman.store.coordination import Leadership
from pointsman.store.errors import LeaderExists, LeaderSuperseded
from pointsman.store.postgres import leader as keeper
from pointsman.testing.journals import ONE, opened, row_of, rows_in
from pointsman.testing.stores import draft_of, summary_of
from pointsman.values import ExecutionId
from tests import postgres
from tests.patience import PATIENCE_S

Takeover = Callable[[Store], Awaitable[Leadership]]
Refusal = Callable[[str, Takeover], Awaitable[None]]
HELD = f"FROM pg_locks WHERE locktype = 'advisory' AND classid = {keeper.LOCK} AND objsubid = 2"
BREAK = f"SELECT pg_terminate_backend(pid) {HELD}"


async def a_zombie_is_refused(url: str, take_over: Takeover) -> None:
    async with opened(url) as old, opened(url) as new:
        kept = await old.lead("old")
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
            with pytest.raises(LeaderSuperseded):
                await write
        await asyncio.wait_for(kept.lost.wait(), PATIENCE_S)
        await kept.release()
        if old.claims is None:  # On PostgreSQL it continues to write like a process that is not the leader.
            with pytest.raises(LeaderSuperseded):
                await old.journal.append(ONE, row_of(2))
        assert [row.seq for row in await rows_in(old.journal, ONE)] == [1], "reading goes on"
        assert not fresh.lost.is_set()
        await new.journal.append(ONE, row_of(2))
        assert await new.effects.recorded(ONE, "write#1") == {}


async def no_row_follows_the_takeover(url: str, take_over: Takeover) -> None:
    """The old leader writes for sixteen executions as fast as possible while the new one takes over."""
    async with opened(url) as old, opened(url) as new:
        await old.lead("old")
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
        assert {type(why) for why in await asyncio.gather(*writing)} == {LeaderSuperseded}
        assert [await new.journal.last(execution) for execution in executions] == ends
        for execution, end in zip(executions, ends, strict=True):
            await new.journal.append(execution, row_of(end + 1, "new"))
        assert await new.verify() == []


@pytest.mark.integration
@pytest.mark.parametrize("rule", [a_zombie_is_refused, no_row_follows_the_takeover])
async def test_a_leader_on_sqlite_that_lost_its_lock_writes_nothing(rule: Refusal, tmp_path: Path) -> None:
    async def take_over(new: Store) -> Leadership:
        (tmp_path / "store.db-keeper").unlink()
        return await new.lead("new")

    await rule(f"sqlite:///{tmp_path}/store.db", take_over)


@pytest.mark.parametrize("rule", [a_zombie_is_refused, no_row_follows_the_takeover])
async def test_a_leader_on_postgresql_that_lost_its_session_writes_nothing(
    rule: Refusal, cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "WATCH_S", 3600.0)

    async def take_over(new: Store) -> Leadership:
        await asyncio.to_thread(cluster.sql, BREAK)
        return await new.lead("new", wait=True)

    await rule(cluster.url(), take_over)


async def test_a_leader_that_loses_its_session_stays_leader_without_a_rival(
    cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "WATCH_S", 0.01)
    monkeypatch.setattr(keeper, "STANDBY_S", 0.01)
    async with opened(cluster.url()) as store:
        kept = await store.lead("first")
        before = await asyncio.to_thread(cluster.value, f"SELECT pid {HELD}")
        await asyncio.to_thread(cluster.sql, BREAK)
        while await asyncio.to_thread(cluster.value, f"SELECT pid {HELD}") in ("", before):
            pass  # Each look takes time.
        await store.journal.append(ONE, row_of(1))
        assert not kept.lost.is_set()


async def test_a_standby_survives_a_restart_of_the_database(
    cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "STANDBY_S", 0.01)
    async with opened(cluster.url()) as one, opened(cluster.url()) as other:
        kept = await one.lead("one")
        waiting = asyncio.ensure_future(other.lead("other", wait=True))
        await asyncio.sleep(0)
        await asyncio.to_thread(cluster.stop)
        await asyncio.to_thread(cluster.start)
        await kept.release()
        assert (await waiting).holder == "other"
        await other.journal.append(ONE, row_of(1))


LEADER: Final = """
import asyncio, sys
from pointsman.errors import PointsmanError
from pointsman.store.postgres import leader as of_postgres
from pointsman.store.sqlite import leader as of_sqlite
from pointsman.testing.journals import ONE, opened, row_of

of_sqlite.BEAT_S = of_postgres.WATCH_S = 0.1

async def lead(url, works):
    async with opened(url) as store:
        keep = await store.lead("leader")
        print("keeps", flush=True)
        seq = 0
        while not keep.lost.is_set():
            if works:
                seq += 1
                await store.journal.append(ONE, row_of(seq))
            await asyncio.sleep(0.01)
        await keep.release()

try:
    asyncio.run(lead(sys.argv[1], sys.argv[2] == "works"))
except PointsmanError as why:
    print(why.code, flush=True)
    sys.exit(3)
print("stepped down", flush=True)
"""
LEASE_S: Final = 1.5


@pytest.mark.integration
@pytest.mark.parametrize("does", ["works", "waits"])
async def test_a_stopped_leader_of_an_sqlite_store_loses_its_role(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordination, "LEASE_S", LEASE_S)
    await a_stopped_leader_loses_its_role(f"sqlite:///{tmp_path}/store.db", does)


@pytest.mark.parametrize("does", ["works", "waits"])
async def test_a_stopped_leader_of_a_postgresql_store_loses_its_role(
    does: str, cluster: postgres.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordination, "LEASE_S", LEASE_S)
    await a_stopped_leader_loses_its_role(cluster.url(), does)


async def a_stopped_leader_loses_its_role(url: str, does: str) -> None:
    """SIGSTOP keeps its locks and connections. After SIGCONT it writes nothing more and steps down."""
    leader = await asyncio.to_thread(_leading, url, does)
    try:
        async with opened(url) as store:
            standby = asyncio.ensure_future(store.lead("standby", wait=True))
            await asyncio.sleep(LEASE_S * 2)
            assert not standby.done(), "a leader that works keeps its role"
            os.kill(leader.pid, signal.SIGSTOP)
            fresh = await asyncio.wait_for(standby, PATIENCE_S)
            rows = await rows_in(store.journal, ONE)
            last = rows[-1].seq if rows else 0
            await store.journal.append(ONE, row_of(last + 1))
            os.kill(leader.pid, signal.SIGCONT)
            said, _ = await asyncio.to_thread(leader.communicate, timeout=PATIENCE_S)
            assert said.split() in (["leader-superseded"], ["stepped", "down"])
            assert leader.returncode in (0, 3)
            assert len(await rows_in(store.journal, ONE)) == last + 1, "the stopped leader wrote nothing more"
            assert not fresh.lost.is_set()
            with pytest.raises(LeaderExists):
                async with opened(url) as third:
                    await third.lead("third")
    finally:
        leader.kill()
        leader.wait()


def _leading(url: str, does: str) -> subprocess.Popen[str]:
    leader = subprocess.Popen([sys.executable, "-c", LEADER, url, does], stdout=subprocess.PIPE, text=True)
    assert leader.stdout is not None
    assert leader.stdout.readline() == "keeps\n"
    return leader
