"""Labels, and edges that are never taken."""

from __future__ import annotations

import pytest

from pointsman.values import Json, JsonObject
from tests.definition.check.problems_in import Configs, codes, drawn, the

CASES: JsonObject = {"cases": [{"when": "x", "label": "high"}, {"when": "y", "label": "low"}]}


@pytest.mark.requirement("T0-16")
def test_a_label_on_two_edges_is_an_error() -> None:
    configs: Configs = {"agent1": {"routing": "label"}}
    problem = the(
        drawn("start -> agent1; agent1 -#a-> b; agent1 -#a-> c; b -> end; c -> end", configs=configs), "ambiguous-edge"
    )
    assert (problem.severity, problem.pointer) == ("error", "/edges/2")


def test_equal_edges_are_reported_once() -> None:
    problem = the(drawn("start -> a; start -> a; a -> end"), "duplicate-edge")
    assert problem.fix == ({"op": "remove", "path": "/edges/1"},)
    assert codes(drawn("start -> dec; dec -x-> a; dec -y-> a; a -> end")) == []


@pytest.mark.requirement("S0-42")
def test_several_plain_edges_of_a_tool_executor_are_an_error() -> None:
    configs: Configs = {"agent1": {"routing": "label"}}
    problems = drawn(
        "start -> agent1; agent1 -#t-> tools; agent1 -#e-> end; tools -> agent1; tools -> end", configs=configs
    )
    assert the(problems, "several-plain-edges").severity == "error"


def test_edges_after_an_unconditional_edge_are_never_taken() -> None:
    problem = the(drawn("start -> dec; dec -> a; dec -x-> b; a -> end; b -> end"), "edge-never-taken")
    assert problem.pointer == "/edges/2"
    assert codes(drawn("start -> dec; dec -x-> b; dec -> a; a -> end; b -> end")) == []


def test_an_edge_label_that_a_decision_never_emits_is_found() -> None:
    problems = drawn("start -> dec; dec -#hihg-> a; dec -#low-> b; a -> end; b -> end", configs={"dec": CASES})
    problem = the(problems, "label-never-emitted")
    assert problem.fix == ({"op": "replace", "path": "/edges/1/condition/label", "value": "high"},)
    assert the(problems, "label-without-edge").pointer == "/nodes/1"


def test_labels_match_ignoring_case() -> None:
    assert codes(drawn("start -> dec; dec -#HIGH-> a; dec -#low-> b; a -> end; b -> end", configs={"dec": CASES})) == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("x > 3", ["label-never-emitted"]), ("not x", ["label-never-emitted"]), ("x.kind", [])],
)
def test_a_decision_by_comparison_emits_true_or_false(expression: str, expected: list[str]) -> None:
    configs: Configs = {"dec": {"expression": expression}}
    drawing = "start -> dec; dec -#true-> a; dec -#false-> b; dec -#maybe-> c; a -> end; b -> end; c -> end"
    assert codes(drawn(drawing, configs=configs)) == expected


def test_a_gate_emits_only_its_actions() -> None:
    configs: Configs = {"ask": {"options": [{"value": "yes"}, {"value": "later"}]}}
    problems = drawn("start -> ask; ask -#yes-> a; ask -#no-> b; a -> end; b -> end", configs=configs)
    assert codes(problems) == ["label-never-emitted", "label-without-edge"]


def test_a_rejection_needs_no_edge() -> None:
    assert codes(drawn("start -> ask; ask -#approve-> a; a -> end")) == []


def test_edge_labels_of_data_nodes_are_errors() -> None:
    assert "label-never-emitted" in codes(drawn("start -> a; a -#next-> b; b -> end"))


def test_an_agent_emits_the_labels_of_its_schema() -> None:
    schema: Json = {"type": "object", "properties": {"next": {"enum": ["writer"]}}}
    configs: Configs = {"agent1": {"routing": "label", "outputSchema": schema}}
    drawing = "start -> agent1; agent1 -#writer-> a; agent1 -#editor-> b; a -> end; b -> end"
    assert codes(drawn(drawing, configs=configs)) == ["label-never-emitted"]
    assert codes(drawn(drawing, configs={"agent1": {"routing": "label"}})) == []


@pytest.mark.requirement("S0-24")
def test_a_tool_executor_emits_the_tool_names_of_its_agents() -> None:
    configs: Configs = {"agent1": {"routing": "label", "tools": ["search"]}}
    drawing = "start -> agent1; agent1 -#t-> tools; agent1 -#e-> end; tools -#search-> agent1; tools -#mail-> agent1"
    problem = the(drawn(drawing, configs=configs), "label-never-emitted")
    assert "'mail'" in problem.message


def test_a_decision_without_edges_is_found() -> None:
    assert codes(drawn("start -> dec")) == ["decision-without-edges"]
