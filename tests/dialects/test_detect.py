"""Detection of dialects and envelopes, and one answer with all problems at the author's positions."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from pointsman.definition.model.schema import native_schema
from pointsman.definition.reading.documents import read_document
from pointsman.dialects.detect import ReadDocument, UnknownDialect, read_workflow, read_workflows, write_workflow
from pointsman.dialects.readers import ImportedDocument, Sources
from pointsman.dialects.shapes import dialects_of, unwrapped
from pointsman.values import Json, JsonObject
from tests.definition.documents import FULL, SMALL


def read(document: Json, *, dialect: str | None = None) -> ReadDocument:
    return read_workflow(read_document(json.dumps(document)), dialect=dialect)


MARKED: list[tuple[JsonObject, str]] = [
    (SMALL, "native"),
    ({"nodes": [{"id": "a", "type": "agent"}]}, "native"),
    ({"pointsman": 1, "nodes": {}, "entry_node": "a"}, "native"),
    ({"entrypointNodeId": "a", "nodes": [], "edges": []}, "rows"),
    ({"entrypoint_node_id": "a", "nodes": [], "edges": []}, "rows"),
    ({"nodes": [{"id": "a", "nodeType": "AGENT"}], "edges": []}, "rows"),
    ({"nodes": [{"id": "a", "node_type": "TOOL_EXECUTOR", "agent_id": "x"}]}, "rows"),
    ({"edges": [{"sourceNodeId": "a", "conditionType": "ALWAYS"}], "nodes": []}, "rows"),
    ({"agent_workflows": [], "agent_workflow_nodes": []}, "rows"),
    ({"entry_node_id": "a", "nodes": [], "edges": []}, "graph"),
    ({"nodes": [{"id": "a", "type": "agent"}], "edges": [{"from_node": "a", "to_node": "b"}]}, "graph"),
    ({"nodes": {"a": {}}, "edges": [{"from": "a", "to": "b"}], "entry_node": "a"}, "steps"),
    ({"nodes": {"a": {"node_type": "execute"}}, "edges": [{"from_node": "a", "to_node": "b"}]}, "steps"),
    ({"title": "t", "goal": "g", "steps": [{"description": "d", "method": {}}]}, "plan"),
]


@pytest.mark.requirement("X-8")
@pytest.mark.parametrize(("document", "dialect"), MARKED)
def test_a_dialect_is_detected_by_its_marks(document: JsonObject, dialect: str) -> None:
    assert list(dialects_of(document)) == [dialect]


def test_marks_of_two_dialects_are_an_error() -> None:
    read_one = read({"entrypointNodeId": "a", "entry_node_id": "a", "nodes": [], "edges": []})
    (problem,) = read_one.problems
    assert (problem.code, read_one.workflow, read_one.dialect) == ("ambiguous-dialect", None, None)
    assert problem.hint == "Choose one: --dialect rows|graph."


def test_the_caller_may_choose_the_dialect() -> None:
    both: JsonObject = {**SMALL, "entry_node_id": "a"}
    assert read(both).workflow is None
    chosen = read(both, dialect="native")
    assert chosen.dialect == "native"
    assert [problem.code for problem in chosen.problems] == ["unknown-key"]


def test_an_unknown_dialect_is_an_error_of_the_caller() -> None:
    with pytest.raises(UnknownDialect) as caught:
        read(SMALL, dialect="rowz")
    assert caught.value.hint.startswith("Did you mean 'rows'?")


@pytest.mark.parametrize("document", [{}, {"name": "x"}, {"steps": []}, {"a": {"b": 1}}])
def test_an_unrecognised_document_gets_a_hint_about_the_shape(document: JsonObject) -> None:
    (problem,) = read(document).problems
    assert problem.code == "unknown-dialect"
    assert "'nodes'" in problem.hint


@pytest.mark.parametrize("document", [[], 3, "text", None])
def test_a_document_that_is_not_an_object_is_refused(document: Json) -> None:
    (problem,) = read(document).problems
    assert problem.code == "shape"


@pytest.mark.parametrize("nodes", [[], [{"id": "n", "type": "note"}]])
def test_an_empty_workflow_is_reported(nodes: Json) -> None:
    assert [problem.code for problem in read({"id": "w", "nodes": nodes, "edges": []}).problems] == ["no-nodes"]


def test_envelopes_are_opened_and_pointers_lead_through_them() -> None:
    broken: JsonObject = {"nodes": [{"id": "a", "type": "tool"}], "edges": []}
    wrapped: JsonObject = {"type": "workflow", "summary": "s", "workflow": {"id": "w", **broken}}
    assert read(wrapped).problems[0].pointer == "/workflow/nodes/0"
    listed: JsonObject = {"workflows": [{"id": "w", "name": 3, "graph_definition": broken}]}
    assert {problem.pointer for problem in read(listed).problems} == {
        "/workflows/0/graph_definition/nodes/0",
        "/workflows/0/name",
    }


def test_several_workflows_are_read_separately_or_refused_together() -> None:
    document = read_document(json.dumps({"workflows": [{**SMALL, "id": "a"}, {**SMALL, "id": "b"}]}))
    assert [str(one.workflow.id) for one in read_workflows(document) if one.workflow] == ["a", "b"]
    (problem,) = read_workflow(document).problems
    assert (problem.code, problem.message) == ("several-workflows", "the document has 2 workflows: 'a', 'b'")


def test_nested_envelopes_are_opened_up_to_a_limit() -> None:
    document: JsonObject = {"nodes": []}
    for _ in range(50):
        document = {"workflow": document}
    assert len(unwrapped(document)) == 1


@pytest.mark.requirement("T1-21")
def test_a_choice_of_types_is_a_schema_sketch() -> None:
    found = read({"entry_node_id": "a", "nodes": [{"id": "a", "type": "agent|fanout|loop"}], "edges": []})
    (problem,) = found.problems
    assert (problem.code, problem.pointer, found.workflow) == ("schema-sketch", "/nodes/0/type", None)


def test_problems_have_line_and_column_of_the_author() -> None:
    text = '{"id": "w",\n "nodes": [\n  {"id": "a", "type": "agent", "config": {"promt": "x"}}]}'
    (problem,) = read_workflow(read_document(text)).problems
    assert (problem.line, problem.column) == (3, 43)
    assert text.splitlines()[2][42:].startswith('"promt"')


def test_unreadable_text_is_the_only_problem() -> None:
    found = read_workflow(read_document('{"nodes": ['))
    assert [problem.code for problem in found.problems] == ["unreadable"]
    assert found.workflow is None


def test_problems_of_later_checks_have_positions_in_the_authors_document() -> None:
    found = read(FULL)
    assert found.workflow is not None
    assert found.problems == ()


def test_writing_back_returns_the_authors_document() -> None:
    found = read(SMALL)
    assert found.workflow is not None
    assert write_workflow(found.workflow, dialect="native", original=SMALL).document is SMALL
    assert write_workflow(found.workflow, dialect="native").document == {
        "pointsman": 1,
        **SMALL,
        "config": {"limits": {"nodeTime": "30s"}},  # The default, written out.
    }


def test_a_pointer_is_resolved_by_its_nearest_listed_ancestor() -> None:
    sources = Sources({"/nodes/1": "/steps/a", "/nodes/1/config/tool": "/steps/a/tool"})
    assert sources.author_pointer("/nodes/1/config/tool/x") == "/steps/a/tool/x"
    assert sources.author_pointer("/nodes/1/name") == "/steps/a/name"
    assert sources.author_pointer("/nodes/10") == "/nodes/10"
    assert Sources().author_pointer("/a/b") == "/a/b"
    assert sources.within(Sources({"": "/w"})).author_pointer("/nodes/1/name") == "/w/steps/a/name"
    assert ImportedDocument({}).sources.author_pointer("") == ""


def test_every_imported_example_satisfies_the_published_schema() -> None:
    validator = jsonschema_rs.validator_for(native_schema())
    for path in sorted(Path("examples").rglob("*")):
        if path.suffix in (".json", ".jsonc", ".yaml", ".yml"):
            for found in read_workflows(read_document(path.read_bytes(), name=path.name), name=path.name):
                if found.workflow is not None:
                    assert validator.is_valid(found.workflow.to_document()), path
