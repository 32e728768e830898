"""Start nodes of executions, and whether executions can end."""

from __future__ import annotations

import pytest

from pointsman.values import Json
from tests.definition.check.problems_in import Configs, codes, drawn, found, the


def test_a_plain_chain_has_no_problems() -> None:
    assert drawn("start -> a; a -> b; b -> end") == ()


def test_a_workflow_without_nodes_has_exactly_one_problem() -> None:
    assert codes(found({"id": "empty", "nodes": [], "edges": []})) == ["no-nodes"]


@pytest.mark.requirement("S1-32")
def test_several_start_nodes_are_an_error() -> None:
    problem = the(drawn("start -> a; start2 -> a; a -> end"), "several-starts")
    assert (problem.severity, problem.pointer) == ("error", "/nodes/2")


def test_without_a_start_node_the_entry_must_be_unique() -> None:
    assert "no-entry" in codes(drawn("a -x-> b; b -y-> a; b -z-> c"))
    assert "ambiguous-entry" in codes(drawn("a -> c; b -> c"))


def test_nodes_with_the_same_id_are_not_reported_as_several_entries() -> None:
    nodes: list[Json] = [{"id": "n", "type": "tool", "config": {"tool": "t"}}] * 2
    reported = codes(found({"id": "twice", "nodes": nodes, "edges": []}))
    assert "duplicate-id" in reported
    assert "ambiguous-entry" not in reported
    assert codes(drawn("a -> c; b -> c", entry="a")) == ["unreachable-node"]


def test_an_entry_that_is_not_the_start_is_a_warning() -> None:
    assert codes(drawn("start -> a; a -> end", entry="a")) == ["entry-not-start"]


def test_a_start_without_an_end_gets_a_note() -> None:
    assert the(drawn("start -> a"), "no-end-node").severity == "note"


@pytest.mark.requirement("S1-51")
def test_unreachable_nodes_are_found() -> None:
    problems = drawn("start -> end; a -> b; note1")
    assert [problem.pointer for problem in problems] == ["/nodes/2", "/nodes/3"]
    assert codes(problems) == ["unreachable-node", "unreachable-node"]


def test_an_unreachable_join_can_never_start() -> None:
    assert codes(drawn("start -> end; join -> a")) == ["join-never-starts", "unreachable-node"]


def test_nodes_behind_a_missing_node_are_not_unreachable() -> None:
    assert codes(
        drawn(
            "start -> end; ghost -> a",
            nodes=[{"id": "start", "type": "start"}, {"id": "end", "type": "end"}, {"id": "a", "type": "transform"}],
        )
    ) == ["dangling-edge"]


def test_a_cycle_of_unconditional_edges_is_endless() -> None:
    problem = the(drawn("start -> a; a -> b; b -> a; b -x-> end"), "endless-cycle")
    assert (problem.severity, problem.pointer) == ("error", "/nodes/1")
    assert "'a' and 'b'" in problem.message
    assert problem.hint == "Give edge 'e3', which closes it, a condition, or add an edge that leads out."


def test_a_cycle_with_an_exit_is_valid() -> None:
    assert codes(drawn("start -> a; a -x-> b; a -y-> end; b -> a")) == []


@pytest.mark.requirement("T1-2", "S1-68", "S1-103", "S1-153", "S1-126")
def test_cycles_are_errors_if_the_author_forbids_them() -> None:
    drawing = "start -> a; a -x-> b; b -> a; a -y-> end"
    assert codes(drawn(drawing, config={"allowCycles": False})) == ["cycle-not-allowed"]
    assert (
        codes(
            drawn(
                "start -> loop; loop -> a; a -> loop; loop -> end",
                configs={"loop": {"maxIterations": 2}},
                config={"allowCycles": False},
            )
        )
        == []
    )


def test_a_decision_whose_branches_all_return_is_endless() -> None:
    configs: Configs = {"dec": {"cases": [{"when": "x", "label": "a"}, {"when": "y", "label": "b"}]}}
    problems = drawn("start -> dec; dec -#a-> a; dec -#b-> b; a -> dec; b -> dec", configs=configs)
    assert codes(problems).count("endless-cycle") == 1


def test_a_dead_end_is_reported_once() -> None:
    problems = drawn("start -> dec; dec -x-> a; dec -y-> end; a -> b; b -> c; c -> b")
    assert [(p.code, p.pointer) for p in problems if p.severity == "error"] == [
        ("no-end-reachable", "/nodes/2"),
        ("endless-cycle", "/nodes/4"),
    ]


def test_in_the_rows_dialect_dead_ends_are_warnings() -> None:
    problems = drawn(
        "start -> agent1; agent1 -#b-> agent2; agent2 -#a-> agent1",
        configs={"agent1": {"routing": "label"}, "agent2": {"routing": "label"}},
        dialect="rows",
    )
    assert {problem.severity for problem in problems if problem.code == "endless-cycle"} == {"warning"}


@pytest.mark.requirement("T0-2")
def test_an_agent_that_can_only_call_tools_is_a_dead_end() -> None:
    drawing = "start -> agent1; agent1 -#two-> agent2; agent1 -#t-> tools; agent2 -#t-> tools; tools -> agent1"
    configs: Configs = {"agent1": {"routing": "label"}, "agent2": {"routing": "label"}}
    problems = drawn(drawing, configs=configs, config={"conversational": True})
    assert the(problems, "dead-end").pointer == "/nodes/2"


def test_a_chat_of_one_agent_and_its_tools_is_not_a_dead_end() -> None:
    configs: Configs = {"agent1": {"routing": "label"}}
    problems = drawn("agent1 -#t-> tools", configs=configs, config={"conversational": True})
    assert "dead-end" not in codes(problems)


def test_edges_at_notes_and_from_end_nodes_are_never_taken() -> None:
    problems = drawn("start -> end; end -> a; start -> note1")
    assert the(problems, "edge-from-end").fix == ({"op": "remove", "path": "/edges/1"},)
    assert the(problems, "edge-to-note").fix == ({"op": "remove", "path": "/edges/2"},)
