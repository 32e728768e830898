"""Start of a node with several incoming edges: it never waits for an edge that cannot be taken, and never starts
twice."""

from __future__ import annotations

from itertools import permutations

import pytest

from pointsman.engine.steps import MERGED
from tests.engine.world import started

DIAMOND = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4"


@pytest.mark.parametrize("order", [["tool2", "tool3"], ["tool3", "tool2"]])
def test_a_node_waits_for_every_possible_arrival(order: list[str]) -> None:
    world = started(DIAMOND).done("tool1").done(order[0])
    assert world.working == [order[1]]
    assert world.done(order[1]).working == ["tool4"]
    assert world.path.count("tool4") == 1


def test_a_node_waits_for_instant_steps_too() -> None:
    world = started("start -> tool1; tool1 -> set1, set2; set1 -> set3; set2 -> set4; set3 -> set4; set4 -> set5")
    assert world.done("tool1").path.count("set4") == 1


def test_a_node_does_not_wait_for_an_edge_that_was_not_taken() -> None:
    drawing = "start -> dec1; dec1 -n > 1-> tool1; dec1 -default-> tool2; tool1 -> tool3; tool2 -> tool3"
    assert started(drawing, input={"n": 2}).done("tool1").working == ["tool3"]


@pytest.mark.requirement("S3-24")
@pytest.mark.parametrize("order", list(permutations(["tool2", "tool3", "tool4"])))
def test_conditional_paths_of_unequal_length_meet_once(order: tuple[str, ...]) -> None:
    drawing = """start -> tool1
        tool1 -n > 0-> tool2
        tool1 -n > 1-> tool3
        tool1 -n > 9-> tool9
        tool3 -> tool4
        tool2 -> tool5; tool4 -> tool5; tool9 -> tool5"""
    world = started(drawing, input={"n": 2}).done("tool1")
    for name in order:
        if name in world.working:
            world.done(name)
    for name in list(world.working):
        if name != "tool5":
            world.done(name)
    while world.working != ["tool5"]:
        world.done(world.working[0])
    assert world.path.count("tool5") == 1


def test_a_path_that_ends_early_releases_the_waiting_node() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -n > 5-> tool4"
    world = started(drawing, input={"n": 1}).done("tool1").done("tool2")
    assert world.working == ["tool3"]
    assert world.done("tool3").working == ["tool4"]


def test_a_path_whose_failure_is_caught_elsewhere_releases_the_waiting_node() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4; tool3 -error-> tool5"
    world = started(drawing).done("tool1").done("tool2").fails("tool3")
    assert world.working == ["tool4", "tool5"]


def test_with_trigger_each_every_arrival_starts_the_node() -> None:
    world = started(DIAMOND, nodes={"tool4": {"trigger": "each"}}).done("tool1").done("tool3").done("tool2")
    assert world.working == ["tool4~tool1.1.1", "tool4~tool1.1.2"]
    assert [step for step in world.steps if "tool4" in step] != sorted(world.working), "the later edge came first"


def test_separate_visits_of_one_node_can_meet_again() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3, tool5; tool2 -> tool4; tool3 -> tool4; tool4 -> tool5"
    world = started(drawing, nodes={"tool4": {"trigger": "each"}}).done("tool1").done("tool3").done("tool2")
    assert world.done("tool4~tool1.1.1").working == ["tool4~tool1.1.2"]
    assert world.done("tool4~tool1.1.2").working == ["tool5"]


def test_the_last_edge_in_the_document_gives_the_value_in_any_schedule() -> None:
    seen: set[str] = set()
    for order in (["tool2", "tool3"], ["tool3", "tool2"]):
        world = started(DIAMOND, nodes={"tool4": {"config": {"tool": "t", "parameters": {"saw": "{{result}}"}}}})
        world.done("tool1").done(order[0]).done(order[1])
        seen.add(str(world.asked("tool4")["parameters"]))
    assert seen == {"{'saw': 'tool3'}"}


TWO_THAT_FEED_EACH_OTHER = """start -> tool1
    tool1 -> tool2, tool3
    tool2 -> set1; tool3 -> set2
    set1 -n > 0-> set2; set2 -n > 0-> set1"""


@pytest.mark.parametrize("order", [["tool2", "tool3"], ["tool3", "tool2"]])
def test_nodes_that_wait_only_for_each_other_start_together(order: list[str]) -> None:
    world = started(TWO_THAT_FEED_EACH_OTHER, input={"n": 0}).done("tool1")
    world.done(order[0])
    assert "set1" not in world.path
    assert "set2" not in world.path
    world.done(order[1])
    assert [node for node in world.path if node.startswith("set")] == ["set1", "set2"]
    assert world.status == "completed"


def test_mutually_waiting_nodes_start_together_while_other_steps_run() -> None:
    world = started(TWO_THAT_FEED_EACH_OTHER + "\n tool1 -> tool9", input={"n": 0}).done("tool1")
    world.done("tool3").done("tool2")
    assert [node for node in world.path if node.startswith("set")] == ["set1", "set2"]
    assert world.working == ["tool9"]


def test_an_open_gate_holds_every_node_that_it_can_still_reach() -> None:
    drawing = """start -> tool1
        tool1 -> ask1, tool2
        ask1 -#approve-> tool3; ask1 -#reject-> tool4
        tool2 -> tool3"""
    world = started(drawing).done("tool1").done("tool2")
    assert world.working == []
    assert world.answer("ask1", "reject").working == ["tool3", "tool4"]


def test_a_newer_arrival_over_the_same_edge_replaces_the_waiting_one() -> None:
    drawing = """start -> tool1
        tool1 -> tool2, tool3
        tool2 -> set1
        tool2 -> join
        set1 -n > 0-> tool2
        tool3 -> join
        join -> end"""
    world = started(drawing, nodes={"set1": {"config": {"operations": [{"increment": "n", "by": -1}]}}}, input={"n": 3})
    for number in range(3):
        world.done("tool1" if number == 0 else "tool2", f"round {number}")
    assert len(world.state.root.parked["join"]) == 1
    world.done("tool2", "last").done("tool3", "side")
    assert world.output == ["last", "side"]


def test_a_node_waits_for_a_running_node_that_can_reach_itself_again() -> None:
    drawing = """start -> tool1
        tool1 -> tool2, tool3
        tool2 -result == 'again'-> tool2
        tool3 -> tool2
        tool2 -default-> tool4"""
    world = started(drawing).done("tool1")
    assert world.working == ["tool3"], "tool2 can still be reached from tool3"
    assert world.done("tool3").done("tool2", "again").working == ["tool2#2"]


def test_a_join_of_plain_edges_makes_a_list_in_document_order() -> None:
    world = started("start -> tool1; tool1 -> tool2, tool3; tool2 -> join; tool3 -> join; join -> end")
    world.done("tool1").done("tool3", "b").done("tool2", "a")
    assert world.output == ["a", "b"]


def test_repeated_splits_do_not_lengthen_a_lineage() -> None:
    drawing = """start -> tool1
        tool1 -> tool2, tool3
        tool2 -> tool4; tool3 -> tool4
        tool4 -n > 0-> tool1"""
    world = started(drawing, input={"n": 1})
    for _ in range(5):
        for name in ("tool1", "tool3", "tool2", "tool4"):
            world.done(name)
    thread = world.state.steps[world.at("tool1")[0]].incoming.lineage
    assert [(one.turn, one.edge == MERGED, one.node) for one in thread] == [(5, True, "tool1")]


def test_a_side_path_that_never_joins_does_not_lengthen_a_lineage() -> None:
    world = started("start -> tool1; tool1 -> tool2, tool3; tool2 -n > 0-> tool1", input={"n": 1})
    for _ in range(5):
        world.done("tool1").done("tool2")
    assert len(world.state.steps[world.at("tool1")[0]].incoming.lineage) == 1
    assert len(world.working) == 6, "five side steps still run"
