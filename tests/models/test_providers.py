"""Providers: any service with Chat Completions, its keys, and the data that leaves the process."""

from __future__ import annotations

import json

import httpx2
import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile

from pointsman.models.failures import ModelUnusable
from pointsman.models.prices import cost_usd
from pointsman.models.provider import Provider
from pointsman.models.transcript import assistant_message, user_message
from pointsman.models.transport import PydanticModels
from pointsman.models.wire import to_messages, to_parameters, to_reply
from pointsman.ports import ModelRequest
from pointsman.values import JsonObject

SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Service(httpx2.AsyncBaseTransport):
    """A provider."""

    def __init__(self) -> None:
        self.heard: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.heard.append(request)
        choice = {"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "small-1",
            "choices": [choice],
            "usage": usage,
        }
        return httpx2.Response(200, json=body)


def request(**more: object) -> ModelRequest:
    return ModelRequest(model="house:small", messages=[user_message("hello")], hints={"node": "secret plan"}, **more)  # pyright: ignore[reportArgumentType] - a shorthand


async def test_a_configured_service_is_called_at_its_address_with_its_key() -> None:
    service = Service()
    models = PydanticModels(
        providers={"house": Provider(base_url="http://house.test/v1", keys=("k0", "k1"), http=service)}
    )
    reply = await models.ask(request(system="Be brief.", temperature=0.1, max_tokens=9, output_schema=SCHEMA))
    (heard,) = service.heard
    body = json.loads(heard.content)
    assert str(heard.url) == "http://house.test/v1/chat/completions"
    assert heard.headers["authorization"] == "Bearer k0"
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["model"], body["temperature"]) == ("small", 0.1)
    assert body.get("max_tokens") == 9 or body.get("max_completion_tokens") == 9
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (reply.text, reply.model, reply.usage.input_tokens) == ("fine", "small-1", 1000)
    await models.close()


async def test_hints_are_not_sent_to_providers() -> None:
    service = Service()
    models = PydanticModels(providers={"house": Provider(base_url="http://house.test/v1", http=service)})
    await models.ask(request())
    assert "secret plan" not in service.heard[0].content.decode() + str(service.heard[0].headers)


@pytest.mark.requirement("S2-68", "S2-73", "T2-19")
async def test_the_key_index_selects_a_key_modulo_their_number_with_a_warning() -> None:
    service = Service()
    house = Provider(base_url="http://house.test/v1", keys=("k0", "k1", "k2"), http=service)
    models = PydanticModels(providers={"house": house})
    replies = [await models.ask(request(key_index=index)) for index in (0, 1, 4, None)]
    assert [reply.key for reply in replies] == [0, 1, 1, 2]
    assert [reply.warnings for reply in replies] == [
        (),
        (),
        ("keyIndex 4 is greater than the number of keys of 'house' (3): key 1 is used",),
        (),
    ]
    assert [heard.headers["authorization"][-2:] for heard in service.heard] == ["k0", "k1", "k1", "k2"]


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_variable_is_no_key(blank: str) -> None:
    with pytest.raises(ModelUnusable, match="has no key"):
        Provider(kind="openai").resolved("openai", {"OPENAI_API_KEY": blank})
    with pytest.raises(ModelUnusable, match="'MINE', which is not set"):
        Provider(kind="openai", keys=("env:MINE",)).resolved("openai", {"MINE": blank})
    assert Provider(kind="openai").key_variable({"OPENAI_API_KEY": blank}) is None


def test_blanks_around_the_key_of_a_variable_are_removed() -> None:
    assert Provider(kind="openai").resolved("openai", {"OPENAI_API_KEY": "sk-a\n"}).keys == ("sk-a",)
    assert Provider(kind="openai", keys=("env:MINE",)).resolved("openai", {"MINE": " sk-b "}).keys == ("sk-b",)


def test_keys_are_not_shown() -> None:
    assert "k0" not in repr(Provider(base_url="http://house.test/v1", keys=("k0",)))


def test_a_known_price_is_reported_and_an_unknown_one_is_not_zero() -> None:
    assert cost_usd("openai", "gpt-4o", input_tokens=1_000_000, output_tokens=0) == pytest.approx(2.5)
    assert cost_usd("house", "no-such-model", input_tokens=1, output_tokens=1) is None
    assert cost_usd("scripted", "scripted", input_tokens=1, output_tokens=1) is None


def test_a_provider_without_schemas_is_offered_the_schema_as_a_tool() -> None:
    asked = ModelRequest(model="x", output_schema=SCHEMA)
    parameters = to_parameters(asked, TestModel(profile=ModelProfile(supports_json_schema_output=False)))
    assert [tool.name for tool in parameters.output_tools] == ["final_result"]
    assert not parameters.allow_text_output
    reply = to_reply(ModelResponse(parts=[ToolCallPart("final_result", {"n": 1}, "c1")]), asked)
    assert (reply.text, reply.tool_calls) == ('{"n": 1}', ())


def test_signed_reasoning_is_echoed_unchanged() -> None:
    parts = [ThinkingPart("hm", signature="signed"), TextPart("I look."), ToolCallPart("search", {"q": 1}, "c1")]
    reply = to_reply(ModelResponse(parts=parts, provider_name="house"), ModelRequest(model="x"))
    message = assistant_message(reply, name="writer")
    (said,) = to_messages(ModelRequest(model="x", messages=[message]))
    assert isinstance(said, ModelResponse)
    assert [type(part) for part in said.parts] == [ThinkingPart, TextPart, ToolCallPart]
    assert isinstance(said.parts[0], ThinkingPart)
    assert said.parts[0].signature == "signed"
    assert "raw" not in assistant_message(reply, name="writer", calls=())


def test_consecutive_messages_of_one_role_are_merged() -> None:
    said: list[JsonObject] = [
        user_message("a"),
        user_message("b"),
        {"role": "assistant", "content": "c"},
        user_message("d"),
    ]
    turns = to_messages(ModelRequest(model="x", system="s", messages=[*said]))
    assert [[type(part).__name__ for part in turn.parts] for turn in turns] == [
        ["SystemPromptPart", "UserPromptPart", "UserPromptPart"],
        ["TextPart"],
        ["UserPromptPart"],
    ]
