"""The steps dialect: three notations, steps, decisions, checkpoints, and edges of which the first matching one is
taken."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.definition.problems import Problem
from pointsman.dialects import steps
from pointsman.dialects.readers import ImportedDocument
from pointsman.values import Json, JsonObject
from tests.dialects.corpus_files import changed, codes, document, imported, workflow_of


def read(nodes: JsonObject, edges: list[JsonObject] | None = None, **head: Json) -> ImportedDocument:
    entry = next(iter(nodes), "")
    return steps.read({"id": "w", "entry_node": entry, "nodes": nodes, "edges": [*(edges or [])], **head}, name="")


def step(**fields: Json) -> JsonObject:
    return {"type": "execute", "step": {"goal": "Do it", "output_field": "out", **fields}}


def gate(**fields: Json) -> JsonObject:
    return {"type": "checkpoint", "checkpoint": {"title": "Look", **fields}}


def nodes_of(found: ImportedDocument) -> list[JsonObject]:
    return cast(list[JsonObject], found.document["nodes"])


def edges_of(found: ImportedDocument) -> list[JsonObject]:
    return cast(list[JsonObject], found.document["edges"])


def config(found: ImportedDocument, index: int = 0) -> JsonObject:
    return cast(JsonObject, nodes_of(found)[index]["config"])


def only(found: ImportedDocument, code: str) -> Problem:
    (problem,) = [problem for problem in found.losses if problem.code == code]
    return problem


@pytest.mark.requirement("S4-15", "S4-17", "S4-18", "S4-19", "S4-25", "S4-29", "S4-30", "T4-2")
def test_the_restaurant_finder_becomes_two_agents_and_a_gate() -> None:
    found = imported("steps/restaurant-finder")
    assert found.losses == ()
    assert [node["type"] for node in nodes_of(found)] == ["agent", "agent", "human"]
    assert nodes_of(found)[1] == {
        "id": "search",
        "name": "Search Restaurants",
        "routing": "first",
        "type": "agent",
        "inputs": {"criteria": "criteria"},
        "config": {
            "result": "auto",
            "system": "Find restaurants matching criteria",
            "prompt": "Search for restaurants matching: {criteria}",
            "tools": ["web_search"],
        },
        "outputs": {"restaurants": "result"},
    }
    assert found.sources.author_pointer("/nodes/1/config/prompt") == "/nodes/search/step/prompt_template"
    assert found.sources.author_pointer("/nodes/1/outputs/restaurants") == "/nodes/search/step/output_field"


@pytest.mark.requirement("S4-34", "T4-7")
def test_fields_that_no_step_writes_are_the_input() -> None:
    found = imported("steps/restaurant-finder")
    assert found.document["input"] == {"type": "object", "properties": {"user_query": {}}, "required": ["user_query"]}
    said: JsonObject = {"type": "object", "properties": {"q": {"type": "string"}}}
    assert read({"a": step(input_fields=["x"])}, input_schema=said).document["input"] == said


@pytest.mark.requirement("S4-27", "S4-O3", "T4-6")
def test_a_checkpoint_shows_and_edits_fields_of_earlier_steps() -> None:
    assert config(imported("steps/restaurant-finder"), 2) == {
        "title": "Review Restaurant List",
        "message": "Review the restaurants found",
        "actions": ["approve", "edit", "reject"],
        "editable": ["restaurants"],
        "show": ["restaurants"],
    }
    between = read(
        {"a": step(), "g": gate(), "h": gate(editable_fields=["other"])},
        [{"from": "a", "to": "g"}, {"from": "g", "to": "h"}],
    )
    assert (config(between, 1)["editable"], config(between, 2)["editable"]) == (["out"], ["other"])
    assert config(between, 2)["show"] == ["out"]
    assert "editable" not in config(
        read({"a": step(), "g": gate(allowed_actions=["approve"])}, [{"from": "a", "to": "g"}]), 1
    )


def test_the_edited_field_is_the_output_if_every_path_ends_with_it() -> None:
    assert imported("steps/restaurant-finder").document["output"] == "restaurants"
    two = read({"a": step(), "b": step(output_field="b"), "c": step(output_field="c")}, [{"from": "a", "to": "b"}])
    assert "output" not in two.document


@pytest.mark.requirement("S4-12", "S4-13", "T4-12", "S4-O3")
def test_functions_become_tools_and_gates_may_proceed_automatically() -> None:
    found = imported("steps/python-spelling")
    assert (nodes_of(found)[0]["type"], config(found)) == ("tool", {"tool": "search_vendors"})
    gate_config = config(found, 1)
    assert (gate_config["timeout"], gate_config["onTimeout"]) == ("90s", "approve")
    assert gate_config["message"] == "Are these \\{good}?"
    assert config(read({"g": gate(auto_proceed=True)}))["autoProceed"] is True
    assert "timeout" not in config(read({"g": gate(auto_proceed=False, auto_proceed_timeout_seconds=5)}))


@pytest.mark.requirement("T4-1", "S4-O1", "S4-28")
def test_three_spellings_mean_the_same() -> None:
    spelled = [
        {"type": "execute", "step": {"goal": "g"}},
        {"node_type": "execute", "step": {"goal": "g"}},
        {"node_type": "execute", "step_definition": {"goal": "g"}},
    ]
    edges = [
        {"from": "a", "to": "b", "condition": "x"},
        {"from_node": "a", "to_node": "b", "condition": "x"},
        {"from_node": "a", "to_node": "b", "condition_expr": "x"},
    ]
    read_as = [
        read({"a": cast(Json, node), "b": step()}, [cast(JsonObject, edge)]).document
        for node, edge in zip(spelled, edges, strict=True)
    ]
    assert read_as[0] == read_as[1] == read_as[2]


@pytest.mark.requirement("S4-O2", "S4-O6", "S4-O8")
def test_tool_calls_transforms_and_decisions_become_native_nodes() -> None:
    found = imported("steps/implemented-spelling")
    assert config(found, 0) == {
        "tool": "web_search",
        "parameters": {"query": "{name} {company} site:example.org", "max_results": "10"},
    }
    assert config(found, 1)["outputSchema"] == {"type": "object", "properties": {"candidates": {"type": "array"}}}
    assert config(found, 1)["system"] == "List the candidates \\{as objects}"
    assert "prompt" not in config(found, 1)
    assert config(found, 2)["outputSchema"] == {"type": "string", "enum": ["found", "search_again", "give_up"]}
    assert (nodes_of(found)[2]["routing"], found.document["entry"]) == ("first", "first_search")
    assert only(read({"a": step(step_type="llm_decision", choices=["one"])}), "too-few-choices").severity == "error"


@pytest.mark.requirement("T4-3", "T2-10", "S4-21")
def test_templates_keep_their_meaning_and_their_braces() -> None:
    found = imported("steps/data-fields")
    assert config(found)["prompt"] == ('From {data} about {topic}, as \\{"items": []}\n\nBe short. Keep \\{braces}.')
    assert cast(JsonObject, nodes_of(found)[0]["inputs"])["data"] == "state.data"
    mustache = read({"a": step(input_fields=["q"], prompt_template="Ask {{q}}, not {{z}}")})
    assert config(mustache)["prompt"] == "Ask {q}, not \\{z}"
    example = read({"a": step(input_fields=["q"], prompt_template='{q}: {"a": {"b": 1}}')})
    assert config(example)["prompt"] == '{q}: {"a": {"b": 1}}'


@pytest.mark.requirement("S4-17", "S4-20")
def test_a_prompt_may_use_only_its_input_fields() -> None:
    problem = only(read({"a": step(input_fields=["q"], prompt_template="{q} {secret.x}")}), "field-not-readable")
    assert problem.pointer == "/nodes/a/step/prompt_template"
    assert problem.fix == ({"op": "add", "path": "/nodes/a/step/input_fields/-", "value": "secret"},)


@pytest.mark.requirement("S4-26", "T4-4")
def test_a_node_under_another_key_is_an_error_with_a_fix() -> None:
    found = read({"a": {"id": "b", **step()}})
    problem = only(found, "id-mismatch")
    assert (problem.pointer, problem.fix) == ("/nodes/a/id", ({"op": "replace", "path": "/nodes/a/id", "value": "a"},))
    assert nodes_of(found)[0]["id"] == "a"


@pytest.mark.requirement("S4-O5", "T4-5", "X-1")
def test_the_first_matching_edge_is_taken_and_unreachable_ones_are_reported() -> None:
    found = read(
        {"a": step(), "b": step()},
        [{"from": "a", "to": "b", "condition": "out == 1"}, {"from": "a", "to": "b"}, {"from": "a", "to": "a"}],
    )
    assert [edge.get("condition") for edge in edges_of(found)] == [
        {"type": "expression", "expression": "out == 1"},
        None,
        None,
    ]
    assert only(found, "edge-never-taken").pointer == "/edges/2"


@pytest.mark.requirement("S4-31", "S4-32", "S4-33", "T4-6")
def test_edges_of_a_checkpoint_match_their_action() -> None:
    found = imported("steps/implemented-spelling")
    assert edges_of(found)[4] == {
        "source": "confirm",
        "target": "first_search",
        "condition": {"type": "label", "label": "reject"},
    }
    assert edges_of(found)[5]["condition"] == {"type": "default"}
    assert edges_of(found)[5]["target"] == "END"
    reserved = imported("steps/data-fields")
    assert edges_of(reserved)[1] == {
        "source": "gate",
        "target": "tell",
        "condition": {"type": "always"},
        "label": "approve",
    }
    assert edges_of(reserved)[2]["condition"] == {"type": "label", "label": "edit"}
    assert len(edges_of(reserved)) == 4


def test_edge_labels_of_a_checkpoint_that_are_not_actions_are_captions() -> None:
    found = read(
        {"g": gate(), "a": step(), "b": step()},
        [{"from": "g", "to": "a", "label": "Approve"}, {"from": "g", "to": "b", "label": "later"}],
    )
    assert [edge["condition"] for edge in edges_of(found)] == [
        {"type": "label", "label": "approve"},
        {"type": "always"},
    ]


@pytest.mark.parametrize(
    ("node", "code", "pointer"),
    [
        ({"type": "robot", "step": {"goal": "g"}}, "unknown-node-type", "/nodes/a/type"),
        ({"type": "execute"}, "step-missing", "/nodes/a"),
        ({"type": "execute", "step": {"step_type": "guess"}}, "unknown-step-type", "/nodes/a/step/step_type"),
        ({"type": "execute", "step": {"step_type": "tool_call"}}, "tool-missing", "/nodes/a/step"),
        ({"type": "execute", "step": "text"}, "wrong-type", "/nodes/a/step"),
        ("text", "wrong-type", "/nodes/a"),
    ],
)
def test_an_invalid_node_is_reported_at_its_position(node: Json, code: str, pointer: str) -> None:
    problem = only(read({"a": node}), code)
    assert (problem.severity, problem.pointer) == ("error", pointer)


@pytest.mark.parametrize("version", ["v1", "2.0", 3])
def test_a_version_that_is_not_semantic_is_kept_with_a_note(version: Json) -> None:
    original: JsonObject = {"id": "w", "version": version, "entry_node": "a", "nodes": {"a": {"id": "a", **step()}}}
    found = steps.read({**original, "edges": []}, name="")
    assert [(one.severity, one.code) for one in found.losses] == [("note", "version-not-semantic")]
    assert "version" not in found.document
    assert steps.write(workflow_of(found), {**original, "edges": []}).document["version"] == version


def test_nodes_may_be_a_list() -> None:
    found = steps.read({"id": "w", "entry_node": "a", "nodes": [{"id": "a", **step()}], "edges": []}, name="")
    assert nodes_of(found)[0]["id"] == "a"
    assert codes(found.losses) == []


@pytest.mark.requirement("S4-24")
def test_edits_are_written_to_their_step() -> None:
    def edit(native: JsonObject) -> None:
        nodes = cast(list[JsonObject], native["nodes"])
        cast(JsonObject, nodes[1]["config"])["tools"] = ["web_search", "deep_research"]

    original = document("steps/implemented-spelling")
    workflow = changed(workflow_of(imported("steps/implemented-spelling")), edit)
    written = steps.write(workflow, original).document
    nodes = cast(JsonObject, cast(JsonObject, written["workflow"])["nodes"])
    assert cast(JsonObject, cast(JsonObject, nodes["extract"])["step_definition"])["tools"] == [
        "web_search",
        "deep_research",
    ]
    assert nodes["judge"] == cast(JsonObject, cast(JsonObject, original["workflow"])["nodes"])["judge"]
    assert written["summary"] == "Four nodes"
