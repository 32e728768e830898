"""Streams: nothing is lost, nothing is told twice, and nobody who stops listening holds anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from pointsman.app import channels
from pointsman.app.channels import START
from pointsman.models.script_reader import read_script
from pointsman.server.routes.streams import BEAT, with_heartbeat
from tests.server.conftest import Served, serving
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
    """Sockets tell nobody when they were heard."""
    while not holds():  # noqa: ASYNC110 - as it says
        await asyncio.sleep(0.001)


async def told(served: Served, execution: str) -> list[tuple[str, str]]:
    """What there is to tell, from the journal."""
    return [(str(one["id"]), str(one["event"])) for one in await served.app.bulletins(execution)]


@pytest.mark.requirement("S1-84", "S1-125")
async def test_a_stream_tells_the_whole_story_in_order_and_ends_with_it(served: Served) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    heard = [(one.id, one.event) for one in await served.story(execution) if one.id]
    assert heard == await told(served, execution)
    assert heard[0] == ("1.0", "workflow.start")
    assert "workflow.complete" in [name for _, name in heard]
    assert len({id for id, _ in heard}) == len(heard), "every event has an id of its own"


async def test_whoever_comes_back_hears_exactly_the_rest_wherever_they_left(served: Served) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    story = await told(served, execution)
    for number, (left_at, _) in enumerate(story[:-1]):
        heard = [(one.id, one.event) for one in await served.story(execution, after=left_at)]
        assert heard == story[number + 1 :]
    address = f"/api/workflows/executions/{execution}/stream"
    done = await served.client.get(address, headers={"last-event-id": story[-1][0]})
    assert done.status_code == 204, "a browser stops coming back"


@pytest.mark.parametrize("place", ["x", "1.x", "-1", "1.2.3", "9" * 50, "٣"])
async def test_a_place_that_was_never_given_is_refused(served: Served, place: str) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    reply = await served.client.get(f"/api/workflows/executions/{execution}/stream?after={place}")
    assert (reply.status_code, reply.json()["code"]) == (400, "place-invalid")


async def test_those_who_listen_hear_what_happens_as_it_happens(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})

    async def listen() -> list[str]:
        return [one.id for one in await served.story(execution) if one.id]

    listeners = [asyncio.create_task(listen()) for _ in range(20)]
    await until(lambda: served.desk.channels.listeners(execution) == len(listeners))
    await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
    expected = [id for id, _ in await told(served, execution)]
    for heard in await asyncio.gather(*listeners):
        assert heard[: len(expected)] == expected[: len(heard)]
        assert len(heard) == len({*heard})
    final = [id for id, _ in await told(served, execution)]
    assert all(task.result() == final for task in listeners)
    assert served.desk.channels.listeners(execution) == 0


async def test_live_text_is_heard_and_has_no_id() -> None:
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


async def test_one_who_falls_behind_the_ring_goes_on_in_the_journal(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "RING", 8)
    await served.save(COUNT)
    started = await served.client.post("/api/workflows/count/execute", json={"input": {}})
    execution = started.json()["executionId"]
    heard: list[str] = []
    async for frame in served.desk.channels.frames(execution, after=START):
        if frame.startswith(b"id: "):
            heard.append(frame.partition(b"\n")[0].decode().removeprefix("id: "))
        if len(heard) % 50 == 0:
            await asyncio.sleep(0.01)  # Falls behind now and then.
    assert heard == [id for id, _ in await told(served, execution)]
    assert len(heard) > 400


async def test_the_rows_of_another_process_are_heard_too(file_store: str) -> None:
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


async def test_a_server_that_stops_lets_its_streams_go_and_the_next_one_goes_on(file_store: str) -> None:
    heard: list[str] = []
    async with serving(file_store) as first:
        await first.save(LETTER)
        execution = await first.execute("letter", {"goal": "tides"})
        async with first.stream(execution) as events:
            heard.append((await anext(events)).id)
            first.server.should_exit = True
            heard += [event.id async for event in events]
    async with serving(file_store) as second:
        await second.act(execution, "respond", {"gateId": "review", "action": "approve"})
        heard += [one.id for one in await second.story(execution, after=heard[-1])]
        assert heard == [id for id, _ in await told(second, execution)]


async def test_a_silent_stream_says_that_it_lives() -> None:
    async def frames() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.Event().wait()

    beating = with_heartbeat(frames(), every_s=0.001)
    assert [await anext(beating) for _ in range(3)] == [b"one", BEAT, BEAT]


async def test_nothing_is_held_for_those_who_went(served: Served) -> None:
    await served.save(WAITS)
    execution = await served.execute("waits")
    for _ in range(5):
        async with served.stream(execution) as events:
            assert (await anext(events)).id == "1.0"
    await until(lambda: served.desk.channels.listeners(execution) == 0)
