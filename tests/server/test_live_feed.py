"""One stream of all visible executions, with a list entry for each change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pointsman.server.streaming import live_feed as board
from pointsman.server.streaming.live_feed import CHANGED, RESET, LiveFeed
from pointsman.server.streaming.sse import BEAT, CLOSING, WIRE
from pointsman.store.errors import StoreLocked
from pointsman.store.records import ExecutionQuery, Summary
from tests import postgres
from tests.patience import PATIENCE_S
from tests.server.conftest import Served, StreamedEvent, events_in, serving
from tests.server.flows import LETTER, secret_of

ADDRESS = "/api/workflows/executions/stream"


@asynccontextmanager
async def watching(
    served: Served, *, after: str = "", headers: dict[str, str] | None = None, **query: str
) -> AsyncGenerator[AsyncIterator[StreamedEvent], None]:
    sent = {**(headers or {}), **({"last-event-id": after} if after else {})}
    async with served.client.stream("GET", ADDRESS, params=query, headers=sent, timeout=PATIENCE_S) as reply:
        assert reply.status_code == 200
        lines = reply.aiter_lines()
        assert (await anext(lines)).startswith("id: "), "whoever is cut off at once knows where to go on"
        yield events_in_lines(lines)


async def events_in_lines(lines: AsyncIterator[str]) -> AsyncIterator[StreamedEvent]:
    class Rest:
        def aiter_lines(self) -> AsyncIterator[str]:
            return lines

    rest: Any = Rest()
    async for one in events_in(rest):
        yield one


async def until(events: AsyncIterator[StreamedEvent], execution: str, status: str) -> list[StreamedEvent]:
    """Return all events up to that status."""
    heard: list[StreamedEvent] = []
    async with asyncio.timeout(PATIENCE_S):
        async for one in events:
            heard.append(one)
            if one.event == CHANGED and (one.data["executionId"], one.data["status"]) == (execution, status):
                return heard
    raise AssertionError("the stream ended")


async def test_the_live_feed_reports_every_change_of_every_execution(served: Served) -> None:
    await served.save(LETTER)
    async with watching(served) as events, watching(served, workflow="other") as others:
        first = await served.execute("letter", {"goal": "tides"})
        heard = await until(events, first, "waiting")
        listed = (await served.client.get("/api/workflows/executions")).json()["executions"]
        assert heard[-1].data == listed[0], "it is what lists show"
        await served.act(first, "respond", {"gateId": "review", "action": "approve"})
        last = (await until(events, first, "completed"))[-1]
        second = await served.execute("letter", {"goal": "ships"})
        await until(events, second, "waiting")
        served.server.should_exit = True
        assert [one.event async for one in others] == [CLOSING], "nothing of other workflows"
    assert float(last.id) == pytest.approx(last.data["updatedAt"], abs=1e-6)


async def test_a_reconnected_feed_reports_missed_changes(file_store: str) -> None:
    async with serving(file_store) as one:
        await one.save(LETTER)
        async with watching(one) as events:
            first = await one.execute("letter", {"goal": "tides"})
            place = (await until(events, first, "waiting"))[-1].id
    async with serving(file_store) as two:
        await two.act(first, "respond", {"gateId": "review", "action": "approve"})
        second = await two.execute("letter", {"goal": "ships"})
        async with watching(two, after=place) as events:
            told = [await anext(events) for _ in range(2)]
    assert {one.data["executionId"]: one.data["status"] for one in told} == {first: "completed", second: "waiting"}


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_the_feed_reports_executions_of_other_processes(
    file_store: str, store: str, request: pytest.FixtureRequest
) -> None:
    if store == "postgres":
        postgres.need_binaries()
        file_store = request.getfixturevalue("postgres_url")
    async with serving(file_store) as one, serving(file_store) as other:
        await one.save(LETTER)
        async with watching(one) as events:
            execution = await other.execute("letter", {"goal": "tides"})
            await until(events, execution, "waiting")
            async with one.stream(execution) as single:
                await other.act(execution, "respond", {"gateId": "review", "action": "approve"})
                assert "workflow.complete" in [event.event async for event in single]
            await until(events, execution, "completed")


async def test_the_feed_omits_hidden_executions() -> None:
    async with serving(is_local=False) as served:
        inside, outside = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        for document in (secret_of("desk"), LETTER.replace("id: letter", "id: open")):
            reply = await served.client.post("/api/workflows", content=document, headers=inside)
            assert reply.status_code == 201
        shared = await served.client.put("/api/workflows/open/sharing", json={"audience": "everyone"}, headers=inside)
        assert shared.status_code == 200, shared.text
        async with watching(served, headers=inside) as ours, watching(served, headers=outside) as theirs:
            body: dict[str, Any] = {"input": {}, "wait": True}
            secret = await served.client.post("/api/workflows/secret/execute", json=body, headers=inside)
            await until(ours, secret.json()["executionId"], "completed")
            served.server.should_exit = True
            assert [one.event async for one in theirs] == [CLOSING]


async def test_a_feed_that_missed_too_much_asks_to_reload_the_list(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.save(LETTER)
    async with watching(served) as events:
        place = (await until(events, await served.execute("letter", {"goal": "tides"}), "waiting"))[-1].id
    monkeypatch.setattr(board, "CATCH_UP_MAX", 3)
    for _ in range(4):
        await served.execute("letter", {"goal": "ships"})
    async with watching(served, after=place) as events:
        assert (await anext(events)).event == RESET


async def test_a_briefly_unavailable_store_does_not_end_the_feed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.save(LETTER)
    executions, asked = served.app.store.executions, asyncio.Event()
    lists = executions.list

    async def away(query: ExecutionQuery) -> list[Summary]:
        asked.set()
        raise StoreLocked("somebody else writes")

    async with watching(served) as events:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(executions, "list", away)
            first = await served.execute("letter", {"goal": "tides"})
            await asyncio.wait_for(asked.wait(), PATIENCE_S)
        assert executions.list == lists
        second = await served.execute("letter", {"goal": "ships"})
        heard = await until(events, second, "waiting")
        assert first in [one.data["executionId"] for one in heard]


@pytest.mark.parametrize("place", ["x", "1.2.3", "-1", "1e9", "9" * 20, ".5"])
async def test_an_invalid_event_id_is_refused(served: Served, place: str) -> None:
    reply = await served.client.get(ADDRESS, headers={"last-event-id": place})
    assert (reply.status_code, reply.json()["code"]) == (400, "position-invalid")


async def test_an_idle_feed_sends_keep_alives(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "HEARTBEAT_S", 0.001)
    silent = LiveFeed(served.app.context, WIRE)

    async def sees(_: object) -> bool:
        return True

    changes = silent.changes(sees)
    assert (await anext(changes)).startswith(b"id: ")
    assert [await anext(changes) for _ in range(2)] == [BEAT, BEAT]
    await changes.aclose()
    assert silent.subscribers == 0
    await silent.close()
