"""Agents: validation of answers, costs, failures, and recovery after a crash."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest

from pointsman.engine.reports import Usage
from pointsman.engine.steps import Branch
from pointsman.ports import ModelRequest
from pointsman.tools.functions import tool
from pointsman.tools.tool import ToolContext
from pointsman.values import Json, JsonObject
from tests.executors.stage import Stage, StagedRun, agent, execute

SCORE: JsonObject = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "integer", "maximum": 100}},
    "additionalProperties": False,
}
SEARCH = """
tools:
  web_search: {results: [{when: {q: port}, result: [harbour]}, {result: []}]}
  weather: {result: sunny}
"""


def last_text(request: ModelRequest) -> str:
    return cast("str", cast("JsonObject", request.messages[-1])["content"])


@pytest.mark.requirement("S1-36")
async def test_slightly_invalid_output_is_repaired_without_another_call() -> None:
    stage = Stage("rules: [{text: 'Sure!\n\n```json\n\n{\"score\": 80,}\n\n```'}]")
    report = await stage.done(execute(prompt="x"), agent(outputSchema=SCORE))
    assert report.result == {"score": 80}
    assert report.text is not None
    assert report.text.startswith("Sure!")
    assert len(stage.models.requests) == 1
    assert stage.models.requests[0].output_schema == SCORE


@pytest.mark.requirement("S1-36")
async def test_output_that_violates_its_schema_is_requested_again_with_the_reason() -> None:
    stage = Stage("rules: [{answers: [{json: {score: 101}}, {text: none}, {json: {score: 7}}]}]")
    report = await stage.done(execute(prompt="x"), agent(outputSchema=SCORE))
    assert report.result == {"score": 7}
    told = [str(cast("JsonObject", messages[-1])["content"]) for messages in stage.models.messages[1:]]
    assert "at score: 101 is greater than the maximum of 100" in told[0]
    assert "not JSON" in told[1]


@pytest.mark.requirement("S1-36")
async def test_invalid_output_after_two_corrections_is_a_failure() -> None:
    stage = Stage("rules: [{json: {score: high}}]")
    failure = await stage.failure(execute(prompt="x"), agent(outputSchema=SCORE))
    assert (failure.code, failure.retryable, len(stage.models.requests)) == ("output-schema", False, 3)
    assert failure.details == {"answer": '{"score": "high"}'}


async def test_an_agent_with_tools_receives_the_schema_as_a_tool() -> None:
    stage = Stage("rules: [{call: 1, toolCalls: [{name: weather}]}, {json: {score: 5}}]" + SEARCH)
    report = await stage.done(execute(prompt="x"), agent(outputSchema=SCORE, tools=["weather"]))
    assert report.result == {"score": 5}
    assert stage.models.requests[0].output_schema is None
    assert [offered.name for offered in stage.models.requests[0].tools] == ["weather", "final_result"]
    assert cast("JsonObject", report.messages[-1])["content"] == '{"score": 5}'


async def test_a_label_chosen_with_an_invalid_answer_is_kept() -> None:
    stage = Stage("rules: [{answers: [{toolCalls: [{name: router, arguments: {next: B}}]}, {json: {score: 5}}]}]")
    report = await stage.done(execute(prompt="x"), agent(outputSchema=SCORE, routes=("A", "B")))
    assert (report.next, report.result) == ("B", {"score": 5})


async def test_a_list_schema_is_wrapped_for_the_tool_and_unwrapped() -> None:
    schema: JsonObject = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
    stage = Stage("rules: [{json: [1, 2]}]" + SEARCH)
    report = await stage.done(execute(prompt="x"), agent(outputSchema=schema, tools=["weather"]))
    assert report.result == [1, 2]
    assert stage.models.requests[0].tools[1].parameters["$defs"] == {"n": {"type": "integer"}}


@pytest.mark.parametrize(
    ("mode", "text", "result"),
    [
        ("text", '{"a": 1}', '{"a": 1}'),
        ("auto", '{"a": 1}', {"a": 1}),
        ("auto", "```json\n[1]\n```", [1]),
        ("auto", 'Here: {"a": 1}', 'Here: {"a": 1}'),
        ("auto", "42", "42"),
        ("json", 'Here: {"a": 1,}', {"a": 1}),
    ],
)
async def test_the_agent_chooses_text_or_json_results(mode: str, text: str, result: Json) -> None:
    stage = Stage(json.dumps({"rules": [{"text": text}]}))
    spec = agent(settings={"auto": True}) if mode == "auto" else agent(result=mode)
    report = await stage.done(execute(prompt="x"), spec)
    assert report.result == result
    assert report.text == (None if mode == "text" else text)


async def test_an_invalid_schema_is_a_failure() -> None:
    failure = await Stage().failure(execute(prompt="x"), agent(outputSchema={"type": "no such type"}))
    assert (failure.code, failure.retryable) == ("output-schema-invalid", False)
    fetched = await Stage().failure(execute(prompt="x"), agent(outputSchema={"$ref": "file:///etc/passwd"}))
    assert fetched.code == "output-schema-invalid"


@pytest.mark.parametrize(
    ("fail", "code", "retryable", "retry_after_s"),
    [
        ("{status: 429, retryAfter: 3s}", "model-rate-limited", True, 3.0),
        ("500", "model-server-error", True, None),
        ("timeout", "model-timeout", True, None),
        ("401", "model-unauthorized", False, None),
    ],
)
async def test_a_failure_of_the_model_fails_the_step(
    fail: str, code: str, retryable: bool, retry_after_s: float | None
) -> None:
    failure = await Stage(f"rules: [{{fail: {fail}}}]").failure(execute(prompt="x"), agent())
    assert (failure.code, failure.retryable, failure.retry_after_s) == (code, retryable, retry_after_s)


async def test_each_call_of_a_model_or_tool_is_bounded_in_time() -> None:
    @tool
    async def endless() -> None:
        """Never answer."""
        await asyncio.Event().wait()

    hurried: JsonObject = {"modelCallTime": 0, "toolCallTime": 0}
    stage = Stage("rules: [{delay: 1s, text: late}]", endless)
    failure = await stage.failure(execute(prompt="x"), agent(settings=hurried))
    assert (failure.code, failure.retryable) == ("model-timeout", True)
    slow = await stage.failure(execute("tool", tool="endless"), agent(kind="tool", settings=hurried))
    assert (slow.code, slow.retryable) == ("tool-timeout", True)


async def test_recorded_effects_are_answered_from_the_record() -> None:
    keys: list[str] = []

    @tool
    async def book(room: int, context: ToolContext) -> str:
        """Book a room."""
        keys.append(context.idempotency_key)
        return f"room {room}"

    script = "rules: [{call: 1, toolCalls: [{name: book, arguments: {room: 7}}]}, {text: booked}]"
    first = StagedRun()
    whole = await Stage(script, book).done(execute(prompt="x"), agent(tools=["book"]), first)
    assert first.effects.paid == [(1, "model"), (2, "tool"), (3, "model")]
    for known in (1, 2, 3):
        again = StagedRun({number: first.effects.values[number] for number in range(1, known + 1)})
        stage = Stage(script, book)
        assert await stage.done(execute(prompt="x"), agent(tools=["book"]), again) == whole
        assert again.effects.paid == first.effects.paid[known:]
        assert len(stage.models.requests) == (1 if known < 3 else 0)
    assert keys == [keys[0]] * 2, "called at first, and again only where its answer was not recorded; with one key"


async def test_the_next_attempt_calls_a_failed_model_again() -> None:
    stage, run = Stage("rules: [{attempt: 1, fail: 500}, {text: fine}]"), StagedRun()
    assert (await stage.failure(execute(prompt="x"), agent(), run)).code == "model-server-error"
    assert run.effects.paid == []
    assert (await stage.done(execute(prompt="x", attempt=2), agent(), run)).result == "fine"


async def test_scripts_can_distinguish_branches() -> None:
    stage = Stage("rules: [{item: berlin, text: Berlin}, {branch: 1, text: second}]")
    first, second = (Branch("fan", 1, 0),), (Branch("fan", 1, 1),)
    assert (await stage.done(execute(prompt="x", scope=first, item="berlin"), agent())).result == "Berlin"
    assert (await stage.done(execute(prompt="x", scope=second), agent())).result == "second"


async def test_the_agents_settings_reach_the_model() -> None:
    stage = Stage()
    spec = agent(model="scripted:big", temperature=0.2, maxTokens=50, keyIndex=2, purpose="review")
    await stage.done(execute(prompt="x"), spec)
    (asked,) = stage.models.requests
    assert (asked.model, asked.temperature, asked.max_tokens, asked.key_index, asked.purpose) == (
        "scripted:big",
        0.2,
        50,
        2,
        "review",
    )


async def test_usage_adds_up_over_calls() -> None:
    usage = "usage: {inputTokens: 10, outputTokens: 2}"
    stage = Stage(f"rules: [{{call: 1, toolCalls: [{{name: weather}}], {usage}}}, {{text: done, {usage}}}]" + SEARCH)
    report = await stage.done(execute(prompt="x"), agent(tools=["weather"]))
    assert report.usage == Usage(
        input_tokens=20, output_tokens=4, model_calls=2, tool_calls=1, free_calls=2, scripted=True
    )
