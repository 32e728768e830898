"""Laws of reading and writing foreign dialects, over the whole corpus and over random documents."""

from __future__ import annotations

import json
import random
from typing import cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.reading.documents import read_document
from pointsman.dialects.detect import read_workflow, write_workflow
from pointsman.dialects.shapes import unwrapped
from pointsman.values import Json, JsonObject
from tests.dialects.corpus_files import (
    CORPUS,
    FILES,
    MODULES,
    WORKFLOWS,
    changed,
    dialect_of,
    document,
    imported,
    workflow_of,
)


@pytest.mark.parametrize("file", WORKFLOWS)
@pytest.mark.requirement("X-7", "X-8")
def test_every_foreign_document_is_recognised_and_loads(file: str) -> None:
    read = read_workflow(read_document((CORPUS / f"{file}.json").read_bytes()), name=file)
    assert read.dialect == file.partition("/")[0]
    assert read.workflow is not None
    assert read.workflow.dialect == read.dialect
    assert [problem for problem in read.problems if problem.severity == "error"] == []


@pytest.mark.parametrize("file", WORKFLOWS)
@pytest.mark.requirement("S0-02", "S0-16", "S0-18", "S4-24", "X-7")
def test_an_unchanged_document_is_written_back_unchanged(file: str) -> None:
    original = document(file)
    written = dialect_of(file).write(workflow_of(imported(file)), original)
    assert json.dumps(written.document) == json.dumps(original)
    assert written.losses == ()


@pytest.mark.parametrize("file", WORKFLOWS)
def test_without_the_original_an_equivalent_document_is_written(file: str) -> None:
    first = imported(file)
    dialect = dialect_of(file)
    again = dialect.read(dialect.write(workflow_of(first), None).document, name="")
    assert _meaning(again.document) == _meaning(first.document)


def _meaning(native: JsonObject) -> Json:
    """Return the document without notes about the author's notation."""
    return cast(Json, json.loads(json.dumps(_bare(native), sort_keys=True)))


def _bare(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if not key.startswith("x-")}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("file", WORKFLOWS)
def test_renaming_a_node_changes_only_its_name(file: str) -> None:
    original = document(file)
    workflow = changed(workflow_of(imported(file)), lambda native: _first_node(native).update(name="Another name"))
    written = dialect_of(file).write(workflow, original)
    places = 2 if workflow.dialect == "steps" else 1  # A node and its step both have this name.
    assert _differences(original, written.document) <= places
    again = dialect_of(file).read(unwrapped(written.document)[0].document, name="")
    assert _first_node(again.document)["name"] == "Another name"


def _first_node(native: JsonObject) -> JsonObject:
    nodes = cast(list[JsonObject], native["nodes"])
    return next(node for node in nodes if node.get("type") != "start" or len(nodes) == 1)


def _differences(one: Json, other: Json) -> int:
    """Return the number of differences."""
    if isinstance(one, dict) and isinstance(other, dict):
        absent = "\0absent"
        return sum(_differences(one.get(key, absent), other.get(key, absent)) for key in {*one, *other})
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return sum(_differences(*pair) for pair in zip(one, other, strict=True))
    return int(one != other)


@pytest.mark.parametrize("file", ["rows/2nchat", "rows/table-set", "graph/improvement-desk", "steps/restaurant-finder"])
def test_removing_a_node_removes_only_it_and_its_edges(file: str) -> None:
    original = document(file)
    workflow = workflow_of(imported(file))
    victim = workflow.nodes[1].id

    def remove(native: JsonObject) -> None:
        native["nodes"] = [node for node in cast(list[JsonObject], native["nodes"]) if node["id"] != victim]
        edges = cast(list[JsonObject], native["edges"])
        native["edges"] = [edge for edge in edges if victim not in (edge["source"], edge["target"])]

    written = dialect_of(file).write(changed(workflow, remove), original)
    again = workflow_of(dialect_of(file).read(written.document, name=""))
    assert [node.id for node in again.nodes] == [node.id for node in workflow.nodes if node.id != victim]
    assert victim not in json.dumps(written.document)


@pytest.mark.parametrize("file", WORKFLOWS)
def test_an_original_with_errors_is_replaced_with_a_warning(file: str) -> None:
    broken: JsonObject = {**unwrapped(document(file))[0].document, "name": [7], "title": [7]}
    broken.pop("agent_workflows", None)
    written = dialect_of(file).write(workflow_of(imported(file)), broken)
    assert "original-unreadable" in {loss.code for loss in written.losses}


@pytest.mark.parametrize("file", WORKFLOWS)
@pytest.mark.parametrize("target", ["rows", "graph", "steps"])
def test_any_workflow_is_written_in_any_dialect_with_its_losses(file: str, target: str) -> None:
    workflow = workflow_of(imported(file))
    written = write_workflow(workflow, dialect=target, original=document(file))
    again = MODULES[target].read(unwrapped(written.document)[0].document, name="").document
    types = [node["type"] for node in cast(list[JsonObject], again["nodes"])]
    assert written.losses or types == [node.type for node in workflow.nodes]
    assert len(types) == len(workflow.nodes)


def test_unknown_fields_survive_an_edit_beside_them() -> None:
    def edit(native: JsonObject) -> None:
        cast(list[JsonObject], native["nodes"])[0]["config"] = {"agent": "a-new"}

    workflow = changed(workflow_of(imported("rows/snake-case")), edit)
    written = MODULES["rows"].write(workflow, document("rows/snake-case")).document
    assert written["workspace"] == "acme"
    first = cast(list[JsonObject], written["nodes"])[0]
    assert (first["created_at"], first["agent_id"]) == ("2026-01-01", "a-new")
    assert "agentId" not in first


def test_new_parts_use_the_spelling_of_the_author() -> None:
    edge: JsonObject = {"id": "e-9", "source": "n-2", "target": "n-1", "condition": {"type": "label", "label": "Desk"}}
    workflow = changed(
        workflow_of(imported("rows/snake-case")), lambda native: cast(list[Json], native["edges"]).append(edge)
    )
    written = MODULES["rows"].write(workflow, document("rows/snake-case")).document
    assert cast(list[JsonObject], written["edges"])[-1] == {
        "id": "e-9",
        "workflow_id": "support",
        "source_node_id": "n-2",
        "target_node_id": "n-1",
        "condition_type": "CONDITIONAL",
        "condition_value": "Desk",
    }


@given(seed=st.integers(0, 2**32), file=st.sampled_from(FILES))
@settings(max_examples=250, deadline=None)
def test_readers_and_writers_accept_any_document_without_an_exception(seed: int, file: str) -> None:
    chance = random.Random(seed)
    dialect = dialect_of(file)
    broken: Json = unwrapped(document(file))[0].document
    for _ in range(chance.randint(1, 4)):
        broken = _mutated(broken, chance)
    assume(isinstance(broken, dict))
    assert isinstance(broken, dict)
    found = dialect.read(broken, name="x")
    assert all(
        found.placed(problem).pointer is not None for problem in WorkflowDefinition.from_document(found.document)[1]
    )
    workflow, _ = WorkflowDefinition.from_document(found.document)
    if workflow is not None:
        again = dialect.write(workflow, broken)
        if workflow.dialect == file.partition("/")[0]:
            assert again.document == broken
        dialect.read(dialect.write(workflow, None).document, name="x")


def _mutated(value: Json, chance: random.Random) -> Json:
    """Return the document with one invalid value."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.12:
        strange: list[Json] = [None, True, 0, -1, 3.5, "", "END", "a b", [], {}, [[]], {"id": []}, "state.x[", "é\0"]
        return chance.choice(strange)
    if isinstance(value, dict):
        key = chance.choice([*value])
        if chance.random() < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        return {name: _mutated(inner, chance) if name == key else inner for name, inner in value.items()}
    place = chance.randrange(len(value))
    if chance.random() < 0.15:
        return [*value, value[place]]
    return [_mutated(inner, chance) if at == place else inner for at, inner in enumerate(value)]
