"""Guardrails of requests and answers, and limits for agents without progress."""

from __future__ import annotations

import base64
from typing import cast

import pytest

from pointsman.errors import OperatorError
from pointsman.executors.attachments import BYTES_MAX, AttachmentSources, Fetched, with_files
from pointsman.executors.failures import WorkRefused
from pointsman.models.transcript import user_message
from pointsman.ports import ModelRequest, ReasoningEffort
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from tests.executors.stage import Stage, StagedRun, agent, execute

NUMBER: JsonObject = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
PNG = base64.b64encode(b"\x89PNG").decode()


def after(*rules: JsonObject) -> JsonObject:
    return {"after": [*rules]}


def known(rules: JsonObject, **data: Json) -> Json:
    """Return the data that the plan adds to the input."""
    return {
        "before": [rule.get("known") for rule in cast("list[JsonObject]", rules.get("before", []))],
        "after": [rule.get("known") for rule in cast("list[JsonObject]", rules.get("after", []))],
        "asNames": ["text"],
        **data,
    }


async def test_a_request_that_violates_a_guardrail_is_refused_before_any_model_call() -> None:
    rules: JsonObject = {"before": [{"name": "small", "schema": NUMBER}, {"expression": "n < 9", "known": False}]}
    for inputs, why in (({"n": "x"}, "small"), ({"n": 10}, "`n < 9` does not hold")):
        stage = Stage()
        given = cast("Json", inputs)
        failure = await stage.failure(
            execute(prompt="x", inputs=given, guardrails=known(rules)), agent(guardrails=rules)
        )
        assert (failure.code, failure.retryable) == ("guardrail", False)
        assert why in failure.message
        assert stage.models.requests == []


async def test_an_answer_that_violates_a_guardrail_is_requested_again_with_the_reason() -> None:
    rules = after(
        {"name": "plain", "expression": "not contains(text, '!') and len(text) < limit", "message": "No shouting."}
    )
    stage = Stage('rules: [{answers: [{text: "Buy now!"}, {text: "You may buy it."}]}]')
    report = await stage.done(
        execute(prompt="x", guardrails=known(rules, state={"limit": 50})), agent(guardrails=rules)
    )
    assert report.result == "You may buy it."
    told = cast("JsonObject", stage.models.messages[1][-1])["content"]
    assert told == "Your answer was refused: No shouting. Answer again, corrected." or "No shouting." in str(told)


async def test_an_answer_that_still_violates_a_guardrail_fails_with_its_name() -> None:
    rules = after({"name": "plain", "expression": "false", "message": "No."})
    stage = Stage()
    failure = await stage.failure(execute(prompt="x", guardrails=known(rules)), agent(guardrails=rules))
    assert (failure.code, len(stage.models.requests)) == ("guardrail", 3)
    assert failure.message == "the guardrail 'plain' of 'writer' refused its answer: No."
    final = after({"schema": NUMBER, "onFail": "fail"})
    stage = Stage()
    failure = await stage.failure(execute(prompt="x", guardrails=known(final)), agent(guardrails=final))
    assert (failure.code, len(stage.models.requests)) == ("guardrail", 1)


async def test_a_model_can_judge_an_answer_and_both_calls_are_recorded() -> None:
    rules = after({"name": "kind", "prompt": "Be kind.", "known": "Be kind."})
    script = """
    rules:
      - purpose: guardrail
        answers: [{json: {holds: false, reason: It is rude.}}, {json: {holds: true, reason: Fine.}}]
      - answers: [{text: Go away.}, {text: Please come in.}]
    """
    stage, run = Stage(script), StagedRun()
    report = await stage.done(execute(prompt="x", guardrails=known(rules)), agent(guardrails=rules), run)
    assert report.result == "Please come in."
    assert [request.purpose for request in stage.models.requests] == ["generation", "guardrail"] * 2
    judged = cast("JsonObject", stage.models.messages[1][0])["content"]
    assert judged == "Rule:\nBe kind.\n\nShown:\n\nGo away."
    assert [kind for _, kind in run.effects.paid] == ["model"] * 4
    again = Stage(script)
    known_run = StagedRun(run.effects.values)
    same = await again.done(execute(prompt="x", guardrails=known(rules)), agent(guardrails=rules), known_run)
    assert (same.result, again.models.requests) == ("Please come in.", [])


async def test_a_refused_answer_is_withdrawn_from_streams() -> None:
    rules = after({"expression": "text != 'no'"})
    run = StagedRun()
    stage = Stage("rules: [{answers: [{text: no}, {text: yes}]}]")
    await stage.done(execute(prompt="x", guardrails=known(rules)), agent(guardrails=rules), run)
    assert [delta["kind"] for delta in run.deltas] == ["text", "discarded", "text"]


async def test_an_empty_answer_is_requested_again_and_then_fails() -> None:
    stage = Stage('rules: [{answers: [{text: ""}, {text: " "}, {text: Here.}]}]')
    assert (await stage.done(execute(prompt="x"), agent())).result == "Here."
    stage = Stage('rules: [{text: ""}]')
    failure = await stage.failure(execute(prompt="x"), agent())
    assert (failure.code, failure.retryable, len(stage.models.requests)) == ("output-empty", True, 3)


async def test_repeated_broken_json_fails_after_two_corrections() -> None:
    stage = Stage("rules: [{answers: [" + ", ".join(['{text: "{broken"}'] * 10) + "]}]")
    failure = await stage.failure(execute(prompt="x"), agent(outputSchema=NUMBER))
    assert (failure.code, len(stage.models.requests)) == ("output-schema", 3)
    assert failure.hint != ""


async def test_an_agent_that_repeats_a_call_with_the_same_result_is_warned_and_stopped() -> None:
    @tool
    def look(where: str) -> str:
        """Look."""
        return "nothing"

    stage = Stage("rules: [{toolCalls: [{name: look, arguments: {where: here}}]}]", look)
    failure = await stage.failure(execute(prompt="x"), agent(tools=["look"]))
    assert (failure.code, len(stage.models.requests)) == ("tool-loop", 3)
    assert "look" in failure.message
    assert "were told the same" in str(cast("JsonObject", stage.models.messages[2][-1])["content"])


async def test_calls_with_new_results_are_not_a_cycle() -> None:
    heard = iter(range(9))

    @tool
    def poll() -> int:
        """Is it done?"""
        return next(heard)

    calls = ", ".join(["{toolCalls: [{name: poll}]}"] * 5)
    stage = Stage(f"rules: [{{answers: [{calls}, {{text: Done.}}]}}]", poll)
    assert (await stage.done(execute(prompt="x"), agent(tools=["poll"]))).result == "Done."


async def test_repeated_calls_of_unknown_tools_are_a_cycle() -> None:
    stage = Stage("rules: [{toolCalls: [{name: rm}]}]")
    failure = await stage.failure(execute(prompt="x"), agent())
    assert (failure.code, len(stage.models.requests)) == ("tool-loop", 3)


async def test_the_reasoning_setting_reaches_the_model() -> None:
    stage = Stage()
    await stage.done(execute(prompt="x"), agent(thinking={"level": "HIGH", "thoughts": False}))
    (asked,) = stage.models.requests
    assert asked.thinking == ReasoningEffort(level="HIGH", thoughts=False)


async def fetch(url: str) -> Fetched:
    match url:
        case "https://example.org/gone":
            return Fetched(404, "text/html", b"")
        case "https://example.org/away":
            raise OperatorError("the host is not reached", hint="Is it up?")
        case "https://example.org/a.pdf":
            return Fetched(200, "application/octet-stream", b"%PDF")
        case _:
            return Fetched(200, "text/csv; charset=utf-8", b"a,b")


async def test_files_become_parts_of_the_request() -> None:
    files: list[Json] = [
        f"data:image/png;base64,{PNG}",
        [{"data": PNG, "mediaType": "image/png"}, None],
        "https://example.org/a.pdf",
        {"url": "https://example.org/t.csv"},
        "data:,hello%20you",
    ]
    message = cast("JsonObject", await with_files(user_message("Look."), files, AttachmentSources(fetch)))
    assert message["content"] == [
        {"type": "text", "text": "Look."},
        {"type": "file", "mediaType": "image/png", "data": PNG},
        {"type": "file", "mediaType": "image/png", "data": PNG},
        {"type": "file", "mediaType": "application/pdf", "data": base64.b64encode(b"%PDF").decode()},
        {"type": "text", "text": "a,b"},
        {"type": "text", "text": "hello you"},
    ]
    assert await with_files(user_message("Look."), [None, []], AttachmentSources(fetch)) == user_message("Look.")


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("file:///etc/passwd", "file-unreadable"),
        ("/etc/passwd", "file-unreadable"),
        ("data:image/png;base64", "file-unreadable"),
        ("data:image/png;base64,***", "file-unreadable"),
        ("data:application/x-msdownload;base64,TVo=", "file-unreadable"),
        ({"path": "/etc/passwd"}, "file-unreadable"),
        (7, "file-unreadable"),
        ("https://example.org/gone", "file-not-fetched"),
        ("https://example.org/away", "file-not-fetched"),
        ({"data": "A" * 4 * ((BYTES_MAX + 9) // 3), "mediaType": "image/png"}, "file-too-large"),
    ],
    ids=range(10),
)
async def test_an_invalid_file_is_refused_by_name(file: Json, code: str) -> None:
    with pytest.raises(WorkRefused) as caught:
        await with_files(user_message("Look."), file, AttachmentSources(fetch))
    assert caught.value.failure.code == code
    assert caught.value.failure.hint != ""


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ({}, "an empty object cannot"),
        ({"size": 3, "name": "x"}, "an object with the keys 'name', 'size' cannot"),
        (7, "a value of the type 'number' cannot"),
        ("just text", "'just text' cannot"),
        ("/etc/passwd", "'/etc/passwd' cannot"),
    ],
)
async def test_the_refusal_of_a_file_lists_the_forms_of_files(file: Json, message: str) -> None:
    with pytest.raises(WorkRefused) as caught:
        await with_files(user_message("Look."), file, AttachmentSources(fetch))
    failure = caught.value.failure
    assert failure.message.startswith(message)
    assert all(form in failure.hint for form in ("an address", "a data URL", "{path}", "fileName"))


async def test_files_are_sent_with_the_present_task() -> None:
    stage = Stage()
    files: list[Json] = [f"data:image/png;base64,{PNG}"]
    await stage.done(execute(prompt="What is it?", files=files), agent(inputFiles=["picture"]))
    (asked,) = stage.models.messages
    assert cast("JsonObject", asked[-1])["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "file", "mediaType": "image/png", "data": PNG},
    ]
    assert isinstance(stage.models.requests[0], ModelRequest)
