"""Old plans: textual specifications become graphs of agents, and no word is lost."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.dialects import plan
from pointsman.dialects.readers import ImportedDocument
from pointsman.values import Json, JsonObject
from tests.dialects.corpus_files import changed, document, imported, workflow_of


def read(*steps: JsonObject) -> ImportedDocument:
    return plan.read({"title": "T", "goal": "G", "steps": [*steps]}, name="")


def nodes_of(found: ImportedDocument) -> list[JsonObject]:
    return cast(list[JsonObject], found.document["nodes"])


@pytest.mark.requirement("S4-02", "S4-03", "S4-05", "S4-06", "S4-08", "T4-9")
def test_the_comparison_of_providers_becomes_one_agent_with_its_tools() -> None:
    found = imported("plan/compare-cloud-providers")
    (node,) = nodes_of(found)
    config = cast(JsonObject, node["config"])
    assert (node["id"], node["type"], node["name"]) == ("step_1", "agent", "Research each provider")
    assert config["tools"] == ["map_reduce", "deep_research"]
    assert node["outputs"] == {"provider_details": "result"}
    assert found.document["input"] == {
        "type": "object",
        "properties": {"user": {"type": "string", "description": "Input of the plan."}},
        "required": ["user"],
    }
    everything = f"{config['system']} {config['prompt']}"
    for words in ("Research and compare AWS, GCP, Azure", "Research each provider", "Use map_reduce", "{user}"):
        assert words in everything
    assert "Need to compare multiple items" in everything
    assert "Provider details" in everything


@pytest.mark.requirement("S4-04", "S4-07", "T4-8")
def test_input_sources_are_the_edges_and_the_step_before_is_the_default() -> None:
    found = imported("plan/diamond")
    assert found.losses == ()
    workflow = workflow_of(found)
    assert workflow.entry == "start"
    assert [(edge.source, edge.target) for edge in workflow.edges] == [
        ("start", "step_1"),
        ("start", "step_2"),
        ("step_1", "step_3"),
        ("step_2", "step_3"),
        ("step_3", "step_4_each"),
        ("step_4_each", "step_4"),
        ("step_4", "step_4_all"),
        ("step_4_all", "step_5"),
    ]
    agents = {str(node["id"]): node for node in nodes_of(found) if node["type"] == "agent"}
    assert list(cast(JsonObject, agents["step_3"]["inputs"])) == ["facts_about_it", "facts_about_it_2"]
    assert "Research \\{the first} town" in str(cast(JsonObject, agents["step_1"]["config"])["prompt"])


@pytest.mark.requirement("T4-10")
def test_map_reduce_becomes_branches_and_a_join() -> None:
    by_id = {str(node["id"]): node for node in nodes_of(imported("plan/diamond"))}
    assert cast(JsonObject, by_id["step_4_each"]["config"])["items"] == (
        'type(criteria) == "array" ? criteria : [criteria]'
    )
    assert cast(JsonObject, by_id["step_4"]["inputs"]) == {"criteria": "item", "user": "user"}
    assert cast(JsonObject, by_id["step_4"]["config"])["tools"] == ["web_search"]
    assert by_id["step_4_all"]["outputs"] == {"weights": "result"}
    one_by_one = read({"description": "d", "method": {"approach": "iterate over each", "tools": ["iterate"]}})
    assert cast(JsonObject, nodes_of(one_by_one)[0]["config"])["maxParallel"] == 1


@pytest.mark.requirement("S4-04", "T4-8")
@pytest.mark.parametrize(
    ("source", "what"), [(0, "0"), (3, "3"), (2, "itself"), ("someone", "'someone'"), (True, "True")]
)
def test_an_unknown_source_is_an_error_at_its_position(source: Json, what: str) -> None:
    found = read({"description": "a"}, {"description": "b", "input_sources": ["user", source]})
    (problem,) = found.losses
    assert (problem.code, problem.severity, problem.pointer) == ("unknown-source", "error", "/steps/1/input_sources/1")
    assert what in problem.message
    later = read({"description": "a", "input_sources": [2]}, {"description": "b"}).losses[0]
    assert "later step 2" in later.message


def test_an_edited_step_is_written_back_into_the_plan() -> None:
    workflow = changed(
        workflow_of(imported("plan/diamond")),
        lambda native: native.update(
            name="Renamed", nodes=[node for node in cast(list[JsonObject], native["nodes"]) if node["id"] != "step_5"]
        ),
    )
    original = document("plan/diamond")
    written = plan.write(workflow, original).document
    assert (written["title"], written["author"]) == ("Renamed", "someone")
    assert written["steps"] == cast(list[Json], original["steps"])[:4]
