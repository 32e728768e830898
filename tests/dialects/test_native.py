"""The native dialect in its older spelling: the same workflows, in today's words, at the author's places."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pointsman.definition.documents import read_document
from pointsman.definition.edges import OnLabel, When
from pointsman.definition.problems import Problem
from pointsman.definition.workflow import Workflow
from pointsman.dialects import native
from pointsman.dialects.detect import Read, read_workflow
from pointsman.expressions.formula import compile_expression
from pointsman.values import Json, JsonObject
from tests.definition.documents import FULL


def old(
    *nodes: JsonObject, edges: tuple[JsonObject, ...] = (), config: JsonObject | None = None, **more: Json
) -> JsonObject:
    """A document that surely is in the older spelling."""
    return {"id": "w", "config": {"maxNodes": 50, **(config or {})}, "nodes": [*nodes], "edges": [*edges], **more}


def load(document: JsonObject) -> Read:
    read = read_workflow(read_document(json.dumps(document)))
    assert read.workflow is not None, read.problems
    assert read.dialect == "native"
    return read


def workflow_of(document: JsonObject) -> Workflow:
    workflow = load(document).workflow
    assert workflow is not None
    return workflow


def node_of(document: JsonObject, node_id: str) -> dict[str, Any]:
    """The node as it stands in today's document."""
    nodes: Any = workflow_of(document).to_document()["nodes"]
    (found,) = [node for node in nodes if node["id"] == node_id]
    return found


def edges_of(document: JsonObject) -> set[tuple[str, str, str]]:
    return {(edge.source, edge.target, edge.mark or "") for edge in workflow_of(document).edges}


def codes(read: Read) -> list[tuple[str, str]]:
    return [(problem.code, problem.pointer) for problem in read.problems]


def node(node_id: str, kind: str, **config: Json) -> JsonObject:
    return {"id": node_id, "type": kind, "config": config}


@pytest.mark.requirement("S1-25", "S1-26", "S1-O6", "T1-20")
def test_limits_of_the_older_spelling_become_limits() -> None:
    config: JsonObject = {
        "maxNodes": 50,
        "maxExecutionTime": 300000,
        "maxIterations": 7,
        "defaultModelId": "gemini",
        "allowCycles": False,
    }
    made = workflow_of(old(node("a", "start"), node("b", "end"), config=config)).to_document()["config"]
    limits = {"nodes": 50, "executionTime": "5m", "visits": 7, "steps": 14}
    assert made == {"defaultModel": "gemini", "allowCycles": False, "limits": limits}


def test_silence_about_visits_means_ten() -> None:
    workflow = workflow_of(old(node("a", "start")))
    assert workflow.config is not None
    assert workflow.config.limits is not None
    assert (workflow.config.limits.visits, workflow.config.limits.steps) == (10, 10)


@pytest.mark.requirement("T1-3")
def test_more_than_the_older_format_allows_is_a_warning() -> None:
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


def test_mappings_tell_paths_from_literals() -> None:
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
def test_an_end_names_fields_of_the_state_or_gives_it_whole() -> None:
    document = old(
        node("e", "end", outputVariables=["topic", "a-b", "input"], status="rejected"), {"id": "f", "type": "end"}
    )
    assert node_of(document, "e")["config"] == {
        "output": {"topic": "topic", "a-b": 'state["a-b"]', "input": "state.input"},
        "status": "rejected",
    }
    assert node_of(document, "f")["config"] == {"output": "state"}


@pytest.mark.requirement("S1-35", "S1-37", "S1-O1", "S1-O3")
def test_a_prompt_is_an_agent_and_its_policies_are_the_nodes() -> None:
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
    assert codes(load(document)) == [("kept-key", "/nodes/0/config/_isSynthesizer")]


def test_what_nothing_reads_is_kept_with_a_warning_and_the_nearest_key() -> None:
    read = load(old(node("p", "prompt", promt="x", appId=3), animated=True))
    hints = {problem.pointer: problem.hint for problem in read.problems}
    assert hints["/nodes/0/config/promt"] == "Did you mean 'prompt'?"
    assert set(hints) == {"/nodes/0/config/promt", "/nodes/0/config/appId", "/animated"}
    assert all(problem.severity == "warning" for problem in read.problems)


def test_a_timeout_in_the_configuration_is_the_nodes() -> None:
    assert node_of(old(node("h", "http", url="https://x", timeout=5000)), "h")["execution"] == {"timeout": "5s"}
    assert node_of(old(node("h", "human", message="m", timeout=5000)), "h")["config"]["timeout"] == "5s"


@pytest.mark.requirement("S1-38")
def test_a_tool_is_called_by_its_id() -> None:
    made = node_of(old(node("t", "tool", toolId="search", parameters={"q": "{{x}}"})), "t")
    assert made["config"] == {"tool": "search", "parameters": {"q": "{{x}}"}}


@pytest.mark.requirement("S1-39")
def test_decisions_by_expression_by_model_and_by_switch() -> None:
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


@pytest.mark.requirement("S1-47", "S1-49", "S1-O4", "T1-13")
def test_edges_that_ask_for_the_branch_listen_to_the_label() -> None:
    branch: JsonObject = {"type": "equals", "field": "result.branch", "value": "true"}
    workflow = workflow_of(
        old(
            node("d", "decision", expression="a"),
            node("p", "prompt"),
            edges=(
                {"source": "d", "target": "p", "condition": branch},
                {"source": "d", "target": "p", "condition": {**branch, "value": True}},
                {"source": "d", "target": "p", "condition": {"expression": "$.result.branch === 'false'"}},
                {
                    "source": "d",
                    "target": "p",
                    "condition": {"type": "expression", "expression": "result.branch == 'x' && y"},
                },
                {"source": "p", "target": "d", "condition": branch},
                {"source": "p", "target": "d", "condition": {"type": "llm", "llmPrompt": "Good?", "expression": ""}},
                {"source": "p", "target": "d", "condition": "score > 3"},
            ),
        )
    )
    conditions = [edge.condition for edge in workflow.edges]
    assert conditions[:3] == [
        OnLabel.model_validate({"type": "label", "label": label}) for label in ("true", "true", "false")
    ]
    assert isinstance(conditions[3], When)
    assert conditions[3].expression == "nodes.d.branch == 'x' && y"
    written: Any = workflow.to_document()["edges"]
    assert written[4]["condition"] == branch
    assert written[5]["condition"] == {"type": "llm", "prompt": "Good?"}
    assert written[6]["condition"] == {"type": "expression", "expression": "score > 3"}


@pytest.mark.requirement("S1-42", "S1-O11")
def test_a_gate_leaves_its_answer_in_the_state() -> None:
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
def test_operations_are_read_as_they_stand() -> None:
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
def test_memory_tiers_by_their_older_names() -> None:
    made = node_of(old(node("m", "memory", scope="short_term", operation="write", key="k", value="{{x}}")), "m")
    assert made["config"] == {"scope": "execution", "operation": "set", "key": "k", "value": "x"}
    section = node_of(
        old(node("m", "memory", operation="read", profileId="p", section="Map", outputVariable="map")), "m"
    )
    assert section["config"] == {"namespace": "p", "scope": "long_term", "operation": "get", "section": "Map"}
    assert section["outputs"] == {"map": "result"}


@pytest.mark.requirement("S1-40", "S1-41", "T1-15")
def test_run_time_branches_and_how_they_are_joined() -> None:
    document = old(
        node("p", "parallel", dynamicBranches="$.data.items"),
        node("q", "parallel", dynamicBranches={"path": "$.data.items", "itemVariable": "doc"}, maxConcurrency=3),
        node("j", "join", aggregation="merge"),
        node("k", "join", aggregation="n_of_m", n=2),
        node("l", "join", aggregation="first"),
        node("m", "join", strategy="all", inputVariables=["a", "b-c"]),
        node("n", "join", strategy="majority"),
    )
    assert node_of(document, "p")["config"] == {"items": "$.data.items"}
    assert node_of(document, "q")["config"] == {"items": "$.data.items", "as": "doc", "maxParallel": 3}
    assert node_of(document, "j")["config"] == {"aggregate": "merge"}
    assert node_of(document, "k")["config"] == {"wait": 2}
    assert node_of(document, "l")["config"] == {"wait": "any", "aggregate": "first"}
    assert node_of(document, "m")["config"] == {"aggregate": '{"a": a, "b-c": state["b-c"]}'}
    assert node_of(document, "n")["config"] == {"aggregate": "vote"}
    compile_expression(node_of(document, "m")["config"]["aggregate"])


@pytest.mark.requirement("T1-9")
def test_an_inline_body_becomes_ordinary_nodes_in_a_chain() -> None:
    inner = node("inner", "loop", mode="for", count=3, body=[{"type": "progress", "config": {"message": "m"}}])
    body: list[Json] = [node("a", "transform"), node("b", "prompt"), inner]
    document = old(node("b", "prompt"), node("lp", "loop", mode="forEach", array="docs", itemVariable="doc", body=body))
    made = node_of(document, "lp")
    assert made["config"] == {"over": "docs", "as": "doc", "body": ["a", "lp.b", "inner"], "maxIterations": 50}
    assert node_of(document, "inner")["config"] == {"maxIterations": 3, "body": ["inner.1"]}
    assert edges_of(document) == {
        ("lp", "a", "body"),
        ("a", "lp.b", ""),
        ("lp.b", "inner", ""),
        ("inner", "inner.1", "body"),
        ("inner.1", "inner", "continue"),
        ("inner", "lp", "continue"),
    }


def test_problems_inside_an_inline_body_stand_where_the_author_wrote_them() -> None:
    body: list[Json] = [node("a", "transform", operations=[{"cpy": 1}])]
    text = json.dumps(old(node("x", "start"), node("lp", "loop", mode="forEach", array="d", body=body)), indent=1)
    read = read_workflow(read_document(text))
    (problem,) = [problem for problem in read.problems if problem.severity == "error"]
    assert problem.pointer == "/nodes/1/config/body/0/config/operations/0"
    assert problem.line is not None
    assert "cpy" in text.splitlines()[problem.line]


def test_a_container_runs_its_children_in_the_order_of_their_edges() -> None:
    document = old(
        node("lp", "loop", mode="forEach", array="docs", outputVariable="all", countInto="n", onItemError="skip"),
        {**node("second", "prompt"), "parentId": "lp"},
        {**node("first", "prompt"), "parentId": "lp"},
        {**node("third", "prompt"), "parentId": "lp"},
        edges=({"source": "first", "target": "second"},),
    )
    config = node_of(document, "lp")["config"]
    assert config["body"] == ["first", "second", "third"]
    assert (config["collect"], config["countInto"], config["onRoundError"]) == ("all", "n", "skip")
    assert edges_of(document) == {
        ("first", "second", ""),
        ("second", "third", ""),
        ("lp", "first", "body"),
        ("third", "lp", "continue"),
    }


def test_inline_branches_end_in_a_join_behind_which_the_parallel_goes_on() -> None:
    branches: list[Json] = [
        {"id": "one", "nodes": [node("a", "prompt"), node("b", "prompt")]},
        {"id": "two", "nodes": [node("c", "prompt")]},
    ]
    document = old(
        node("p", "parallel", branches=branches, outputVariable="found"),
        node("e", "end"),
        edges=({"source": "p", "target": "e"},),
    )
    assert node_of(document, "p")["config"] == {"branches": ["a", "c"]}
    assert node_of(document, "p.join")["outputs"] == {"found": "result"}
    assert edges_of(document) == {
        ("p", "a", ""),
        ("a", "b", ""),
        ("b", "p.join", ""),
        ("p", "c", ""),
        ("c", "p.join", ""),
        ("p.join", "e", ""),
    }


def test_code_in_another_language_is_shown_and_kept() -> None:
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


def test_records_reports_and_checks_take_paths_and_field_names() -> None:
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
def test_types_of_the_origin_that_are_not_built_in_are_kept_losslessly(kind: str) -> None:
    config: JsonObject = {"questionPath": "$.data.q", "outputVar": "_plan", "timeout": 3, "chatVisible": False}
    assert node_of(old(node("x", kind, **config)), "x") == {"id": "x", "type": kind, "config": config}


def test_an_unchanged_workflow_is_written_as_its_author_wrote_it() -> None:
    document = old(node("p", "prompt", outputVariable="x"), node("e", "end", outputVariables=["x"]), status="draft")
    workflow = workflow_of(document)
    assert native.write(workflow, document).document is document


def test_a_changed_workflow_is_written_in_todays_words_and_means_the_same() -> None:
    document = old(node("p", "prompt", outputVariable="x"), node("e", "end", outputVariables=["x"]))
    changed = workflow_of({**document, "name": "New"})
    written = native.write(changed, document)
    assert written.losses == ()
    assert written.document["pointsman"] == 1
    assert workflow_of(written.document) == changed


def test_a_document_that_says_its_format_is_read_as_it_stands() -> None:
    assert native.read(FULL, name="").document == FULL
    read = read_workflow(read_document(json.dumps({**FULL, "nodes": [node("p", "agent", outputVariable="x")]})))
    assert [problem.code for problem in read.problems] == ["unknown-key"]


def test_without_an_id_the_name_of_the_file_is_one() -> None:
    document: JsonObject = {"nodes": [{"id": "a", "type": "start"}], "edges": []}
    read = read_workflow(read_document(json.dumps(document)), name="flows/My News.workflow.json")
    assert read.workflow is not None
    assert read.workflow.id == "my-news"


def problem_at(read: Read, pointer: str) -> Problem:
    (found,) = [problem for problem in read.problems if problem.pointer == pointer]
    return found


def test_renamed_keys_keep_the_authors_place() -> None:
    text = json.dumps(old(node("p", "tool", toolId=3), config={"maxExecutionTime": "soon"}), indent=1)
    read = read_workflow(read_document(text))
    lines = text.splitlines()
    for pointer, word in (("/nodes/0/config/toolId", "toolId"), ("/config/maxExecutionTime", "maxExecutionTime")):
        line = problem_at(read, pointer).line
        assert line is not None
        assert word in lines[line - 1]
