"""Steps that may run concurrently and access the same data."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from pointsman.definition.graph.analysis import Graph, concurrent
from pointsman.values import JsonObject
from tests.definition.check.problems_in import Configs, codes, drawn, the
from tests.definition.graphs import drawings, graph

BRANCHES = "start -> fan; fan -> a, b; a -> join; b -> join; join -> end"
SPLIT = "start -> s; s -> a, b; a -> m; b -> m; m -> end"


def write(path: str) -> JsonObject:
    return {"outputs": {path: "1"}}


@pytest.mark.parametrize("drawing", [BRANCHES, SPLIT])
@pytest.mark.requirement("S1-102")
def test_two_parallel_steps_must_not_write_the_same_path(drawing: str) -> None:
    problem = the(drawn(drawing, configs={"a": write("text"), "b": write("text.title")}), "write-conflict")
    assert problem.severity == "error"
    assert "'a'" in problem.message
    assert "'b'" in problem.message


@pytest.mark.parametrize("drawing", [BRANCHES, SPLIT])
def test_different_paths_and_reducers_avoid_conflicts(drawing: str) -> None:
    assert codes(drawn(drawing, configs={"a": write("one"), "b": write("two")})) == []
    both: Configs = {"a": write("text"), "b": write("text")}
    assert codes(drawn(drawing, configs=both, state={"text": {"reduce": "append"}})) == []
    assert "write-conflict" in codes(drawn(drawing, configs=both, state={"text": {"reduce": "set"}}))
    deep: Configs = {"a": write("text.x"), "b": write("text.x")}
    assert codes(drawn(drawing, configs=deep, state={"text.*": {"reduce": "add"}})) == []


def test_possibly_parallel_writes_are_a_warning() -> None:
    drawing = "start -> s; s -x-> a; s -y-> b; a -> m; b -> m; m -> end"
    problem = the(drawn(drawing, configs={"a": write("text"), "b": write("text")}), "write-conflict")
    assert problem.severity == "warning"


@pytest.mark.parametrize(
    "edges",
    [
        "s -x == 1-> a; s -x != 1-> b",
        "s -x == 'one'-> a; s -x == 'two'-> b",
        "s -x-> a; s -default-> b",
        "s -#one-> a; s -#two-> b",
        "s -x-> a; s -not x-> b",
        "s -> a; s -error-> b",
    ],
)
def test_mutually_exclusive_conditions_do_not_conflict(edges: str) -> None:
    problems = drawn(f"start -> s; {edges}; a -> m; b -> m; m -> end", configs={"a": write("text"), "b": write("text")})
    assert "write-conflict" not in codes(problems)


def test_branches_of_a_decision_do_not_conflict() -> None:
    drawing = "start -> dec; dec -x-> a; dec -y-> b; a -> m; b -> m; m -> end"
    assert "write-conflict" not in codes(drawn(drawing, configs={"a": write("text"), "b": write("text")}))


def test_steps_in_one_branch_do_not_conflict() -> None:
    drawing = "start -> s; s -> a, b; a -> a2; a2 -> m; b -> m; m -> end"
    assert codes(drawn(drawing, configs={"a": write("text"), "a2": write("text")})) == []


def test_steps_after_the_join_do_not_conflict() -> None:
    drawing = "start -> s; s -> a, b; a -> m; b -> m; m -> dec; dec -x-> c; dec -> d; c -> end; d -> end"
    assert codes(drawn(drawing, configs={"c": write("text"), "d": write("text")})) == []


def test_a_partial_join_still_conflicts_with_other_branches() -> None:
    drawing = "start -> s; s -> a, b, c; a -> m; b -> m; m -> n; c -> n; n -> end"
    assert codes(drawn(drawing, configs={"m": write("text"), "c": write("text")})) == ["write-conflict"]
    assert codes(drawn(drawing, configs={"a": write("text"), "m": write("text")})) == []


@pytest.mark.requirement("T3-4")
def test_writes_under_the_key_of_the_item_do_not_conflict() -> None:
    drawing = "start -> fan; fan -> a; a -> join; join -> end"
    fan: JsonObject = {"items": "x"}
    problem = the(drawn(drawing, configs={"fan": fan, "a": write("drafts")}), "write-conflict")
    assert "current_fanout_item" in problem.hint
    assert codes(drawn(drawing, configs={"fan": fan, "a": write("drafts.current_fanout_item")})) == []


def test_a_node_in_several_branches_conflicts_with_itself() -> None:
    drawing = "start -> fan; fan -> a, b; a -> c; b -> c; c -> join; join -> end"
    assert codes(drawn(drawing, configs={"c": write("text")})) == ["write-conflict"]


def test_a_parallel_read_and_write_of_one_path_conflict() -> None:
    configs: Configs = {"start": {"set": {"text": "''"}}, "a": write("text"), "b": {"inputs": {"it": "text"}}}
    problem = the(drawn(SPLIT, configs=configs), "read-race")
    assert (problem.severity, problem.pointer) == ("error", "/nodes/3/inputs/it")
    listed: JsonObject = {"text": {"reduce": "append"}}
    assert codes(drawn(SPLIT, configs=configs, state=listed)) == ["read-race"], "a list half-way is a race too"
    assert codes(drawn(SPLIT, configs=configs, state=listed, dialect="graph")) == []
    assert codes(drawn(SPLIT, configs=configs, state={"text": {"reduce": "last"}})) == []
    # In a parallel, each branch sees the state at its beginning.
    assert codes(drawn(BRANCHES, configs=configs)) == []


@pytest.mark.parametrize("config", [{"show": ["text"]}, {"message": "Send {text}?"}, {"show": ["text.body"]}])
def test_a_gate_that_asks_about_data_of_another_branch_gets_a_warning(config: JsonObject) -> None:
    drawing = "start -> fan; fan -> a, ask; a -> join; ask -> join; join -> end"
    configs: Configs = {"start": {"set": {"text": "''"}}, "a": write("text"), "ask": {"message": "ok?", **config}}
    problem = the(drawn(drawing, configs=configs), "approval-race")
    assert (problem.severity, "'text" in problem.message) == ("warning", True)
    assert "approval-race" not in codes(drawn(drawing, configs={**configs, "a": write("notes")}))


def test_imported_documents_get_warnings() -> None:
    problem = the(drawn(SPLIT, configs={"a": write("text"), "b": write("text")}, dialect="graph"), "write-conflict")
    assert problem.severity == "warning"


@given(drawings(nodes_max=7, edges_max=12))
@settings(max_examples=200)
def test_parallel_classes_equal_those_of_disjoint_paths(drawing: str) -> None:
    made = graph(drawing)
    found = concurrent(made, always=lambda _: False, together=lambda one, two: one != two, repeated=lambda _: False)
    for region in found.regions:
        if region.scoped:
            continue
        for one in region.branch:
            for other in region.branch:
                if one < other:
                    apart = region.branch[one] != region.branch[other]
                    assert apart == two_ways(made, region.opener, one, other, set(region.branch))


def two_ways(made: Graph, opener: int, one: int, other: int, inside: set[int]) -> bool:
    """Return whether no single node is on every way to both."""
    return all(
        leads(made, opener, one, inside - {without}) or leads(made, opener, other, inside - {without})
        for without in inside
    )


def leads(made: Graph, opener: int, goal: int, inside: set[int]) -> bool:
    seen: set[int] = set()
    waiting = [opener]
    while waiting:
        for target in made.links.targets(waiting.pop()):
            if target in inside and target not in seen:
                seen.add(target)
                waiting.append(target)
    return goal in seen
