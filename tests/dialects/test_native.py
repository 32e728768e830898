"""The older format of the native dialect, by node type, in current terms."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from pointsman.definition.checks import check
from pointsman.definition.reading.documents import read_document
from pointsman.dialects.detect import read_workflow
from pointsman.expressions.compiler import compile_expression
from pointsman.values import Json, JsonObject
from tests.dialects.old_documents import codes, load, node, node_of, old, workflow_of


@pytest.mark.requirement("S1-25", "S1-26", "S1-O6", "T1-20")
def test_limits_of_the_old_spelling_are_converted() -> None:
    config: JsonObject = {
        "maxNodes": 50,
        "maxExecutionTime": 300000,
        "maxIterations": 7,
        "defaultModelId": "gemini",
        "allowCycles": False,
    }
    made = workflow_of(old(node("a", "start"), node("b", "end"), config=config)).to_document()["config"]
    limits = {"nodes": 50, "executionTime": "5m", "visits": 7, "steps": 14, "nodeTime": "30s"}
    assert made == {"defaultModel": "gemini", "allowCycles": False, "limits": limits}


def test_the_old_default_of_visits_is_ten() -> None:
    workflow = workflow_of(old(node("a", "start")))
    assert workflow.config is not None
    assert workflow.config.limits is not None
    assert (workflow.config.limits.visits, workflow.config.limits.steps) == (10, 10)


@pytest.mark.requirement("T1-3", "S1-115")
def test_values_beyond_the_old_format_are_a_warning() -> None:
    read = load(old(node("a", "start"), config={"maxIterations": 2000, "maxNodes": 60}))
    assert ("above-cap", "/config/maxIterations") in codes(read)
    assert ("above-cap", "/config/maxNodes") in codes(read)


@pytest.mark.requirement("S1-31", "S1-O10")
def test_input_variables_become_a_schema_with_form_hints() -> None:
    variables: list[Json] = [
        {"name": "topic", "type": "string", "required": True, "label": {"en": "Topic", "de": "Thema"}},
        {"name": "count", "type": "number", "description": "How many", "defaultValue": 3, "required": True},
        {"name": "text", "type": "textarea", "rows": 5},
        {"name": "day", "type": "date"},
        {"name": "sure", "type": "boolean"},
        {"name": "tone", "type": "select", "options": [{"value": "formal", "label": "Formal"}, "casual"]},
        {"name": "paper", "type": "file", "accept": ["application/pdf"], "maxSizeMB": 15},
    ]
    document = old(node("s", "start", inputVariables=variables, defaults={"findings": []}))
    made: Any = workflow_of(document).input_schema
    assert made["required"] == ["topic"]
    assert made["properties"]["topic"] == {
        "type": "string",
        "title": "Topic",
        "x-form": {"type": "string", "label": {"en": "Topic", "de": "Thema"}},
    }
    assert made["properties"]["count"]["default"] == 3
    assert made["properties"]["day"] == {"type": "string", "format": "date", "x-form": {"type": "date"}}
    assert made["properties"]["sure"]["type"] == "boolean"
    assert made["properties"]["tone"]["enum"] == ["formal", "casual"]
    paper = {"type": "file", "accept": ["application/pdf"], "maxSizeMB": 15}
    assert made["properties"]["paper"] == {"x-form": paper}
    assert node_of(document, "s")["config"]["defaults"] == {"findings": []}


def test_mappings_distinguish_paths_from_literals() -> None:
    document = old(
        node("s", "start", inputMapping={"q": "$.initialData.topic", "n": 3, "t": "text", "u": "$.input.user"}),
        node("e", "end", outputMapping={"a": "$.data.answer", "b": "done", "c": [1, None], "d": "{{x.y}}"}),
    )
    assert node_of(document, "s")["config"]["set"] == {"q": "input.topic", "n": "3", "t": '"text"', "u": "input.user"}
    output = node_of(document, "e")["config"]["output"]
    assert output == {"a": "$.data.answer", "b": '"done"', "c": "[1, null]", "d": "x.y"}
    for expression in output.values():
        compile_expression(expression)


@pytest.mark.requirement("S1-33")
def test_an_end_returns_fields_of_the_state_or_all_of_it() -> None:
    document = old(
        node("e", "end", outputVariables=["topic", "a-b", "input"], status="rejected"), {"id": "f", "type": "end"}
    )
    assert node_of(document, "e")["config"] == {
        "output": {"topic": "topic", "a-b": 'state["a-b"]', "input": "state.input"},
        "status": "rejected",
    }
    assert node_of(document, "f")["config"] == {"output": "state"}


@pytest.mark.requirement("S1-35", "S1-37", "S1-O1", "S1-O3")
def test_a_prompt_node_becomes_an_agent_with_node_policies() -> None:
    document = old(
        {
            "id": "p",
            "type": "prompt",
            "size": {"width": 3},
            "position": {"x": 1, "y": 2},
            "execution": {"timeout": 30000, "retries": 1, "retryDelay": 2000, "errorHandler": "continue"},
            "config": {
                "modelId": "m",
                "prompt": {"en": "{{topic}}"},
                "outputVariable": "draft",
                "tools": ["webSearch"],
                "maxTokens": 600,
                "thinking": {"enabled": True, "level": "low"},
                "inputFiles": ["_doc"],
                "chatVisible": False,
                "progress": {"message": "Working"},
                "_isSynthesizer": True,
            },
        }
    )
    assert node_of(document, "p") == {
        "id": "p",
        "type": "agent",
        "position": {"x": 1, "y": 2, "width": 3},
        "outputs": {"draft": "result"},
        "execution": {"timeout": "30s", "retries": 1, "retryDelay": "2s", "errorHandler": "continue"},
        "chatVisible": False,
        "progress": "Working",
        "config": {
            "model": "m",
            "prompt": {"en": "{{topic}}"},
            "tools": ["webSearch"],
            "maxTokens": 600,
            "thinking": {"enabled": True, "level": "low"},
            "inputFiles": ["_doc"],
            "x-native": {"_isSynthesizer": True},
        },
    }
    assert codes(load(document)) == [("ignored-key", "/nodes/0/config/_isSynthesizer")]


def test_an_unknown_key_is_kept_with_a_warning_and_a_suggestion() -> None:
    read = load(old(node("p", "prompt", promt="x", appId=3), animated=True))
    hints = {problem.pointer: problem.hint for problem in read.problems}
    assert hints["/nodes/0/config/promt"] == "Did you mean 'prompt'?"
    assert set(hints) == {"/nodes/0/config/promt", "/nodes/0/config/appId", "/animated"}
    assert all(problem.severity == "warning" for problem in read.problems)


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("outputVariable", "draft", "config"),
        ("userPrompt", "Write.", "config"),
        ("prompt", "Write.", "config"),
        ("modelId", "m", "config"),
        ("maxTokens", 5, "config"),
        ("timeout", 5000, "execution"),
        ("retries", 2, "execution"),
        ("errorHandler", "continue", "execution"),
    ],
)
def test_a_key_of_another_part_of_a_node_is_an_error_that_names_the_part(key: str, value: Json, place: str) -> None:
    misplaced: JsonObject = {**node("p", "prompt"), key: value}
    (problem,) = [one for one in load(old(misplaced)).problems if one.pointer == f"/nodes/0/{key}"]
    assert (problem.code, problem.severity, problem.hint) == (
        "misplaced-key",
        "error",
        f"Move it to the node's {place!r}.",
    )
    unused: JsonObject = {**node("p", "prompt"), key: None}
    assert codes(load(old(unused))) == [("ignored-key", f"/nodes/0/{key}")]


def test_a_key_of_another_type_of_node_is_kept_with_a_warning() -> None:
    misplaced: JsonObject = {**node("p", "prompt"), "toolId": "webSearch", "appId": 3}
    assert {*codes(load(old(misplaced)))} == {("ignored-key", "/nodes/0/toolId"), ("ignored-key", "/nodes/0/appId")}


def test_a_key_of_the_configuration_of_a_workflow_is_an_error_beside_it() -> None:
    (problem,) = load(old(node("p", "prompt", prompt="x"), defaultModelId="m", maxIterations=5)).problems[:1]
    assert (problem.code, problem.severity, problem.hint) == ("misplaced-key", "error", "Move it to 'config'.")


def test_a_timeout_in_the_configuration_becomes_the_timeout_of_the_node() -> None:
    assert node_of(old(node("h", "http", url="https://x", timeout=5000)), "h")["execution"] == {"timeout": "5s"}
    assert node_of(old(node("h", "human", message="m", timeout=5000)), "h")["config"]["timeout"] == "5s"


@pytest.mark.requirement("S1-38")
def test_a_tool_is_called_by_its_id() -> None:
    made = node_of(old(node("t", "tool", toolId="search", parameters={"q": "{{x}}"})), "t")
    assert made["config"] == {"tool": "search", "parameters": {"q": "{{x}}"}}


@pytest.mark.requirement("S1-39")
def test_decisions_by_expression_model_and_switch_are_converted() -> None:
    tests: list[Json] = [
        {"branch": "pdf", "equals": "application/pdf"},
        {"branch": "big", "greaterThan": 10},
        {"branch": "image", "contains": "image/"},
        {"branch": "text", "matches": "^text/"},
        {"branch": "some", "in": ["a", "b"]},
    ]
    document = old(
        node("d", "decision", type="expression", expression="$.data.score > 3"),
        node("m", "decision", type="llm", llmPrompt="Which?", choices=["a", {"value": "b", "label": "Bee"}]),
        node("s", "decision", type="switch", variable="$.data.kind", conditions=tests, defaultBranch="other"),
    )
    assert node_of(document, "d")["config"] == {"expression": "$.data.score > 3"}
    choices = [{"label": "a"}, {"label": "b", "description": "Bee"}]
    assert node_of(document, "m")["config"] == {"llmPrompt": "Which?", "choices": choices}
    made = node_of(document, "s")["config"]
    assert made["default"] == "other"
    assert [case["when"] for case in made["cases"]] == [
        '$.data.kind == "application/pdf"',
        "$.data.kind > 10",
        'contains($.data.kind, "image/")',
        'matches($.data.kind, "^text/")',
        '$.data.kind in ["a", "b"]',
    ]
    for case in made["cases"]:
        compile_expression(case["when"])


@pytest.mark.requirement("S1-42", "S1-O11")
def test_a_gate_writes_its_answer_to_the_state() -> None:
    made = node_of(
        old(
            node(
                "ask-me",
                "human",
                message={"en": "Ok?"},
                options=["approve", {"value": "reject", "label": {"en": "No"}, "style": "danger"}],
                inputSchema={"type": "object"},
                showData=["$.data.results"],
            )
        ),
        "ask-me",
    )
    assert made["config"] == {
        "message": {"en": "Ok?"},
        "options": [{"value": "approve"}, {"value": "reject", "label": {"en": "No"}, "style": "danger"}],
        "form": {"type": "object"},
        "show": ["$.data.results"],
    }
    (answer,) = made["outputs"].items()
    assert answer == ("humanResponse_ask_me", '{response: nodes["ask-me"].action, data: nodes["ask-me"].data}')
    compile_expression(answer[1])


@pytest.mark.requirement("S1-43")
def test_transform_operations_are_read_unchanged() -> None:
    operations: list[Json] = [
        {"set": "_records", "value": []},
        {"lengthOf": "_document", "to": "_coverage.total"},
        {"append": "_corpus", "to": "_all"},
        {"copy": "_x.result", "to": "y"},
        {"condition": "$.data.n > 1", "then": "many", "else": "few", "to": "size"},
    ]
    assert node_of(old(node("t", "transform", operations=operations)), "t")["config"] == {"operations": operations}
    assert node_of(old(node("t", "transform", expression="$.a[*].b")), "t")["config"] == {"jsonpath": "$.a[*].b"}


@pytest.mark.requirement("S1-44", "T1-16")
def test_old_names_of_memory_tiers_are_converted() -> None:
    made = node_of(old(node("m", "memory", scope="short_term", operation="write", key="k", value="{{x}}")), "m")
    assert made["config"] == {"scope": "execution", "operation": "set", "key": "k", "value": "x"}
    section = node_of(
        old(node("m", "memory", operation="read", profileId="p", section="Map", outputVariable="map")), "m"
    )
    assert section["config"] == {"namespace": "p", "scope": "long_term", "operation": "get", "section": "Map"}
    assert section["outputs"] == {"map": "result"}


def test_code_in_another_language_is_reported_and_kept() -> None:
    document = old(
        node("js", "code", code="data.x.map(y => y)", outputVariable="v"),
        node("py", "code", language="python", code="1 + 1", outputVariable="w"),
    )
    script = node_of(document, "js")
    assert script["type"] == "code-javascript"
    assert script["config"] == {"code": "data.x.map(y => y)"}
    python = node_of(document, "py")
    assert python["config"] == {"language": "python", "source": "1 + 1"}
    assert python["outputs"] == {"w": "{result: result}"}


def test_records_reports_and_checks_accept_paths_and_field_names() -> None:
    document = old(
        node(
            "r",
            "structured-record",
            schema={},
            inputPath="$.data._out",
            sourcePath="$.data._doc",
            recordsVar="_records",
        ),
        node(
            "t",
            "template-render",
            template="{{records}}",
            recordsVar="_records",
            titlePath="$.data.title",
            artifactName="a.md",
        ),
        node("v", "verifier", criteria="True", inputVariable="draft"),
    )
    assert node_of(document, "r")["config"] == {
        "schema": {},
        "input": "$.data._out",
        "source": "$.data._doc",
        "records": "_records",
    }
    assert node_of(document, "t")["config"]["bind"] == {"records": "_records", "title": "$.data.title"}
    assert node_of(document, "v")["config"] == {"criteria": "True", "input": "draft"}


@pytest.mark.parametrize("kind", ["query-plan", "corpus-search", "quote-validator", "inbox-load", "memory-finalize"])
def test_node_types_that_are_not_built_in_are_kept_losslessly(kind: str) -> None:
    config: JsonObject = {"questionPath": "$.data.q", "outputVar": "_plan", "timeout": 3, "chatVisible": False}
    assert node_of(old(node("x", kind, **config)), "x") == {"id": "x", "type": kind, "config": config}


def test_a_default_of_the_wrong_type_is_refused_with_a_hint() -> None:
    variables: list[Json] = [{"name": "topics", "type": "text"}]
    document = old(node("s", "start", inputVariables=variables, defaults={"topics": []}), node("e", "end"))
    (problem,) = [one for one in check(workflow_of(document)) if one.code == "default-invalid"]
    assert problem.hint == "Give a string, or change the type of 'topics'."


def test_a_gate_of_an_older_document_reads_its_own_answer() -> None:
    gate: JsonObject = {
        "id": "ask",
        "type": "human",
        "config": {"message": "Go on?", "options": [{"value": "approve"}]},
    }
    older: JsonObject = {
        "id": "w",
        "config": {"maxNodes": 10},
        "nodes": [{"id": "start", "type": "start", "config": {}}, gate, {"id": "end", "type": "end", "config": {}}],
        "edges": [{"id": "1", "source": "start", "target": "ask"}, {"id": "2", "source": "ask", "target": "end"}],
    }
    assert [one.code for one in check(workflow_of(older)) if one.severity == "error"] == []


def test_defaults_of_forms_are_read_with_the_type_of_their_field() -> None:
    variables: list[Json] = [
        {"name": "count", "type": "number", "default": "5"},
        {"name": "price", "type": "number", "defaultValue": " 2.50 "},
        {"name": "wanted", "type": "boolean", "default": "True"},
        {"name": "code", "type": "text", "default": 7},
        {"name": "words", "type": "number", "default": "several"},
        {"name": "absent", "type": "text", "default": None},
    ]
    document = old(
        node("s", "start", inputVariables=variables, defaults={"absent": None, "code": True}), node("e", "end")
    )
    before = copy.deepcopy(document)
    read = load(document)
    defaults: JsonObject = {"count": 5, "price": 2.5, "wanted": True, "code": "true", "words": "several"}
    assert workflow_of(document).input_defaults == defaults
    converted = {pointer.removeprefix("/nodes/0/config/") for code, pointer in codes(read) if code == "type-converted"}
    assert converted == {
        "inputVariables/0/default",
        "inputVariables/1/defaultValue",
        "inputVariables/2/default",
        "inputVariables/3/default",
        "defaults/code",
    }
    assert [one.message for one in check(workflow_of(document)) if one.code == "default-invalid"] == [
        'the default of \'words\' breaks its schema: "several" is not of type "number"'
    ]
    assert document == before


def test_a_required_field_whose_default_is_null_stays_required() -> None:
    document = old(
        node("s", "start", inputVariables=[{"name": "topic", "type": "text", "required": True, "default": None}])
    )
    assert (workflow_of(document).input_schema or {})["required"] == ["topic"]


def test_a_null_default_holds_for_a_field_that_may_be_null() -> None:
    document: JsonObject = {
        "pointsman": 1,
        "id": "w",
        "input": {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "string"}}},
        "nodes": [{"id": "s", "type": "start", "config": {"defaults": {"a": None, "b": None, "c": None}}}],
        "edges": [],
    }
    assert workflow_of(document).input_defaults == {"a": None, "c": None}


def test_a_key_of_another_variant_is_not_suggested_for_itself() -> None:
    document = old(node("t", "transform", operations=[{"push": "out", "value": "x"}]))
    problems = read_workflow(read_document(json.dumps(document))).problems
    [problem] = [one for one in problems if one.code == "unknown-key"]
    assert problem.hint == "'value' cannot be combined with the other keys of this object."
