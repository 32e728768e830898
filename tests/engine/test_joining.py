"""When a node with several incoming edges starts: it never waits for what cannot come, and never starts twice."""

from __future__ import annotations

from itertools import permutations

import pytest

from pointsman.engine.steps import MERGED
from tests.engine.world import started

DIAMOND = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4"


@pytest.mark.parametrize("order", [["tool2", "tool3"], ["tool3", "tool2"]])
def test_a_node_waits_for_every_arrival_that_can_still_come(order: list[str]) -> None:
    world = started(DIAMOND).done("tool1").done(order[0])
    assert world.working == [order[1]]
    assert world.done(order[1]).working == ["tool4"]
    assert world.path.count("tool4") == 1


def test_what_passes_in_no_time_is_waited_for_too() -> None:
    world = started("start -> tool1; tool1 -> set1, set2; set1 -> set3; set2 -> set4; set3 -> set4; set4 -> set5")
    assert world.done("tool1").path.count("set4") == 1


def test_a_node_never_waits_for_a_way_that_was_not_chosen() -> None:
    drawing = "start -> dec1; dec1 -n > 1-> tool1; dec1 -default-> tool2; tool1 -> tool3; tool2 -> tool3"
    assert started(drawing, input={"n": 2}).done("tool1").working == ["tool3"]


@pytest.mark.requirement("S3-24")
@pytest.mark.parametrize("order", list(permutations(["tool2", "tool3", "tool4"])))
def test_conditional_ways_of_unequal_length_meet_once(order: tuple[str, ...]) -> None:
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


def test_a_way_that_ends_early_releases_who_waited_for_it() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -n > 5-> tool4"
    world = started(drawing, input={"n": 1}).done("tool1").done("tool2")
    assert world.working == ["tool3"]
    assert world.done("tool3").working == ["tool4"]


def test_a_way_that_fails_and_is_caught_elsewhere_releases_who_waited_for_it() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4; tool3 -error-> tool5"
    world = started(drawing).done("tool1").done("tool2").fails("tool3")
    assert world.working == ["tool4", "tool5"]


def test_with_trigger_each_every_arrival_starts_the_node() -> None:
    world = started(DIAMOND, nodes={"tool4": {"trigger": "each"}}).done("tool1").done("tool3").done("tool2")
    assert world.working == ["tool4~tool1.1.1", "tool4~tool1.1.2"]
    assert [step for step in world.steps if "tool4" in step] != sorted(world.working), "the later edge came first"


def test_what_passed_one_node_separately_can_meet_again() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3, tool5; tool2 -> tool4; tool3 -> tool4; tool4 -> tool5"
    world = started(drawing, nodes={"tool4": {"trigger": "each"}}).done("tool1").done("tool3").done("tool2")
    assert world.done("tool4~tool1.1.1").working == ["tool4~tool1.1.2"]
    assert world.done("tool4~tool1.1.2").working == ["tool5"]


def test_the_last_edge_in_the_document_gives_the_value_whatever_came_last() -> None:
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
def test_nodes_that_only_wait_for_each_other_start_together(order: list[str]) -> None:
    world = started(TWO_THAT_FEED_EACH_OTHER, input={"n": 0}).done("tool1")
    world.done(order[0])
    assert "set1" not in world.path
    assert "set2" not in world.path
    world.done(order[1])
    assert [node for node in world.path if node.startswith("set")] == ["set1", "set2"]
    assert world.status == "completed"


def test_they_start_together_whatever_runs_elsewhere() -> None:
    world = started(TWO_THAT_FEED_EACH_OTHER + "\n tool1 -> tool9", input={"n": 0}).done("tool1")
    world.done("tool3").done("tool2")
    assert [node for node in world.path if node.startswith("set")] == ["set1", "set2"]
    assert world.working == ["tool9"]


def test_an_open_gate_that_leads_back_holds_who_could_be_reached_from_it() -> None:
    drawing = """start -> tool1
        tool1 -> ask1, tool2
        ask1 -#approve-> tool3; ask1 -#reject-> tool4
        tool2 -> tool3"""
    world = started(drawing).done("tool1").done("tool2")
    assert world.working == []
    assert world.answer("ask1", "reject").working == ["tool3", "tool4"]


def test_a_newer_arrival_of_the_same_edge_replaces_the_one_that_waits() -> None:
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


def test_a_running_node_that_can_come_back_to_itself_is_waited_for() -> None:
    drawing = """start -> tool1
        tool1 -> tool2, tool3
        tool2 -result == 'again'-> tool2
        tool3 -> tool2
        tool2 -default-> tool4"""
    world = started(drawing).done("tool1")
    assert world.working == ["tool3"], "tool2 can still be reached from tool3"
    assert world.done("tool3").done("tool2", "again").working == ["tool2#2"]


def test_a_join_of_plain_ways_makes_a_list_in_document_order() -> None:
    world = started("start -> tool1; tool1 -> tool2, tool3; tool2 -> join; tool3 -> join; join -> end")
    world.done("tool1").done("tool3", "b").done("tool2", "a")
    assert world.output == ["a", "b"]


def test_split_after_split_does_not_lengthen_what_names_a_line() -> None:
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


def test_a_side_line_that_never_meets_does_not_lengthen_it_either() -> None:
    world = started("start -> tool1; tool1 -> tool2, tool3; tool2 -n > 0-> tool1", input={"n": 1})
    for _ in range(5):
        world.done("tool1").done("tool2")
    assert len(world.state.steps[world.at("tool1")[0]].incoming.lineage) == 1
    assert len(world.working) == 6, "five side steps still run"
