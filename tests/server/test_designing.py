"""Workflows are designed, changed, compared and restored over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pointsman.authoring.design import EarlierRequest, Round, conversation_messages
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.values import JsonObject
from pointsman.workflows.scripts import parse_script
from tests.authoring.test_designing import DANGLING, GOOD, saying
from tests.patience import PATIENCE_S
from tests.server.conftest import Served, StreamedEvent, events_in, serving
from tests.server.flows import LETTER

CHANGE: JsonObject = {"op": "change_node", "node": "write", "set": {"/config/prompt": "About {goal}, in verse"}}


async def post(served: Served, path: str, body: Any, *, expect: int = 200, if_match: str = "*") -> Any:
    reply = await served.client.post(f"/api/workflows{path}", json=body, headers={"if-match": if_match})
    assert reply.status_code == expect, reply.text
    return reply.json()


@pytest.mark.requirement("S1-139", "S4-51")
async def test_a_description_becomes_a_workflow_in_rounds_and_is_saved_on_request() -> None:
    async with serving(script=saying("Hm.", DANGLING, GOOD)) as served:
        made = await post(served, "/generate", {"words": "A note.", "id": "memo"})
        assert (made["ok"], made["saved"], made["id"]) == (True, False, "memo")
        assert [one["ok"] for one in made["rounds"]] == [False, False, True]
        assert (await served.client.get("/api/workflows/memo")).status_code == 404
        saved = await post(served, "/generate", {"words": "A note.", "save": True})
        assert (saved["saved"], saved["revision"]) == (True, 1)
        assert await served.execute("note", {"topic": "tides"})


async def test_a_design_with_errors_is_not_saved_and_the_scripted_model_does_not_design() -> None:
    async with serving(script=saying(DANGLING)) as served:
        made = await post(served, "/generate", {"words": "A note.", "save": True})
        assert (made["ok"], made["saved"], len(made["rounds"])) == (False, False, 2)
        for body in ({}, {"words": ""}, {"words": "x" * 20_001}, {"words": "x", "speed": 1}, {"words": 7}):
            assert (await post(served, "/generate", body, expect=422))["code"] == "request-invalid"
    async with serving() as served:
        assert (await post(served, "/generate", {"words": "A note."}, expect=409))["code"] == "design-model-missing"


async def test_a_change_is_previewed_and_saved_over_the_read_revision(served: Served) -> None:
    await served.save(LETTER)
    etag = (await served.client.get("/api/workflows/letter")).headers["etag"]
    shown = await post(served, "/letter/edit", {"operations": [CHANGE]})
    assert (shown["applied"], shown["changes"]) == (False, [CHANGE])
    body = {"operations": [CHANGE], "apply": True}
    assert (await post(served, "/letter/edit", body, if_match=etag))["revision"] == 2
    assert (await post(served, "/letter/edit", body, expect=409, if_match=etag))["code"] == "revision-moved"
    assert (await post(served, "/letter/edit", body, expect=409, if_match="what"))["code"] == "revision-moved"
    told = (await served.client.get("/api/workflows/letter/changes")).json()
    assert (told["from"], told["to"], told["changes"]) == (1, 2, [CHANGE])
    assert (await post(served, "/letter/rollback", {"revision": 1}))["revision"] == 3
    assert (await post(served, "/letter/rollback", {"revision": 9}, expect=404))["code"] == "no-such-revision"
    back = (await served.client.get("/api/workflows/letter")).json()
    assert back["text"] == LETTER


async def test_an_invalid_change_is_refused_and_not_saved(served: Served) -> None:
    await served.save(LETTER)
    bad = {"op": "remove_node", "node": "wirte"}
    refused = await post(served, "/letter/edit", {"operations": [bad], "apply": True}, expect=422)
    assert (refused["code"], refused["hint"]) == ("operation-refused", "Did you mean 'write'?")
    gone = {"operations": [{"op": "remove_node", "node": "write"}], "apply": True}
    broken = await post(served, "/letter/edit", gone, expect=422)
    assert broken["code"] == "workflow-invalid"
    assert broken["problems"]
    assert len((await served.client.get("/api/workflows/letter/versions")).json()["workflows"]) == 1
    assert (await post(served, "/letter/edit", {}, expect=422))["code"] == "operation-refused"
    assert (await post(served, "/nope/edit", {"operations": []}, expect=404))["code"] == "unknown-workflow"
    schema = (await served.client.get("/api/workflows/operations")).json()
    assert schema["title"] == "Operations on a workflow"


async def test_a_described_change_is_returned_with_its_rounds() -> None:
    async with serving(script=saying({"operations": [CHANGE]})) as served:
        await served.save(LETTER)
        shown = await post(served, "/letter/edit", {"words": "In verse."})
        assert (shown["applied"], shown["changes"], len(shown["rounds"])) == (False, [CHANGE], 1)
    async with serving(script=saying("I cannot.")) as served:
        await served.save(LETTER)
        assert (await post(served, "/letter/edit", {"words": "In verse."}, expect=400))["code"] == "design-failed"


async def rounds_of(served: Served, body: JsonObject, path: str = "/generate") -> list[StreamedEvent]:
    headers = {"accept": "text/event-stream"}
    async with served.client.stream("POST", f"/api/workflows{path}", json=body, headers=headers) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        return [event async for event in events_in(reply)]


@pytest.mark.requirement("S1-139", "S4-51")
async def test_a_design_streams_its_rounds_and_then_the_answer(file_store: str) -> None:
    body: JsonObject = {"words": "A note.", "save": True}
    async with serving(script=saying("Hm.", DANGLING, GOOD)) as served:
        answer = await post(served, "/generate", body)
    async with serving(file_store, script=saying("Hm.", DANGLING, GOOD)) as served:
        *rounds, done = await rounds_of(served, body)
    assert [(one.event, one.data["round"], one.data["ok"]) for one in rounds] == [
        ("round", 1, False),
        ("round", 2, False),
        ("round", 3, True),
    ]
    assert (done.event, done.data) == ("done", answer)
    assert [one.data for one in rounds] == answer["rounds"]
    async with serving(file_store) as later:
        assert (await later.client.get("/api/workflows/note")).status_code == 200


async def test_a_failure_before_the_first_round_is_an_error_and_later_an_event() -> None:
    headers = {"accept": "text/event-stream"}
    async with serving() as served:
        reply = await served.client.post("/api/workflows/generate", json={"words": "A note."}, headers=headers)
        assert (reply.status_code, reply.json()["code"]) == (409, "design-model-missing")
    failing = "rules:\n- {purpose: design, times: 1, text: Hm.}\n- {purpose: design, fail: 500}\n"
    async with serving(script=parse_script(failing)) as served:
        first, last = await rounds_of(served, {"words": "A note."})
    assert (first.event, last.event) == ("round", "problem")
    assert (last.data["code"], last.data["status"]) == ("model-failed", 503)


async def test_a_client_that_disconnects_ends_the_design(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()

    async def endless(_: AuthoringVerbs, words: str, *, listener: Callable[[Round], None], **how: object) -> JsonObject:
        listener(Round(1, "scripted", words, ()))
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    monkeypatch.setattr(AuthoringVerbs, "design", endless)
    headers = {"accept": "text/event-stream"}
    async with serving() as served:
        request = served.client.stream("POST", "/api/workflows/generate", json={"words": "x"}, headers=headers)
        async with request as reply:
            assert (await anext(events_in(reply))).event == "round"
        await asyncio.wait_for(ended.wait(), PATIENCE_S)


async def test_a_change_streams_its_rounds_with_their_cost() -> None:
    script = saying("Sure.", {"operations": [CHANGE]})
    async with serving(script=script) as served:
        await served.save(LETTER)
        first, second, done = await rounds_of(served, {"words": "In verse."}, "/letter/edit")
    assert [(one.event, one.data["ok"]) for one in (first, second)] == [("round", False), ("round", True)]
    assert (done.event, done.data["applied"], done.data["changes"]) == ("done", False, [CHANGE])
    assert done.data["rounds"] == [first.data, second.data]
    assert first.data["usage"]["modelCalls"] == 1
    assert first.data["usage"]["inputTokens"] > 0
    async with serving(script=saying("Sure.")) as served:
        await served.save(LETTER)
        *rounds, last = await rounds_of(served, {"words": "In verse."}, "/letter/edit")
    assert [one.event for one in rounds] == ["round", "round"]
    assert (last.event, last.data["code"]) == ("problem", "design-failed")


async def test_a_described_change_edits_the_unsaved_document_and_returns_only_the_change(file_store: str) -> None:
    stamp: JsonObject = {"id": "stamp", "type": "transform", "config": {"operations": []}}
    drawn: JsonObject = {"op": "add_node", "node": stamp, "on": "review->send"}
    about: JsonObject = {"op": "change_node", "node": "stamp", "set": {"/name": "Stamp it"}}
    async with serving(file_store, script=saying({"operations": [about]})) as served:
        await served.save(LETTER)
        body: JsonObject = {"words": "Name it.", "operations": [drawn]}
        shown = await post(served, "/letter/edit", body)
        assert (shown["changes"], shown["applied"]) == ([about], False)
        assert "Stamp it" in shown["text"]
        refused = await post(served, "/letter/edit", body | {"operations": [{"op": "boom"}]}, expect=422)
        assert refused["code"] == "operation-refused"
        assert (await post(served, "/letter/edit", body | {"apply": True}))["revision"] == 2
    async with serving(file_store) as later:
        saved = (await later.client.get("/api/workflows/letter?dialect=native")).json()["document"]
    assert [one["id"] for one in saved["nodes"] if one.get("name") == "Stamp it"] == ["stamp"]


async def test_the_design_model_receives_earlier_messages_and_their_results() -> None:
    script = parse_script(
        "rules:\n"
        "- purpose: design\n  contains: That was refused\n"
        "  json: {operations: [{op: change_node, node: send, set: {/name: x}}]}\n"
        "- {purpose: design, json: {operations: []}}\n"
    )
    before = {"words": "Shorter.", "answer": "{}"}
    async with serving(script=script) as served:
        await served.save(LETTER)
        for accepted, changed in ((None, False), (True, False), (False, True)):
            body = {"words": "Now.", "earlier": [before | {"accepted": accepted}]}
            shown = await post(served, "/letter/edit", body)
            assert bool(shown["changes"]) is changed, accepted
        for earlier in ([before] * 21, [{"words": "x"}], "before"):
            refused = await post(served, "/letter/edit", {"words": "x", "earlier": earlier}, expect=422)
            assert refused["code"] == "request-invalid"


def test_a_design_conversation_is_listed_in_order_with_the_result_of_each_answer() -> None:
    said = conversation_messages(
        [EarlierRequest("a", "A"), EarlierRequest("b", "B", accepted=True), EarlierRequest("c", "C", accepted=False)],
        "d",
        name="x",
    )
    assert [(one["role"], one["content"]) for one in said if isinstance(one, dict)] == [
        ("user", "a"),
        ("assistant", "A"),
        ("user", "b"),
        ("assistant", "B"),
        ("user", "(That was accepted.)\n\nc"),
        ("assistant", "C"),
        ("user", "(That was refused: the workflow is without it.)\n\nd"),
    ]


async def test_a_described_change_of_unsaved_text_keeps_its_comments(served: Served) -> None:
    await served.save(LETTER)
    etag = (await served.client.get("/api/workflows/letter")).headers["etag"]
    typed = "# Mine.\n" + LETTER.replace("Write about {goal}", "Sing of {goal}")
    shown = await post(served, "/letter/edit", {"text": typed, "native": True})
    assert (shown["applied"], shown["ok"], shown["text"]) == (False, True, typed)
    assert next(one for one in shown["native"]["nodes"] if one["id"] == "write")["config"]["prompt"] == "Sing of {goal}"
    body = {"text": typed, "operations": [CHANGE], "apply": True}
    assert (await post(served, "/letter/edit", body, if_match=etag))["revision"] == 2
    told = (await served.client.get("/api/workflows/letter")).json()["text"]
    assert told == typed.replace("Sing of {goal}", "About {goal}, in verse")
    assert (await post(served, "/letter/edit", body, expect=409, if_match=etag))["code"] == "revision-moved"


async def test_unreadable_text_is_refused_with_its_position_and_an_invalid_document_with_its_problems(
    served: Served,
) -> None:
    await served.save(LETTER)
    broken = await post(served, "/letter/edit", {"text": "id: letter\nnodes: [\n"}, expect=422)
    assert broken["problems"][0]["line"] is not None
    other = await post(served, "/letter/edit", {"text": LETTER.replace("id: letter", "id: other")}, expect=422)
    assert "'other'" in other["detail"]
    lacking = {"op": "change_node", "node": "write", "set": {"/config/temperature": "hot"}}
    shown = await post(served, "/letter/edit", {"operations": [lacking], "native": True})
    assert (shown["ok"], shown["id"]) == (False, "letter")
    assert [one["pointer"] for one in shown["problems"]] == ["/nodes/0/config/temperature"]


async def test_the_schema_of_the_language_is_compressed_for_clients_that_accept_it(served: Served) -> None:
    path = "/api/workflows/schema"
    plain = await served.client.get(path, headers={"accept-encoding": "identity"})
    compressed = await served.client.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert compressed.json() == plain.json()
