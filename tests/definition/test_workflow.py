"""The models read native documents, report all errors at once, and write what they read."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pointsman.definition.model.control import JoinConfig, LoopConfig, ParallelConfig
from pointsman.definition.model.nodes import CONFIG_OF, Equals, Node, When
from pointsman.definition.model.work import UnboundConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_to
from pointsman.values import Json, JsonObject
from tests.definition.documents import FULL, SMALL


def read(document: Json) -> WorkflowDefinition:
    workflow, problems = WorkflowDefinition.from_document(document)
    assert workflow is not None, problems
    return workflow


def problems_of(document: Json) -> list[Problem]:
    workflow, problems = WorkflowDefinition.from_document(document)
    assert workflow is None
    return problems


def with_node(**node: Any) -> JsonObject:
    return {**SMALL, "nodes": [{"id": "n", **node}]}


@pytest.mark.requirement("S1-16", "S1-17", "S1-18", "S1-20", "S1-27", "S1-46", "S1-120", "S1-152")
def test_a_document_with_every_key_is_written_unchanged() -> None:
    written: Any = read(FULL).to_document()
    assert written["config"]["limits"].pop("executionTime") == "5m"
    expected: Any = copy.deepcopy(FULL)
    assert expected["config"]["limits"].pop("executionTime") == "300s"
    assert written == expected


def test_a_written_workflow_reads_as_an_equal_one() -> None:
    workflow = read(FULL)
    assert read(workflow.to_document()) == workflow


def test_writing_adds_no_keys() -> None:
    assert read(SMALL).to_document() == {"pointsman": 1, **SMALL}


def test_every_type_of_the_language_has_a_node_in_the_full_document() -> None:
    nodes = FULL["nodes"]
    assert isinstance(nodes, list)
    shown = {str(node["type"]) for node in nodes if isinstance(node, dict)}
    assert CONFIG_OF.keys() - shown == set(), "add a node to FULL in tests/definition/documents.py"


@pytest.mark.requirement("S1-29")
def test_all_problems_are_found_at_once_with_positions() -> None:
    found = problems_of(
        {
            "id": "a b",
            "nods": [],
            "config": {"durability": "stp", "limits": {"steps": "5", "visits": 0, "executionTime": "3 weeks"}},
            "nodes": [{"id": "t", "type": "tool"}, {"type": "end"}, 5],
            "edges": [{"source": "t", "target": 1}, {"source": "t", "target": "e", "condition": {"type": "equal"}}],
        }
    )
    assert {(problem.code, problem.pointer) for problem in found} == {
        ("bad-value", "/id"),
        ("unknown-key", "/nods"),
        ("bad-value", "/config/durability"),
        ("wrong-type", "/config/limits/steps"),
        ("out-of-range", "/config/limits/visits"),
        ("bad-value", "/config/limits/executionTime"),
        ("missing-key", "/nodes/0"),
        ("missing-key", "/nodes/1"),
        ("wrong-type", "/nodes/2"),
        ("wrong-type", "/edges/0/target"),
        ("bad-value", "/edges/1/condition"),
    }
    assert all(problem.severity == "error" and problem.message for problem in found)


def test_an_unknown_key_gets_a_suggestion_and_a_rename_fix() -> None:
    (problem,) = problems_of(with_node(type="agent", config={"promt": "hi"}))
    assert (problem.code, problem.pointer) == ("unknown-key", "/nodes/0/config/promt")
    assert problem.hint == "Did you mean 'prompt'?"
    move = {"op": "move", "from": "/nodes/0/config/promt", "path": "/nodes/0/config/prompt"}
    assert problem.fix == (move,)


def test_the_python_spelling_of_a_key_is_unknown() -> None:
    (problem,) = problems_of({**SMALL, "allowed_groups": ["users"]})
    assert (problem.code, problem.hint) == ("unknown-key", "Did you mean 'allowedGroups'?")


def test_no_rename_fix_targets_an_existing_key() -> None:
    (problem,) = problems_of(with_node(type="agent", config={"promt": "hi", "prompt": "ho"}))
    assert problem.fix is None


def test_extension_keys_of_authors_are_kept() -> None:
    document: JsonObject = {**SMALL, "x-team": {"a": [1]}, "metadata": {"b": None}}
    assert read(document).to_document() == {"pointsman": 1, **document}


def test_an_invalid_choice_is_reported_with_the_valid_ones() -> None:
    (problem,) = problems_of({**SMALL, "config": {"observability": "ful"}})
    assert "'minimal', 'standard' or 'full'" in problem.message
    assert problem.hint == "Did you mean 'full'?"


def test_an_action_of_the_authors_own_leads_to_options() -> None:
    (problem,) = problems_of(with_node(type="human", config={"message": "Go?", "actions": ["send"]}))
    assert (problem.code, problem.pointer) == ("bad-value", "/nodes/0/config/actions/0")
    assert "`options`" in (problem.hint or "")


@pytest.mark.parametrize(
    ("written", "near"), [("5 minutes", "5m"), ("2 hours 30 sec", "2h30s"), ("1 week", None), ("soon", None)]
)
def test_a_duration_in_words_gets_a_suggestion_and_a_fix(written: str, near: str | None) -> None:
    (problem,) = problems_of(with_node(type="wait", config={"duration": written}))
    assert problem.code == "bad-value"
    assert problem.hint == ("" if near is None else f"Did you mean {near!r}?")
    fix = {"op": "replace", "path": "/nodes/0/config/duration", "value": near}
    assert problem.fix == (None if near is None else (fix,))


def test_numbers_and_strings_are_not_converted() -> None:
    (problem,) = problems_of(with_node(type="agent", inputs={"limit": 5}))
    assert (problem.code, problem.pointer) == ("wrong-type", "/nodes/0/inputs/limit")
    assert problem.hint == 'Write it as a text: "5".'


def test_a_mismatch_with_a_union_is_one_problem() -> None:
    (problem,) = problems_of(with_node(type="end", config={"output": 3}))
    assert (problem.pointer, problem.code) == ("/nodes/0/config/output", "wrong-type")
    assert problem.message == "'config.output' of node 'n' must be an object or a text, not 3"


def test_a_missing_key_is_reported_with_its_purpose() -> None:
    (problem,) = problems_of(with_node(type="workflow"))
    assert problem.message == "node 'n' needs 'config.workflow'"
    assert problem.hint == "`id`, `id@revision` or `id@semver`."


@pytest.mark.parametrize("document", [None, True, 3, 1.5, "text", []])
def test_a_workflow_must_be_an_object(document: Json) -> None:
    (problem,) = problems_of(document)
    assert (problem.code, problem.pointer) == ("shape", "")


def test_a_newer_format_is_refused_with_a_hint() -> None:
    (problem,) = problems_of({**SMALL, "pointsman": 2})
    assert (problem.code, problem.pointer) == ("format-newer", "/pointsman")


@pytest.mark.requirement("S1-19")
@pytest.mark.parametrize("version", ["1", "1.0", "01.0.0", "v1.0.0", "1.0.0-", "", "1.0.0 "])
def test_a_version_is_semantic(version: str) -> None:
    (problem,) = problems_of({**SMALL, "version": version})
    assert problem.pointer == "/version"


@pytest.mark.requirement("S1-O1")
@pytest.mark.parametrize(
    ("alias", "kind"),
    [
        ("prompt", "agent"),
        ("conditional", "decision"),
        ("fanout", "parallel"),
        ("merge", "join"),
        ("checkpoint", "human"),
    ],
)
def test_type_aliases_are_read_as_their_type(alias: str, kind: str) -> None:
    (node,) = read(with_node(type=alias)).nodes
    assert node.type == kind
    assert isinstance(node.config, CONFIG_OF[kind])


def test_a_node_of_unknown_type_is_kept_unchanged() -> None:
    document = with_node(type="inbox-load", config={"any": {"thing": [None, 1]}, "path": "a.b"})
    (node,) = read(document).nodes
    assert isinstance(node.config, UnboundConfig)
    assert read(document).to_document()["nodes"] == document["nodes"]


def test_keys_that_are_python_keywords_are_read() -> None:
    node = read(with_node(type="loop", config={"while": "a < 3", "as": "x", "over": "xs"})).nodes[0]
    assert isinstance(node.config, LoopConfig)
    assert (node.config.while_, node.config.as_, node.config.over) == ("a < 3", "x", "xs")


@pytest.mark.parametrize(
    ("written", "kind", "number"),
    [
        ("all", "all", 0),
        ("any", "any", 0),
        (3, "count", 3),
        ("3", "count", 3),
        ("60%", "share", 60),
        ("len(items) > 2", "expression", 0),
    ],
)
def test_a_join_declares_its_quorum(written: Json, kind: str, number: float) -> None:
    node = read(with_node(type="join", config={"wait": written})).nodes[0]
    assert isinstance(node.config, JoinConfig)
    assert node.config.wait is not None
    assert (node.config.wait.kind, node.config.wait.number) == (kind, number)


@pytest.mark.parametrize("written", [0, -1, 1.5, True, "", "0", "-1", "1.5", "0%", "101%", [], None])
def test_a_join_that_can_never_start_is_refused(written: Json) -> None:
    if written is None:
        return
    (problem,) = problems_of(with_node(type="join", config={"wait": written}))
    assert problem.pointer == "/nodes/0/config/wait"


def test_workflows_built_in_code_can_be_serialised() -> None:
    config = ParallelConfig(items="xs", as_="x", max_parallel=2)
    node = Node.model_validate({"id": "fan", "type": "parallel", "config": config})
    assert node.config is config
    assert node.model_dump(exclude_unset=True)["config"] == {"items": "xs", "as": "x", "maxParallel": 2}


def test_a_condition_built_in_code_is_written_with_its_type() -> None:
    workflow = WorkflowDefinition.model_validate(
        {"id": "w", "edges": [{"source": "a", "target": "b", "condition": When(expression="x > 1")}]}
    )
    written: Any = workflow.to_document()
    (edge,) = written["edges"]
    assert edge == {"source": "a", "target": "b", "condition": {"type": "expression", "expression": "x > 1"}}


def test_a_condition_can_compare_with_null() -> None:
    condition: JsonObject = {"type": "equals", "field": "a", "value": None}
    edge = read({**SMALL, "edges": [{"source": "a", "target": "b", "condition": condition}]}).edges[0]
    assert isinstance(edge.condition, Equals)
    assert edge.condition.value is None


def test_the_start_node_may_hold_the_input_schema() -> None:
    inputs: JsonObject = {"type": "object"}
    assert read(with_node(type="start", config={"inputs": inputs})).input_schema == inputs
    assert read({**SMALL, "input": {"type": "null"}}).input_schema == {"type": "null"}


FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
"""JSON Schema counts 1.0 among the integers; the models require 1."""

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | FRACTIONS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def places(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, Json]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


PLACES = places(FULL)[1:]


def replaced(place: tuple[str | int, ...], junk: Json) -> Any:
    document: Any = copy.deepcopy(FULL)
    holder = document
    for part in place[:-1]:
        holder = holder[part]
    holder[place[-1]] = junk
    return document


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), JUNK)
@example(("nodes", 13, "config", "duration"), 0.0078125)
@example(("nodes", 13, "config", "duration"), 3_000_000_000_000.3)
def test_any_invalid_value_gives_a_workflow_or_positioned_problems(place: tuple[str | int, ...], junk: Json) -> None:
    document = replaced(place, junk)
    workflow, problems = WorkflowDefinition.from_document(document)
    if workflow is not None:
        again = read(workflow.to_document())
        assert again == workflow
        assert again.to_document() == workflow.to_document()
        return
    assert problems
    assert {problem.pointer for problem in problems} <= {pointer_to(*path) for path in places(document)}
