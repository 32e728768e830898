"""A repeated request with the same idempotency key has one effect and the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pointsman import Client
from pointsman.authoring.design import Round
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.executions.opening import REPLY_KEPT_S, IdempotencyKeys, name_of
from pointsman.values import JsonObject
from tests.authoring.test_designing import DANGLING, GOOD, saying
from tests.installation import HandClock
from tests.server.conftest import Served, events_in, serving
from tests.server.flows import CHAIN, LETTER, TALK

KEY = {"idempotency-key": "monday"}


async def listed(served: Served) -> int:
    return len((await served.client.get("/api/workflows/executions")).json()["executions"])


async def test_one_idempotency_key_makes_one_fork_even_after_a_restart(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(LETTER)
        execution = await served.execute("letter", {"goal": "tides"})
        address = f"/api/workflows/executions/{execution}/fork"
        first = await served.client.post(address, json={"at": 1}, headers=KEY)
        assert first.status_code == 202
        other = await served.client.post(address, json={"at": 2}, headers=KEY)
        assert (other.status_code, other.json()["code"]) == (409, "key-reused")
    async with serving(file_store) as served:
        again = await served.client.post(address, json={"at": 1}, headers=KEY)
        assert (again.status_code, again.json()) == (202, first.json())
        assert again.headers["location"] == first.headers["location"]
        assert (first.headers.get("idempotent-replayed"), again.headers["idempotent-replayed"]) == (None, "true")
        assert await listed(served) == 2
        assert (await served.client.post(address, json={"at": 1})).json() != first.json(), "without a key it is another"


async def test_concurrent_requests_with_one_key_run_once_and_others_wait_or_conflict(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    address = f"/api/workflows/executions/{execution}/fork"
    replies = await asyncio.gather(*(served.client.post(address, json={}, headers=KEY) for _ in range(6)))
    told = {reply.json().get("code") or reply.json()["executionId"] for reply in replies}
    assert told - {"key-in-use"} == {next(r.json()["executionId"] for r in replies if r.status_code == 202)}
    assert await listed(served) == 2


async def test_a_refused_request_does_not_use_its_key(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    address = f"/api/workflows/executions/{execution}/fork"
    refused = await served.client.post(address, json={"at": 99}, headers=KEY)
    assert (refused.status_code, refused.json()["code"]) == (404, "no-such-row")
    assert (await served.client.post(address, json={"at": 1}, headers=KEY)).status_code == 202


async def test_an_unanswered_request_of_a_crashed_server_is_not_repeated(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    address = f"/api/workflows/executions/{execution}/fork"
    kept = IdempotencyKeys(served.app.store.entries, served.app.clock)
    await kept.begin(name_of("local", f"POST {address}", "monday"), b"{}")
    reply = await served.client.post(address, content=b"{}", headers={**KEY, "content-type": "application/json"})
    assert (reply.status_code, reply.json()["code"]) == (409, "key-in-use")
    assert await listed(served) == 1


async def test_messages_answers_events_and_bulk_verbs_accept_keys(served: Served) -> None:
    await served.save(TALK)
    await served.save(LETTER)
    talk = await served.execute("talk", {"message": "Hello"}, sessionId="s")
    turns = [
        (await served.client.post(f"/api/workflows/executions/{talk}/messages", json={"message": "More"}, headers=KEY))
        for _ in range(2)
    ]
    assert turns[0].json()["executionId"] == turns[1].json()["executionId"]
    letter = await served.execute("letter", {"goal": "tides"})
    address = f"/api/workflows/executions/{letter}"
    events: list[Any] = [
        (await served.client.post(f"{address}/signals", json={"name": "n"}, headers=KEY)).json()["became"]
        for _ in range(2)
    ]
    assert events == ["kept", "known"]
    said = {"gateId": "review", "action": "again"}
    for _ in range(2):
        assert (await served.client.post(f"{address}/respond", json=said, headers=KEY)).status_code == 200
    await served.app.open(letter)
    assert (await served.read(letter))["path"].count("review") == 1
    cancel = {"verb": "cancel", "workflow": "letter"}
    first = await served.client.post("/api/workflows/executions/bulk", json=cancel, headers=KEY)
    assert [one["status"] for one in first.json()["executions"]] == ["cancelled"]
    await served.execute("letter", {"goal": "harbours"})
    again = await served.client.post("/api/workflows/executions/bulk", json=cancel, headers=KEY)
    assert again.json() == first.json(), "what began since is not meant"


@pytest.mark.requirement("S4-35")
async def test_a_design_with_a_key_is_paid_once_even_after_a_restart(file_store: str) -> None:
    body = {"words": "A note.", "save": True}
    streamed = {**KEY, "accept": "text/event-stream"}
    async with serving(file_store, script=saying(DANGLING, GOOD)) as served:
        first = await served.client.post("/api/workflows/generate", json=body, headers=KEY)
        assert (first.status_code, first.json()["revision"], len(first.json()["rounds"])) == (200, 1, 2)
        other = await served.client.post("/api/workflows/generate", json={"words": "Another."}, headers=KEY)
        assert (other.status_code, other.json()["code"]) == (409, "key-reused")
    async with serving(file_store) as served:  # This server has no model for design.
        again = await served.client.post("/api/workflows/generate", json=body, headers=KEY)
        assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
        async with served.client.stream("POST", "/api/workflows/generate", json=body, headers=streamed) as reply:
            told = [(event.event, event.data) async for event in events_in(reply)]
        assert told == [("done", first.json())]
        assert len((await served.client.get("/api/workflows/note/versions")).json()["workflows"]) == 1
        without = await served.client.post("/api/workflows/generate", json=body)
        assert (without.status_code, without.json()["code"]) == (409, "design-model-missing")


async def test_a_described_change_with_a_key_is_made_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    await served.save(LETTER)
    made: list[str] = []

    async def change(_: AuthoringVerbs, id: str, words: str, **how: object) -> JsonObject:
        made.append(words)
        return {"id": id, "revision": 1 + len(made)}

    monkeypatch.setattr(AuthoringVerbs, "edit_by_words", change)
    served.client.event_hooks = {}  # The fake's answers are not in the document.
    body = {"words": "In verse.", "apply": True}
    replies = [await served.client.post("/api/workflows/letter/edit", json=body, headers=KEY) for _ in range(2)]
    assert [reply.json() for reply in replies] == [{"id": "letter", "revision": 2}] * 2
    assert made == ["In verse."]


async def test_a_design_with_a_lost_stream_continues_and_a_repeated_request_gets_its_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, ended, made = asyncio.Event(), asyncio.Event(), list[str]()

    async def slow(_: AuthoringVerbs, words: str, *, listener: Callable[[Round], None], **how: object) -> JsonObject:
        listener(Round(1, "scripted", words, ()))
        try:
            await goes_on.wait()
            made.append(words)
        finally:
            ended.set()
        return {"id": "note", "ok": True}

    monkeypatch.setattr(AuthoringVerbs, "design", slow)
    served.client.event_hooks = {}  # As above.
    headers = {**KEY, "accept": "text/event-stream"}
    async with served.client.stream("POST", "/api/workflows/generate", json={"words": "x"}, headers=headers) as reply:
        assert (await anext(events_in(reply))).event == "round"
    early = await served.client.post("/api/workflows/generate", json={"words": "x"}, headers=headers)
    assert (early.status_code, early.json()["code"]) == (409, "key-in-use")
    goes_on.set()
    await ended.wait()
    assert made == ["x"], "nobody cancelled it"
    while (later := await served.client.post("/api/workflows/generate", json={"words": "x"}, headers=KEY)).is_error:
        assert later.json()["code"] == "key-in-use"
    assert later.json() == {"id": "note", "ok": True}
    assert made == ["x"]


async def test_a_stopping_server_cancels_designs_with_lost_streams(
    file_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = asyncio.Event()

    async def endless(_: AuthoringVerbs, words: str, *, listener: Callable[[Round], None], **how: object) -> JsonObject:
        listener(Round(1, "scripted", words, ()))
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    monkeypatch.setattr(AuthoringVerbs, "design", endless)
    headers = {**KEY, "accept": "text/event-stream"}
    body = {"words": "x"}
    async with serving(file_store) as served:
        async with served.client.stream("POST", "/api/workflows/generate", json=body, headers=headers) as reply:
            assert (await anext(events_in(reply))).event == "round"
        assert not ended.is_set()
    assert ended.is_set()
    async with serving(file_store) as served:
        again = await served.client.post("/api/workflows/generate", json=body, headers=KEY)
        assert (again.status_code, again.json()["code"]) == (409, "key-in-use"), "nobody knows what became of it"


async def test_gc_deletes_idempotency_keys_after_a_day(served: Served) -> None:
    clock = HandClock()
    kept = IdempotencyKeys(served.app.store.entries, clock)
    await kept.begin("a", b"")
    clock.at += REPLY_KEPT_S
    await kept.begin("b", b"")
    assert (await kept.purge(dry_run=True), await kept.purge()) == (0, 0)
    clock.at += 1
    assert (await kept.purge(dry_run=True), await kept.purge(), await kept.purge()) == (1, 1, 0)


async def test_the_client_forks_once_when_an_answer_is_lost(served: Served) -> None:
    await served.save(CHAIN)
    execution = await served.execute("chain")
    lost = LossyTransport()
    async with Client(str(served.client.base_url), transport=lost) as client:
        fork = await client.execution(execution).fork(at=1)
        assert (lost.answers, await listed(served)) == (1, 2)
        assert await fork.settled() == "completed"


class LossyTransport(httpx2.AsyncHTTPTransport):
    """Loses the first answer to a change: the change was made, but the client does not know it."""

    answers = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        reply = await super().handle_async_request(request)
        if request.method == "POST" and not self.answers:
            self.answers += 1
            await reply.aread()
            raise httpx2.ReadError("the connection was lost")
        return reply
