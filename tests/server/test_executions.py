"""Executions over HTTP: start, answer, cancel and read, by concurrent clients."""

from __future__ import annotations

import asyncio

import pytest

from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, TALK, WAITS


@pytest.mark.requirement("S1-12", "S1-80", "S1-81")
async def test_a_start_returns_immediately_or_at_the_end(served: Served) -> None:
    await served.save(CHAIN)
    started = await served.client.post("/api/workflows/chain/execute", json={"input": {}})
    assert started.status_code == 202
    execution = started.json()["executionId"]
    assert started.headers["location"] == f"/api/workflows/executions/{execution}"
    await served.read_events(execution)
    assert (await served.read(execution))["status"] == "completed"
    done = await served.client.post("/api/workflows/chain/execute", json={"input": {}, "wait": True})
    assert (done.status_code, done.json()["status"], done.json()["path"]) == (200, "completed", ["first", "second"])


async def test_one_idempotency_key_starts_one_execution(served: Served) -> None:
    await served.save(CHAIN)
    headers = {"idempotency-key": "order-7"}
    replies = await asyncio.gather(
        *(
            served.client.post("/api/workflows/chain/execute", json={"input": {"n": 1}}, headers=headers)
            for _ in range(8)
        )
    )
    assert len({reply.json()["executionId"] for reply in replies}) == 1
    other = await served.client.post("/api/workflows/chain/execute", json={"input": {"n": 2}}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "key-reused")


async def test_an_invalid_input_is_refused_with_its_paths(served: Served) -> None:
    await served.save(LETTER)
    reply = await served.client.post("/api/workflows/letter/execute", json={"input": {"goal": 7}})
    assert (reply.status_code, reply.json()["code"]) == (422, "input-invalid")
    assert "goal" in reply.json()["detail"]
    unknown = await served.client.post("/api/workflows/letter/execute", json={"inputs": {}})
    assert (unknown.status_code, unknown.json()["problems"][0]["pointer"]) == (422, "body/inputs")
    address, json = "/api/workflows/letter/execute", {"content-type": "application/json"}
    broken = await served.client.post(address, content=b'{"input": {', headers=json)
    assert (broken.status_code, broken.json()["code"]) == (400, "body-invalid")
    assert "character 11" in broken.json()["detail"]
    twice = await served.client.post(address, content=b'{"input": {"goal": "a", "goal": "b"}}', headers=json)
    assert (twice.status_code, twice.json()["code"]) == (400, "body-invalid")
    assert twice.json()["detail"] == "the key 'goal' is there twice in one object"
    deep = await served.client.post(address, content=b'{"input": ' + b"[" * 100_000, headers=json)
    assert deep.status_code == 400
    odd = await served.client.post(address, content=b"goal=tides", headers={"content-type": "text/plain"})
    assert (odd.status_code, odd.json()["code"]) == (415, "media-type-refused")


@pytest.mark.requirement("S1-82", "S1-85")
async def test_one_of_many_concurrent_answers_closes_a_gate(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    (gate,) = (await served.read(execution))["waiting"]
    (listed,) = (await served.client.get("/api/inbox")).json()["gates"]
    assert (listed["gateId"], listed["executionId"]) == (gate["gateId"], execution)
    wrong = await served.act(execution, "respond", {"gateId": "review", "action": "sing"}, expect=422)
    assert wrong["code"] == "action-not-offered"

    address = f"/api/workflows/executions/{execution}/respond"
    answer = {"gateId": gate["gateId"], "action": "approve"}
    replies = await asyncio.gather(*(served.client.post(address, json=answer) for _ in range(10)))
    codes = sorted(reply.status_code for reply in replies)
    assert codes == [200] + [409] * 9
    assert {reply.json()["code"] for reply in replies if reply.status_code == 409} == {"gate-closed"}
    await served.read_events(execution)
    assert (await served.read(execution))["status"] == "completed"
    assert (await served.client.get("/api/inbox")).json() == {"gates": [], "next": None}
    assert (await served.act(execution, "resume", expect=409))["code"] == "wrong-status"


@pytest.mark.requirement("S1-83")
async def test_an_execution_is_paused_resumed_and_cancelled(served: Served) -> None:
    await served.save(WAITS)
    execution = await served.execute("waits")
    assert (await served.act(execution, "pause"))["status"] == "paused"
    assert (await served.act(execution, "resume"))["status"] == "waiting"
    assert (await served.act(execution, "cancel", {"reason": "enough"}))["status"] == "cancelled"
    assert (await served.act(execution, "cancel"))["status"] == "cancelled"


async def test_an_event_reaches_the_step_that_waits_for_it(served: Served) -> None:
    await served.save(WAITS)
    execution = await served.execute("waits")
    told = await served.act(execution, "signals", {"name": "knock", "data": {"who": "Ada"}})
    assert (told["outcome"], told["became"]) == ("delivered", "taken")
    await served.read_events(execution)
    assert (await served.read(execution))["output"] == {"said": {"who": "Ada"}}
    assert (await served.act(execution, "signals", {"name": "knock"}, expect=409))["code"] == "wrong-status"


async def test_a_fork_runs_with_other_data_and_is_steered_between_steps(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    copy = (await served.act(execution, "fork", {"set": {"text": "shorter"}}, expect=202))["executionId"]
    assert copy != execution
    assert (await served.read(copy))["state"]["text"] == "shorter"
    assert (await served.read(execution))["state"]["text"] != "shorter"
    refused = await served.act(execution, "fork", {"at": 10_000}, expect=404)
    assert refused["code"] == "no-such-row"


async def test_a_conversation_continues_turn_by_turn(served: Served) -> None:
    await served.save(TALK)
    first = await served.execute("talk", "hello", sessionId="s1")
    second = await served.act(first, "messages", {"message": "and now?", "wait": True})
    assert second["sessionId"] == "s1"
    assert second["executionId"] != first
    assert [one["content"] for one in second["state"]["messages"] if one["role"] == "user"] == ["hello", "and now?"]
    await served.save(CHAIN)
    lone = await served.execute("chain")
    assert (await served.act(lone, "messages", {"message": "hm"}, expect=400))["code"] == "no-conversation"


@pytest.mark.requirement("S1-108")
async def test_lists_come_in_pages_and_events_without_a_stream(served: Served) -> None:
    await served.save(CHAIN)
    every = [await served.execute("chain") for _ in range(5)]
    seen: list[str] = []
    address = "/api/workflows/executions?limit=2"
    while True:
        page = (await served.client.get(address)).json()
        seen += [one["executionId"] for one in page["executions"]]
        if page["next"] is None:
            break
        address = f"/api/workflows/executions?limit=2&before={page['next']}"
    assert seen == every[::-1]

    told: list[str] = []
    after = ""
    while True:
        page = (await served.client.get(f"/api/workflows/executions/{every[0]}/events?limit=3{after}")).json()
        if not page["events"]:
            break
        told += [f"{event['seq']}.{event['n']}" for event in page["events"]]
        after = f"&after={page['last']}"
    assert page["status"] == "completed"
    assert len(told) == len(set(told))
    _, events = await served.app.state_and_events(every[0])
    assert told == [f"{event['seq']}.{event['n']}" for event in events]


async def test_an_execution_is_shown_as_of_an_earlier_row(served: Served) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    address = f"/api/workflows/executions/{execution}/state"
    assert (await served.client.get(f"{address}?at=1")).json()["path"] == []
    whole = (await served.client.get(address)).json()
    assert whole["path"] == ["first", "second"]


async def test_a_server_resumes_executions_that_another_server_left(file_store: str) -> None:
    async with serving(file_store) as first:
        await first.save(LETTER)
        execution = await first.execute("letter", {"goal": "tides"})
    async with serving(file_store) as second:
        assert (await second.act(execution, "respond", {"gateId": "review", "action": "approve"}))["status"] in (
            "running",
            "completed",
        )
        await second.read_events(execution)
        assert (await second.read(execution))["status"] == "completed"
        assert (await second.client.delete(f"/api/workflows/executions/{execution}")).status_code == 204
        assert (await second.client.get(f"/api/workflows/executions/{execution}")).status_code == 404


@pytest.mark.parametrize(
    "id", ["nope", "%2e%2e%2f", "%00", "a" * 101, "exec-%2e%2e%2fetc", "%F0%9F%90%88", "a b", "'; drop"]
)
async def test_unknown_ids_are_not_found_or_refused(served: Served, id: str) -> None:
    for method, verb in (("GET", ""), ("GET", "/stream"), ("POST", "/cancel"), ("GET", "/events")):
        reply = await served.client.request(method, f"/api/workflows/executions/{id}{verb}")
        assert reply.status_code in (404, 422, 405), (method, verb, reply.text)
        assert reply.headers["content-type"] == "application/problem+json"
