"""Three protocols with a real model server: its own parsing, grammars and streams."""

from __future__ import annotations

import json

import pytest

from pointsman.models.failures import ModelFailed
from pointsman.models.provider import Provider
from pointsman.models.transcript import assistant_message, tool_message, user_message
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest, ToolSpec
from pointsman.values import Json, JsonObject
from tests.local_model.server import ModelServer

WIRES = ("openai-compatible", "openai-compatible-responses", "anthropic")
CITIES = ("Riga", "Oslo")
WEATHER = ToolSpec(
    name="get_weather",
    description="The weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string", "enum": list(CITIES)}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
VERDICT: JsonObject = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["pass", "fail"]}, "score": {"type": "integer"}},
    "required": ["verdict", "score"],
    "additionalProperties": False,
}
QUESTION = user_message("How is the weather?")


async def ask(
    server: ModelServer,
    wire: str,
    messages: list[Json],
    *,
    keys: tuple[str, ...] | None = None,
    tools: tuple[ToolSpec, ...] = (),
    output_schema: JsonObject | None = None,
    heard: list[str] | None = None,
) -> ModelReply:
    provider = Provider(
        kind=wire,
        base_url=server.address if wire == "anthropic" else f"{server.address}/v1",
        keys=server.keys if keys is None else keys,
        retries=0,
    )
    models = PydanticModels(providers={"own": provider})
    asked = ModelRequest(
        model=f"own:{server.name}",
        system="Be brief.",
        messages=messages,
        tools=tools,
        output_schema=output_schema,
        max_tokens=200,
        temperature=0.0,
        timeout_s=60,
    )
    try:
        return await models.ask(asked, on_text=None if heard is None else heard.append)
    finally:
        await models.close()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_model_calls_a_tool_and_reads_its_answer(local_model: ModelServer, wire: str, streamed: bool) -> None:
    heard: list[str] | None = [] if streamed else None
    first = await ask(local_model, wire, [QUESTION], tools=(WEATHER,), heard=heard)
    assert first.tool_calls
    assert all(call.name == "get_weather" and call.arguments["city"] in CITIES for call in first.tool_calls)
    assert len({call.id for call in first.tool_calls}) == len(first.tool_calls)
    assert first.usage.input_tokens > 100
    assert first.usage.output_tokens > 0

    answers = [tool_message(call, {"degrees": 21}, name="asker") for call in first.tool_calls]
    told: list[Json] = [QUESTION, assistant_message(first, name="asker"), *answers]
    second = await ask(local_model, wire, told, tools=(WEATHER,), heard=heard)
    assert second.text
    assert not second.tool_calls
    assert second.usage.input_tokens > first.usage.input_tokens
    if heard is not None:
        assert "".join(heard) == first.text + second.text


# In the Responses protocol this server ignores schemas.
@pytest.mark.parametrize("wire", ["openai-compatible", "anthropic"])
async def test_a_schema_constrains_the_model(local_model: ModelServer, wire: str) -> None:
    reply = await ask(local_model, wire, [QUESTION], output_schema=VERDICT)
    said = json.loads(reply.text)
    assert said["verdict"] in ("pass", "fail")
    assert isinstance(said["score"], int)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_wrong_key_is_refused_and_not_shown(local_model: ModelServer, wire: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        await ask(local_model, wire, [QUESTION], keys=("canary-wrong-key",))
    failure = caught.value.failure
    assert (failure.code, failure.retryable) == ("model-unauthorized", False)
    assert "canary" not in repr(failure)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_wrong_key_is_replaced_by_the_next(local_model: ModelServer, wire: str) -> None:
    reply = await ask(local_model, wire, [QUESTION], keys=("canary-wrong-key", local_model.keys[0]))
    assert reply.usage.output_tokens
    assert reply.key == 1
    assert reply.warnings[-1] == "the provider refuses key 0 of 'own' (model-unauthorized)"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_request_over_the_context_window_is_reported_by_name(local_model: ModelServer, wire: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        await ask(local_model, wire, [user_message("many words " * 1000)])
    assert caught.value.failure.code == "model-context-too-long"
