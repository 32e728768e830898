"""Parallels, joins and loops with invalid shapes."""

from __future__ import annotations

import pytest

from tests.definition.check.problems_in import Configs, codes, drawn, the


def test_a_leak_points_at_the_edge_that_leaves_the_branch() -> None:
    problem = the(drawn("start -> fan; fan -> a, b; a -> join; b -> join; join -> z; b -> z; z -> end"), "scope-leak")
    assert (problem.severity, problem.pointer) in [("error", "/edges/5"), ("error", "/edges/6")]
    assert "'e6'" in problem.message
    assert "'e7'" in problem.message


def test_a_mismatch_points_at_the_node_where_the_paths_meet() -> None:
    problem = the(drawn("start -> dec; dec -x-> fan; dec -y-> m; fan -> m; m -> end"), "scope-mismatch")
    assert (problem.severity, problem.pointer) == ("error", "/nodes/3")


def test_several_joins_of_a_parallel_and_foreign_parallels_are_errors() -> None:
    assert "several-joins" in codes(
        drawn("start -> fan; fan -> a, b; a -> join1; b -> join2; join1 -> end; join2 -> end")
    )
    configs: Configs = {"join": {"of": "fan2"}}
    drawing = "start -> fan; fan -> a; a -> join; join -> fan2; fan2 -> b; b -> end"
    assert the(drawn(drawing, configs=configs), "join-of-not-open").pointer == "/nodes/3/config/of"


@pytest.mark.requirement("T3-1")
def test_a_parallel_without_a_join_gets_a_note() -> None:
    problem = the(drawn("start -> fan; fan -> a, b; a -> end; b -> end"), "parallel-without-join")
    assert problem.severity == "note"


def test_a_parallel_needs_branches() -> None:
    assert codes(drawn("start -> fan")) == ["parallel-without-branches"]


def test_a_join_cannot_wait_for_more_branches_than_there_are() -> None:
    drawing = "start -> fan; fan -> a, b; a -> join; b -> join; join -> end"
    assert codes(drawn(drawing, configs={"join": {"wait": 2}})) == []
    problem = the(drawn(drawing, configs={"join": {"wait": 3}}), "join-wait-unmet")
    assert problem.pointer == "/nodes/4/config/wait"
    assert "3 of 2" in problem.message
    items: Configs = {"join": {"wait": 3}, "fan": {"items": "x"}}
    assert codes(drawn(drawing, configs=items)) == []


def test_a_loop_without_a_way_back_has_a_fix() -> None:
    problem = the(
        drawn("start -> loop; loop -> a; a -> b; loop -> end", configs={"loop": {"while": "x"}}), "loop-body-ambiguous"
    )
    assert problem.fix == ({"op": "add", "path": "/edges/-", "value": {"source": "b", "target": "loop"}},)


def test_a_loop_needs_a_limit_or_a_condition() -> None:
    drawing = "start -> loop; loop -> a; a -> loop; loop -> end"
    assert codes(drawn(drawing)) == ["loop-without-bound"]
    for bound in ({"while": "x"}, {"until": "x"}, {"maxIterations": 3}, {"over": "x"}):
        assert codes(drawn(drawing, configs={"loop": bound})) == []
    assert codes(drawn(drawing + "; a -x-> end")) == []


def test_bodies_that_never_return_or_are_entered_from_outside_are_found() -> None:
    configs: Configs = {"loop": {"while": "x"}}
    assert codes(drawn("start -> loop; loop -body-> a; a -> end; loop -> end", configs=configs)) == [
        "loop-never-returns"
    ]
    drawing = "start -> dec; dec -x-> loop; dec -y-> b; loop -> a; a -> b; b -> loop; loop -> end"
    assert codes(drawn(drawing, configs=configs)) == ["loop-entered-sideways"]
