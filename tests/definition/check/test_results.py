"""Reads of keys that results and declared data do not have; parameters of tools that do not match their schema."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest

from pointsman.definition.checks import check
from pointsman.definition.checks.subject import Installation, ToolFacts
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.values import Json, JsonObject

SCHEMA: Final[JsonObject] = {
    "type": "object",
    "required": ["score"],
    "properties": {
        "score": {"type": "number"},
        "author": {"type": "object", "properties": {"name": {"type": "string"}}},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"title": {"type": "string"}}}},
        "any": {"type": "object"},
    },
}
RATE: Final[JsonObject] = {
    "id": "rate",
    "type": "agent",
    "config": {"prompt": "Rate it.", "outputSchema": SCHEMA},
    "outputs": {"rating": "result", "score": "result.score", "who": "result.author"},
}


def document(*nodes: JsonObject, edges: Json = None, **more: Json) -> JsonObject:
    ids = [str(node["id"]) for node in nodes]
    ways: list[Json] = [{"source": one, "target": two} for one, two in pairwise(ids)]
    return {"pointsman": 1, "id": "x", "nodes": [*nodes], "edges": ways if edges is None else edges, **more}


def found(source: JsonObject, code: str, known: Installation | None = None) -> list[Problem]:
    workflow, wrong = WorkflowDefinition.from_document(source)
    assert workflow is not None
    assert not wrong
    return [one for one in check(workflow, installation=known or Installation()) if one.code == code]


def said(text: str) -> JsonObject:
    return {"id": "say", "type": "agent", "config": {"prompt": text}}


@pytest.mark.parametrize(
    ("prompt", "repaired"),
    [
        ("{nodes.rate.scroe}", "{nodes.rate.score}"),
        ("It is {nodes.rate.author.nmae}.", "It is {nodes.rate.author.name}."),
        ("{{ nodes.rate.scroe + 1 }}", "{{ nodes.rate.score + 1 }}"),
        ("{rating.scroe}", "{rating.score}"),
        ("{who.nmae}", "{who.name}"),
        ("{nodes.rate.parts[0].tilte}", "{nodes.rate.parts[0].title}"),
        ("{{ nodes.rate.parts.*.tilte }}", "{{ nodes.rate.parts.*.title }}"),
        ("{score.value}", None),
        ("{nodes.rate.author.name.first}", None),
        ("{nodes.rate.frobnication}", None),
    ],
)
def test_a_read_of_a_key_that_the_output_schema_lacks_is_reported(prompt: str, repaired: str | None) -> None:
    (problem,) = found(document(RATE, said(prompt)), "unknown-path")
    assert (problem.severity, problem.pointer) == ("warning", "/nodes/1/config/prompt")
    assert (problem.fix[0]["value"] if problem.fix else None) == repaired
    if repaired is not None:
        assert found(document(RATE, said(repaired)), "unknown-path") == []


@pytest.mark.parametrize(
    "prompt",
    [
        "{nodes.rate.score} {nodes.rate.author.name} {nodes.rate.any.thing} {nodes.rate.parts[0].title}",
        "{rating.parts[-1].title} {{ len(rating.parts) }} {{ rating.parts.length }} {nodes.rate.branch}",
        "{{ rating.extra ?? 'none' }} {rating.extra?} {{ exists(nodes.rate.extra) }}",
        "{nodes.say.anything}",
    ],
)
def test_a_read_of_a_possible_key_is_valid(prompt: str) -> None:
    assert found(document(RATE, said(prompt)), "unknown-path") == []


def test_reads_of_results_are_checked_everywhere() -> None:
    rate: JsonObject = {**RATE, "outputs": {"rating": "result", "s": "result.scroe"}}
    choose: JsonObject = {
        "id": "choose",
        "type": "decision",
        "config": {"cases": [{"when": "rating.scroe > 3", "label": "high"}], "default": "low"},
    }
    call: JsonObject = {
        "id": "call",
        "type": "http",
        "config": {"url": "https://example.org/{rating.scroe}", "body": {"n": "{nodes.rate.scroe}"}},
    }
    end: JsonObject = {"id": "end", "type": "end", "config": {"output": {"s": "rating.scroe"}}}
    edges: list[Json] = [
        {"source": "rate", "target": "choose", "condition": {"type": "expression", "expression": "result.scroe > 1"}},
        {"source": "choose", "target": "call"},
        {"source": "call", "target": "end"},
    ]
    problems = found(document(rate, choose, call, end, edges=edges), "unknown-path")
    assert sorted(one.pointer for one in problems) == [
        "/edges/0/condition/expression",
        "/nodes/0/outputs/s",
        "/nodes/1/config/cases/0/when",
        "/nodes/2/config/body/n",
        "/nodes/2/config/url",
        "/nodes/3/config/output/s",
    ]
    assert all(one.fix for one in problems)


def test_fields_with_several_writers_and_possible_failures_have_no_known_type() -> None:
    other: JsonObject = {"id": "other", "type": "transform", "config": {"set": {"rating": "1"}}}
    assert found(document(RATE, other, said("{rating.scroe}")), "unknown-path") == []
    lax: JsonObject = {**RATE, "execution": {"errorHandler": "continue"}}
    assert found(document(lax, said("{nodes.rate.error.code}")), "unknown-path") == []


def test_the_schema_of_a_named_agent_is_resolved() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"author": {"$ref": "#/$defs/person"}},
        "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    rate: JsonObject = {"id": "rate", "type": "agent", "config": {"agent": "judge", "prompt": "x"}}
    agents: JsonObject = {"judge": {"prompt": "Judge.", "outputSchema": schema}}
    (problem,) = found(document(rate, said("{nodes.rate.author.nmae}"), agents=agents), "unknown-path")
    assert problem.fix
    assert problem.fix[0]["value"] == "{nodes.rate.author.name}"


@pytest.mark.parametrize(
    ("config", "prompt", "count"),
    [
        ({}, "{nodes.gate.data}", 1),
        ({}, "{nodes.gate.data.comment}", 1),
        ({}, "{humanResponse_gate.data.comment}", 1),
        ({}, "{nodes.gate.response} {nodes.gate.branch} {nodes.gate.by} {nodes.gate.comment}", 0),
        ({"form": {"type": "object", "properties": {"why": {"type": "string"}}}}, "{nodes.gate.data.why}", 0),
        ({"form": {"type": "object", "properties": {"why": {"type": "string"}}}}, "{nodes.gate.data.whz}", 1),
        ({"editable": ["report"]}, "{nodes.gate.data.report}", 0),
    ],
)
def test_the_form_of_a_gate_types_its_data(config: JsonObject, prompt: str, count: int) -> None:
    gate: JsonObject = {"id": "gate", "type": "human", "config": {"message": "Well?", **config}}
    assert len(found(document(gate, said(prompt)), "unknown-path")) == count


def test_reads_of_input_in_templates_are_checked() -> None:
    schema: JsonObject = {"type": "object", "additionalProperties": False, "properties": {"goal": {"type": "string"}}}
    (problem,) = found(document(said("About {input.gaol}"), input=schema), "unknown-path")
    assert problem.fix
    assert problem.fix[0]["value"] == "About {input.goal}"


TOOL: Final[JsonObject] = {
    "type": "object",
    "required": ["query"],
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
}
CLOSED: Final[JsonObject] = {**TOOL, "additionalProperties": False}


def arguments(parameters: Json, schema: JsonObject = CLOSED, **more: Json) -> list[tuple[str, str, str]]:
    node: JsonObject = {"id": "t", "type": "tool", "config": {"tool": "look", "parameters": parameters}}
    workflow, wrong = WorkflowDefinition.from_document(document(node, **more))
    assert workflow is not None, wrong
    problems = check(workflow, installation=Installation(tools={"look": ToolFacts(parameters=schema)}))
    return [(one.code, one.severity, one.pointer) for one in problems if "argument" in one.code]


@pytest.mark.parametrize(("name", "missing"), [("query", 0), ("limit", 1)])
def test_inputs_of_a_tool_node_without_parameters_are_its_parameters(name: str, missing: int) -> None:
    node: JsonObject = {"id": "t", "type": "tool", "config": {"tool": "look"}, "inputs": {name: "input.it"}}
    workflow, wrong = WorkflowDefinition.from_document(document(node))
    assert workflow is not None, wrong
    problems = check(workflow, installation=Installation(tools={"look": ToolFacts(parameters=CLOSED)}))
    found = [one.pointer for one in problems if one.code == "missing-argument"]
    assert found == ["/nodes/0/inputs"] * missing


def test_parameters_of_a_tool_are_checked_against_its_schema() -> None:
    at = "/nodes/0/config/parameters"
    assert arguments({"query": "x", "limit": 3}) == []
    assert arguments({"query": "{goal}", "limit": "{n}"}) == []
    assert arguments({"query": "$.goal"}) == []
    assert arguments({"qurey": "x"}) == [("unknown-argument", "error", f"{at}/qurey")]
    assert arguments({"query": "x", "colour": "red"}) == [("unknown-argument", "error", f"{at}/colour")]
    assert arguments({"query": "x", "colour": "red"}, TOOL) == [("unknown-argument", "warning", f"{at}/colour")]
    assert arguments({"query": "x", "c": 1}, {**TOOL, "additionalProperties": {"type": "integer"}}) == []
    assert arguments({}) == [("missing-argument", "error", at)]
    assert arguments({"query": "x", "limit": "many"}) == [("argument-invalid", "error", f"{at}/limit")]
    assert arguments({"query": 3}) == [("argument-invalid", "error", f"{at}/query")]
    assert arguments({"query": "x", "any": 1}, {}) == []
    assert arguments({"qurey": "x"}, dialect="rows") == [("unknown-argument", "warning", f"{at}/qurey")]


def test_a_misspelt_parameter_is_renamed_by_its_fix() -> None:
    node: JsonObject = {"id": "t", "type": "tool", "config": {"tool": "look", "parameters": {"qurey": "x"}}}
    known = Installation(tools={"look": ToolFacts(parameters=CLOSED)})
    (problem,) = found(document(node), "unknown-argument", known)
    assert problem.fix == (
        {"op": "add", "path": "/nodes/0/config/parameters/query", "value": "x"},
        {"op": "remove", "path": "/nodes/0/config/parameters/qurey"},
    )


def test_expressions_in_templates_are_checked_for_their_types() -> None:
    schema: JsonObject = {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "number"}, "tags": {"type": ["array", "null"]}},
    }
    text = "{{ n > 'x' }} {{#if upper(n)}}a{{/if}} {{ join(tags, ', ') }}"
    source = document(said(text), input=schema)
    assert len(found(source, "wrong-types")) == 2
    assert len(found(source, "list-may-miss")) == 1
