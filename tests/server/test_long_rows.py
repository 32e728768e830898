"""A journal row with very many events is read once, however many pages show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pointsman.executions.pages import CACHED_MAX, CACHED_S, LONG, begun_in
from pointsman.ports import Row
from pointsman.values import ExecutionId
from tests.server.conftest import Served, serving

TURNS = 2 * LONG
TURNING = f"""\
pointsman: 1
id: turning
entry: tick
config: {{durability: async, limits: {{steps: 1000000}}}}
nodes:
  - {{id: tick, type: transform, config: {{set: {{n: "(n ?? 0) + 1"}}}}}}
  - {{id: done, type: end}}
edges:
  - {{source: tick, target: tick, condition: {{type: expression, expression: "n < {TURNS}"}}}}
  - {{source: tick, target: done, condition: {{type: expression, expression: "n >= {TURNS}"}}}}
"""


async def page(served: Served, execution: str, limit: int, after: str | None = None) -> Any:
    wanted = {"limit": limit, **({} if after is None else {"after": after})}
    reply = await served.client.get(f"/api/workflows/executions/{execution}/events", params=wanted)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_paging_through_a_long_row_reads_it_once_and_completely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with serving(store) as served:
        await served.save(TURNING)
        execution = await served.execute("turning")
    async with serving(store) as served:
        journal = served.app.store.journal
        rows = [row async for row in journal.read(ExecutionId(execution))]
        read = journal.read
        seen: list[int] = []

        async def counted(name: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
            async for row in read(name, after=after):
                seen.append(row.seq)
                yield row

        monkeypatch.setattr(journal, "read", counted)
        await page(served, execution, 1)  # Its level is cached from now on.
        begun_in(served.app.context).leave(ExecutionId(execution), rows[0], sent_events=len(rows[0].events))
        seen.clear()
        told: list[Any] = []
        last = None
        while True:
            answer = await page(served, execution, 300, last)
            told += answer["events"]
            last = answer["last"]
            if len(answer["events"]) < 300:
                break
            assert [len(row.events) for row in begun_in(served.app.context).rows] == [len(rows[0].events)]
        assert [(one["seq"], one["n"]) for one in told] == [(r.seq, n) for r in rows for n in range(len(r.events))]
        assert seen.count(1) == 1, "one row, one reading"
        assert begun_in(served.app.context).rows == [], "read to its end"


async def test_the_row_cache_is_bounded_and_expires(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    await served.save(TURNING)
    executions = [await served.execute("turning") for _ in range(CACHED_MAX + 1)]
    asked: list[float] = []
    ring: list[Any] = []

    def later(after_s: float, call: Any, *given: Any) -> Any:
        asked.append(after_s)
        ring.append(lambda: call(*given))
        return asyncio.TimerHandle(0, call, given, asyncio.get_running_loop())

    for execution in executions:
        await page(served, execution, 10)
    assert len(begun_in(served.app.context).rows) == CACHED_MAX
    begun = begun_in(served.app.context)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.get_running_loop(), "call_later", later)
        begun.leave(ExecutionId(executions[-1]), begun.rows[-1], sent_events=1)
    assert asked == [CACHED_S]
    ring[0]()
    assert len(begun.rows) == CACHED_MAX - 1, "nobody read on"
    again = await page(served, executions[-1], 10, "1.4")
    assert [one["n"] for one in again["events"]] == [*range(5, 15)]
