"""Scalars of the wrong type in documents of other systems, and what is not converted."""

from __future__ import annotations

import json

import pytest

from pointsman.definition.reading.documents import read_document
from pointsman.dialects.detect import ReadDocument, read_workflow, write_workflow
from pointsman.values import Json, JsonObject


def graph(**limits: Json) -> JsonObject:
    node: JsonObject = {"id": "a", "type": "agent", "agent_id": "x"}
    return {"name": "w", "entry_node_id": "a", "nodes": [node], "edges": [], "limits": limits}


def read(document: JsonObject) -> ReadDocument:
    return read_workflow(read_document(json.dumps(document).encode()), name="w")


def codes(found: ReadDocument) -> list[tuple[str, str]]:
    return [(one.code, one.pointer) for one in found.problems if one.severity != "note"]


@pytest.mark.parametrize("text", ["50", " 50 ", "50.0"])
def test_a_number_written_as_a_text_is_read_with_a_warning(text: str) -> None:
    found = read(graph(max_steps=text))
    assert codes(found) == [("type-converted", "/limits/max_steps")]
    assert found.workflow is not None
    assert found.workflow.config is not None
    assert found.workflow.config.limits is not None
    assert found.workflow.config.limits.steps == 50


def test_a_converted_value_is_written_back_unchanged() -> None:
    document = graph(max_steps="50")
    found = read(document)
    assert found.workflow is not None
    assert write_workflow(found.workflow, dialect="graph", original=document).document == document


@pytest.mark.parametrize("value", ["many", "", "5e3", "0x10", "-5", [], {"a": 1}, "٥"])
def test_a_text_that_is_not_a_number_stays_an_error(value: Json) -> None:
    assert [code for code, _ in codes(read(graph(max_steps=value)))] not in ([], ["type-converted"])


def test_an_unconvertible_value_does_not_prevent_other_conversions() -> None:
    found = codes(read(graph(max_steps="50", timeout_ms="many")))
    assert ("type-converted", "/limits/max_steps") in found
    assert len(found) == 2


def test_booleans_written_as_texts_are_read() -> None:
    found = read({**graph(), "is_active": "False"})
    assert codes(found) == [("type-converted", "/is_active")]
    assert found.workflow is not None
    assert found.workflow.enabled is False


def test_a_version_that_is_a_number_is_kept() -> None:
    document = {**graph(), "version": 3}
    found = read(document)
    assert codes(found) == []
    assert found.workflow is not None
    assert write_workflow(found.workflow, dialect="graph", original=document).document == document


def test_a_present_native_document_is_not_converted() -> None:
    document: JsonObject = {
        "pointsman": 1,
        "id": "w",
        "config": {"limits": {"steps": "50"}},
        "nodes": [{"id": "a", "type": "end"}],
        "edges": [],
    }
    assert codes(read(document)) == [("wrong-type", "/config/limits/steps")]


def test_an_old_native_document_is_converted() -> None:
    document: JsonObject = {
        "id": "w",
        "config": {"maxNodes": "20", "maxIterations": "5"},
        "nodes": [{"id": "a", "type": "end"}],
        "edges": [],
    }
    converted = {("type-converted", "/config/maxIterations"), ("type-converted", "/config/maxNodes")}
    assert set(codes(read(document))) == converted
