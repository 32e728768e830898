"""Published workflows: denied by default, started by visitors without a key, and withdrawn at once."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from pointsman.server import pages
from tests.server.conftest import Served, serving

FORM = json.dumps(
    {
        "id": "greet",
        "name": "Greeting",
        "input": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
        "nodes": [{"id": "make", "type": "transform", "config": {"set": {"text": "'Hello ' + who"}}}],
        "edges": [],
        "output": {"text": "text"},
    }
)
MANAGED = "/api/workflows/greet/publication"
TEXTS = {"title": "Say hello", "text": "Who are you?", "thanks": "Bye."}


async def published(served: Served, headers: dict[str, str] | None = None, **more: Any) -> str:
    """Publish the workflow and return the token of its link."""
    reply = await served.client.put(MANAGED, json={**TEXTS, **more}, headers=headers)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["path"]).removeprefix("/form/")


async def started(served: Served, token: str, key: str = "k1", **input: Any) -> Any:
    body = {"input": input or {"who": "Ann"}, "key": key}
    return await served.client.post(f"/api/published/{token}/runs", json=body)


async def ended(served: Served, token: str, run: str) -> Any:
    execution = run.rpartition(".")[0]
    await served.read_events(execution)
    return (await served.client.get(f"/api/published/{token}/runs/{run}")).json()


async def test_nothing_is_published_by_itself_and_visitors_with_the_link_run_the_workflow() -> None:
    async with serving() as served:
        await served.save(FORM)
        assert (await served.client.get(MANAGED)).json()["published"] is False
        assert (await served.client.get("/api/published/greet")).status_code == 404
        token = await published(served)
        form = (await served.client.get(f"/api/published/{token}")).json()
        assert (form["title"], form["text"], form["thanks"]) == ("Say hello", "Who are you?", "Bye.")
        assert form["input"]["required"] == ["who"]
        assert (await started(served, token, nothing=1)).status_code == 422
        begun = await started(served, token)
        assert begun.status_code == 201
        again = await started(served, token)
        assert again.json() == begun.json(), "a double click starts one"
        run = begun.json()["run"]
        assert await ended(served, token, run) == {
            "status": "completed",
            "waiting": False,
            "output": {"text": "Hello Ann"},
        }
        execution = await served.read(run.rpartition(".")[0])
        assert execution["workflowId"] == "greet"


async def test_strangers_need_the_link_and_the_name_of_the_run() -> None:
    async with serving(is_local=False) as served:
        ada, eve = await served.key("ada", "editor"), await served.key("eve", "editor")
        assert (await served.client.post("/api/workflows", content=FORM, headers=ada)).status_code == 201
        for method in ("GET", "PUT", "DELETE"):
            body = TEXTS if method == "PUT" else None
            reply = await served.client.request(method, MANAGED, json=body, headers=eve)
            assert (reply.status_code, reply.json()["code"]) == (403, "not-allowed"), "only the owner publishes"
        viewer = await served.key("vic", "viewer")
        assert (await served.client.put(MANAGED, json=TEXTS, headers=viewer)).status_code == 403
        token = await published(served, ada)
        run = (await started(served, token)).json()["run"]
        execution, _, signature = run.rpartition(".")
        other = await published(served, ada, newLink=True)
        assert other != token
        for wrong in (
            f"/api/published/{token}",
            f"/api/published/{token}/runs/{run}",
            f"/api/published/{other}/runs/{run}",
            f"/api/published/{other}/runs/{execution}",
            f"/api/published/{other}/runs/{execution}.{'0' * len(signature)}",
            f"/api/published/{other}/runs/.{signature}",
            f"/api/published/{other[:-1]}",
            "/api/published/%00",
        ):
            assert (await served.client.get(wrong)).status_code == 404, wrong
        assert (await served.client.get(f"/api/workflows/executions/{execution}")).status_code == 401
        entries = (await served.client.get("/api/audit", headers=await served.key("root", "admin"))).json()["entries"]
        starts = [one for one in entries if one["what"] == "POST /api/published/{token}/runs"]
        assert [(one["who"], one["target"]) for one in starts] == [("ada", "workflow=greet")]
        assert token not in json.dumps(entries)


async def test_unpublishing_deleting_and_lost_rights_end_it_at_once() -> None:
    async with serving(is_local=False) as served:
        ada, root = await served.key("ada", "editor"), await served.key("root", "admin")
        await served.client.post("/api/workflows", content=FORM, headers=ada)
        token = await published(served, ada)
        run = (await started(served, token)).json()["run"]
        assert (await served.client.delete(MANAGED, headers=ada)).status_code == 204
        assert (await started(served, token)).status_code == 404
        assert (await served.client.get(f"/api/published/{token}/runs/{run}")).status_code == 404
        token = await published(served, ada)
        await served.client.delete("/api/settings/keys/ada", headers=root)
        refused = await started(served, token)
        assert (refused.status_code, refused.json()["code"]) == (403, "trigger-stopped")
        token = await published(served, root)
        assert (await started(served, token)).status_code == 201
        await served.client.delete("/api/workflows/greet", headers=root)
        assert (await started(served, token, key="k2")).status_code == 404
        await served.client.post("/api/workflows", content=FORM, headers=root)
        assert (await started(served, token, key="k3")).status_code == 404, "a new workflow of this id is not published"


async def test_output_and_login_are_as_the_publisher_chose(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(is_local=False) as served:
        ada, vic = await served.key("ada", "editor"), await served.key("vic", "viewer")
        await served.client.post("/api/workflows", content=FORM, headers=ada)
        token = await published(served, ada, output=False, login=True)
        for path in (f"/api/published/{token}", f"/api/published/{token}/runs/x.y"):
            assert (await served.client.get(path)).status_code == 401
        assert (await started(served, token)).status_code == 401
        body = {"input": {"who": "Ann"}, "key": "k"}
        reply = await served.client.post(f"/api/published/{token}/runs", json=body, headers=vic)
        run = reply.json()["run"]
        execution = run.rpartition(".")[0]
        async with served.client.stream("GET", f"/api/workflows/executions/{execution}/stream", headers=ada) as stream:
            await stream.aread()
        view = (await served.client.get(f"/api/published/{token}/runs/{run}", headers=vic)).json()
        assert view == {"status": "completed", "waiting": False, "output": None}


async def test_starts_of_one_address_are_limited() -> None:
    async with serving() as served:
        await served.save(FORM)
        token = await published(served)
        replies = [await started(served, token, key=f"k{number}") for number in range(12)]
        assert [one.status_code for one in replies].count(201) == 10
        assert replies[-1].status_code == 429
        assert replies[-1].json()["code"] == "too-many-requests"


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://*.example.com",
        "https://x.com/path",
        "https://x.com;script-src *",
        "javascript:1",
        "'self'",
        "x.com",
    ],
)
async def test_only_origins_may_frame_a_form(origin: str) -> None:
    async with serving() as served:
        await served.save(FORM)
        reply = await served.client.put(MANAGED, json={**TEXTS, "origins": [origin]})
        assert (reply.status_code, reply.json()["code"]) == (422, "publication-invalid")


async def test_frames_are_allowed_to_the_sites_of_the_publisher_and_to_no_other_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    monkeypatch.setattr(pages, "BUILT", tmp_path)
    async with serving() as served:
        await served.save(FORM)
        token = await published(served, origins=["https://www.example.com", "http://localhost:3000"])
        framed = await served.client.get(f"/embed/{token}")
        policy = framed.headers["content-security-policy"]
        assert "frame-ancestors https://www.example.com http://localhost:3000" in policy
        assert "script-src 'self';" in policy
        assert "x-frame-options" not in framed.headers
        for path in (f"/form/{token}", "/embed/forged", "/workflows", "/inbox"):
            other = await served.client.get(path)
            assert "frame-ancestors 'none'" in other.headers["content-security-policy"], path
            assert other.headers["x-frame-options"] == "DENY"
        await published(served, origins=[])
        assert (
            "frame-ancestors 'none'" in (await served.client.get(f"/embed/{token}")).headers["content-security-policy"]
        )
        widget = await served.client.get("/embed.js")
        assert widget.headers["cross-origin-resource-policy"] == "cross-origin"
        assert "eval" not in widget.text


CHAT = json.dumps(
    {
        "id": "greet",
        "name": "Greeting",
        "config": {"conversational": True},
        "nodes": [{"id": "a", "type": "agent", "config": {"prompt": "{message}", "model": "scripted"}}],
        "edges": [],
    }
)
ASKING = json.dumps(
    {
        "id": "greet",
        "input": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]},
        "nodes": [
            {"id": "ask", "type": "human", "config": {"message": "May {who} come in?"}},
            {"id": "done", "type": "transform", "config": {"set": {"text": "'Come in, ' + who"}}},
        ],
        "edges": [{"id": "e", "source": "ask", "target": "done"}],
        "output": "text",
    }
)


async def sent(served: Served, token: str, message: str, conversation: str | None = None, key: str = "k1") -> Any:
    body = {"message": message, "conversation": conversation, "key": key}
    return await served.client.post(f"/api/published/{token}/chat", json=body)


def events_in(text: str) -> list[tuple[str, Any]]:
    frames = [frame.split("\n") for frame in text.split("\n\n") if frame.startswith("event: ")]
    return [(one[0].removeprefix("event: "), json.loads(one[1].removeprefix("data: "))) for one in frames]


async def test_visitors_converse_with_a_published_chat_and_read_only_their_conversation() -> None:
    async with serving() as served:
        await served.save(CHAT)
        form_only = await published(served)
        assert (await sent(served, form_only, "Hello")).status_code == 404, "only the form is published"
        published_chat = {
            **TEXTS,
            "form": False,
            "chat": True,
            "greeting": "Good day.",
            "suggestions": ["Who are you?"],
        }
        view = (await served.client.put(MANAGED, json=published_chat)).json()
        assert (view["path"], view["chatPath"]) == (None, f"/talk/{form_only}")
        assert (await served.client.get(f"/api/published/{form_only}")).status_code == 404, "only the chat is published"
        page = (await served.client.get(f"/api/published/{form_only}/chat")).json()
        assert (page["title"], page["greeting"], page["suggestions"]) == ("Say hello", "Good day.", ["Who are you?"])
        first = events_in((await sent(served, form_only, "Hello")).text)
        assert [kind for kind, _ in first][:1] + [kind for kind, _ in first][-1:] == ["begun", "end"]
        conversation = first[0][1]["conversation"]
        await sent(served, form_only, "And now?", conversation, key="k2")
        read = f"/api/published/{form_only}/chat/{conversation}"
        turns = (await served.client.get(read)).json()["turns"]
        assert [(one["message"], one["status"]) for one in turns] == [("Hello", "completed"), ("And now?", "completed")]
        spoken = "".join(data["text"] for kind, data in first if kind == "words")
        assert turns[0]["answer"] == spoken.strip() != ""
        forged = conversation[:-1] + ("0" if conversation[-1] != "0" else "1")
        for wrong in (forged, conversation.partition(".")[0], "x"):
            assert (await served.client.get(f"/api/published/{form_only}/chat/{wrong}")).status_code == 404
            assert (await sent(served, form_only, "Hi", wrong, key="k3")).status_code == 404
        other = await served.client.put(MANAGED, json={**published_chat, "newLink": True})
        assert (
            await served.client.get(f"/api{other.json()['chatPath']}".replace("talk", "published"))
        ).status_code == 404
        assert (await served.client.get(read)).status_code == 404


async def test_visitors_of_a_chat_neither_read_nor_answer_gates() -> None:
    async with serving() as served:
        await served.save(ASKING)
        token = await published(served, chat=True)
        events = events_in((await sent(served, token, "Ann")).text)
        assert [kind for kind, _ in events] == ["begun", "end"], "the question is for people of this server"
        conversation = events[0][1]["conversation"]
        await sent(served, token, "approve", conversation, key="k2")
        read = f"/api/published/{token}/chat/{conversation}"
        turns = (await served.client.get(read)).json()["turns"]
        assert turns == [
            {"message": message, "answer": "", "status": "running", "waiting": True} for message in ("Ann", "approve")
        ], "the message is no answer to the gate"
        first = (await served.client.get("/api/workflows/executions")).json()["executions"][-1]["executionId"]
        gate = (await served.read(first))["waiting"][0]["gateId"]
        body = {"gateId": gate, "action": "approve"}
        answered = await served.client.post(f"/api/workflows/executions/{first}/respond", json=body)
        assert answered.status_code == 200, answered.text
        await served.read_events(first)
        assert (await served.client.get(read)).json()["turns"][0]["answer"] == "Come in, Ann"


async def test_the_next_message_of_a_conversation_waits_for_the_turn_in_progress() -> None:
    asking = {**json.loads(CHAT), "nodes": [{"id": "ask", "type": "human", "config": {"message": "May they?"}}]}
    async with serving() as served:
        await served.save(json.dumps(asking))
        token = await published(served, chat=True)
        conversation = events_in((await sent(served, token, "Hello")).text)[0][1]["conversation"]
        reply = await sent(served, token, "approve", conversation, key="k2")
        assert (reply.status_code, reply.json()["code"]) == (409, "session-busy")


async def test_a_workflow_that_no_text_starts_is_not_published_as_a_chat() -> None:
    async with serving() as served:
        schema = {"type": "object", "required": ["a", "b"]}
        await served.save(json.dumps({**json.loads(FORM), "input": schema}))
        reply = await served.client.put(MANAGED, json={**TEXTS, "chat": True})
        assert (reply.status_code, reply.json()["code"]) == (422, "publication-invalid")
        for suggestions in ([""], ["x"] * 7):
            assert (await served.client.put(MANAGED, json={"suggestions": suggestions})).status_code == 422


async def test_a_chat_requires_a_login_where_its_publisher_does_and_limits_messages() -> None:
    async with serving(is_local=False) as served:
        ada = await served.key("ada", "editor")
        await served.client.post("/api/workflows", content=ASKING, headers=ada)
        token = await published(served, ada, chat=True, login=True)
        for path in (f"/api/published/{token}/chat", f"/api/published/{token}/chat/x.y"):
            assert (await served.client.get(path)).status_code == 401
        assert (await sent(served, token, "Ann")).status_code == 401
        token = await published(served, ada, chat=True)
        replies = [await sent(served, token, "Ann", key=f"k{number}") for number in range(12)]
        assert [one.status_code for one in replies].count(200) == 10
        assert replies[-1].json()["code"] == "too-many-requests"


async def test_owners_decide_what_callers_with_a_key_are_offered_and_strangers_are_offered_nothing() -> None:
    async with serving(is_local=False) as served:
        ada, olga = await served.key("ada", "editor"), await served.key("olga", "operator")
        await served.client.post("/api/workflows", content=CHAT, headers=ada)
        await served.client.put("/api/workflows/greet/sharing", json={"audience": "everyone"}, headers=ada)

        async def models() -> list[str]:
            return [
                one["id"]
                for one in (await served.client.get("/v1/models", headers=olga)).json()["data"]
                if ":" not in one["id"]
            ]

        async def completed() -> int:
            body = {"model": "greet", "messages": [{"role": "user", "content": "Hello"}]}
            return (await served.client.post("/v1/chat/completions", json=body, headers=olga)).status_code

        assert await models() == ["greet"], "as before there were publications"
        assert await completed() == 200
        assert (await served.client.put(MANAGED, json={"model": False}, headers=olga)).status_code == 403
        offered = await served.client.put(MANAGED, json={"form": False, "model": False}, headers=ada)
        assert (offered.json()["published"], offered.json()["model"], offered.json()["mcp"]) == (False, False, True)
        assert await models() == []
        assert (await served.client.get("/v1/models/greet", headers=olga)).status_code == 404
        assert await completed() == 404
        responses = await served.client.post("/v1/responses", json={"model": "greet", "input": "Hi"}, headers=olga)
        assert responses.status_code == 404
        assert (await served.client.delete(MANAGED, headers=ada)).status_code == 204
        assert await models() == [], "withdrawing the pages offers nothing anew"
        for path in ("/v1/models", "/v1/models/greet"):
            assert (await served.client.get(path)).status_code == 401
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (await served.client.post("/mcp", json=body)).status_code == 401
