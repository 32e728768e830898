"""From a text in any dialect to problems at the author's positions, with working repairs."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import cast

import pytest

from pointsman.definition.reading.documents import read_document
from pointsman.values import Json, JsonObject
from tests.checking import CheckedDocument, check_document

CORPUS = Path(__file__).parent / "corpus"


def checked(text: str, *, name: str = "", drop_dangling: bool = False) -> CheckedDocument:
    return check_document(read_document(text.encode()), name=name, drop_dangling=drop_dangling)


@pytest.mark.requirement("S0-60", "T0-1", "T0-2")
def test_the_original_chat_has_only_a_missing_node_and_a_dead_end() -> None:
    result = checked((CORPUS / "rows" / "2nchat.json").read_text())
    assert [(p.code, p.severity, p.pointer) for p in result.problems] == [
        ("dangling-edge", "error", "/edges/14/targetNodeId"),
        ("dead-end", "warning", "/edges/15"),
        ("dangling-edge", "error", "/edges/15/sourceNodeId"),
        ("dangling-edge", "error", "/edges/16/targetNodeId"),
    ]
    dangling = [p for p in result.problems if p.code == "dangling-edge"]
    assert all("'node-uuid-6'" in p.message and "3 edges name it" in p.hint for p in dangling)
    assert all(p.line is not None and p.column is not None for p in result.problems)
    assert result.workflow is not None
    assert not result.ok


@pytest.mark.requirement("T0-1")
def test_the_chat_without_dangling_edges_is_valid() -> None:
    result = checked((CORPUS / "rows" / "2nchat.json").read_text(), drop_dangling=True)
    assert {(p.code, p.severity) for p in result.problems} == {("dropped-edge", "warning")}
    assert [p.pointer for p in result.problems] == [
        "/edges/14/targetNodeId",
        "/edges/15/sourceNodeId",
        "/edges/16/targetNodeId",
    ]
    assert result.ok


def test_a_fix_of_the_chat_is_a_patch_of_its_rows() -> None:
    text = (CORPUS / "rows" / "2nchat.json").read_text()
    document = read_document(text.encode())
    (fix,) = {repr(p.fix): p.fix for p in check_document(document).problems if p.code == "dangling-edge"}.values()
    assert fix is not None
    mended = patched(document.value, fix)
    assert isinstance(mended, dict)
    assert isinstance(mended["edges"], list)
    assert len(mended["edges"]) == 15


@pytest.mark.requirement("S3-67", "T3-8")
def test_the_news_desk_loads_with_warnings_only() -> None:
    result = checked((CORPUS / "graph" / "news-reporter.json").read_text(), name="news-reporter.json")
    assert result.ok
    assert {"loop-changes-nothing", "parallel-without-join", "fanout-without-items"} <= {
        p.code for p in result.problems
    }


def test_problems_are_sorted_by_position_in_the_text() -> None:
    nodes = "nodes:\n  - {id: a, type: transform, inputs: {x: 'a ='}}\n  - {id: b, type: agnet}\n"
    text = f"id: w\n{nodes}edges:\n  - {{source: a, target: c}}\n"
    result = checked(text)
    assert [(p.code, p.line) for p in result.problems if p.severity == "error"] == [
        ("expression-syntax", 3),
        ("unbound-node-type", 4),
        ("dangling-edge", 6),
    ]


def test_fixes_of_a_native_document_apply_unchanged() -> None:
    text = "id: w\nnodes:\n  - {id: a, type: transform}\n  - {id: b, type: agnet}\nedges:\n  - {source: a, target: B}\n"
    document = read_document(text.encode())
    value = document.value
    for problem in check_document(document).problems:
        value = patched(value, problem.fix or ())
    assert value == {
        "id": "w",
        "nodes": [{"id": "a", "type": "transform"}, {"id": "b", "type": "agent"}],
        "edges": [{"source": "a", "target": "b"}],
    }


def test_a_document_with_structural_errors_gives_no_workflow() -> None:
    result = checked('{"id": "w", "nodes": [{"type": "start"}], "edges": []}')
    assert (result.workflow, result.ok) == (None, False)
    assert [p.code for p in result.problems] == ["missing-key"]


def patched(value: Json, operations: tuple[dict[str, Json], ...]) -> Json:
    """Apply a JSON Patch of `remove` and `replace`."""
    value = copy.deepcopy(value)
    for operation in operations:
        *holders, last = str(operation["path"]).split("/")[1:]
        here = value
        for part in holders:
            here = here[int(part)] if isinstance(here, list) else here[part] if isinstance(here, dict) else None
        if isinstance(here, list):
            if operation["op"] == "remove":
                del here[int(last)]
            else:
                here[int(last)] = operation["value"]
        elif isinstance(here, dict):
            if operation["op"] == "remove":
                del here[last]
            else:
                here[last] = operation["value"]
    return value


MISSPELT: list[tuple[JsonObject, dict[str, str]]] = [
    (
        {
            "id": "s",
            "entry_node": "a",
            "nodes": {
                "a": {
                    "type": "execute",
                    "step": {"goal": "g", "inputFields": [], "promt_template": "x", "team": "news"},
                },
                "c": {"type": "checkpoint", "checkpoint": {"title": "T", "allowed_action": ["approve"]}},
            },
            "edges": [{"from": "a", "to": "c", "conditon": "x == 1", "created_at": "today"}],
        },
        {
            "/nodes/a/step/inputFields": "input_fields",
            "/nodes/a/step/promt_template": "prompt_template",
            "/nodes/c/checkpoint/allowed_action": "allowed_actions",
            "/edges/0/conditon": "condition",
        },
    ),
    (
        {
            "id": "r",
            "entrypointNodeId": "a",
            "isConversationl": True,
            "nodes": [{"id": "a", "nodeType": "AGENT", "nodeName": "A", "agentID": "x", "tenant": 4}],
            "edges": [
                {"id": "e", "sourceNodeId": "a", "targetNodeId": "a", "conditionType": "ALWAYS", "conditonValue": "q"}
            ],
        },
        {
            "/isConversationl": "isConversational",
            "/nodes/0/agentID": "agentId",
            "/edges/0/conditonValue": "conditionValue",
        },
    ),
    (
        {
            "id": "g",
            "entry_node_id": "a",
            "nodes": [
                {"id": "a", "type": "agent", "agent_id": "x", "input": {"goal": "goal"}, "ui": {"x": 1}},
                {"id": "l", "type": "loop", "max_iter": 3, "loop_conditon": "latest == 'x'"},
            ],
            "edges": [{"from_node": "a", "to_node": "l"}, {"from_node": "l", "to_node": "a", "conditon": "loop_body"}],
            "limit": {"max_steps": 3},
        },
        {
            "/nodes/0/input": "inputs",
            "/nodes/1/max_iter": "max_iters",
            "/nodes/1/loop_conditon": "loop_condition",
            "/edges/1/conditon": "condition",
            "/limit": "limits",
        },
    ),
    (
        {
            "title": "t",
            "goal": "g",
            "steps": [
                {"description": "d", "input_source": ["user"], "output_description": "o", "method": {"tool": ["x"]}}
            ],
        },
        {"/steps/0/input_source": "input_sources", "/steps/0/method/tool": "tools"},
    ),
]


@pytest.mark.parametrize(("document", "expected"), MISSPELT, ids=["steps", "rows", "graph", "plan"])
def test_a_misspelt_key_of_another_system_is_reported(document: JsonObject, expected: dict[str, str]) -> None:
    found = {one.pointer: one for one in checked(json.dumps(document)).problems if one.code == "ignored-key"}
    assert {pointer: one.hint for pointer, one in found.items()} == {
        pointer: f"Did you mean {word!r}?" for pointer, word in expected.items()
    }
    assert all(one.severity == "warning" for one in found.values())


def test_many_unknown_keys_are_compared_within_a_bound() -> None:
    rows: list[Json] = [{"id": f"n{i}", "nodeType": "AGENT", f"agentIdd{i}": "x"} for i in range(20_000)]
    checked(json.dumps({"id": "r", "entrypointNodeId": "n0", "nodes": rows, "edges": []}))


def test_a_native_node_of_a_graph_is_configured_by_params_or_by_config() -> None:
    gate: JsonObject = {"message": "Ok?", "editable": ["latest"], "actions": ["approve", "edit"]}
    for place in ("params", "config"):
        document: JsonObject = {
            "id": "g",
            "entry_node_id": "a",
            "nodes": [{"id": "a", "type": "agent", "agent_id": "x"}, {"id": "h", "type": "human", place: gate}],
            "edges": [{"from_node": "a", "to_node": "h"}],
        }
        workflow = checked(json.dumps(document)).workflow
        assert workflow is not None
        assert cast("list[JsonObject]", workflow.to_document()["nodes"])[1]["config"] == gate
