"""Expressions, templates, paths and JSON Schemas: all errors at once, with their positions."""

from __future__ import annotations

import pytest

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.values import Json, JsonObject
from tests.definition.check.problems_in import Configs, codes, drawn, found, the


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


def test_templates_anywhere_in_parameters_are_checked() -> None:
    configs: Configs = {"tool1": {"parameters": {"a": [{"b": "{{#each x}}"}], "c": "{{/if}}"}}}
    problems = drawn("start -> tool1; tool1 -> end", configs=configs)
    assert [p.pointer for p in problems] == ["/nodes/1/config/parameters/a/0/b", "/nodes/1/config/parameters/c"]


def test_secrets_are_allowed_only_in_parameters() -> None:
    configs: Configs = {"a": {"inputs": {"k": "secret.KEY"}}, "tool1": {"parameters": {"k": "secret.KEY"}}}
    problem = the(drawn("start -> a; a -> tool1; tool1 -> end", configs=configs), "secret-not-allowed")
    assert problem.pointer == "/nodes/1/inputs/k"


def test_formulas_of_joins_waits_and_prompts_are_checked() -> None:
    drawing = "start -> fan; fan -> a, b; a -> join; b -> join; join -> wait; wait -> end"
    configs: Configs = {
        "join": {"wait": "arrived >= 1 and any(results, r => r.ok", "aggregate": "max(results, r => r.score)"},
        "wait": {"event": "paid", "match": "event.data.id == x.id"},
    }
    assert codes(drawn(drawing, configs=configs)) == ["expression-syntax"]


def test_an_invalid_jsonpath_is_reported() -> None:
    assert codes(drawn("start -> a; a -> end", configs={"a": {"jsonpath": "$.a[?"}})) == ["jsonpath-syntax"]


def test_conditions_that_never_hold_are_reported() -> None:
    given: Json = {"type": "object", "properties": {"x": {"enum": ["a", "b"]}}, "additionalProperties": False}
    assert codes(drawn("start -> dec; dec -x == 'c'-> end; dec -> end", input=given)) == ["never-equal"]


@pytest.mark.requirement("S1-36")
def test_invalid_schemas_are_reported() -> None:
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


def test_schemas_with_external_references_are_reported() -> None:
    schema: Json = {
        "$schema": "http://127.0.0.1:9/none",
        "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}, "b": {"$ref": "#/$defs/c"}},
    }
    problem = the(
        drawn("start -> agent1; agent1 -> end", configs={"agent1": {"outputSchema": schema}}), "schema-remote-ref"
    )
    assert problem.pointer == "/nodes/1/config/outputSchema/properties/a/$ref"


def test_defaults_must_satisfy_the_input_schema() -> None:
    given: Json = {"type": "object", "properties": {"x": {"type": "integer"}}}
    problems = drawn("start -> end", configs={"start": {"defaults": {"x": "one"}}}, input=given)
    assert the(problems, "default-invalid").pointer == "/nodes/0/config/defaults/x"


def repeating(kind: str, config: JsonObject, **keys: Json) -> tuple[Problem, ...]:
    """Return the problems of a workflow that performs a node once for each item."""
    nodes: list[Json] = [{"id": "p", "type": kind, "config": config}, {"id": "a", "type": "transform"}]
    edges: list[Json] = [{"source": "p", "target": "a"}]
    return found({"pointsman": 1, "id": "w", "nodes": nodes, "edges": edges, **keys})


@pytest.mark.parametrize("items", ["'abc'", "5", "true", "2 * 3", "{{ 'abc' }}", "len([1])", "'a' if true else 2"])
def test_items_that_can_only_be_a_single_value_are_an_error(items: str) -> None:
    for kind, key in (("parallel", "items"), ("loop", "over")):
        problem = the(repeating(kind, {key: items}), "items-not-a-list")
        assert (problem.severity, problem.pointer) == ("error", f"/nodes/0/config/{key}")


@pytest.mark.parametrize("items", ["[1]", "{a: 1}", "x", "x ?? []", "null", "[1] if x else 'a'", "split('a,b', ',')"])
def test_items_that_may_be_a_list_are_accepted(items: str) -> None:
    assert "items-not-a-list" not in codes(repeating("parallel", {"items": items}))


def test_items_that_the_schema_declares_a_string_are_a_warning() -> None:
    schema: Json = {"type": "object", "properties": {"x": {"type": "string"}}}
    problem = the(repeating("parallel", {"items": "x"}, input=schema), "items-not-a-list")
    assert problem.severity == "warning"


ROWS: Json = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}}
FIELDS: Json = {"type": "object", "properties": {"x": {"type": "string"}, "o": {"type": "object"}, "rows": ROWS}}


def prompted(prompt: str) -> tuple[Problem, ...]:
    """Return the problems of an agent with this prompt."""
    node: Json = {"id": "a", "type": "agent", "config": {"prompt": prompt}}
    return found({"pointsman": 1, "id": "w", "nodes": [node], "edges": [], "input": FIELDS})


@pytest.mark.parametrize(
    "prompt",
    [
        "{{#each x}}a{{/each}}",
        "{{#each input.x}}a{{else}}b{{/each}}",
        "{{#if o}}{{else}}{{#each $.x}}a{{/each}}{{/if}}",
        "{{#each rows}}{{#each this.n}}a{{/each}}{{/each}}",
        "{{#each rows}}{{#each @index}}a{{/each}}{{/each}}",
    ],
)
def test_an_each_block_over_a_single_value_is_a_warning(prompt: str) -> None:
    problem = the(prompted(prompt), "items-not-a-list")
    assert (problem.severity, problem.pointer) == ("warning", "/nodes/0/config/prompt")
    assert "column" in problem.message


@pytest.mark.parametrize(
    "prompt",
    ["{{#each rows}}{this.n}{{/each}}", "{{#each o}}{{#each this}}a{{/each}}{{/each}}", "{{#each y}}{{/each}}"],
)
def test_an_each_block_over_a_value_that_may_be_a_list_is_accepted(prompt: str) -> None:
    assert "items-not-a-list" not in codes(prompted(prompt))


def test_expressions_in_an_each_block_are_checked_with_the_type_of_the_element() -> None:
    problems = prompted("{{#each rows}}{{ this.n | join(',') }}{{ sum(this) }}{{ @first + @number }}{{/each}}")
    assert codes(problems).count("wrong-types") == 2


CLOSED: Json = {"type": "object", "properties": {"n": {"type": "string"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("{{#each rows}}{{ this.m }}{{/each}}", "this.m"),
        ("{{#each rows}}{{#if this.n}}{this.m?}{{/if}}{{/each}}", "this.m"),
        ("{{ any(rows, r => r.m == 'a') }}", "r.m"),
        ("{{ [r.m for r in rows] | json }}", "r.m"),
    ],
)
def test_a_key_that_no_element_has_is_reported(prompt: str, named: str) -> None:
    node: Json = {"id": "a", "type": "agent", "config": {"prompt": prompt}}
    schema: Json = {"type": "object", "properties": {"rows": {"type": "array", "items": CLOSED}}}
    problems = found({"pointsman": 1, "id": "w", "nodes": [node], "edges": [], "input": schema})
    assert repr(named) in the(problems, "unknown-path").message


def test_a_field_that_a_node_writes_may_have_another_type_than_the_input() -> None:
    nodes: list[Json] = [
        {"id": "split", "type": "transform", "config": {"set": {"x": "split(x, ',')"}}},
        {"id": "a", "type": "agent", "config": {"prompt": "{{#each x}}{this}{{/each}} {{ x | join(', ') }}"}},
    ]
    edges: list[Json] = [{"source": "split", "target": "a"}]
    problems = found({"pointsman": 1, "id": "w", "nodes": nodes, "edges": edges, "input": FIELDS})
    assert {"items-not-a-list", "wrong-types"}.isdisjoint(codes(problems))


def defects(**keys: Json) -> list[Problem]:
    """Return the problems of a document that cannot be read."""
    return WorkflowDefinition.from_document({"pointsman": 1, "id": "a", "nodes": [], "edges": [], **keys})[1]


@pytest.mark.parametrize("rule", ["n_of_m", "N_OF_M", "n-of-m", "k of n", "majority"])
def test_an_invalid_quorum_of_a_join_is_refused(rule: str) -> None:
    (problem,) = defects(nodes=[{"id": "j", "type": "join", "config": {"wait": rule}}])
    assert (problem.code, problem.pointer) == ("bad-value", "/nodes/0/config/wait")
    assert "a number of branches such as 2" in problem.message


def test_an_object_or_list_in_place_of_a_string_gets_a_hint() -> None:
    (problem,) = defects(sources=[{"title": "T", "text": "The source."}])
    assert (problem.pointer, problem.hint) == (
        "/sources/0",
        'Write one text in place of the object, such as "The source.".',
    )
    (problem,) = defects(nodes=[{"id": "p", "type": "parallel", "config": {"items": [1, 2]}}])
    assert problem.hint == 'Write it as a text: "[1, 2]".'
