"""The clients of providers with a real server on this machine: requests of each kind, and results of faults."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from threading import Event

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman import Pointsman, Workflow
from pointsman.engine.failures import Failure
from pointsman.models.failures import ModelFailed
from pointsman.models.provider import KINDS, Provider
from pointsman.models.transcript import user_message
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest, ToolSpec
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.http_server import http_server

pytestmark = pytest.mark.integration

PYTHON = re.compile(r"\{'|\w(Error|Exception)\(|b'|<class|object at 0x")
"""Matches the representation of a Python value in a text."""
ANYWHERE = re.compile(".*")
KEY = "canary-key-0123456789"

CHOICE: JsonObject = {"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}
CHAT: JsonObject = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "small-1",
    "choices": [CHOICE],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}
RESPONSES: JsonObject = {
    "id": "r1",
    "object": "response",
    "created_at": 0,
    "status": "completed",
    "model": "small-1",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "fine", "annotations": []}],
        }
    ],
    "usage": {
        "input_tokens": 10,
        "output_tokens": 2,
        "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
ANTHROPIC: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "small-1",
    "content": [{"type": "text", "text": "fine"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 2},
}
CANDIDATE: JsonObject = {
    "content": {"role": "model", "parts": [{"text": "fine"}]},
    "finishReason": "STOP",
    "index": 0,
}
GOOGLE: JsonObject = {
    "candidates": [CANDIDATE],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12},
    "modelVersion": "small-1",
    "responseId": "g1",
}
BEDROCK: JsonObject = {
    "output": {"message": {"role": "assistant", "content": [{"text": "fine"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12},
    "metrics": {"latencyMs": 1},
}
ANSWERS: dict[str, JsonObject] = {
    "openai": RESPONSES,
    "openai-responses": RESPONSES,
    "openai-compatible-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "google": GOOGLE,
    "bedrock": BEDROCK,
    "openrouter": {
        **CHAT,
        "provider": "somebody",
        "choices": [{**CHOICE, "native_finish_reason": "stop"}],
    },
}


CHAT_BEGUN = (
    'data: {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "small-1", '
    '"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Once"}}]}\n\n'
)
ANTHROPIC_BEGUN = (
    'event: message_start\ndata: {"type": "message_start", "message": {"id": "m", "type": "message", '
    '"role": "assistant", "model": "small-1", "content": [], "stop_reason": null, "stop_sequence": null, '
    '"usage": {"input_tokens": 1, "output_tokens": 1}}}\n\n'
    'event: content_block_start\ndata: {"type": "content_block_start", "index": 0, '
    '"content_block": {"type": "text", "text": "Once"}}\n\n'
)
SEARCH = ToolSpec(
    name="search", description="Search.", parameters={"type": "object", "properties": {"q": {"type": "string"}}}
)
EVENTS = {"content-type": "text/event-stream"}


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with http_server() as running:
        yield running


@pytest.fixture(autouse=True)
def signing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")


def answer(server: HTTPServer, body: Json | str, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
    """Give the same answer to every request."""
    data = body if isinstance(body, str) else json.dumps(body)
    given = {"content-type": "application/json", **(headers or {})}
    server.expect_request(ANYWHERE).respond_with_data(data, status=status, headers=given)


async def ask(server: HTTPServer, kind: str, *, hear: list[str] | None = None, timeout_s: float = 20.0) -> ModelReply:
    provider = Provider(
        kind=kind,
        base_url=server.url_for("/v1"),
        keys=() if kind == "bedrock" else (KEY,),  # It sends keys over https only.
        retries=0,
        headers={"x-team": "desk"},
        region="eu-west-1",
    )
    models = PydanticModels(providers={"house": provider})
    asked = ModelRequest(
        model="house:openai/small" if kind == "openrouter" else "house:small",
        system="Be brief.",
        messages=[user_message("hello")],
        tools=(SEARCH,),
        temperature=0.3,
        timeout_s=timeout_s,
    )
    try:
        return await models.ask(asked, on_text=None if hear is None else hear.append)
    finally:
        await models.close()


async def failed(server: HTTPServer, kind: str, *, hear: list[str] | None = None, timeout_s: float = 20.0) -> Failure:
    with pytest.raises(ModelFailed) as caught:
        await ask(server, kind, hear=hear, timeout_s=timeout_s)
    assert KEY not in f"{caught.value!r}{caught.value.failure!r}"
    return caught.value.failure


@pytest.mark.parametrize("kind", KINDS)
async def test_every_provider_kind_sends_its_wire_with_its_key_and_reads_the_answer(
    server: HTTPServer, kind: str
) -> None:
    answer(server, ANSWERS.get(kind, CHAT))
    reply = await ask(server, kind)
    assert reply.text == "fine"
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.model_calls) == (10, 2, 1)
    (heard,) = [request for request, _ in server.log]
    sent = heard.get_data(as_text=True)
    assert all(word in sent for word in ("hello", "Be brief.", "search"))
    if kind != "bedrock":  # Its SDK has its own HTTP client, and signs with values of the environment.
        assert KEY in str(heard.headers), "the key is sent as this wire sends it"
        assert reply.key == 0
        assert heard.headers["x-team"] == "desk"


CUT_OFF: dict[str, JsonObject] = {
    "openai-chat": {**CHAT, "choices": [{**CHOICE, "finish_reason": "length"}]},
    "openai": {**RESPONSES, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    "anthropic": {**ANTHROPIC, "stop_reason": "max_tokens"},
    "google": {**GOOGLE, "candidates": [{**CANDIDATE, "finishReason": "MAX_TOKENS"}]},
    "mistral": {**CHAT, "choices": [{**CHOICE, "finish_reason": "length"}]},
    "groq": {**CHAT, "choices": [{**CHOICE, "finish_reason": "length"}]},
    "bedrock": {**BEDROCK, "stopReason": "max_tokens"},
}


@pytest.mark.parametrize("kind", CUT_OFF)
async def test_every_wire_warns_about_an_answer_that_was_cut_off(server: HTTPServer, kind: str) -> None:
    answer(server, CUT_OFF[kind])
    reply = await ask(server, kind)
    assert reply.text == "fine"
    (warning,) = reply.warnings
    assert "cut off" in warning
    assert "maxTokens" in warning


async def test_an_execution_keeps_the_warning_about_an_answer_that_was_cut_off(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer(server, CUT_OFF["openai-chat"])
    config: JsonObject = {"model": "house:small", "prompt": "Tell.", "maxTokens": 20}
    workflow = Workflow.of({"pointsman": 1, "id": "tale", "nodes": [{"id": "a", "type": "agent", "config": config}]})
    providers = {"house": {"kind": "openai-chat", "base_url": server.url_for("/v1")}}
    async with Pointsman("memory:", settings=Settings.model_validate({"providers": providers})) as app:
        execution = await app.start(workflow)
        await execution.settled()
        view = await execution.view()
    assert [(one["code"], one["nodeId"]) for one in view["warnings"]] == [("work", "a")]
    assert "maxTokens (20)" in view["warnings"][0]["message"]


@pytest.mark.parametrize("kind", ["openai-chat", "openai", "anthropic", "google", "mistral", "groq", "bedrock"])
@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (401, "model-unauthorized", False),
        (404, "model-not-found", False),
        (429, "model-rate-limited", True),
        (500, "model-server-error", True),
        (503, "model-unavailable", True),
    ],
)
async def test_every_provider_kind_maps_failures_identically_and_calls_once(
    server: HTTPServer, kind: str, status: int, code: str, retryable: bool
) -> None:
    error: JsonObject = {"message": f"not with {KEY}", "type": "error", "code": status}
    answer(server, {"type": "error", "error": error, "message": "no"}, status=status)
    failure = await failed(server, kind)
    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.hint
    assert failure.details is not None
    assert failure.details["status"] == status
    assert len(server.log) == 1, "tries are ours alone"


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_wire_reports_a_failure_with_status_address_and_body(
    server: HTTPServer, kind: str, streams: bool
) -> None:
    said = "the parameter 'top_p' is not supported"
    error: JsonObject = {"message": said, "type": "invalid_request_error", "code": 400, "status": "INVALID_ARGUMENT"}
    answer(server, {"type": "error", "error": error, "message": said}, status=400)
    failure = await failed(server, kind, hear=[] if streams else None)
    where = server.url_for("").rstrip("/")
    assert failure.message.startswith("400 from the model ")
    assert f" at {where}" in failure.message
    assert failure.message.endswith(f": {said}")
    details = failure.details or {}
    assert details["status"] == 400
    assert str(details["address"]).startswith(where)
    assert said in str(details["body"])


@pytest.mark.parametrize("kind", KINDS)
async def test_every_wire_reports_an_answer_that_is_not_json(server: HTTPServer, kind: str) -> None:
    answer(server, "<html>Bad gateway</html>", status=502, headers={"content-type": "text/html"})
    failure = await failed(server, kind)
    assert failure.message.startswith("LLM service error: 502 from the model ")
    assert not PYTHON.search(failure.message), failure.message


async def test_the_wait_requested_by_a_provider_is_reported(server: HTTPServer) -> None:
    answer(server, {"error": {"message": "slow down"}}, status=429, headers={"retry-after": "45"})
    assert (await failed(server, "openai-chat")).retry_after_s == 45


async def test_a_conversation_over_the_context_has_its_own_code(server: HTTPServer) -> None:
    message = "This model's maximum context length is 8192 tokens."
    answer(server, {"error": {"message": message, "code": "context_length_exceeded"}}, status=400)
    failure = await failed(server, "openai-chat")
    assert (failure.code, failure.retryable) == ("model-context-too-long", False)
    assert "larger context" in failure.hint


@pytest.mark.parametrize("kind", ["openai-chat", "openai", "anthropic"])
@pytest.mark.parametrize(
    "body", ["<html>welcome</html>", '{"id": 1', '{"choices": 5, "content": 5, "output": 5}', "[]"]
)
async def test_an_invalid_answer_is_a_failure(server: HTTPServer, kind: str, body: str) -> None:
    answer(server, body)
    failure = await failed(server, kind)
    assert failure.code == "model-answer-unreadable"
    assert failure.details is not None
    assert (failure.details["status"], failure.details["body"]) == (200, " ".join(body.split()))
    assert str(failure.details["address"]).startswith(server.url_for("/").rstrip("/"))
    assert failure.message.startswith("200 from the model ")
    assert repr(failure.details["body"]) in failure.message


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"bedrock", "groq"}))
@pytest.mark.parametrize("packed", [False, True])
async def test_a_whole_answer_to_a_request_for_a_stream_is_read(server: HTTPServer, kind: str, packed: bool) -> None:
    body = json.dumps(ANSWERS.get(kind, CHAT)).encode()
    headers = {"content-type": "application/json", **({"content-encoding": "gzip"} if packed else {})}
    sent = Response(gzip.compress(body) if packed else body, headers=headers)
    server.expect_request(ANYWHERE).respond_with_response(sent)
    heard: list[str] = []
    reply = await ask(server, kind, hear=heard)
    assert (reply.text, heard, len(server.log)) == ("fine", ["fine"], 1)


@pytest.mark.parametrize("body", ['{"error": {"message": "overloaded"}}', '{"id": 1', '{"choices": 5}'])
async def test_a_whole_body_that_is_not_an_answer_stays_a_failure(server: HTTPServer, body: str) -> None:
    answer(server, body)
    failure = await failed(server, "openai-chat", hear=[])
    assert failure.code == "model-answer-unreadable"
    assert (failure.details or {})["body"] == body
    assert len(server.log) == 1


async def test_a_stream_labelled_as_json_is_read_as_a_stream(server: HTTPServer) -> None:
    end = CHAT_BEGUN.replace(
        '"delta": {"role": "assistant", "content": "Once"}', '"delta": {}, "finish_reason": "stop"'
    )
    answer(server, CHAT_BEGUN + end + "data: [DONE]\n\n")
    heard: list[str] = []
    reply = await ask(server, "openai-chat", hear=heard)
    assert (reply.text, heard) == ("Once", ["Once"])


async def test_a_redirect_is_reported_with_its_address(server: HTTPServer) -> None:
    answer(server, "", status=302, headers={"location": "https://elsewhere.example/v1"})
    failure = await failed(server, "openai-chat")
    assert "it redirects to 'https://elsewhere.example/v1'" in failure.message
    assert (failure.retryable, (failure.details or {})["status"]) == (False, 302)
    assert "base_url" in failure.hint


async def test_an_error_without_a_body_is_reported_as_such(server: HTTPServer) -> None:
    answer(server, "", status=500)
    failure = await failed(server, "openai-chat")
    assert failure.message.startswith("LLM service error: 500 from the model ")
    assert failure.message.endswith(": it says nothing")


@pytest.mark.parametrize(("kind", "events"), [("openai-chat", CHAT_BEGUN), ("anthropic", ANTHROPIC_BEGUN)])
async def test_a_stream_that_breaks_in_the_middle_of_an_event_is_a_failure(
    server: HTTPServer, kind: str, events: str
) -> None:
    answer(server, events + 'data: {"id": ', headers=EVENTS)
    heard: list[str] = []
    failure = await failed(server, kind, hear=heard)
    assert heard == ["Once"]
    assert failure.retryable
    assert "It sent " in failure.message


REFUSING: JsonObject = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
REFUSAL: JsonObject = {"type": "refusal", "refusal": "I cannot help with that."}
MESSAGE: JsonObject = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [REFUSAL]}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("openai-chat", {**CHAT, "choices": [{**CHOICE, "message": REFUSING}]}),
        ("openai-responses", {**RESPONSES, "output": [MESSAGE]}),
        ("anthropic", {**ANTHROPIC, "content": [], "stop_reason": "refusal"}),
        ("google", {**GOOGLE, "candidates": [{"finishReason": "SAFETY", "index": 0}]}),
    ],
)
async def test_every_wire_maps_a_refusal_identically_without_retry(
    server: HTTPServer, kind: str, body: JsonObject
) -> None:
    answer(server, body)
    failure = await failed(server, kind)
    assert (failure.code, failure.retryable) == ("model-refused", False)
    assert "model-refused" in failure.hint
    if kind.startswith("openai"):
        assert "I cannot help with that." in failure.message


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic"])
async def test_a_service_over_its_timeout_is_a_timeout_failure(server: HTTPServer, kind: str) -> None:
    release = Event()

    def hang(_: Request) -> Response:
        release.wait(20)
        return Response("{}")

    server.expect_request(ANYWHERE).respond_with_handler(hang)
    try:
        failure = await failed(server, kind, timeout_s=0.2)
    finally:
        release.set()
    assert (failure.code, failure.retryable) == ("model-timeout", True)


async def test_an_unreachable_service_is_reported_by_name(server: HTTPServer) -> None:
    server.stop()
    failure = await failed(server, "openai-chat")
    assert (failure.code, failure.retryable) == ("model-unreachable", True)
