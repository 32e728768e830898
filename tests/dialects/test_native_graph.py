"""The older format of the native dialect: edges, bodies, positions, and writing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pointsman.definition.model.nodes import OnLabel, When
from pointsman.definition.problems import Problem
from pointsman.definition.reading.documents import read_document
from pointsman.dialects import native
from pointsman.dialects.detect import ReadDocument, read_workflow
from pointsman.expressions.compiler import compile_expression
from pointsman.values import Json, JsonObject
from tests.definition.documents import FULL
from tests.dialects.old_documents import edges_of, node, node_of, old, workflow_of


@pytest.mark.requirement("S1-47", "S1-49", "S1-O4", "T1-13")
def test_edges_with_a_branch_condition_become_label_edges() -> None:
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


@pytest.mark.requirement("S1-40", "S1-41", "T1-15")
def test_dynamic_branches_and_their_joins_are_converted() -> None:
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
    assert made["config"] == {"over": "docs ?? []", "as": "doc", "body": ["a", "lp.b", "inner"], "maxIterations": 50}
    assert node_of(document, "inner")["config"] == {"maxIterations": 3, "body": ["inner.1"]}
    assert edges_of(document) == {
        ("lp", "a", "body"),
        ("a", "lp.b", ""),
        ("lp.b", "inner", ""),
        ("inner", "inner.1", "body"),
        ("inner.1", "inner", "continue"),
        ("inner", "lp", "continue"),
    }


def test_problems_inside_an_inline_body_have_the_authors_position() -> None:
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


def test_inline_branches_end_in_an_added_join() -> None:
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


def test_an_unchanged_old_workflow_is_written_unchanged() -> None:
    document = old(node("p", "prompt", outputVariable="x"), node("e", "end", outputVariables=["x"]), status="draft")
    workflow = workflow_of(document)
    assert native.write(workflow, document).document is document


def test_a_changed_old_workflow_is_written_with_present_keys() -> None:
    document = old(node("p", "prompt", outputVariable="x"), node("e", "end", outputVariables=["x"]))
    changed = workflow_of({**document, "name": "New"})
    written = native.write(changed, document)
    assert written.losses == ()
    assert written.document["pointsman"] == 1
    assert workflow_of(written.document) == changed


def test_a_document_with_a_format_version_is_read_unchanged() -> None:
    assert native.read(FULL, name="").document == FULL
    read = read_workflow(read_document(json.dumps({**FULL, "nodes": [node("p", "agent", outputVariable="x")]})))
    assert [problem.code for problem in read.problems] == ["unknown-key"]


def test_without_an_id_the_file_name_is_the_id() -> None:
    document: JsonObject = {"nodes": [{"id": "a", "type": "start"}], "edges": []}
    read = read_workflow(read_document(json.dumps(document)), name="flows/My News.workflow.json")
    assert read.workflow is not None
    assert read.workflow.id == "my-news"


def problem_at(read: ReadDocument, pointer: str) -> Problem:
    (found,) = [problem for problem in read.problems if problem.pointer == pointer]
    return found


def test_renamed_keys_keep_the_authors_position() -> None:
    text = json.dumps(old(node("p", "tool", toolId=3), config={"maxExecutionTime": "soon"}), indent=1)
    read = read_workflow(read_document(text))
    lines = text.splitlines()
    for pointer, word in (("/nodes/0/config/toolId", "toolId"), ("/config/maxExecutionTime", "maxExecutionTime")):
        line = problem_at(read, pointer).line
        assert line is not None
        assert word in lines[line - 1]


SKETCH = """{
  "id": "research-workflow",
  "name": { "en": "Research Workflow", "de": "Forschungs-Workflow" },
  "version": "1.0.0",
  "config": {
    "observability": "full",           // minimal | standard | full
    "maxExecutionTime": 300000,        // 5 minutes
    "maxNodes": 50                     // Safety limit
  },
  "nodes": [...],  // See Node Types below
  "edges": [...],  // See Edge Types below
  "allowedGroups": ["users", "admin"]
}"""


@pytest.mark.requirement("S1-30", "T1-21")
def test_a_sketch_of_the_format_is_reported() -> None:
    read = read_workflow(read_document(SKETCH))
    assert [(problem.code, problem.pointer, problem.line, problem.column) for problem in read.problems] == [
        ("schema-sketch", "/nodes", 10, 13),
        ("schema-sketch", "/edges", 11, 13),
    ]


def test_a_completed_sketch_with_comments_is_a_workflow() -> None:
    start, end = '[{"id": "s", "type": "start"}, {"id": "e", "type": "end"}]', '[{"source": "s", "target": "e"}]'
    read = read_workflow(read_document(SKETCH.replace("[...]", start, 1).replace("[...]", end, 1)))
    assert read.problems == ()
    assert read.workflow is not None
    assert read.workflow.allowed_groups == ("users", "admin")
