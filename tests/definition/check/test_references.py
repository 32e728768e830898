"""References to names that do not exist."""

from __future__ import annotations

import pytest

from pointsman.definition.checks import check
from pointsman.definition.checks.subject import Installation, ToolFacts
from pointsman.values import JsonObject
from pointsman.workflows.checking import lenient
from tests.definition.check.problems_in import codes, drawn, found, the, workflow_of
from tests.definition.graphs import document, draw


def without(node: str, native: JsonObject) -> JsonObject:
    nodes = native["nodes"]
    assert isinstance(nodes, list)
    return {**native, "nodes": [one for one in nodes if isinstance(one, dict) and one["id"] != node]}


@pytest.mark.requirement("S1-50", "S3-96")
def test_every_dangling_edge_end_is_reported_at_its_position() -> None:
    native = without("ghost", document("start -> ghost; ghost -> a; start -> a; a -> end"))
    problems = [p for p in found(native) if p.code == "dangling-edge"]
    assert [p.pointer for p in problems] == ["/edges/0/target", "/edges/1/source"]
    assert all("'ghost'" in p.message and "2 edges" in p.hint for p in problems)
    removal = ({"op": "remove", "path": "/edges/1"}, {"op": "remove", "path": "/edges/0"})
    assert [p.fix for p in problems] == [removal, removal]


def test_the_fix_of_a_misspelt_id_is_the_nearest_id() -> None:
    native = without("writr", document("start -> writer; writer -> end; start -> writr"))
    problem = the(found(native), "dangling-edge")
    assert problem.hint == "Did you mean 'writer'?"
    assert problem.fix == ({"op": "replace", "path": "/edges/2/target", "value": "writer"},)


def test_numbered_names_get_no_suggestion() -> None:
    native = without("node-6", document("start -> node-5; node-5 -> node-6"))
    assert "node-5'?" not in the(found(native), "dangling-edge").hint


def test_end_is_a_target_but_not_a_node() -> None:
    assert codes(drawn("start -> END")) == []
    problem = the(found({"id": "w", "nodes": [{"id": "END", "type": "end"}], "edges": []}), "reserved-id")
    assert problem.pointer == "/nodes/0/id"


@pytest.mark.requirement("S0-20")
def test_duplicate_ids_are_errors() -> None:
    native: JsonObject = {
        "id": "w",
        "nodes": [{"id": "a", "type": "start"}, {"id": "b", "type": "end"}, {"id": "b", "type": "end"}],
        "edges": [{"id": "e", "source": "a", "target": "b"}, {"id": "e", "source": "a", "target": "END"}],
    }
    problems = [p for p in found(native) if p.code == "duplicate-id"]
    assert [p.pointer for p in problems] == ["/edges/1/id", "/nodes/2/id"]


@pytest.mark.requirement("S0-06")
@pytest.mark.parametrize(
    ("keys", "pointer"),
    [
        ({"entry": "nobody"}, "/entry"),
        ({"onError": "nobody"}, "/onError"),
        ({"config": {"onLimit": "nobody"}}, "/config/onLimit"),
    ],
)
def test_all_references_to_nodes_must_exist(keys: JsonObject, pointer: str) -> None:
    problem = the(found({**document("a -> b"), **keys}), "unknown-node")
    assert (problem.pointer, "'nobody'" in problem.message) == (pointer, True)


def test_branches_and_bodies_must_name_existing_nodes() -> None:
    configs: dict[str, JsonObject] = {"fan": {"branches": ["a", "ghost"]}, "join": {"of": "fann"}}
    problems = [p for p in drawn("start -> fan; fan -> a; a -> join", configs=configs) if p.code == "unknown-node"]
    assert [p.pointer for p in problems] == ["/nodes/1/config/branches/1", "/nodes/3/config/of"]
    assert problems[1].fix == ({"op": "replace", "path": "/nodes/3/config/of", "value": "fan"},)


AGENT: JsonObject = {
    "id": "w",
    "nodes": [
        {"id": "a", "type": "agent", "config": {"agent": "writer", "tools": ["web_serch"], "model": "openai:gpt-9"}},
        {"id": "b", "type": "workflow", "config": {"workflow": "child@3"}},
    ],
    "edges": [{"source": "a", "target": "b"}],
}


@pytest.mark.requirement("S0-17")
def test_missing_tools_and_models_are_reported_if_the_installation_is_known() -> None:
    assert codes(found(AGENT)) == []
    known = Installation(tools={"web_search": ToolFacts()}, agents={}, models={"scripted"}, workflows=())
    problems = found(AGENT, known=known)
    assert codes(problems) == ["unknown-agent", "unknown-model", "unknown-tool", "unknown-workflow"]
    assert the(problems, "unknown-tool").fix == (
        {"op": "replace", "path": "/nodes/0/config/tools/0", "value": "web_search"},
    )


def test_agents_of_the_document_are_found() -> None:
    native: JsonObject = {**AGENT, "agents": {"writer": {"system": "You write.", "prompt": "Write."}}}
    known = Installation(tools={"web_serch": ToolFacts()}, agents={}, models=None, workflows={"child"})
    assert codes(found(native, known=known)) == []


@pytest.mark.requirement("S1-45", "S3-46", "S0-08")
def test_a_node_type_without_an_executor_is_unbound() -> None:
    native: JsonObject = {"id": "w", "nodes": [{"id": "a", "type": "agnet"}, {"id": "b", "type": "quote-validator"}]}
    problems = [
        p for p in found({**native, "edges": [{"source": "a", "target": "b"}]}) if p.code == "unbound-node-type"
    ]
    assert [p.pointer for p in problems] == ["/nodes/0/type", "/nodes/1/type"]
    assert problems[0].fix == ({"op": "replace", "path": "/nodes/0/type", "value": "agent"},)
    assert codes(found(native, known=Installation(node_types={"agnet", "quote-validator"}))) == [
        "ambiguous-entry",
        "unreachable-node",
    ]


@pytest.mark.requirement("T0-1")
def test_lenient_disables_dangling_edges_with_a_warning() -> None:
    native = without("ghost", document("start -> ghost; ghost -> a; start -> a; a -> end"))
    workflow, dropped = lenient(workflow_of(native))
    assert [(p.severity, p.pointer) for p in dropped] == [
        ("warning", "/edges/0/target"),
        ("warning", "/edges/1/source"),
    ]
    assert check(workflow) == dropped
    assert lenient(draw("start -> end")) == (draw("start -> end"), ())
