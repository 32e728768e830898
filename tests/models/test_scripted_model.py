"""The scripted model: rules, streaming, and failures with the codes that providers cause."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from pointsman.engine.reports import ToolCall, Usage
from pointsman.models.failures import ModelFailed
from pointsman.models.script import read_script
from pointsman.models.transport import PydanticModels
from pointsman.ports import ModelReply, ModelRequest, ToolSpec
from pointsman.values import Json, JsonObject

SCORE: JsonObject = {
    "type": "object",
    "required": ["score", "issues"],
    "properties": {
        "score": {"type": "integer", "minimum": 0, "maximum": 100},
        "issues": {"type": "array", "items": {"type": "string"}},
        "verdict": {"enum": ["accept", "revise"]},
    },
}
SEARCH = ToolSpec(
    name="web_search", description="Search.", parameters={"type": "object", "properties": {"q": {"type": "string"}}}
)


def router(*labels: str) -> ToolSpec:
    legal: list[Json] = [*labels]
    properties: JsonObject = {"next": {"type": "string", "enum": legal}}
    return ToolSpec(name="router", description="Go.", parameters={"type": "object", "properties": properties})


END_TOOL = ToolSpec(name="end", description="End.", parameters={"type": "object", "properties": {}})


class Waits:
    """A clock that only records the requested waits."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def models(script: str = "rules: []", waits: Waits | None = None) -> PydanticModels:
    return PydanticModels(default="scripted", script=read_script(script), sleep=waits or Waits())


async def ask(
    model: PydanticModels, text: str = "hello", hints: Mapping[str, Json] | None = None, **more: Any
) -> ModelReply:
    return await model.ask(
        ModelRequest(model="scripted", messages=[{"role": "user", "content": text}], hints=hints or {}, **more)
    )


async def failure_of(model: PydanticModels) -> Any:
    with pytest.raises(ModelFailed) as caught:
        await ask(model)
    return caught.value.failure


async def test_rules_are_matched_in_order_by_the_call() -> None:
    model = models(
        """
        rules:
          - {node: Router, visit: 2, text: again}
          - {node: [Router, "9"], text: first}
          - {agent: writer, item: berlin, text: Berlin}
          - {purpose: judge, text: judged}
          - {contains: strike, text: docks}
          - {matches: "(?i)^HELLO", call: 2, text: second call}
          - {branch: 0, attempt: 2, text: retried}
        """
    )
    said = [
        (await ask(model, hints={"node": "Router", "visit": 1})).text,
        (await ask(model, hints={"node": "Router", "visit": 2})).text,
        (await ask(model, hints={"node": "7", "name": "Router", "visit": 1})).text,
        (await ask(model, hints={"agent": "writer", "item": "berlin"})).text,
        (await ask(model, purpose="judge")).text,
        (await ask(model, "the strike goes on")).text,
        (await ask(model, hints={"call": 2})).text,
        (await ask(model, "x", hints={"branch": 0, "attempt": 2})).text,
    ]
    assert said == ["first", "again", "first", "Berlin", "judged", "docks", "second call", "retried"]


async def test_answers_are_used_in_order_in_each_scope_and_the_last_one_repeats() -> None:
    model = models("rules: [{node: check, answers: [{json: {score: 60}}, {json: {score: 90}}]}]")
    scopes: list[Mapping[str, Json]] = [{"node": "check", "scope": scope} for scope in ("0", "1")]
    said = [json.loads((await ask(model, hints=scopes[at])).text)["score"] for at in (0, 1, 0, 0, 1)]
    assert said == [60, 60, 90, 90, 90]


async def test_a_rule_has_a_maximum_of_uses() -> None:
    model = models("rules: [{times: 2, text: twice}, {text: then}]")
    assert [(await ask(model)).text for _ in range(3)] == ["twice", "twice", "then"]


async def test_text_streams_in_pieces_that_add_up() -> None:
    heard: list[str] = []
    model = models('rules: [{text: "one two three four five six seven eight nine"}]')
    reply = await model.ask(
        ModelRequest(model="scripted", messages=[{"role": "user", "content": "go"}]), on_text=heard.append
    )
    assert len(heard) > 1
    assert "".join(heard) == reply.text == "one two three four five six seven eight nine"


async def test_slow_answers_and_tokens_wait_on_the_given_clock() -> None:
    waits = Waits()
    model = models('rules: [{text: "a b c d e f", delay: 2s, tokenDelay: 50ms}]', waits)
    await model.ask(ModelRequest(model="", messages=[{"role": "user", "content": "go"}]), on_text=lambda _: None)
    assert waits.seconds == [2.0, 0.05, 0.05]


async def test_tool_calls_and_usage_arrive_as_scripted() -> None:
    model = models(
        """
        rules:
          - toolCalls: [{name: web_search, arguments: {q: port}}, {name: web_search}]
            usage: {inputTokens: 12, outputTokens: 3}
        """
    )
    reply = await ask(model, tools=(SEARCH,))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [
        ("web_search", {"q": "port"}),
        ("web_search", {}),
    ]
    assert len({call.id for call in reply.tool_calls}) == 2
    assert reply.usage == Usage(input_tokens=12, output_tokens=3, model_calls=1, free_calls=1, scripted=True)
    assert reply.model == "scripted"


async def test_streamed_and_whole_answers_are_the_same() -> None:
    model = models('rules: [{text: "so be it", toolCalls: [{name: web_search, arguments: {q: "a"}}]}]')
    whole = await ask(model, tools=(SEARCH,))
    request = ModelRequest(model="", messages=[{"role": "user", "content": "hello"}], tools=(SEARCH,))
    assert await model.ask(request, on_text=lambda _: None) == whole


@pytest.mark.parametrize(
    ("fail", "code", "retryable", "retry_after_s"),
    [
        ("{status: 429, retryAfter: 7s}", "model-rate-limited", True, 7.0),
        ("500", "model-server-error", True, None),
        ("503", "model-unavailable", True, None),
        ("401", "model-unauthorized", False, None),
        ("404", "model-not-found", False, None),
        ("400", "model-rejected", False, None),
        ("402", "model-quota-exceeded", False, None),
        ("timeout", "model-timeout", True, None),
        ("connection", "model-unreachable", True, None),
    ],
)
async def test_scripted_failures_have_a_code_and_a_retry_flag(
    fail: str, code: str, retryable: bool, retry_after_s: float | None
) -> None:
    failure = await failure_of(models(f"rules: [{{fail: {fail}}}]"))
    assert (failure.code, failure.retryable, failure.retry_after_s) == (code, retryable, retry_after_s)


async def test_the_scripted_client_does_not_retry() -> None:
    model = models("rules: [{times: 1, fail: 500}, {text: fine}]")
    assert (await failure_of(model)).code == "model-server-error"
    assert (await ask(model)).text == "fine"


async def test_without_a_rule_the_answer_satisfies_the_schema() -> None:
    said = json.loads((await ask(models(), output_schema=SCORE)).text)
    assert said == {"score": 100, "issues": [], "verdict": "accept"}


async def test_without_a_rule_the_first_legal_route_is_taken_and_a_second_visit_ends() -> None:
    model, tools = models(), (router("RC2", "DM2", "END"),)
    assert (await ask(model, hints={"visit": 1}, tools=tools)).tool_calls[0].arguments == {"next": "RC2"}
    assert (await ask(model, hints={"visit": 2}, tools=tools)).tool_calls[0].arguments == {"next": "END"}
    ended = await ask(model, hints={"visit": 2}, tools=(router("RC2"), END_TOOL))
    assert [call.name for call in ended.tool_calls] == ["end"]


async def test_without_a_rule_the_text_names_the_agent_and_the_scripted_model() -> None:
    assert (await ask(models(), "write it", {"agent": "writer"})).text == "Scripted answer of writer to: write it"


@pytest.mark.parametrize(
    ("tools", "schema", "expected"),
    [
        ((router("DM2"),), None, [("router", {"next": "DM2"})]),
        (
            (),
            {"type": "object", "properties": {"choice": {"enum": ["a", "DM2"]}}},
            {"choice": "DM2", "reason": "scripted"},
        ),
        (
            (),
            {"type": "object", "properties": {"next": {"type": "string"}, "ok": {"type": "boolean"}}},
            {"next": "DM2", "ok": True},
        ),
        ((), None, {"next": "DM2"}),
    ],
)
async def test_a_route_is_given_in_the_form_of_the_request(
    tools: tuple[ToolSpec, ...], schema: JsonObject | None, expected: Json | list[Any]
) -> None:
    reply = await ask(models("rules: [{next: DM2}]"), tools=tools, output_schema=schema)
    given = [(call.name, call.arguments) for call in reply.tool_calls] if tools else json.loads(reply.text)
    assert given == expected


async def test_the_end_tool_is_called_when_offered() -> None:
    model = models("rules: [{text: Bye., end: true}]")
    reply = await ask(model, tools=(router("A"), END_TOOL))
    assert (reply.text, [call.name for call in reply.tool_calls]) == ("Bye.", ["end"])
    assert (await ask(model, tools=(router("A", "END"),))).tool_calls[0].arguments == {"next": "END"}


async def test_a_json_answer_is_given_to_the_final_result_tool_if_offered() -> None:
    wrapped: JsonObject = {"type": "object", "properties": {"value": {"type": "array"}}}
    tool = ToolSpec(name="final_result", description="Answer.", parameters=wrapped)
    reply = await ask(models("rules: [{json: [1, 2]}]"), tools=(tool,))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("final_result", {"value": [1, 2]})]


async def test_broken_arguments_of_a_tool_call_are_a_retryable_failure() -> None:
    from pydantic_ai.messages import ModelResponse, ToolCallPart

    from pointsman.models.wire import to_reply

    with pytest.raises(ModelFailed) as caught:
        to_reply(ModelResponse(parts=[ToolCallPart("web_search", '{"q": ', "c1")]), ModelRequest(model=""))
    assert (caught.value.failure.code, caught.value.failure.retryable) == ("model-answer-unreadable", True)
    mended = to_reply(ModelResponse(parts=[ToolCallPart("web_search", '{"q": 1,}', "c1")]), ModelRequest(model=""))
    assert mended.tool_calls == (ToolCall(id="c1", name="web_search", arguments={"q": 1}),)


async def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    model = models('rules: [{text: "quiet"}]')

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert (await ask(model)).text == "quiet"


async def test_one_model_can_replace_all_others() -> None:
    model = PydanticModels(only="scripted", script=read_script("rules: [{text: stand-in}]"))
    assert (await model.ask(ModelRequest(model="groq:llama-3.1-8b-instant"))).text == "stand-in"


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("gpt-5", "model-unusable", "has no provider"),
        ("nobody:gpt-5", "model-unusable", "nobody"),
        ("groq:llama-3.1-8b-instant", "model-unusable", "'groq' has no key"),
        ("vllm:small", "model-unusable", "'vllm' has no address"),
        ("", "model-unnamed", "no model is set"),
    ],
)
async def test_an_unreachable_model_is_a_failure_with_the_missing_part(name: str, code: str, says: str) -> None:
    with pytest.raises(ModelFailed, match=says) as caught:
        await PydanticModels(default="").ask(ModelRequest(model=name))
    assert (caught.value.failure.code, caught.value.failure.retryable) == (code, False)
