"""Streams lose and repeat nothing, and a client that stops reading holds no resources."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from pointsman.executions.pages import parse_event_position
from pointsman.models.script import read_script
from pointsman.server.routes import executions
from pointsman.server.streaming import sse as ring
from pointsman.server.streaming.broker import SseBroker
from pointsman.server.streaming.sse import BEAT, CLOSING, START, WIRE
from tests.patience import PATIENCE_S
from tests.server.conftest import Served, StreamedEvent, events_in, serving
from tests.server.flows import CHAIN, LETTER, WAITS

COUNT = """\
pointsman: 1
id: count
entry: tick
input: {type: object}
nodes:
  - {id: tick, type: transform, config: {set: {n: "(n ?? 0) + 1"}}}
  - {id: done, type: end}
edges:
  - {source: tick, target: tick, condition: {type: expression, expression: "n < 400"}}
  - {source: tick, target: done}
"""


async def until(holds: Callable[[], bool]) -> None:
    """Wait without notification: sockets do not report when they were read."""
    while not holds():  # noqa: ASYNC110 - see above
        await asyncio.sleep(0.001)


def ids_in(chunk: bytes) -> list[str]:
    lines = chunk.decode().splitlines()
    return [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]


async def told(served: Served, execution: str) -> list[tuple[str, str]]:
    """Return all events of the journal."""
    return [(str(one["id"]), str(one["event"])) for one in await served.app.public_events(execution)]


@pytest.mark.requirement("S1-84", "S1-125")
async def test_a_stream_sends_all_events_in_order_and_ends_with_the_execution(served: Served) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    heard = [(one.id, one.event) for one in await served.read_events(execution) if one.id]
    assert heard == await told(served, execution)
    assert heard[0] == ("1.0", "workflow.start")
    assert "workflow.complete" in [name for _, name in heard]
    assert len({id for id, _ in heard}) == len(heard), "every event has an id of its own"


async def test_a_reconnected_stream_sends_exactly_the_missed_events(served: Served) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    story = await told(served, execution)
    for number, (left_at, _) in enumerate(story[:-1]):
        heard = [(one.id, one.event) for one in await served.read_events(execution, after=left_at)]
        assert heard == story[number + 1 :]
    address = f"/api/workflows/executions/{execution}/stream"
    done = await served.client.get(address, headers={"last-event-id": story[-1][0]})
    assert done.status_code == 204, "a browser stops coming back"


@pytest.mark.parametrize("place", ["x", "1.x", "-1", "1.2.3", "9" * 50, "٣"])
async def test_an_unknown_stream_position_is_refused(served: Served, place: str) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    reply = await served.client.get(f"/api/workflows/executions/{execution}/stream?after={place}")
    assert (reply.status_code, reply.json()["code"]) == (400, "position-invalid")


async def test_a_stream_sends_events_as_they_happen(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})

    async def listen() -> list[str]:
        return [one.id for one in await served.read_events(execution) if one.id]

    listeners = [asyncio.create_task(listen()) for _ in range(20)]
    await until(lambda: served.desk.broker.listeners(execution) == len(listeners))
    await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
    expected = [id for id, _ in await told(served, execution)]
    for heard in await asyncio.gather(*listeners):
        assert heard[: len(expected)] == expected[: len(heard)]
        assert len(heard) == len({*heard})
    final = [id for id, _ in await told(served, execution)]
    assert all(task.result() == final for task in listeners)
    assert served.desk.broker.listeners(execution) == 0


async def test_live_text_is_streamed_without_an_id() -> None:
    async with serving(script=read_script("rules: [{node: write, text: 'Dear Ada, how are you'}]")) as spoken:
        await spoken.save(
            LETTER.replace("entry: write", "entry: hold")
            .replace("nodes:\n", "nodes:\n  - {id: hold, type: wait, config: {event: go}}\n")
            .replace("edges:\n", "edges:\n  - {source: hold, target: write}\n")
        )
        execution = await spoken.execute("letter", {"goal": "tides"})
        async with spoken.stream(execution) as events:
            await spoken.act(execution, "signals", {"name": "go"})
            texts: list[str] = []
            async for event in events:
                if event.event == "workflow.node.delta":
                    assert event.id == ""
                    assert event.data["nodeId"] == "write"
                    texts.append(str(event.data["delta"].get("text", "")))
                if event.event == "workflow.human.required":
                    break
    assert "".join(texts) == "Dear Ada, how are you"


async def test_a_subscriber_behind_the_ring_buffer_continues_from_the_journal(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "FRAMES", 8)
    await served.save(COUNT)
    started = await served.client.post("/api/workflows/count/execute", json={"input": {}})
    execution = started.json()["executionId"]
    heard: list[str] = []
    async for chunk in served.desk.broker.frames(execution, after=START):
        heard += ids_in(chunk)
        await asyncio.sleep(0.002)  # The reader falls behind.
    assert heard == [id for id, _ in await told(served, execution)]
    assert len(heard) > 400


async def test_a_stream_sends_rows_of_another_process(file_store: str) -> None:
    async with serving(file_store) as one:
        await one.save(LETTER)
        execution = await one.execute("letter", {"goal": "tides"})
        async with one.stream(execution) as events:
            seen = [(await anext(events)).event]
            async with serving(file_store) as other:
                await other.act(execution, "respond", {"gateId": "review", "action": "approve"})
                seen += [event.event async for event in events]
        assert seen[-3:].count("workflow.complete") == 1
        assert len(seen) == len(await told(one, execution))


async def test_a_stopping_server_closes_its_streams_and_the_next_server_continues_them(file_store: str) -> None:
    heard: list[str] = []
    async with serving(file_store) as first:
        await first.save(LETTER)
        execution = await first.execute("letter", {"goal": "tides"})
        async with first.stream(execution) as events:
            heard.append((await anext(events)).id)
            first.server.should_exit = True
            rest = [event async for event in events]
        assert rest[-1].event == CLOSING, "it is told that there may be more"
        heard += [event.id for event in rest if event.id]
    async with serving(file_store) as second:
        await second.act(execution, "respond", {"gateId": "review", "action": "approve"})
        heard += [one.id for one in await second.read_events(execution, after=heard[-1])]
        assert heard == [id for id, _ in await told(second, execution)]


async def test_an_idle_stream_sends_keep_alives(served: Served) -> None:
    await served.save(WAITS)
    execution = await served.execute("waits")
    broker = SseBroker(served.app.context, WIRE, heartbeat_s=0.001)
    heard = broker.frames(execution)
    assert ids_in(await anext(heard))[0] == "1.0"
    assert [await anext(heard) for _ in range(2)] == [BEAT, BEAT]
    await broker.close()


async def test_a_closed_subscription_holds_no_memory(served: Served) -> None:
    await served.save(WAITS)
    execution = await served.execute("waits")
    for _ in range(5):
        async with served.stream(execution) as events:
            assert (await anext(events)).id == "1.0"
    await until(lambda: served.desk.broker.listeners(execution) == 0)


async def test_a_late_subscriber_can_request_the_present_state_and_the_following_events(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    story = await told(served, execution)
    address = f"/api/workflows/executions/{execution}/stream?from=snapshot"
    async with served.client.stream("GET", address) as reply:
        events = events_in(reply)
        first = await anext(events)
        assert (first.event, first.id) == ("workflow.snapshot", story[-1][0])
        assert first.data == await served.read(execution)
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        heard = [(one.id, one.event) async for one in events if one.id]
    assert heard == (await told(served, execution))[len(story) :]
    async with served.client.stream("GET", address) as reply:
        (only,) = [one async for one in events_in(reply)]
    assert only.data["status"] == "completed", "of one that has ended the snapshot is all there is to tell"
    again = await served.client.get(address, headers={"last-event-id": only.id})
    assert again.status_code == 204, "whoever comes back goes on behind the snapshot"


async def test_a_stream_can_start_with_new_events_only(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    before = len(await told(served, execution))
    address = f"/api/workflows/executions/{execution}/stream?from=now"
    async with served.client.stream("GET", address) as reply:
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        heard = [(one.id, one.event) async for one in events_in(reply) if one.id]
    assert heard == (await told(served, execution))[before:]
    assert (await served.client.get(address)).status_code == 204, "nothing more will come"


@pytest.mark.parametrize("place", ["1.99", "999", "999.0", "9000000000000000000000.1"])
async def test_an_event_id_of_another_execution_or_of_the_future_is_refused(served: Served, place: str) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    address = f"/api/workflows/executions/{execution}/stream"
    reply = await served.client.get(address, headers={"last-event-id": place})
    assert (reply.status_code, reply.json()["code"]) == (400, "position-invalid"), "else events were left out silently"


async def test_many_reconnecting_subscribers_read_the_journal_once(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    broker = served.desk.broker
    story = await told(served, execution)
    crowd = [broker.frames(execution, after=(1, number % 2)) for number in range(50)]
    first = ids_in(await anext(crowd[0]))
    monkeypatch.setattr(served.app.store.journal, "read", None)
    rest = [ids_in(await anext(one)) for one in crowd[1:]]
    expected = {number: [id for id, _ in story if parse_event_position(id) > (1, number)] for number in range(2)}
    assert [first, *rest] == [expected[number % 2] for number in range(50)]
    for one in crowd:
        await one.aclose()


async def listening(served: Served, execution: str, headers: dict[str, str]) -> list[StreamedEvent]:
    """Return all events that a caller receives until the stream ends."""
    address = f"/api/workflows/executions/{execution}/stream"
    async with served.client.stream("GET", address, headers=headers, timeout=PATIENCE_S) as reply:
        assert reply.status_code == 200
        return [event async for event in events_in(reply)]


async def test_a_revoked_key_ends_exactly_its_own_streams(file_store: str) -> None:
    async with serving(file_store, is_local=False) as served, serving(file_store) as elsewhere:
        served.desk.presence.every_s = 0.01
        root, ada, bob = [await served.key(name, "admin") for name in ("root", "ada", "bob")]
        shown = bob["authorization"].removeprefix("Bearer ")
        entered = await served.client.post("/api/login", json={"key": shown})
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
        assert (await served.client.post("/api/workflows", content=WAITS, headers=root)).status_code == 201
        body: dict[str, object] = {"input": {}, "wait": True}
        started = await served.client.post("/api/workflows/waits/execute", json=body, headers=root)
        execution = started.json()["executionId"]
        heard = {
            name: asyncio.create_task(listening(served, execution, headers))
            for name, headers in (("root", root), ("ada", ada), ("bob", bob), ("cookie", cookie))
        }
        await until(lambda: served.desk.broker.listeners(execution) == 4)
        await elsewhere.desk.keys.revoke("ada")
        assert (await heard["ada"])[-1].event == CLOSING
        assert (await served.client.get("/api/me", headers=ada)).status_code == 401
        (login,) = (await served.client.get("/api/logins?everyone=true", headers=root)).json()["logins"]
        assert (await served.client.delete(f"/api/logins/{login['id']}", headers=root)).status_code == 204
        assert (await heard["cookie"])[-1].event == CLOSING
        await until(lambda: served.desk.broker.listeners(execution) == 2)
        signal = f"/api/workflows/executions/{execution}/signals"
        assert (await served.client.post(signal, json={"name": "knock"}, headers=root)).status_code == 200
        for name in ("root", "bob"):
            assert CLOSING not in [one.event for one in await heard[name]], f"{name} heard everything"


async def test_a_stream_without_a_key_ends_when_the_first_key_is_made(served: Served) -> None:
    served.desk.presence.every_s = 0.01
    await served.save(WAITS)
    execution = await served.execute("waits")
    heard = asyncio.create_task(listening(served, execution, {}))
    await until(lambda: served.desk.broker.listeners(execution) == 1)
    await served.key("root", "admin")
    assert (await heard)[-1].event == CLOSING


async def test_a_stream_ends_when_its_workflow_is_no_longer_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions, "EVERY_S", 0.0)
    async with serving(is_local=False) as served:
        ada, vi = await served.key("ada", "editor"), await served.key("vi", "viewer")
        await served.client.post("/api/workflows", content=LETTER, headers=ada)
        began = await served.client.post(
            "/api/workflows/letter/execute", json={"input": {"goal": "tides"}, "wait": True}, headers=ada
        )
        execution = began.json()["executionId"]
        address = f"/api/workflows/executions/{execution}"
        async with served.client.stream("GET", f"{address}/stream", headers=vi, timeout=PATIENCE_S) as reply:
            events = events_in(reply)
            while (await anext(events)).event != "workflow.human.required":
                pass
            await served.client.put("/api/workflows/letter/sharing", json={"audience": "private"}, headers=ada)
            answer = {"gateId": "review", "action": "approve"}
            assert (await served.client.post(f"{address}/respond", json=answer, headers=ada)).status_code == 200
            rest = [one.event async for one in events]
        assert rest[-1] == CLOSING
        assert "workflow.complete" not in rest
        assert (await served.client.get(address, headers=vi)).status_code == 404
