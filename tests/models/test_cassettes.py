"""Answers of providers from their documentation, read by the real clients."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer

from pointsman.models.failures import ModelFailed
from pointsman.models.provider import Provider
from pointsman.models.transcript import assistant_message, tool_message, user_message
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest, Thought, ToolSpec
from pointsman.values import Json
from tests.http_server import http_server
from tests.models.cassettes_read import Cassette, cassettes

ALL = list(cassettes())
KINDS = [
    *("anthropic", "azure", "bedrock", "deepseek", "google", "groq"),
    *("mistral", "ollama", "openai-chat", "openai-responses", "openrouter", "vllm"),
]
KEY = "canary-key-0123456789"
WEATHER = ToolSpec(
    name="get_weather",
    description="The weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
QUESTION = user_message("How is the weather in Oslo?")


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with http_server() as running:
        yield running


@pytest.fixture(autouse=True)
def signing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")


def play(server: HTTPServer, kind: str, cassette: Cassette) -> None:
    server.expect_request(re.compile(".*")).respond_with_data(
        cassette.body(kind), status=cassette.status, headers={"content-type": cassette.type(kind), **cassette.headers}
    )


async def ask(
    server: HTTPServer, kind: str, model: str, messages: list[Json], heard: list[str] | None = None
) -> ModelReply:
    provider = Provider(
        kind=kind,
        base_url=server.url_for("/v1"),
        keys=() if kind == "bedrock" else (KEY,),  # It sends keys over https only.
        retries=0,
        region="eu-west-1",
    )
    models = PydanticModels(providers={"house": provider})
    asked = ModelRequest(model=f"house:{model}", messages=messages, tools=(WEATHER,), timeout_s=20.0)
    try:
        return await models.ask(asked, on_text=None if heard is None else heard.append)
    finally:
        await models.close()


def test_every_wire_has_its_cassettes() -> None:
    assert sorted({kind for kind, _ in ALL}) == KINDS
    for kind in KINDS:
        own = [one for other, one in ALL if other == kind]
        assert any(one.stream for one in own), kind
        assert any(one.expect.failure for one in own), kind


@pytest.mark.integration
@pytest.mark.parametrize(("kind", "cassette"), ALL, ids=[f"{kind}: {cassette.name}" for kind, cassette in ALL])
async def test_an_answer_is_parsed_as_documented(server: HTTPServer, kind: str, cassette: Cassette) -> None:
    play(server, kind, cassette)
    expect, heard = cassette.expect, list[str]()
    listening = heard if cassette.stream else None
    if expect.failure:
        with pytest.raises(ModelFailed) as caught:
            await ask(server, kind, cassette.model, [QUESTION], listening)
        failure = caught.value.failure
        assert (failure.code, failure.retry_after_s) == (expect.failure, expect.retry_after_s), failure
        assert expect.says in failure.message
        return
    reply = await ask(server, kind, cassette.model, [QUESTION], listening)
    assert reply.text == expect.text
    assert [call.name for call in reply.tool_calls] == ["get_weather"] * len(expect.calls)
    for call, (name, arguments) in zip(reply.tool_calls, expect.calls, strict=True):
        assert call.arguments == arguments
        assert call.id == name if name is not None else call.id, "a call without an id is given one"
    used = reply.usage
    tokens = (used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_write_tokens)
    assert tokens == expect.usage
    if expect.priced is not None:
        assert (used.cost_usd is not None) == expect.priced, f"the price of {reply.model!r}"
    assert [text for text in heard if text and not isinstance(text, Thought)] == expect.heard
    assert [text for text in heard if text and isinstance(text, Thought)] == expect.thoughts


SIGNED = [(kind, one) for kind, one in ALL if one.expect.echoes]


@pytest.mark.integration
@pytest.mark.parametrize(("kind", "cassette"), SIGNED, ids=[f"{kind}: {cassette.name}" for kind, cassette in SIGNED])
async def test_signed_reasoning_is_sent_back_with_call_results(
    server: HTTPServer, kind: str, cassette: Cassette
) -> None:
    play(server, kind, cassette)
    heard: list[str] | None = [] if cassette.stream else None
    reply = await ask(server, kind, cassette.model, [QUESTION], heard)
    results = [tool_message(call, "mild", name="clerk") for call in reply.tool_calls]
    # The format of the journal.
    kept: list[Json] = json.loads(json.dumps([QUESTION, assistant_message(reply, name="clerk"), *results]))
    await ask(server, kind, cassette.model, kept, heard)
    assert cassette.expect.echoes in server.log[-1][0].get_data(as_text=True)
