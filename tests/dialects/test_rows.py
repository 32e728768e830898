"""The rows dialect: the meaning of each column, invalid rows, and features that rows do not have."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.definition.reading.documents import read_document
from pointsman.dialects import rows
from pointsman.dialects.detect import read_workflow
from pointsman.dialects.readers import ImportedDocument
from pointsman.values import Json, JsonObject
from tests.dialects.corpus_files import CORPUS, changed, codes, document, imported, workflow_of


def node(node_id: str, **more: Json) -> JsonObject:
    return {"id": node_id, "nodeType": "AGENT", "nodeName": node_id.upper(), "agentId": f"agent-{node_id}", **more}


def edge(edge_id: str, source: str, target: str | None, **more: Json) -> JsonObject:
    between: JsonObject = {"id": edge_id, "sourceNodeId": source, "targetNodeId": target}
    return {**between, "conditionType": "ALWAYS", "conditionValue": None, **more}


def read(nodes: list[JsonObject], edges: list[JsonObject], **head: Json) -> ImportedDocument:
    return rows.read({"id": "w", "entrypointNodeId": "a", "nodes": [*nodes], "edges": [*edges], **head}, name="")


def only(found: ImportedDocument, code: str) -> Problem:
    (problem,) = [problem for problem in found.losses if problem.code == code]
    return problem


@pytest.mark.requirement("S0-01", "S0-03", "S0-07", "S0-10", "S0-14", "S0-60", "T0-12")
def test_the_chat_loads_with_its_ids_and_without_problems() -> None:
    found = imported("rows/2nchat")
    workflow = workflow_of(found)
    assert found.losses == ()
    assert (workflow.id, workflow.entry, len(workflow.nodes), len(workflow.edges)) == ("2nChat", "node-uuid-1", 5, 18)
    assert [n.type for n in workflow.nodes] == ["agent"] * 4 + ["tool_executor"]
    assert found.sources.author_pointer("/edges/14/target") == "/edges/14/targetNodeId"
    assert found.sources.author_pointer("/nodes/2/config/agent") == "/nodes/2/agentId"


@pytest.mark.requirement("S0-13", "S0-22", "S0-24", "X-1")
def test_agents_route_by_label_and_a_null_target_ends() -> None:
    native = imported("rows/2nchat").document
    edges = cast(list[JsonObject], native["edges"])
    assert edges[4] == {
        "id": "edge-uuid-5",
        "source": "node-uuid-1",
        "target": "END",
        "condition": {"type": "label", "label": "END"},
    }
    assert edges[17] == {"id": "edge-uuid-18", "source": "node-uuid-5", "target": "node-uuid-1"}
    agents = cast(list[JsonObject], native["nodes"])[:4]
    assert [agent["routing"] for agent in agents] == ["label"] * 4


@pytest.mark.requirement("S0-51", "S0-54", "T0-6", "X-5")
def test_default_limits_apply_unless_the_rows_have_others() -> None:
    usual = workflow_of(imported("rows/2nchat")).config
    own = workflow_of(imported("rows/human-handoff")).config
    assert usual is not None
    assert usual.limits is not None
    assert (usual.limits.steps, str(usual.limits.execution_time)) == (15, "90s")
    assert own is not None
    assert own.limits is not None
    assert (own.limits.steps, str(own.limits.execution_time)) == (40, "90s")


@pytest.mark.requirement("S0-05")
def test_a_workflow_of_rows_is_conversational_only_if_declared() -> None:
    silent = workflow_of(imported("rows/one-node")).config
    chat = workflow_of(imported("rows/2nchat")).config
    assert (silent and silent.conversational, chat and chat.conversational) == (False, True)


@pytest.mark.requirement("S0-56", "S0-57", "S0-59", "T0-9")
def test_a_handoff_node_takes_over_at_a_limit() -> None:
    workflow = workflow_of(imported("rows/human-handoff"))
    assert workflow.config is not None
    assert workflow.config.on_limit == "n2"
    assert [n.type for n in workflow.nodes] == ["agent", "human", "human"]
    named = read([node("a"), node("b", nodeName="human_handoff", nodeType="HUMAN", agentId=None)], [])
    assert cast(JsonObject, named.document["config"])["onLimit"] == "b"


def test_a_human_task_offers_the_labels_of_its_edges() -> None:
    approval = cast(list[JsonObject], imported("rows/human-handoff").document["nodes"])[2]
    assert approval["config"] == {"options": [{"value": "again"}, {"value": "END"}]}


@pytest.mark.requirement("S0-O1")
def test_on_complete_is_an_edge_to_the_end() -> None:
    edges = workflow_of(imported("rows/snake-case")).edges
    assert (edges[3].target, edges[3].condition) == ("END", None)


@pytest.mark.requirement("S0-O2", "X-7")
def test_both_cases_read_the_same_and_a_mixture_gets_a_note() -> None:
    camel = read([node("a")], [edge("e", "a", "a")])
    snake = rows.read(
        {
            "id": "w",
            "entrypoint_node_id": "a",
            "nodes": [{"id": "a", "node_type": "AGENT", "node_name": "A", "agent_id": "agent-a"}],
            "edges": [{"id": "e", "source_node_id": "a", "target_node_id": "a", "condition_type": "ALWAYS"}],
        },
        name="",
    )
    assert camel.document == snake.document
    assert codes(read([node("a", agent_id="agent-a")], []).losses) == ["mixed-spellings"]
    twice = read([node("a", agent_id="agent-b")], [])
    assert only(twice, "conflicting-spellings").pointer == "/nodes/0/agentId"


@pytest.mark.requirement("S0-O3")
def test_table_sets_include_their_agents() -> None:
    found = imported("rows/table-set")
    workflow = workflow_of(found)
    assert workflow.agents is not None
    assert str(workflow.agents["a-1"].system) == "You write."
    assert workflow.agents["a-1"].tools == ("web_search",)
    assert found.sources.author_pointer("/nodes/1/name") == "/agent_workflow_nodes/1/node_name"
    assert found.sources.author_pointer("/agents/a-1/system") == "/agents/0/system_prompt"
    assert found.sources.author_pointer("/config/conversational") == "/agent_workflows/0/is_conversational"


def test_rows_of_other_workflows_in_the_tables_are_ignored() -> None:
    tables = document("rows/table-set")
    other = {"id": "x-1", "workflow_id": "other", "node_type": "AGENT", "node_name": "x", "agent_id": "a-1"}
    cast(list[Json], tables["agent_workflow_nodes"]).append(cast(Json, other))
    cast(list[Json], tables["agent_workflows"]).append({"id": "other", "entrypoint_node_id": "x-1"})
    found = rows.read(tables, name="letters")
    assert [n.id for n in workflow_of(found).nodes] == ["l-1", "l-2"]
    assert "several-workflows" in codes(found.losses)
    renamed = changed(workflow_of(found), lambda native: native.update(description="New"))
    written = rows.write(renamed, tables).document
    assert cast(list[JsonObject], written["agent_workflow_nodes"])[2] == other
    assert [row["id"] for row in cast(list[JsonObject], written["agent_workflows"])] == ["letters", "other"]
    assert cast(list[JsonObject], written["agent_workflows"])[0]["description"] == "New"


@pytest.mark.requirement("S0-O5")
def test_one_node_without_edges_is_a_whole_workflow() -> None:
    assert workflow_of(imported("rows/one-node")).edges == ()


@pytest.mark.parametrize(
    ("nodes", "edges", "code", "severity", "pointer"),
    [
        ([node("a", nodeType="ROBOT")], [], "unknown-node-type", "error", "/nodes/0/nodeType"),
        ([node("a", agentId=None)], [], "agent-missing", "error", "/nodes/0/agentId"),
        ([node("a", nodeType="TOOL_EXECUTOR")], [], "agent-not-allowed", "error", "/nodes/0/agentId"),
        ([node("a", workflowId="v")], [], "workflow-id-mismatch", "error", "/nodes/0/workflowId"),
        ([node("a"), node("b", nodeName="A")], [], "duplicate-name", "error", "/nodes/1/nodeName"),
        (
            [node("a")],
            [edge("e", "a", "a", conditionType="SOMETIMES")],
            "unknown-condition-type",
            "error",
            "/edges/0/conditionType",
        ),
        (
            [node("a")],
            [edge("e", "a", "a", conditionType="CONDITIONAL")],
            "condition-without-value",
            "error",
            "/edges/0/conditionValue",
        ),
        (
            [node("a")],
            [edge("e", "a", "a", conditionValue="A")],
            "always-with-value",
            "error",
            "/edges/0/conditionValue",
        ),
        ([node("a")], [edge("e", "a", None)], "null-target", "error", "/edges/0/targetNodeId"),
        (
            [node("a")],
            [edge("e", "a", "a", conditionType="CONDITIONAL", conditionValue="END")],
            "reserved-label",
            "error",
            "/edges/0/conditionValue",
        ),
        (
            [node("a"), node("b")],
            [edge("e", "a", "b", conditionType="CONDITIONAL", conditionValue="C")],
            "label-differs",
            "note",
            "/edges/0/conditionValue",
        ),
    ],
)
@pytest.mark.requirement("S0-08", "S0-09", "S0-11", "S0-12", "S0-13", "S0-15", "S0-21", "S0-23")
def test_an_invalid_row_is_reported_at_its_position(
    nodes: list[JsonObject], edges: list[JsonObject], code: str, severity: str, pointer: str
) -> None:
    problem = only(read(nodes, edges), code)
    assert (problem.severity, problem.pointer) == (severity, pointer)
    assert problem.hint


def test_simple_mistakes_in_rows_have_a_working_fix() -> None:
    assert only(read([node("a", workflowId="v")], []), "workflow-id-mismatch").fix == (
        {"op": "replace", "path": "/nodes/0/workflowId", "value": "w"},
    )
    always = read([node("a")], [edge("e", "a", "a", conditionValue="A")])
    assert only(always, "always-with-value").fix == (
        {"op": "replace", "path": "/edges/0/conditionValue", "value": None},
    )


@pytest.mark.requirement("S0-15")
def test_a_missing_workflow_id_is_filled_in_when_rows_are_written() -> None:
    written = rows.write(workflow_of(read([node("a")], [])), None).document
    assert [row["workflowId"] for row in cast(list[JsonObject], written["nodes"])] == ["w"]


@pytest.mark.requirement("S0-17")
def test_an_unknown_agent_loads() -> None:
    assert workflow_of(imported("rows/one-node")).nodes[0].config is not None
    assert imported("rows/one-node").losses == ()


@pytest.mark.requirement("T0-1")
def test_a_dangling_edge_is_reported_at_the_authors_row() -> None:
    read_back = read_workflow(read_document((CORPUS / "rows/2nchat.json").read_bytes()), name="2nchat")
    assert read_back.imported is not None
    placed = read_back.placed(Problem(code="x", severity="error", pointer="/edges/14/target", message="x"))
    text = (CORPUS / "rows/2nchat.json").read_text().splitlines()
    assert placed.pointer == "/edges/14/targetNodeId"
    assert placed.line is not None
    assert '"targetNodeId": "node-uuid-6"' in text[placed.line - 1]


def test_agents_defined_in_nodes_become_separate_rows() -> None:
    native: JsonObject = {
        "id": "w",
        "agents": {"writer": {"system": "You write.", "model": "m"}},
        "nodes": [
            {"id": "a", "type": "agent", "routing": "label", "config": {"agent": "writer", "temperature": 0.5}},
            {"id": "b", "type": "agent", "routing": "label", "config": {"system": "Alone."}},
        ],
    }
    workflow, _ = WorkflowDefinition.from_document(native)
    assert workflow is not None
    written = rows.write(workflow, None)
    assert [row["agentId"] for row in cast(list[JsonObject], written.document["nodes"])] == ["writer.a", "b"]
    assert written.document["agents"] == [
        {"id": "writer", "systemPrompt": "You write.", "model": "m"},
        {"id": "writer.a", "systemPrompt": "You write.", "model": "m", "temperature": 0.5},
        {"id": "b", "systemPrompt": "Alone."},
    ]
    assert written.losses == ()


def test_losses_of_rows_are_listed() -> None:
    workflow, _ = WorkflowDefinition.from_document(
        {
            "id": "w",
            "version": "1.0.0",
            "nodes": [{"id": "a", "type": "transform", "config": {"set": {"x": "1"}}}, {"id": "b", "type": "human"}],
            "edges": [{"source": "a", "target": "b", "condition": {"type": "expression", "expression": "x > 1"}}],
        }
    )
    assert workflow is not None
    losses = rows.write(workflow, None).losses
    assert [loss.pointer for loss in losses] == [
        "/version",
        "/nodes/0/type",
        "/nodes/0/config/set",
        "/edges/0/condition",
    ]
