"""The check as a whole: for any graph it ends, and its problems name existing places."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointsman.definition.checks import check
from pointsman.definition.graph import analysis, scopes
from pointsman.definition.problems import pointer_parts
from pointsman.values import Json, JsonObject
from tests.definition.check.problems_in import Configs, codes, drawn, the, workflow_of
from tests.definition.graphs import document, drawings, structures

TEXTS = (
    "x",
    "a.b",
    "nodes.step1",
    "item.name",
    "state",
    "loop.iteration",
    "x ==",
    "{x}",
    "drafts.current_fanout_item",
    "",
)
VALUES: dict[str, tuple[Json, ...]] = {
    "while": TEXTS,
    "maxIterations": (1, 5),
    "items": TEXTS,
    "branches": ([], ["step1"], ["step1", "gone"], ["dec2", "dec2"]),
    "of": ("fan1", "gone"),
    "wait": (1, 9, "any", "60%", "arrived > 1"),
    "expression": TEXTS,
    "set": ({}, {"x": "x"}, {"a.b": "x ==", "": "y"}, {"drafts.current_fanout_item": "item"}),
}
TYPES = {
    "while": "loop",
    "maxIterations": "loop",
    "items": "parallel",
    "branches": "parallel",
    "of": "join",
    "wait": "join",
}


@st.composite
def documents(draw: st.DrawFn) -> JsonObject:
    """Draw any graph with any valid settings, including broken formulas and missing nodes."""
    native = document(draw(drawings()))
    nodes = native["nodes"]
    assert isinstance(nodes, list)
    for node in nodes:
        assert isinstance(node, dict)
        assert isinstance(node["config"], dict)
        for key, values in VALUES.items():
            wanted = TYPES.get(key, "decision" if key == "expression" else "transform")
            if node["type"] == wanted and draw(st.booleans()):
                node["config"][key] = draw(st.sampled_from(values))
        if draw(st.booleans()):
            node["inputs"] = {"it": draw(st.sampled_from(TEXTS))}
            node["outputs"] = {draw(st.sampled_from(TEXTS)): draw(st.sampled_from(TEXTS))}
    if len(nodes) > 1 and draw(st.booleans()):
        nodes.pop(draw(st.integers(0, len(nodes) - 1)))
    return native


@given(documents())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_the_check_of_any_document_terminates(native: JsonObject) -> None:
    problems = check(workflow_of(native))
    for problem in problems:
        assert problem.message
        assert place_exists(native, problem.pointer), problem
        for operation in problem.fix or ():
            assert operation["op"] in ("add", "remove", "replace")
    assert problems == check(workflow_of(native))


def place_exists(value: Json, pointer: str) -> bool:
    """Return whether the pointer leads to a value, or to the place where one is missing."""
    for part in pointer_parts(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


@given(structures())
@settings(max_examples=100, deadline=None)
def test_well_nested_graphs_have_no_errors_of_shape(drawing: str) -> None:
    shapes = {
        "scope-leak",
        "scope-mismatch",
        "several-joins",
        "loop-body-ambiguous",
        "unreachable-node",
        "endless-cycle",
    }
    assert not shapes & set(codes(drawn(drawing)))


def ladder(count: int) -> JsonObject:
    """Return parallels in sequence, with prompts and conditions: a typical document."""
    nodes: list[Json] = [{"id": "start", "type": "start"}]
    edges: list[Json] = []
    before = "start"
    for n in range(count // 4):
        agent: JsonObject = {"prompt": f"Step {n} of {{goal}}"}
        tool: JsonObject = {"tool": "t", "parameters": {"q": f"{{f{n}}}"}}
        nodes.append({"id": f"a{n}", "type": "agent", "outputs": {f"f{n}": "result"}, "config": agent})
        nodes.append({"id": f"p{n}", "type": "parallel"})
        nodes.append({"id": f"b{n}", "type": "tool", "outputs": {f"b{n}": "result"}, "config": tool})
        nodes.append({"id": f"j{n}", "type": "join"})
        when: JsonObject = {"type": "expression", "expression": f"f{n}.score > {n}"}
        edges.append({"source": before, "target": f"a{n}"})
        edges.append({"source": f"a{n}", "target": f"p{n}", "condition": when})
        edges.append({"source": f"p{n}", "target": f"b{n}"})
        edges.append({"source": f"b{n}", "target": f"j{n}"})
        before = f"j{n}"
    goal: JsonObject = {"type": "object", "properties": {"goal": {"type": "string"}}}
    return {"id": "ladder", "input": goal, "nodes": nodes, "edges": edges}


def calls(native: JsonObject) -> int:
    """Return the number of function calls of a check: a measure of its work that is independent of the machine."""
    workflow, count = workflow_of(native), 0
    check(workflow)

    def tick(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(tick)
    try:
        check(workflow)
    finally:
        sys.setprofile(before)
    return count


def test_the_cost_of_a_check_is_linear() -> None:
    small, large = calls(ladder(200)), calls(ladder(1_600))
    assert large / small < 9, "8 times the nodes, 8 times the work"


def test_checks_with_quadratic_cost_are_skipped_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "VISITS_MAX", 500)
    drawing = "\n".join(f"n{n} -> n{n + 1}, side{n}" for n in range(100))
    configs: Configs = {f"n{n}": {"outputs": {"x": "x"}} for n in range(100)}
    problem = the(drawn(f"start -> n0\n{drawing}", configs=configs), "too-large-to-check")
    assert problem.severity == "note"


def test_interlocking_loops_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "BODY_VISITS_MAX", 500)
    drawing = "\n".join(f"loop{n} -> loop{n + 1}; loop{n + 1} -> loop{n}" for n in range(100))
    assert "loops-too-complex" in codes(drawn(f"start -> loop0\n{drawing}"))


def test_a_long_chain_is_checked_without_recursion() -> None:
    count = 5_000
    drawing = "\n".join(f"n{n} -> n{n + 1}" for n in range(count))
    configs: Configs = {f"n{n}": {"outputs": {"x": "x"}, "inputs": {"y": "x"}} for n in range(count)}
    assert codes(drawn(f"start -> n0\n{drawing}", configs=configs)) == []
