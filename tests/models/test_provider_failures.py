"""Failures of providers are sentences with model, address, answer, and what to check."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.engine.failures import Failure, connection_problem
from pointsman.models.failures import ModelFailed
from pointsman.models.provider import Provider
from pointsman.models.transcript import user_message
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelRequest
from pointsman.settings import Settings
from pointsman.values import JsonObject

pytestmark = pytest.mark.integration

KEY = "sk-secret-12345678"


@asynccontextmanager
async def answering(status: int, body: bytes, kind: str = "application/json") -> AsyncGenerator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = (
            f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def failure(url: str) -> Failure:
    models = PydanticModels(providers={"p": Provider(base_url=url, keys=(KEY,), retries=0)})
    try:
        with pytest.raises(ModelFailed) as caught:
            await models.ask(ModelRequest(model="p:small", messages=[user_message("hi")], timeout_s=20))
    finally:
        await models.close()
    return caught.value.failure


async def test_an_error_of_a_provider_has_status_model_address_and_message() -> None:
    async with answering(400, b'{"error": {"message": "unsupported parameter"}}') as where:
        found = await failure(f"http://{where}/v1")
    assert found.message == f"400 from the model 'small' at http://{where}/v1: unsupported parameter"
    assert (found.details or {})["status"] == 400
    assert "unsupported parameter" in str((found.details or {})["body"])


async def test_errors_show_the_address_without_user_and_query_and_the_body_without_keys() -> None:
    async with answering(500, f'{{"error": "bad {KEY}"}}'.encode()) as where:
        found = await failure(f"http://ann:pass@{where}/v1?api_key=abc")
    assert found.message == f"LLM service error: 500 from the model 'small' at http://{where}/v1: bad ***"
    for secret in (KEY, "ann", "pass@", "abc"):
        assert secret not in repr(found)


async def test_a_long_body_is_truncated() -> None:
    async with answering(400, b"x" * 100_000, "text/plain") as where:
        found = await failure(f"http://{where}/v1")
    assert len(found.message) <= 1000
    assert len(str((found.details or {})["body"])) <= 1000


async def test_no_error_message_is_a_python_expression() -> None:
    async with answering(200, b'{"weird": 1}') as where:
        found = await failure(f"http://{where}/v1")
    assert found.code == "model-answer-unreadable"
    assert "type=string_type" not in found.message


async def timed_out(where: str, **provider: object) -> JsonObject:
    """Return the failure of a step whose time ends while a call is tried again."""
    settings = Settings.model_validate(
        {"store": "memory:", "providers": {"p": {"base_url": f"http://{where}/v1", "keys": [KEY], **provider}}}
    )
    node: JsonObject = {"id": "ask", "type": "agent", "config": {"prompt": "Hi.", "model": "p:small"}}
    document: JsonObject = {"pointsman": 1, "id": "w", "nodes": [{**node, "execution": {"timeout": "600ms"}}]}
    async with Pointsman(settings=settings) as app:
        execution = await app.start(Workflow.of({**document, "edges": []}), {})
        assert await execution.settled() == "failed"
        (error,) = cast("list[JsonObject]", (await execution.view())["errors"])
    return error


@pytest.mark.parametrize("status", [503, 429, 500])
async def test_a_timeout_during_a_retry_includes_the_last_error_of_the_provider(status: int) -> None:
    async with answering(status, f'{{"error": {{"message": "busy {KEY}"}}}}'.encode()) as where:
        await failure(f"http://{where}/v1")  # Load the client, so that the time limit covers the call alone.
        error = await timed_out(where, retries=9, interval="10s")
    assert error["code"] == "timeout"
    assert f"{status} from the model 'small' at http://{where}/v1: busy ***" in str(error["message"])
    details = cast("JsonObject", error["details"])
    assert (details["status"], details["address"]) == (status, f"http://{where}/v1")
    assert "busy ***" in str(details["body"])
    assert KEY not in repr(error)
    assert "`execution.timeout`" in str(error["hint"])


async def test_a_refused_connection_is_reported_with_a_hint() -> None:
    found = await failure("http://127.0.0.1:9/v1")
    assert found.message == "the model 'small' at http://127.0.0.1:9/v1 cannot be reached: the connection was refused"
    assert "host and port" in found.hint


def chained(first: BaseException, why: BaseException) -> BaseException:
    first.__cause__ = why
    return first


@pytest.mark.parametrize(
    ("why", "what"),
    [
        (chained(RuntimeError("x"), OSError("[Errno -2] Name or service not known")), "cannot be resolved"),
        (chained(RuntimeError("x"), ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]")), "the TLS handshake failed"),
        (ssl.SSLError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self signed"), "certificate is not trusted"),
        (ConnectionRefusedError(111, "Connection refused"), "was refused"),
        (ConnectionResetError(104, "Connection reset by peer"), "broke"),
        (TimeoutError(), "in time"),
        (OSError(101, "Network is unreachable"), "no network route to it"),
        (ValueError("odd"), "ValueError: odd"),
    ],
)
def test_connection_problems_are_reported_in_plain_words(why: BaseException, what: str) -> None:
    said, hint = connection_problem(why)
    assert what in said
    assert hint


PLAIN = (
    b'{"id": "1", "object": "chat.completion", "created": 1, "model": "small", "choices": [{"index": 0, '
    b'"finish_reason": "stop", "message": {"role": "assistant", "content": "about seven"}}], '
    b'"usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}'
)
SCORE: JsonObject = {"type": "object", "required": ["score"], "properties": {"score": {"type": "integer"}}}


@pytest.mark.parametrize(
    "node",
    [
        {"type": "agent", "config": {"prompt": "Score it", "outputSchema": SCORE}},
        {"type": "agent", "config": {"prompt": "Score it", "result": "json"}},
        {"type": "planner", "config": {"goal": "Score it"}},
        {"type": "verifier", "config": {"criteria": "Short", "input": "'x'"}},
        {"type": "structured-record", "config": {"schema": SCORE, "input": "'x'", "records": "found"}},
        {"type": "decision", "config": {"llmPrompt": "Which?", "choices": ["a", "b"]}},
    ],
)
async def test_an_answer_in_the_wrong_form_is_corrected_over_the_wire_and_then_shown(node: JsonObject) -> None:
    async with answering(200, PLAIN) as where:
        provider = {"base_url": f"http://{where}/v1", "keys": [KEY], "retries": 0}
        settings = Settings.model_validate({"store": "memory:", "model": "p:small", "providers": {"p": provider}})
        async with Pointsman(settings=settings) as app:
            flow: JsonObject = {"pointsman": 1, "id": "score", "nodes": [{"id": "work", **node}], "edges": []}
            execution = await app.start(Workflow.of(flow), {})
            await execution.settled()
            view = await execution.view()
    found = [one["code"] for one in view["errors"]]
    assert "model-answer-unreadable" not in found
    if node["type"] in ("agent", "planner"):
        assert "about seven" in str(view["errors"][-1])
        assert view["usage"]["modelCalls"] == 3, "two corrections"


async def test_an_error_in_a_response_with_the_status_of_a_success_is_the_message() -> None:
    async with answering(200, b'{"error": {"message": "model overloaded", "code": 503}}') as where:
        found = await failure(f"http://{where}/v1")
    assert found.message.startswith(f"200 from the model 'small' at http://{where}/v1: the service reports an error: ")
    assert "model overloaded" in found.message
    async with answering(200, b'{"id": "1", "choices": []}') as where:
        found = await failure(f"http://{where}/v1")
    assert "lacks fields, or has them in a wrong form: model, object" in found.message
    assert "validation error" not in found.message
