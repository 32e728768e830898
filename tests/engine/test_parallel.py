"""Parallels and their joins: branches, items, completion and data of a join."""

from __future__ import annotations

import pytest

from pointsman.engine.commands import Stop
from pointsman.engine.decide.dispatch import decide
from pointsman.engine.reports import WorkDone
from pointsman.testing.simulation import Simulation
from tests.engine.world import plan_of, started
from tests.growth import check_linear

FAN = "start -> fan; fan -> tool1, tool2, tool3; tool1 -> join; tool2 -> join; tool3 -> join; join -> tool4"
EACH = "start -> fan; fan -> tool1; tool1 -> join; join -> tool2"
ITEMS = {"fan": {"config": {"items": "input.items", "as": "one"}}}


def joined(**config: object) -> dict[str, dict[str, object]]:
    return {"join": {"config": config}}


@pytest.mark.requirement("S1-41", "S3-30")
def test_a_join_waits_for_all_branches_and_gives_their_results_in_branch_order() -> None:
    world = started(FAN).done("tool3", "c").done("tool1", "a")
    assert world.working == ["fan[1.1]/tool2"]
    world.done("tool2", "b")
    assert world.state.root.nodes["join"] == ["a", "b", "c"]
    assert world.working == ["tool4"]


@pytest.mark.requirement("S3-26", "S3-27", "T3-10")
def test_every_item_gets_its_own_scope() -> None:
    nodes = {
        **ITEMS,
        "tool1": {"config": {"tool": "t", "parameters": {"i": "{{index}}", "k": "{{key}}", "o": "{{one}}"}}},
    }
    world = started(EACH, nodes=nodes, input={"items": ["x", {"id": 7}, 3, {"v": 1}]})
    given = [world.asked(name)["parameters"] for name in world.working]
    assert (
        given
        == [
            {"i": 0, "k": "x", "o": "x"},
            {"i": 1, "k": "7", "o": {"id": 7}},
            {"i": 2, "k": "3", "o": 3},
            {"i": 3, "k": "3", "o": {"v": 1}},
        ][: len(given)]
        or world.failure.code == "duplicate-item-key"
    )


def test_an_empty_text_is_the_key_of_its_branch() -> None:
    nodes = {"fan": {"config": {"items": "input.items"}}, "tool1": {"outputs": {"by.current_fanout_item": "result"}}}
    world = started(EACH, nodes=nodes, input={"items": ["a", ""]})
    world.rest()
    by = world.data["by"]
    assert isinstance(by, dict)
    assert list(by) == ["a", ""]


def test_two_items_with_the_same_key_fail_the_parallel_or_are_numbered() -> None:
    items: dict[str, object] = {"items": "input.items"}
    refused = started(EACH, nodes={"fan": {"config": items}}, input={"items": ["a", "a"]})
    assert refused.failure.code == "duplicate-item-key"
    numbered = {
        "fan": {"config": {**items, "duplicateKeys": "number"}},
        "tool1": {"outputs": {"by.current_fanout_item": "result"}},
    }
    world = started(EACH, nodes=numbered, input={"items": ["a", "a", "a_1"]})
    assert world.warnings == ["duplicate-item-key"]
    world.rest()
    assert list(world.data["by"]) == ["a", "a_1", "a_1_2"]  # pyright: ignore[reportArgumentType] - it is an object


@pytest.mark.requirement("S3-31")
@pytest.mark.parametrize("items", [[], {}])
def test_a_parallel_without_items_goes_to_its_join_with_an_empty_result(items: object) -> None:
    world = started(EACH, nodes=ITEMS, input={"items": items})  # pyright: ignore[reportArgumentType] - plain JSON
    assert (world.working, world.state.root.nodes["join"]) == (["tool2"], [])


def test_items_that_are_null_fail_with_a_hint_instead_of_opening_no_branch() -> None:
    failure = started(EACH, nodes=ITEMS, input={"itms": ["a"]}).failure
    assert (failure.code, "?? []" in failure.hint) == ("items-not-a-list", True)


def test_a_parallel_without_items_opens_one_scope_per_edge() -> None:
    nodes = {
        "fan": {"config": {"items": "input.items", "onNoItems": "branches"}},
        "tool1": {"outputs": {"d.current_fanout_item": "result"}},
    }
    world = started(EACH, nodes=nodes, input={"items": []}).done("tool1", "x")
    assert world.data["d"] == {"tool1": "x"}


def test_an_object_gives_key_value_items_and_anything_else_fails() -> None:
    nodes = {**ITEMS, "tool1": {"config": {"tool": "t", "parameters": {"v": "{{item.value}}"}}}}
    world = started(EACH, nodes=nodes, input={"items": {"a": 1, "b": 2}})
    assert [world.asked(name)["parameters"] for name in world.working] == [{"v": 1}, {"v": 2}]
    assert started(EACH, nodes=ITEMS, input={"items": "text"}).failure.code == "items-not-a-list"


@pytest.mark.requirement("S3-70", "T3-4")
def test_the_item_key_is_resolved_in_reads_and_writes() -> None:
    drawing = "start -> fan; fan -> tool1; tool1 -> tool3; tool3 -> join; join -> tool2"
    nodes = {
        **ITEMS,
        "tool1": {"outputs": {"drafts.current_fanout_item": "result"}},
        "tool3": {"config": {"tool": "t", "parameters": {"mine": "{{drafts.current_fanout_item}}"}}},
    }
    world = started(drawing, nodes=nodes, input={"items": ["a", "b"]})
    world.done("fan[1.1]/tool1", "B").done("fan[1.0]/tool1", "A")
    assert [world.asked(name)["parameters"] for name in world.working] == [{"mine": "A"}, {"mine": "B"}]
    world.done("fan[1.0]/tool3").done("fan[1.1]/tool3")
    assert world.data["drafts"] == {"a": "A", "b": "B"}


@pytest.mark.requirement("S1-64")
def test_sibling_branches_do_not_read_each_others_writes_before_the_join() -> None:
    drawing = "start -> fan; fan -> tool1, tool2; tool2 -> tool3; tool1 -> join; tool3 -> join; join -> tool4"
    seen = {"config": {"tool": "t", "parameters": {"x": "{{x}}"}}}
    nodes = {"tool1": {"outputs": {"x": "result"}}, "tool3": seen, "tool4": seen}
    world = started(drawing, nodes=nodes, input={"x": "old"}).done("tool1", "new").done("tool2")
    assert world.asked("tool3")["parameters"] == {"x": "old"}
    assert world.done("tool3").asked("tool4")["parameters"] == {"x": "new"}


@pytest.mark.requirement("S3-32", "T1-4")
def test_at_most_max_parallel_branches_run_at_a_time_in_order() -> None:
    nodes = {"fan": {"config": {"items": "input.items", "maxParallel": 2}}}
    world = started(EACH, nodes=nodes, input={"items": ["a", "b", "c", "d"]})
    assert world.working == ["fan[1.0]/tool1", "fan[1.1]/tool1"]
    assert world.done("fan[1.1]/tool1").working == ["fan[1.0]/tool1", "fan[1.2]/tool1"]


def test_a_parallel_of_one_is_sequential() -> None:
    world = started(EACH, nodes=ITEMS, input={"items": ["a", "b", "c"]}, config={"limits": {"parallel": 1}})
    for branch in range(3):
        assert world.working == [f"fan[1.{branch}]/tool1"]
        world.done(f"fan[1.{branch}]/tool1")


@pytest.mark.parametrize(
    ("wait", "needed"), [("any", 1), (2, 2), ("60%", 2), ("67%", 3), ("arrived >= 2", 2), (9, 3), ("all", 3)]
)
def test_a_join_starts_when_enough_have_arrived(wait: object, needed: int) -> None:
    world = started(FAN, nodes=joined(wait=wait))
    for arrived, name in enumerate(["tool3", "tool1", "tool2"], start=1):
        world.done(name)
        assert ("join" in world.path) == (arrived >= needed)


def test_seven_percent_of_a_hundred_are_seven() -> None:
    nodes = {"fan": {"config": {"items": "input.items", "maxParallel": 100}}, **joined(wait="7%")}
    world = started(EACH, nodes=nodes, input={"items": [*range(100)]})
    for branch in range(7):
        assert "join" not in world.path
        world.done(f"fan[1.{branch}]/tool1")
    assert "join" in world.path


def test_late_arrivals_at_a_join_are_dropped_and_write_nothing() -> None:
    nodes = {**joined(wait="any"), "tool2": {"outputs": {"late": "result"}}}
    world = started(FAN, nodes=nodes).done("tool1", "first").done("tool4")
    assert world.status == "running", "what still runs is waited for"
    world.done("tool2").done("tool3")
    assert (world.status, world.path.count("join"), world.data) == ("completed", 1, {})


def test_cancel_rest_stops_running_branches_and_refuses_their_late_results() -> None:
    world = started(FAN, nodes=joined(wait="any", cancelRest=True))
    step, _ = world.at("tool1")
    late, _ = world.at("tool2")
    decision = decide(world.simulation.plan, world.state, WorkDone(step=step, attempt=1, result="a"), world.now)
    assert {command.step.node for command in decision.commands if isinstance(command, Stop)} == {"tool2", "tool3"}
    again = decide(world.simulation.plan, world.state, WorkDone(step=late, attempt=1), world.now)
    assert (again.events, again.commands) == ((), ())


def test_queued_branches_begin_after_the_join_has_fired() -> None:
    nodes = {"fan": {"config": {"items": "input.items", "maxParallel": 1}}, **joined(wait="any")}
    world = started(EACH, nodes=nodes, input={"items": ["a", "b", "c"]}).done("tool1")
    assert world.working == ["fan[1.1]/tool1", "tool2"]
    assert world.rest().status == "completed"
    assert world.path.count("tool1") == 3


def test_cancel_rest_prevents_queued_branches_from_starting() -> None:
    nodes = {"fan": {"config": {"items": "input.items", "maxParallel": 1}}, **joined(wait="any", cancelRest=True)}
    world = started(EACH, nodes=nodes, input={"items": ["a", "b", "c"]}).done("tool1")
    assert world.working == ["tool2"]
    assert world.rest().status == "completed"


@pytest.mark.parametrize(
    ("config", "result"),
    [
        ({"aggregate": "list"}, ["a", "b", "a"]),
        ({"aggregate": "object"}, {"tool1": "a", "tool2": "b", "tool3": "a"}),
        ({"aggregate": "first"}, "a"),
        ({"aggregate": "last"}, "a"),
        ({"aggregate": "concat", "separator": "-"}, "a-b-a"),
        ({"aggregate": "vote"}, "a"),
        ({"aggregate": "stitch", "template": "{{key}}={{result}}", "separator": ";"}, "tool1=a;tool2=b;tool3=a"),
        ({"aggregate": "results[1]"}, "b"),
        ({"aggregate": "object", "order": ["tool3"]}, {"tool3": "a", "tool1": "a", "tool2": "b"}),
    ],
)
def test_a_join_makes_one_value_from_its_branches(config: dict[str, object], result: object) -> None:
    world = started(FAN, nodes={"join": {"config": config}}).done("tool3", "a").done("tool2", "b").done("tool1", "a")
    assert world.state.root.nodes["join"] == result


def test_merge_combines_objects_in_branch_order() -> None:
    world = started(FAN, nodes=joined(aggregate="merge"))
    world.done("tool3", {"x": 3}).done("tool2", {"x": 2, "y": 2}).done("tool1", {"z": 1})
    assert world.state.root.nodes["join"] == {"z": 1, "x": 3, "y": 2}


def test_a_join_does_not_wait_for_skipped_branches() -> None:
    drawing = """start -> fan
        fan -n > 1-> tool1; fan -n > 0-> tool2; fan -default-> tool3
        tool1 -> join; tool2 -> join; tool3 -> join"""
    assert started(drawing, input={"n": 1}).working == ["fan[1.0]/tool2"]
    assert started(drawing, input={"n": 0}).working == ["fan[1.0]/tool3"]


def test_a_branch_that_ends_early_is_settled_without_a_result() -> None:
    drawing = "start -> fan; fan -> tool1, tool2; tool1 -> join; tool2 -result == 'go'-> join; join -> tool4"
    world = started(drawing).done("tool1", "a").done("tool2", "stop")
    assert world.state.root.nodes["join"] == ["a"]


def test_a_branch_may_lead_straight_to_its_join() -> None:
    world = started("start -> tool1; tool1 -> fan; fan -> join, tool2; tool2 -> join; join -> tool3").done("tool1", "v")
    world.done("tool2", "b")
    assert world.state.root.nodes["join"] == ["v", "b"]


def test_a_branch_ends_when_all_its_steps_have_ended() -> None:
    drawing = "start -> fan; fan -> tool1; tool1 -> tool2, tool3; tool2 -> join; join -> tool4"
    world = started(drawing, nodes={"tool3": {"outputs": {"side": "result"}}}).done("tool1").done("tool2")
    assert world.working == ["fan[1.0]/tool3"]
    assert world.done("tool3", "kept").data == {"side": "kept"}


def test_paths_inside_a_branch_meet_before_the_join_counts_the_branch() -> None:
    drawing = "start -> fan; fan -> tool1; tool1 -> tool2, tool3; tool2 -> join; tool3 -> join; join -> tool4"
    world = started(drawing).done("tool1").done("tool2", "a")
    assert world.working == ["fan[1.0]/tool3"]
    assert world.done("tool3", "b").path.count("join") == 1


@pytest.mark.requirement("T3-1")
def test_without_a_join_every_branch_ends_separately_and_all_results_are_the_output() -> None:
    world = started("start -> fan; fan -> tool1", nodes=ITEMS, input={"items": ["a", "b"]})
    world.done("fan[1.1]/tool1", "B").done("fan[1.0]/tool1", "A")
    assert (world.status, world.output) == ("completed", ["A", "B"])


def test_nested_parallels_have_their_own_joins() -> None:
    drawing = """start -> fan1; fan1 -> fan2; fan2 -> tool1, tool2
        tool1 -> join2; tool2 -> join2; join2 -> join1; join1 -> end"""
    world = started(drawing, nodes={"fan1": {"config": {"items": "input.items"}}}, input={"items": ["a", "b"]})
    for name in reversed(world.working):
        world.done(name, name[-5:])
    assert world.output == [["tool1", "tool2"], ["tool1", "tool2"]]


def test_one_join_closes_nested_parallels_into_nested_lists() -> None:
    drawing = "start -> fan1; fan1 -> fan2; fan2 -> tool1, tool2; tool1 -> join; tool2 -> join; join -> end"
    nodes = {"fan1": {"config": {"items": "input.items"}}, "join": {"config": {"of": "fan1"}}}
    world = started(drawing, nodes=nodes, input={"items": ["a", "b"]})
    for name in reversed(world.working):
        world.done(name, name[-5:])
    assert world.output == [["tool1", "tool2"], ["tool1", "tool2"]]


@pytest.mark.requirement("S3-42")
def test_a_join_can_continue_without_late_branches_or_fail() -> None:
    world = started(FAN, nodes=joined(timeout="10s")).done("tool2", "b")
    assert world.timers == [10.0]
    world.ring()
    assert (world.working, world.state.root.nodes["join"]) == (["tool4"], ["b"])
    failed = started(FAN, nodes=joined(timeout="10s", onTimeout="fail")).done("tool2").ring()
    assert (failed.status, failed.failure.code) == ("failed", "join-timeout")


@pytest.mark.requirement("S3-38", "S3-40", "T3-13")
def test_a_join_of_a_path_takes_the_values_there_and_reports_missing_ones() -> None:
    nodes = {
        **ITEMS,
        "tool1": {"outputs": {"final.current_fanout_item": "result"}},
        "join": {"config": {"mergeKey": "final", "expectedKeys": ["a", "b", "c"]}},
    }
    world = started(EACH, nodes=nodes, input={"items": ["a", "b"]}).done("fan[1.1]/tool1", 2).done("fan[1.0]/tool1", 1)
    assert world.state.root.nodes["join"] == {"a": 1, "b": 2}
    assert world.warnings == ["missing-keys"]


def test_ten_thousand_branches_into_one_join_take_linear_time() -> None:
    nodes = {"fan": {"config": {"items": "input.items"}}}
    config = {"limits": {"steps": 20_000}}
    plan = plan_of("start -> fan; fan -> set1; set1 -> join; join -> end", nodes=nodes, config=config)

    def run(branches: int) -> None:
        outcome = Simulation(plan, 1).run({"items": [*range(branches)]})
        assert (outcome.status, len(outcome.steps)) == ("completed", branches + 4)

    check_linear(run, 2_500)


@pytest.mark.parametrize("order", [["tool1", "tool2", "tool3"], ["tool3", "tool1", "tool2"]])
def test_the_condition_of_a_join_reads_the_arrived_results_in_branch_order(order: list[str]) -> None:
    wait = "results == ['tool1', 'tool3'] or branches[1].key == 'tool2' and branches[0].result == 'tool1'"
    world = started(FAN, nodes=joined(wait=wait))
    world.done(order[0])
    assert world.path.count("join") == 0
    world.crash().done(order[1])
    assert world.path.count("join") == 1
