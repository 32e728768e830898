"""The OpenAI-compatible API, tested with the official client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from pointsman.models.script import read_script
from pointsman.server.routes.openai import error_body
from pointsman.settings import Settings
from tests.server.conftest import Served, serving
from tests.server.flows import LETTER, WAITS, secret_of

TALK = """\
pointsman: 1
id: talk
config: {conversational: true}
nodes:
  - {id: speak, type: agent, config: {system: "You are brief."}}
"""
GREETING = "Hello to you, and to all who sail the northern seas with you."
ECHO = """\
rules:
  - {contains: "And now", text: "Then we wait."}
  - {contains: Hello, text: "Hello to you, and to all who sail the northern seas with you."}
"""
GUIDE = """\
pointsman: 1
id: guide
config: {conversational: true}
nodes:
  - {id: guide, type: agent, config: {prompt: "Where am I?", tools: [locate]}}
"""
LOCATES = """\
rules:
  - {call: 1, toolCalls: [{name: locate, arguments: {precise: true}}, {name: locate, arguments: {precise: false}}]}
  - {contains: Bergen, text: In Bergen.}
"""
LOCATE = {"description": "Where the user is.", "parameters": {"type": "object"}}


@asynccontextmanager
async def talking(
    store: str = "memory:", *, script: str = ECHO, is_local: bool = True, key: str = "any"
) -> AsyncGenerator[tuple[Served, openai.AsyncOpenAI], None]:
    settings = Settings.model_validate({"delays": False, "client_tools": {"locate": LOCATE}})
    async with serving(store, script=read_script(script), is_local=is_local, settings=settings) as served:
        address = f"{str(served.client.base_url).rstrip('/')}/v1"
        client = openai.AsyncOpenAI(base_url=address, api_key=key, max_retries=2)
        async with client:
            yield served, client


def user(text: str) -> ChatCompletionMessageParam:
    return {"role": "user", "content": text}


async def test_workflows_with_a_text_input_are_listed_as_models() -> None:
    async with talking() as (served, client):
        for document in (TALK, LETTER, WAITS):
            await served.save(document)
        found = [one.id async for one in client.models.list()]
        assert [id for id in found if not id.startswith("builtin:")] == ["letter", "talk"]
        assert (await client.models.retrieve("talk")).object == "model"
        with pytest.raises(openai.NotFoundError, match="waits"):
            await client.models.retrieve("waits")


async def test_an_answer_is_complete_or_streamed_and_includes_its_usage() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        whole = await client.chat.completions.create(model="talk", messages=[user("Hello")], user="ada")
        choice = whole.choices[0]
        assert (choice.message.content, choice.finish_reason) == (GREETING, "stop")
        assert whole.usage is not None
        assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0
        stream = await client.chat.completions.create(
            model="talk", messages=[user("Hello")], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        words = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        assert "".join(words).strip() == GREETING
        assert sum(bool(word.strip()) for word in words) > 1, "it comes as it is said"
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert chunks[-1].usage == whole.usage


async def test_a_request_for_several_answers_is_refused() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        for streamed in (False, True):
            with pytest.raises(openai.UnprocessableEntityError, match="a workflow gives one answer: leave `n` out"):
                await client.chat.completions.create(model="talk", messages=[user("Hello")], n=2, stream=streamed)
        made = await client.chat.completions.create(model="talk", messages=[user("Hello")], n=1)
        assert len(made.choices) == 1
        assert (await client.chat.completions.create(model="talk", messages=[user("Hello")], n=None)).choices


async def test_the_messages_are_the_conversation_without_a_session() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        said: list[Any] = [user("Hello"), {"role": "assistant", "content": GREETING}, user("And now?")]
        reply = await client.chat.completions.create(
            model="talk",
            messages=[{"role": "system", "content": "Be a pirate."}, *said],
        )
        assert reply.choices[0].message.content == "Then we wait."
        execution = reply.id.removeprefix("chatcmpl-")
        messages = (await served.read(execution))["state"]["messages"]
        assert [(one["role"], one["content"]) for one in messages[:3]] == [
            ("user", "Hello"),
            ("assistant", GREETING),
            ("user", "And now?"),
        ]
        for text in ("Hello", "And now?"):
            await client.chat.completions.create(model="talk", messages=[user(text)], metadata={"session_id": "s1"})
        kept = (await served.app.storage.conversation("s1")).messages
        assert [one["content"] for one in kept if isinstance(one, dict) and one["role"] == "user"] == [
            "Hello",
            "And now?",
        ]


@pytest.mark.parametrize("session", [None, "s1"])
async def test_a_gate_is_a_question_that_the_next_message_answers_even_after_a_restart(
    file_store: str, session: str | None
) -> None:
    headers = {} if session is None else {"x-session-id": session}
    script = "rules:\n  - {text: Dear Ada}\n"
    async with talking(file_store, script=script) as (served, client):
        await served.save(LETTER)
        said: list[Any] = [user("tides")]
        asked = await client.chat.completions.create(model="letter", messages=said, extra_headers=headers)
        question = asked.choices[0].message.content or ""
        assert question.startswith("Send it?")
        assert "- `approve`" in question
        said += [{"role": "assistant", "content": question}, user("well")]
        again = await client.chat.completions.create(model="letter", messages=said, extra_headers=headers)
        assert "'well' is not a valid answer" in (again.choices[0].message.content or "")
        assert again.id == asked.id
    async with talking(file_store, script=script) as (served, client):
        said += [{"role": "assistant", "content": again.choices[0].message.content}, user("Approve: fine by me")]
        done = await client.chat.completions.create(model="letter", messages=said, extra_headers=headers)
        assert json.loads(done.choices[0].message.content or "") == {"letter": "Dear Ada"}
        view = await served.read(done.id.removeprefix("chatcmpl-"))
        assert (view["status"], view["answers"][0]["comment"]) == ("completed", "fine by me")
        assert len((await served.client.get("/api/workflows/executions")).json()["executions"]) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_of_client_tools_are_returned_and_their_results_continue_the_turn(
    file_store: str, stream: bool
) -> None:
    async with talking(file_store, script=LOCATES) as (served, client):
        await served.save(GUIDE)
        said: list[Any] = [user("Where am I?")]
        calls = await called(client, said, stream=stream)
        assert [(one["function"]["name"], json.loads(one["function"]["arguments"])) for one in calls] == [
            ("locate", {"precise": True}),
            ("locate", {"precise": False}),
        ]
        said.append({"role": "assistant", "content": None, "tool_calls": calls})
        half: list[Any] = [*said, {"role": "tool", "tool_call_id": calls[0]["id"], "content": "Norway"}]
        with pytest.raises(openai.UnprocessableEntityError, match="each call needs a result"):
            await client.chat.completions.create(model="guide", messages=half)
    async with talking(file_store, script=LOCATES) as (served, client):
        said += [
            {"role": "tool", "tool_call_id": calls[0]["id"], "content": "Norway"},
            {"role": "tool", "tool_call_id": calls[1]["id"], "content": '{"city": "Bergen"}'},
        ]
        for _ in range(2):
            done = await client.chat.completions.create(model="guide", messages=said)
            assert (done.choices[0].message.content, done.choices[0].finish_reason) == ("In Bergen.", "stop")
        assert len((await served.client.get("/api/workflows/executions")).json()["executions"]) == 1


async def called(client: openai.AsyncOpenAI, said: list[Any], *, stream: bool) -> list[Any]:
    if not stream:
        reply = await client.chat.completions.create(model="guide", messages=said)
        assert reply.choices[0].finish_reason == "tool_calls"
        return [one.model_dump() for one in reply.choices[0].message.tool_calls or []]
    found: list[Any] = []
    async for chunk in await client.chat.completions.create(model="guide", messages=said, stream=True):
        found += [one.model_dump(exclude={"index"}) for one in chunk.choices[0].delta.tool_calls or []]
    return found


async def test_errors_have_the_openai_format_and_a_failed_request_is_not_repeated() -> None:
    async with talking(script="rules:\n  - {fail: {status: 400, message: broken}}\n") as (served, client):
        await served.save(TALK)
        with pytest.raises(openai.NotFoundError, match="nope") as unknown:
            await client.chat.completions.create(model="nope", messages=[user("Hello")])
        assert unknown.value.code == "unknown-workflow"
        with pytest.raises(openai.UnprocessableEntityError) as empty:
            await client.chat.completions.create(model="talk", messages=[])
        assert empty.value.code == "request-invalid"
        wrong: list[Any] = [[{"role": "assistant", "content": "Hello"}], [{"role": "tool", "tool_call_id": "x~1"}]]
        for messages in wrong:
            with pytest.raises(openai.BadRequestError) as invalid:
                await client.chat.completions.create(model="talk", messages=messages)
            assert invalid.value.code == "messages-invalid"
        picture: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
        with pytest.raises(openai.BadRequestError, match="image_url"):
            await client.chat.completions.create(model="talk", messages=picture)
        with pytest.raises(openai.APIStatusError) as failed:
            await client.chat.completions.create(model="talk", messages=[user("Hello")])
        assert (failed.value.status_code, failed.value.code) == (502, "answer-failed")
        stream = await client.chat.completions.create(model="talk", messages=[user("Hello")], stream=True)
        with pytest.raises(openai.APIError, match="broken"):
            async for _ in stream:
                pass
        ran = (await served.client.get("/api/workflows/executions")).json()["executions"]
        assert [one["status"] for one in ran] == ["failed", "failed"]


async def test_the_openai_api_requires_a_key() -> None:
    async with talking(is_local=False) as (served, client):
        admin = await served.key("root", "admin")
        assert (await served.client.post("/api/workflows", content=TALK, headers=admin)).status_code == 201
        hidden = secret_of("desk").replace("input: {type: object}\n", "config: {conversational: true}\n")
        assert (await served.client.post("/api/workflows", content=hidden, headers=admin)).status_code == 201
        with pytest.raises(openai.AuthenticationError):
            await client.models.list()
        token = (await served.key("bob", "operator", "day"))["authorization"].removeprefix("Bearer ")
        bob = client.with_options(api_key=token)
        found = [one.id async for one in bob.models.list()]
        assert "secret" not in found
        with pytest.raises(openai.NotFoundError):
            await bob.chat.completions.create(model="secret", messages=[user("Hello")])
        viewer = (await served.key("eve", "viewer"))["authorization"].removeprefix("Bearer ")
        with pytest.raises(openai.PermissionDeniedError):
            await client.with_options(api_key=viewer).chat.completions.create(model="talk", messages=[user("Hi")])


async def test_a_gate_of_another_user_is_not_answered() -> None:
    async with talking(is_local=False) as (served, client):
        admin, outside = await served.key("root", "admin"), await served.key("bob", "operator", "day")
        gate = LETTER.replace("id: letter", "id: letter\nallowedGroups: [desk]")
        for document in (gate, TALK):
            assert (await served.client.post("/api/workflows", content=document, headers=admin)).status_code == 201
        root = client.with_options(api_key=admin["authorization"].removeprefix("Bearer "))
        asked = await root.chat.completions.create(model="letter", messages=[user("tides")])
        said: list[Any] = [user("x"), asked.choices[0].message.model_dump(), user("approve")]
        bob = client.with_options(api_key=outside["authorization"].removeprefix("Bearer "))
        with pytest.raises(openai.NotFoundError):
            await bob.chat.completions.create(model="talk", messages=said)
        assert (await served.app.view(asked.id.removeprefix("chatcmpl-")))["status"] == "waiting"


async def test_many_conversations_run_concurrently() -> None:
    async with talking() as (served, client):
        await served.save(TALK)
        replies = await asyncio.gather(
            *(client.chat.completions.create(model="talk", messages=[user("Hello")]) for _ in range(20))
        )
        assert {one.choices[0].message.content for one in replies} == {GREETING}
        assert len({one.id for one in replies}) == 20


@pytest.mark.parametrize(
    ("detail", "hint", "message"),
    [
        ("no model 'x'", "GET /v1/models lists them.", "no model 'x'. GET /v1/models lists them."),
        ("Is it up?", "Start it.", "Is it up? Start it."),
        ("it ends here.", "Start it.", "it ends here. Start it."),
        ("it has no hint", "", "it has no hint"),
    ],
)
def test_the_message_of_an_error_includes_its_hint_as_a_sentence(detail: str, hint: str, message: str) -> None:
    assert error_body(404, "code", detail, hint)["error"] == {
        "message": message,
        "type": "invalid_request_error",
        "param": None,
        "code": "code",
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/chat/completions", b"\xff\xfe", 400, "body-invalid"),
        ("POST", "/v1/responses", b"{", 400, "body-invalid"),
        ("POST", "/v1/chat/completions", b"[" * 1_000, 400, "body-invalid"),
        ("POST", "/v1/responses", b'"' + b"x" * 10_000 + b'"', 413, "body-too-large"),
        ("POST", "/v1/responses", b"{}", 422, "request-invalid"),
        ("POST", "/v1/embeddings", b"{}", 404, "not-found"),
        ("DELETE", "/v1/models/talk", b"", 405, "method-refused"),
        ("GET", "/v1/files", b"", 404, "not-found"),
        ("GET", "/v1", b"", 404, "not-found"),
        ("GET", "/v1/models/" + "x" * 10_000, b"", 422, "request-invalid"),
        ("GET", "/v1/models/a%2Fb%00", b"", 404, "not-found"),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_every_refusal_has_the_openai_format(method: str, path: str, body: bytes, status: int, code: str) -> None:
    async with serving(body_bytes_max=5_000) as served:
        reply = await served.client.request(method, path, content=body, headers={"content-type": "application/json"})
        assert reply.status_code == status, reply.text
        assert reply.headers["content-type"] == "application/json"
        assert reply.json() == {"error": reply.json()["error"]}
        error = reply.json()["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", code)
        assert reply.headers["x-should-retry"] == "false"
        assert ("allow" in reply.headers) is (status == 405)


async def test_refusals_of_hosts_and_origins_have_the_openai_format(served: Served) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
        reply = await served.client.post("/v1/responses", json={}, headers=headers)
        assert (reply.status_code, reply.json()["error"]["type"]) == (403, "permission_error")
        assert reply.json()["error"]["code"] == "origin-refused"


async def test_an_internal_error_has_the_openai_format(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("pointsman.chat.verbs.chat_workflows", broken)
    reply = await served.client.get("/v1/models")
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")
    assert reply.json()["error"]["code"] == "engine-bug"
    assert "secret" not in reply.text
