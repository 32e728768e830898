"""Rows reach the journal in order, independent of waiters and of the speed of the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from pointsman.engine.events.waits import WarningRaised
from pointsman.ports import Row
from pointsman.runtime.commits import Commits
from pointsman.store.api import StoreJournal, open_store
from pointsman.store.records import EffectRecord, Summary
from pointsman.values import ExecutionId

EXECUTION = ExecutionId("exec-commits")


class SlowLedger:
    """A journal whose first append waits until a test releases it."""

    def __init__(self, ledger: StoreJournal) -> None:
        self._ledger = ledger
        self.let_go = asyncio.Event()
        self.read = ledger.read
        self.last = ledger.last

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        await self.let_go.wait()
        await self._ledger.append(execution, *rows, summary=summary, effects=effects)


class Owner:
    """The owner of the rows, without a driver."""

    def __init__(self, journal: SlowLedger) -> None:
        self.journal = journal
        self.seen: list[int] = []

    def committed(self, row: Row) -> None:
        self.seen.append(row.seq)

    def on_refused_row(self, why: BaseException) -> None:
        raise AssertionError from why

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        raise AssertionError


async def test_rows_that_arrive_during_a_write_are_written_after_it() -> None:
    ledger = SlowLedger((await open_store("memory:")).journal)
    owner, commits = Owner(ledger), Commits(EXECUTION)
    rows = [Row(seq, float(seq), (WarningRaised(code="c", message="m"),)) for seq in (1, 2, 3)]
    written = [asyncio.ensure_future(commits.now(owner, row, None)) for row in rows]
    flushed = asyncio.ensure_future(commits.flush(owner))
    for _ in range(10):
        await asyncio.sleep(0)
    assert (owner.seen, commits.behind, flushed.done()) == ([], 3, False)
    ledger.let_go.set()
    await asyncio.gather(*written, flushed)
    assert (owner.seen, commits.behind, await ledger.last(EXECUTION)) == ([1, 2, 3], 0, 3)


async def test_a_single_row_is_pending_until_its_acknowledgement() -> None:
    """It may already be in the journal: a reader that finds it has not found a row of another process."""
    ledger = SlowLedger((await open_store("memory:")).journal)
    commits, row = Commits(EXECUTION), Row(1, 1.0, (WarningRaised(code="c", message="m"),))
    written = asyncio.ensure_future(commits.now(Owner(ledger), row, None))
    await asyncio.sleep(0)
    assert commits.writing
    ledger.let_go.set()
    await written
    assert not commits.writing
