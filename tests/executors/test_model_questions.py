"""Decisions, judges and advice: questions to a model whose answers have a schema."""

from __future__ import annotations

import json
from typing import cast

import pytest

from pointsman.executors.model_answers import Expected, Wrong, coerced_to
from pointsman.values import Json, JsonObject
from tests.executors.stage import Stage, agent, execute

CHOICES: list[JsonObject] = [
    {"value": "invoice", "description": "Something to pay."},
    {"value": "letter", "label": "Mail"},
]


@pytest.mark.requirement("S1-142")
async def test_a_decision_by_a_model_takes_the_chosen_edge() -> None:
    stage = Stage('rules: [{purpose: decision, json: {choice: letter, reason: "It greets."}}]')
    report = await stage.done(execute(prompt="What is it?", value="Dear Sir"), agent(choices=[*CHOICES]))
    assert (report.next, report.result) == ("letter", {"choice": "letter", "reason": "It greets."})
    (asked,) = stage.models.requests
    assert asked.messages == [{"role": "user", "content": "What is it?\n\nDear Sir"}]
    assert "- invoice: Something to pay.\n- letter: Mail" in asked.system
    properties = cast("JsonObject", cast("JsonObject", asked.output_schema)["properties"])
    assert properties["choice"] == {"type": "string", "enum": ["invoice", "letter"]}


async def test_choices_can_be_plain_labels_and_scripts_can_name_one() -> None:
    stage = Stage("rules: [{next: b}]")
    report = await stage.done(execute(prompt="x"), agent(choices=["a", "b"]))
    assert report.next == "b"


async def test_an_unoffered_choice_is_requested_again_and_then_fails() -> None:
    stage = Stage("rules: [{json: {choice: other}}]")
    failure = await stage.failure(execute(prompt="x"), agent(choices=["a", "b"]))
    assert (failure.code, failure.retryable, len(stage.models.requests)) == ("output-schema", False, 3)


@pytest.mark.parametrize("choices", [[], [{"label": "nameless"}]])
async def test_a_decision_without_choices_is_a_failure(choices: list[JsonObject]) -> None:
    failure = await Stage().failure(execute(prompt="x"), agent(choices=[*choices]))
    assert failure.code == "config-invalid"


async def test_a_model_answers_all_edge_questions_of_a_node_in_one_call() -> None:
    stage = Stage(
        """
        rules:
          - purpose: judge
            json: {e1: {answer: true, reason: It is short.}, e2: {answer: false, reason: No names.}, e9: 1}
        """
    )
    questions: list[Json] = [{"edge": "e1", "prompt": "Is it short?"}, {"edge": "e2", "prompt": "Does it name people?"}]
    report = await stage.done(execute("judge", questions=questions), agent(kind="judge"))
    assert report.result == {
        "e1": {"answer": True, "reason": "It is short."},
        "e2": {"answer": False, "reason": "No names."},
    }
    assert len(stage.models.requests) == 1


async def test_questions_for_different_models_are_separate_calls() -> None:
    stage = Stage()
    questions: list[Json] = [{"edge": "e1", "prompt": "?", "model": "scripted:a"}, {"edge": "e2", "prompt": "?"}]
    report = await stage.done(execute("judge", questions=questions, value={"n": 1}), agent(kind="judge"))
    assert [request.model for request in stage.models.requests] == ["scripted:a", ""]
    assert '{"n": 1}' in str(stage.models.messages[0])
    assert sorted(cast("JsonObject", report.result)) == ["e1", "e2"]


async def test_a_model_that_omits_a_question_is_asked_again() -> None:
    stage = Stage("rules: [{answers: [{json: {}}, {json: {e1: {answer: true, reason: yes}}}]}]")
    report = await stage.done(execute("judge", questions=[{"edge": "e1", "prompt": "?"}]), agent(kind="judge"))
    assert report.result == {"e1": {"answer": True, "reason": "yes"}}


@pytest.mark.parametrize(
    "advice",
    [
        {"choice": "retry", "inputs": {"prompt": "shorter"}, "reason": "too long"},
        {"choice": "substitute", "value": None, "reason": "known"},
        {"choice": "route", "route": "handoff", "reason": "a person must look"},
        {"choice": "give_up", "reason": "hopeless"},
    ],
)
async def test_advice_after_a_failure_is_returned_to_the_engine(advice: JsonObject) -> None:
    stage = Stage(json.dumps({"rules": [{"purpose": "recover", "json": advice}]}))
    command = execute(
        "tool", phase="recover", failure={"code": "tool-failed", "message": "down"}, input={}, routes=["handoff"]
    )
    report = await stage.done(command, agent(kind="tool", tool="search"))
    assert report.result == advice
    assert "tool-failed" in str(stage.models.messages[0])


@pytest.mark.parametrize(
    ("advice", "routes"),
    [
        ("{choice: route, reason: x}", ["handoff"]),
        ("{choice: route, route: nowhere, reason: x}", ["handoff"]),
        ("{choice: route, route: handoff, reason: x}", []),
        ("{choice: substitute, reason: x}", []),
        ("{choice: pray, reason: x}", []),
    ],
)
async def test_impossible_advice_is_refused(advice: str, routes: list[str]) -> None:
    stage = Stage(f"rules: [{{json: {advice}}}]")
    command = execute("agent", phase="recover", failure={"code": "x"}, input={}, routes=[*routes])
    assert (await stage.failure(command, agent())).code == "output-schema"


async def test_the_scripted_model_advises_to_give_up_without_a_script() -> None:
    command = execute("agent", phase="recover", failure={"code": "x"}, input={}, routes=["a"])
    result = (await Stage().done(command, agent())).result
    assert cast("JsonObject", result)["choice"] == "give_up"


SCORE: JsonObject = {"type": "number", "minimum": 0, "maximum": 100, "x-lenient": True}


@pytest.mark.requirement("T2-16", "S2-O7")
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (85, 85),
        (85.5, 85.5),
        (101, 100),
        (-1, 0),
        ("85", 85),
        ("85,5", 85.5),
        (" 85 % ", 85),
        ("85/100", 85),
        ("4/5", 80),
        ("4/0", "4/0"),
        ("very good", "very good"),
        ("85 or 90", "85 or 90"),
        (True, True),
        (None, None),
    ],
)
def test_a_number_is_parsed_and_kept_within_its_bounds(said: Json, meant: Json) -> None:
    assert coerced_to(said, SCORE) == meant
    assert type(coerced_to(said, SCORE)) is type(meant)


def test_a_fraction_is_scaled_to_the_maximum() -> None:
    share: JsonObject = {"type": "number", "maximum": 1, "x-lenient": True}
    assert [coerced_to(said, share) for said in ("50 %", "1/4", "0.5")] == [0.5, 0.25, 0.5]
    assert coerced_to("9/10", {"type": "number", "x-lenient": True}) == "9/10", "of what, nobody says"
    assert coerced_to("2.6", {"type": "integer", "x-lenient": True}) == 3


def test_an_unambiguous_choice_matches_in_any_case() -> None:
    assert coerced_to(" HIGH", {"enum": ["low", "high"], "x-lenient": True}) == "high"
    assert coerced_to("a", {"enum": ["A", "a"], "x-lenient": True}) == "a"
    assert coerced_to("B", {"enum": ["b", "B "], "x-lenient": True}) == "b"
    assert coerced_to("huge", {"enum": ["low", "high"], "x-lenient": True}) == "huge"


def test_only_fields_marked_lenient_are_parsed_leniently() -> None:
    inner: JsonObject = {"type": "object", "properties": {"score": SCORE, "exact": {"type": "number"}}}
    schema: JsonObject = {"type": "array", "items": inner}
    expected = Expected(schema, "json")
    assert "x-lenient" not in str(expected.schema), "providers refuse words they do not know"
    read = expected.check([{"score": "7 %", "exact": 1}])
    assert not isinstance(read, Wrong)
    assert read.value == [{"score": 7, "exact": 1}]
    assert isinstance(expected.check([{"score": 7, "exact": "1"}]), Wrong)
    assert isinstance(Expected({"type": "number", "maximum": 1}, "json").check(2), Wrong)
