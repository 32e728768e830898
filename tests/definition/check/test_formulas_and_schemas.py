"""Expressions, templates, paths and JSON Schemas: all errors at once, where they stand."""

from __future__ import annotations

import pytest

from pointsman.values import Json
from tests.definition.check.problems_in import Configs, codes, drawn, the


def test_every_broken_formula_is_reported_with_its_column() -> None:
    configs: Configs = {
        "a": {"inputs": {"one": "x ==", "two": "lenn(x)"}, "outputs": {"b..c": "result"}, "set": {"d": "1 +"}},
        "agent1": {"prompt": "Write about {{#if x}}"},
    }
    problems = drawn("start -> a; a -(x-> agent1; agent1 -> end", configs=configs)
    assert [(p.code, p.pointer) for p in problems] == [
        ("expression-syntax", "/edges/1/condition/expression"),
        ("expression-syntax", "/nodes/1/config/set/d"),
        ("expression-syntax", "/nodes/1/inputs/one"),
        ("expression-unknown-function", "/nodes/1/inputs/two"),
        ("path-syntax", "/nodes/1/outputs/b..c"),
        ("template-syntax", "/nodes/2/config/prompt"),
    ]
    assert all("column" in p.message and p.severity == "error" for p in problems)


def test_parameters_are_looked_through_to_the_last_text() -> None:
    configs: Configs = {"tool1": {"parameters": {"a": [{"b": "{{#each x}}"}], "c": "{{/if}}"}}}
    problems = drawn("start -> tool1; tool1 -> end", configs=configs)
    assert [p.pointer for p in problems] == ["/nodes/1/config/parameters/a/0/b", "/nodes/1/config/parameters/c"]


def test_secrets_stand_in_parameters_alone() -> None:
    configs: Configs = {"a": {"inputs": {"k": "secret.KEY"}}, "tool1": {"parameters": {"k": "secret.KEY"}}}
    problem = the(drawn("start -> a; a -> tool1; tool1 -> end", configs=configs), "secret-not-allowed")
    assert problem.pointer == "/nodes/1/inputs/k"


def test_joins_waits_and_models_prompts_are_formulas_too() -> None:
    drawing = "start -> fan; fan -> a, b; a -> join; b -> join; join -> wait; wait -> end"
    configs: Configs = {
        "join": {"wait": "arrived >= 1 and any(results, r => r.ok", "aggregate": "max(results, r => r.score)"},
        "wait": {"event": "paid", "match": "event.data.id == x.id"},
    }
    assert codes(drawn(drawing, configs=configs)) == ["expression-syntax"]


def test_a_jsonpath_is_one() -> None:
    assert codes(drawn("start -> a; a -> end", configs={"a": {"jsonpath": "$.a[?"}})) == ["jsonpath-syntax"]


def test_conditions_that_never_hold_are_told() -> None:
    given: Json = {"type": "object", "properties": {"x": {"enum": ["a", "b"]}}, "additionalProperties": False}
    assert codes(drawn("start -> dec; dec -x == 'c'-> end; dec -> end", input=given)) == ["never-equal"]


@pytest.mark.requirement("S1-36")
def test_schemas_are_schemas() -> None:
    configs: Configs = {
        "agent1": {"outputSchema": {"type": "objekt", "required": "x"}},
        "ask": {"form": {"properties": {"a": {"minimum": "1"}}}},
    }
    problems = drawn("start -> agent1; agent1 -> ask; ask -#approve-> end", configs=configs)
    assert [(p.code, p.pointer) for p in problems] == [
        ("schema-invalid", "/nodes/1/config/outputSchema/required"),
        ("schema-invalid", "/nodes/1/config/outputSchema/type"),
        ("schema-invalid", "/nodes/2/config/form/properties/a/minimum"),
    ]


def test_schemas_are_whole_and_fetch_nothing() -> None:
    schema: Json = {
        "$schema": "http://127.0.0.1:9/none",
        "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}, "b": {"$ref": "#/$defs/c"}},
    }
    problem = the(
        drawn("start -> agent1; agent1 -> end", configs={"agent1": {"outputSchema": schema}}), "schema-remote-ref"
    )
    assert problem.pointer == "/nodes/1/config/outputSchema/properties/a/$ref"


def test_defaults_satisfy_the_schema_of_the_input() -> None:
    given: Json = {"type": "object", "properties": {"x": {"type": "integer"}}}
    problems = drawn("start -> end", configs={"start": {"defaults": {"x": "one"}}}, input=given)
    assert the(problems, "default-invalid").pointer == "/nodes/0/config/defaults/x"
