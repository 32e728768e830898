"""Loops: rounds and entries; counted, conditional and for-each loops; loops in branches and branches in loops."""

from __future__ import annotations

import pytest

from pointsman.engine.events.steps import LoopRoundFailed
from pointsman.values import Json
from tests.engine.world import World, started

LOOP = "start -> loop; loop -body-> tool1; tool1 -> loop; loop -exit-> tool2"
SEES = {"tool": "t", "parameters": {"round": "{{loop.iteration}}", "before": "{{loop.previous}}"}}


def loop(**config: object) -> dict[str, dict[str, object]]:
    return {"loop": {"config": config}}


def rounds(world: World) -> int:
    return world.path.count("tool1")


@pytest.mark.requirement("S3-33", "S3-34", "S3-35", "S3-36", "T3-6")
def test_a_counted_loop_runs_its_body_n_times_and_leaves_by_its_exit() -> None:
    world = started(LOOP, nodes=loop(maxIterations=3))
    for _ in range(3):
        world.done("tool1")
    assert (world.working, rounds(world)) == (["tool2"], 3)


def test_while_is_evaluated_before_each_round_and_until_after_each_round() -> None:
    counts = {"tool1": {"outputs": {"n": "result"}}}
    never = started(LOOP, nodes={**loop(**{"while": "n < 2"}), **counts}, input={"n": 5})
    assert (never.working, rounds(never)) == (["tool2"], 0)
    twice = (
        started(LOOP, nodes={**loop(**{"while": "n < 2"}), **counts}, input={"n": 0}).done("tool1", 1).done("tool1", 2)
    )
    assert (twice.working, rounds(twice)) == (["tool2"], 2)
    once = started(LOOP, nodes={**loop(until="n >= 2"), **counts}, input={"n": 5}).done("tool1", 5)
    assert (once.working, rounds(once)) == (["tool2"], 1)


def test_a_loop_over_items_gives_each_round_its_item() -> None:
    seen = {"tool1": {"config": {"tool": "t", "parameters": {"it": "{{item}}", "as": "{{one}}", "n": "{{index}}"}}}}
    world = started(LOOP, nodes={**loop(over="input.items", **{"as": "one"}), **seen}, input={"items": ["a", "b"]})
    assert world.asked("tool1")["parameters"] == {"it": "a", "as": "a", "n": 0}
    assert world.done("tool1").asked("tool1")["parameters"] == {"it": "b", "as": "b", "n": 1}
    assert world.done("tool1").working == ["tool2"]


@pytest.mark.parametrize(("items", "count"), [([], 0), ({"a": 1, "b": 2}, 2), (["one"], 1)])
def test_a_loop_iterates_over_lists_and_objects(items: Json, count: int) -> None:
    world = started(LOOP, nodes=loop(over="input.items"), input={"items": items})
    while world.working == ["tool1"] or world.working == [f"tool1#{rounds(world)}"]:
        world.done("tool1")
    assert rounds(world) == count


@pytest.mark.parametrize("items", ["one", "", 3, 0, True, False])
def test_a_loop_over_a_value_that_is_not_a_list_fails_like_a_parallel(items: Json) -> None:
    failure = started(LOOP, nodes=loop(over="input.items"), input={"items": items}).failure
    assert (failure.code, "`over`" in failure.hint) == ("items-not-a-list", True)
    assert "[" in failure.hint


def test_a_loop_over_null_fails_with_a_hint_instead_of_running_no_round() -> None:
    failure = started(LOOP, nodes=loop(over="input.itms"), input={"items": ["a"]}).failure
    assert (failure.code, "?? []" in failure.hint) == ("items-not-a-list", True)
    assert started(LOOP, nodes=loop(over="input.itms ?? []"), input={}).working == ["tool2"]


def test_steps_in_a_loop_read_the_round_and_the_previous_result() -> None:
    world = started(LOOP, nodes={**loop(maxIterations=2), "tool1": {"config": SEES}})
    assert world.asked("tool1")["parameters"] == {"round": 1, "before": None}
    assert world.done("tool1", "first").asked("tool1")["parameters"] == {"round": 2, "before": "first"}


def test_a_loop_collects_and_counts_the_results_of_its_rounds() -> None:
    world = started(LOOP, nodes=loop(maxIterations=2, collect="found", countInto="done"))
    assert world.data == {"found": [], "done": 0}
    world.done("tool1", "a").done("tool1", "b")
    assert world.data == {"found": ["a", "b"], "done": 2}


def test_a_loop_without_rounds_leaves_empty_lists() -> None:
    nodes = loop(over="input.items", collect="found", countInto="done", onRoundError="skip", failuresInto="failed")
    assert started(LOOP, nodes=nodes, input={"items": []}).data == {"items": [], "found": [], "failed": [], "done": 0}


def test_a_loop_entered_again_counts_from_zero() -> None:
    world = started(LOOP + "; tool2 -result == 'again'-> loop", nodes=loop(maxIterations=2, collect="found"))
    world.done("tool1", 1).done("tool1", 2).done("tool2", "again")
    assert (world.working, world.data["found"]) == (["tool1#3"], [])
    assert world.done("tool1").done("tool1").working == ["tool2#2"]


def test_nested_loops_restart_their_count_at_each_entry() -> None:
    drawing = """start -> loop1; loop1 -body-> loop2; loop2 -body-> tool1; tool1 -> loop2
        loop2 -exit-> loop1; loop1 -exit-> tool2"""
    nodes = {"loop1": {"config": {"maxIterations": 2}}, "loop2": {"config": {"maxIterations": 3}}}
    world = started(drawing, nodes=nodes)
    while "tool2" not in world.working:
        world.done(world.working[0])
    assert rounds(world) == 6


def test_an_edge_out_of_the_body_breaks_the_loop() -> None:
    drawing = LOOP + "; tool1 -result == 'stop'-> tool2"
    goes_on = {"condition": {"type": "expression", "expression": "result != 'stop'"}}
    edges = {"tool1->tool2": {"mark": "break"}, "tool1->loop": goes_on}
    world = started(drawing, nodes=loop(maxIterations=5), edges=edges).done("tool1", "go").done("tool1", "stop")
    assert (world.working, rounds(world)) == (["tool2"], 2)


def test_an_edge_to_the_loop_node_continues_the_loop() -> None:
    drawing = """start -> loop; loop -body-> tool1; tool1 -result == 'skip'-> loop
        tool1 -default-> tool3; tool3 -> loop; loop -exit-> tool2"""
    world = started(drawing, nodes=loop(maxIterations=2)).done("tool1", "skip").done("tool1", "on")
    assert world.working == ["tool3"]


def test_a_round_ends_when_no_step_of_the_body_is_active() -> None:
    drawing = (
        "start -> loop; loop -body-> tool1; tool1 -> tool3, tool4; tool3 -> loop; tool4 -> loop; loop -exit-> tool2"
    )
    world = started(drawing, nodes=loop(maxIterations=2)).done("tool1").done("tool4")
    assert world.working == ["tool3"]
    assert world.done("tool3").state.root.loops["loop"].round == 2
    assert world.path.count("loop") == 2


def test_a_round_waits_for_side_paths_in_the_body() -> None:
    drawing = """start -> loop; loop -body-> tool1; tool1 -> tool3, tool4
        tool3 -> loop; tool4 -n > 5-> loop; loop -exit-> tool2"""
    world = started(drawing, nodes=loop(maxIterations=2), input={"n": 1}).done("tool1").done("tool3")
    assert world.working == ["tool4"]
    assert world.done("tool4").working == ["tool1#2"]


def test_rounds_finish_before_another_entry_begins() -> None:
    drawing = "start -> tool3, tool4; tool3 -> loop; tool4 -> loop; " + LOOP.removeprefix("start -> loop; ")
    world = started(drawing, nodes={**loop(maxIterations=2), "loop": {"config": {"maxIterations": 2}}})
    world.done("tool3")
    assert world.working == ["tool4"], "who can still arrive is waited for: one entry, not two"
    assert world.done("tool4").working == ["tool1"]


def test_a_body_that_ends_without_returning_closes_the_loop_for_the_next_entry() -> None:
    drawing = "start -> tool3; tool3 -> loop; loop -body-> tool1; tool1 -n > 5-> loop; loop -exit-> tool2"
    world = started(drawing, nodes=loop(maxIterations=2), input={"n": 1}).done("tool3").done("tool1", "dead")
    assert (world.status, world.output) == ("completed", "dead")


@pytest.mark.requirement("S3-73")
def test_a_body_that_ends_can_take_the_exits_of_the_loop() -> None:
    drawing = "start -> loop; loop -body-> tool1; tool1 -n > 5-> loop; loop -exit-> tool2"
    world = started(drawing, nodes=loop(maxIterations=2, bodyEnd="exit"), input={"n": 1}).done("tool1")
    assert world.working == ["tool2"]


def test_without_an_exit_the_branch_ends_after_the_last_round() -> None:
    world = started("start -> loop; loop -> tool1; tool1 -> loop", nodes=loop(maxIterations=2))
    world.done("tool1", "a").done("tool1", "b")
    assert (world.status, world.output, rounds(world)) == ("completed", "b", 2)


def test_each_branch_counts_its_own_rounds() -> None:
    drawing = "start -> fan; fan -> loop; loop -body-> tool1; tool1 -> loop; loop -exit-> join; join -> tool2"
    nodes = {"fan": {"config": {"items": "input.items"}}, **loop(maxIterations=2)}
    world = started(drawing, nodes=nodes, input={"items": ["a", "b"]})
    world.done("fan[1.0]/tool1").done("fan[1.0]/tool1#2").done("fan[1.1]/tool1")
    assert world.working == ["fan[1.1]/tool1#2"]
    assert world.done("fan[1.1]/tool1#2").working == ["tool2"]


def test_each_round_opens_its_own_branches() -> None:
    drawing = "start -> loop; loop -body-> fan; fan -> tool1; tool1 -> join; join -> loop; loop -exit-> tool2"
    nodes = {"fan": {"config": {"items": "input.items"}}, **loop(maxIterations=2, collect="all")}
    world = started(drawing, nodes=nodes, input={"items": ["a", "b"]})
    world.done("fan[1.1]/tool1", 2).done("fan[1.0]/tool1", 1)
    assert world.working == ["fan[2.0]/tool1", "fan[2.1]/tool1"]
    world.done("fan[2.1]/tool1", 4).done("fan[2.0]/tool1", 3)
    assert (world.working, world.data["all"]) == (["tool2"], [[1, 2], [3, 4]])


SKIPPING = loop(over="input.items", onRoundError="skip", failuresInto="failed", collect="found")


def test_a_failed_round_ends_and_the_next_one_begins() -> None:
    world = started(LOOP, nodes=SKIPPING, input={"items": ["a", "b", "c"]})
    world.done("tool1", "A").fails("tool1").done("tool1", "C")
    assert world.working == ["tool2"]
    assert world.data["found"] == ["A", "C"]
    assert world.data["failed"] == [{"round": 2, "item": "b", "code": "boom", "message": "boom at tool1"}]


def test_a_failed_round_cancels_all_steps_of_the_body() -> None:
    drawing = """start -> loop; loop -body-> tool1; tool1 -> tool3, tool4, fan
        fan -> tool5; tool5 -> join; join -> set1; tool3 -> set1; tool4 -> set1; set1 -> loop; loop -exit-> tool2"""
    world = started(drawing, nodes=SKIPPING, input={"items": ["a", "b"]}).done("tool1").done("tool3").fails("tool4")
    assert world.working == ["tool1#2"]
    assert [event.dropped for event in world.events(LoopRoundFailed)] == [("set1",)]


def test_a_failure_inside_a_branch_inside_the_body_ends_the_round_too() -> None:
    drawing = """start -> loop; loop -body-> fan; fan -> tool1, tool3
        tool1 -> join; tool3 -> join; join -> loop; loop -exit-> tool2"""
    world = started(drawing, nodes=SKIPPING, input={"items": ["a", "b"]}).fails("tool3")
    assert world.working == ["fan[2.0]/tool1", "fan[2.1]/tool3"]


def test_a_caught_failure_does_not_fail_the_round() -> None:
    world = started(LOOP + "; tool1 -error-> tool3; tool3 -> loop", nodes=SKIPPING, input={"items": ["a"]})
    assert world.fails("tool1").working == ["tool3"]
    assert world.done("tool3", "mended").data["found"] == ["mended"]


def test_a_failure_after_the_loop_does_not_fail_a_round() -> None:
    world = started(LOOP, nodes=SKIPPING, input={"items": []}).fails("tool2")
    assert world.status == "failed"


def test_the_value_passes_through_a_loop() -> None:
    world = started(
        "start -> tool3; tool3 -> loop; loop -body-> tool1; tool1 -> loop; loop -exit-> end", nodes=loop(over="[]")
    )
    assert world.done("tool3", "kept").output == "kept"


@pytest.mark.requirement("S3-17")
def test_a_loop_of_ten_thousand_rounds_does_not_recurse() -> None:
    drawing = "start -> loop; loop -body-> set1; set1 -> loop; loop -exit-> end"
    counts = {"set1": {"config": {"operations": [{"increment": "n"}]}}}
    config = {"limits": {"steps": 100_000}}
    world = started(drawing, nodes={**loop(maxIterations=10_000), **counts}, config=config)
    assert (world.status, world.data["n"]) == ("completed", 10_000)


@pytest.mark.requirement("S3-11", "X-3")
def test_an_edge_cycle_repeats_until_its_condition_leaves_it() -> None:
    drawing = "start -> tool1; tool1 -result < 3-> tool1; tool1 -default-> tool2"
    world = started(drawing).done("tool1", 1).done("tool1", 2).done("tool1", 3)
    assert (world.working, rounds(world)) == (["tool2"], 3)


BREAKS = """start -> tool3; tool3 -> loop; loop -body-> tool1; loop -exit-> tool2
    tool1 -> loop; tool1 -break-> tool2; tool2 -> tool3"""


def test_a_break_to_a_node_that_leads_back_to_the_loop_still_leaves_it() -> None:
    edges = {
        "tool1->tool2": {"condition": {"type": "expression", "expression": "result == 'stop'"}},
        "tool1->loop": {"condition": {"type": "expression", "expression": "result != 'stop'"}},
        "tool2->tool3": {"condition": {"type": "expression", "expression": "result == 'again'"}},
    }
    world = started(BREAKS, nodes=loop(maxIterations=2, collect="found"), edges=edges).done("tool3")
    world.done("tool1", 1).done("tool1", "stop")
    assert (world.working, rounds(world)) == (["tool2"], 2)
    world.crash().done("tool2", "again").done("tool3")
    assert (world.working, world.data["found"]) == (["tool1#3"], []), "another entry, counted from zero"
    world.done("tool1", 1).done("tool1", 2)
    assert (world.working, world.data["found"]) == (["tool2#2"], [1, 2])
    assert world.done("tool2").status == "completed"


def test_a_break_of_an_inner_loop_stays_in_the_outer_one() -> None:
    drawing = """start -> loop; loop -body-> loop2; loop2 -body-> tool1; tool1 -break-> tool3; tool3 -> loop
        tool1 -> loop2; loop2 -exit-> tool4; tool4 -> loop; loop -exit-> tool2"""
    edges = {
        "tool1->tool3": {"condition": {"type": "expression", "expression": "result == 'stop'"}},
        "tool1->loop2": {"condition": {"type": "expression", "expression": "result != 'stop'"}},
    }
    nodes = {"loop": {"config": {"maxIterations": 2}}, "loop2": {"config": {"maxIterations": 2}}}
    world = started(drawing, nodes=nodes, edges=edges).done("tool1", "stop")
    assert world.working == ["tool3"]
    assert world.done("tool3").working == ["tool1#2"], "the second round of the outer loop"
    world.done("tool1").done("tool1").done("tool4")
    assert (world.working, world.path.count("tool1")) == (["tool2"], 3)
