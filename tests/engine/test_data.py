"""State: writers, the order of writes, and writes that are refused."""

from __future__ import annotations

import pytest

from pointsman.engine.events.steps import StateRead
from tests.engine.world import limits, started

SPLIT = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4"


def writes(path: str, *names: str) -> dict[str, dict[str, object]]:
    return {name: {"outputs": {path: "result"}} for name in names}


@pytest.mark.requirement("S1-102")
@pytest.mark.parametrize("order", [["tool2", "tool3"], ["tool3", "tool2"]])
def test_two_concurrent_steps_that_set_one_path_conflict_in_any_order(order: list[str]) -> None:
    world = started(SPLIT, nodes=writes("x", "tool2", "tool3")).done("tool1").done(order[0]).done(order[1])
    assert (world.status, world.failure.code) == ("failed", "write-conflict")


@pytest.mark.parametrize("path", ["x", "x.y", "x.y.z"])
def test_writes_to_a_path_and_to_its_parent_conflict(path: str) -> None:
    nodes = {**writes("x.y", "tool2"), **writes(path, "tool3")}
    world = started(SPLIT, nodes=nodes).done("tool1").done("tool2", {}).done("tool3", {})
    assert world.failure.code == "write-conflict"


def test_an_instant_step_and_a_running_one_conflict() -> None:
    drawing = "start -> tool1; tool1 -> set1, tool3"
    nodes = {"set1": {"config": {"set": {"x": "1"}}}, **writes("x", "tool3")}
    assert started(drawing, nodes=nodes).done("tool1").done("tool3").failure.code == "write-conflict"


def test_a_step_conflicts_with_a_concurrent_step_that_ended_earlier() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool3 -> tool5"
    nodes = writes("x", "tool2", "tool5")
    for order in (["tool2", "tool3", "tool5"], ["tool3", "tool2", "tool5"], ["tool3", "tool5", "tool2"]):
        world = started(drawing, nodes=nodes).done("tool1")
        for name in order:
            world.done(name)
        assert world.failure.code == "write-conflict"


def test_a_path_may_be_written_again_after_the_paths_of_control_have_met() -> None:
    world = started(SPLIT, nodes=writes("x", "tool1", "tool2", "tool4")).done("tool1", 1).done("tool3").done("tool2", 2)
    assert world.done("tool4", 3).data == {"x": 3}


@pytest.mark.parametrize("order", [["tool2", "tool3"], ["tool3", "tool2"]])
def test_a_node_that_waited_for_a_path_that_ended_is_ordered_after_it(order: list[str]) -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -n > 5-> tool4; tool3 -> tool4"
    world = started(drawing, nodes=writes("x", "tool2", "tool4"), input={"n": 1}).done("tool1")
    world.done(order[0]).done(order[1]).done("tool4", "later")
    assert (world.status, world.data["x"]) == ("completed", "later")


def test_the_rounds_of_an_edge_cycle_are_ordered() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4; tool4 -n < 1-> tool1"
    world = started(drawing, nodes=writes("x", "tool2"), input={"n": 0})
    for value in (1, 2):
        world.done("tool1").done("tool3").done("tool2", value).done("tool4")
    assert world.data["x"] == 2


def test_side_paths_of_successive_rounds_are_concurrent() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -n < 1-> tool1"
    world = started(drawing, nodes=writes("x", "tool3"), input={"n": 0}).done("tool1").done("tool2").done("tool1")
    assert world.done("tool3~tool1.2.2").done("tool3~tool1.1.2").failure.code == "write-conflict"


@pytest.mark.requirement("S1-102", "T3-5")
@pytest.mark.parametrize(
    "order", [["tool2", "tool3", "tool5"], ["tool5", "tool3", "tool2"], ["tool3", "tool5", "tool2"]]
)
@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("append", ["one", "tool2", "tool3", "tool5"]),
        ("last", "tool5"),
    ],
)
def test_reducers_apply_in_document_order_in_any_schedule(reduce: str, expected: object, order: list[str]) -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3, tool5"
    nodes = writes("log", "tool1", "tool2", "tool3", "tool5")
    world = started(drawing, nodes=nodes, state={"log": {"reduce": reduce}}).done("tool1", "one")
    for name in order:
        world.done(name)
    assert world.data["log"] == expected


@pytest.mark.parametrize(
    ("reduce", "values", "expected"),
    [
        ("add", [1, 2, 4], 7),
        ("min", [3, 2, 4], 2),
        ("max", [3, 2, 4], 4),
        ("union", [["a"], ["b", "a"], ["c"]], ["a", "b", "c"]),
        ("merge", [{"a": 1}, {"b": 2}, {"a": 3}], {"a": 3, "b": 2}),
    ],
)
def test_every_reducer_merges_the_writes_of_branches(reduce: str, values: list[object], expected: object) -> None:
    drawing = "start -> fan; fan -> tool1, tool2, tool3; tool1 -> join; tool2 -> join; tool3 -> join"
    world = started(drawing, nodes=writes("x", "tool1", "tool2", "tool3"), state={"x": {"reduce": reduce}})
    for name, value in reversed(list(zip(["tool1", "tool2", "tool3"], values, strict=True))):
        world.done(name, value)  # pyright: ignore[reportArgumentType] - plain JSON
    assert world.data["x"] == expected


def test_the_longest_pattern_decides_and_applies_at_its_own_level() -> None:
    state = {"verdicts.*": {"reduce": "append"}, "verdicts": {"reduce": "merge"}, "verdicts.final": {"reduce": "set"}}
    drawing = "start -> tool1; tool1 -> tool2; tool2 -> tool3; tool3 -> tool4; tool4 -> tool5"
    nodes = {**writes("verdicts.a", "tool1", "tool2"), **writes("verdicts.final", "tool3", "tool4")}
    nodes |= writes("verdicts", "tool5")
    world = started(drawing, nodes=nodes, state=state)
    for number, name in enumerate(["tool1", "tool2", "tool3", "tool4"]):
        world.done(name, number)
    assert world.done("tool5", {"b": 9}).data == {"verdicts": {"a": [0, 1], "final": 3, "b": 9}}


@pytest.mark.parametrize(
    ("other", "conflicts"), [("x", True), ("x.y", True), ("x.y.z", True), ("y", False), ("x.z", False)]
)
def test_branches_must_not_overwrite_one_another(other: str, conflicts: bool) -> None:
    drawing = "start -> fan; fan -> tool1, tool2; tool1 -> join; tool2 -> join"
    nodes = {**writes("x.y", "tool1"), **writes(other, "tool2")}
    world = started(drawing, nodes=nodes).done("tool2", {}).done("tool1", {})
    assert (world.status, conflicts) == (("failed", True) if conflicts else ("completed", False))


def test_a_branch_and_a_step_beside_the_parallel_must_not_write_one_path() -> None:
    drawing = "start -> tool1; tool1 -> fan, tool3; fan -> tool2; tool2 -> join"
    nodes = writes("x", "tool2", "tool3")
    for order in (["tool2", "tool3"], ["tool3", "tool2"]):
        world = started(drawing, nodes=nodes).done("tool1").done(order[0]).done(order[1])
        assert world.failure.code == "write-conflict"


def test_a_failed_or_cancelled_branch_contributes_no_writes() -> None:
    drawing = "start -> fan; fan -> tool1, tool3; tool1 -> tool2; tool2 -> join; tool3 -> join"
    nodes = {"fan": {"config": {"onBranchError": "continue"}}, **writes("half", "tool1"), **writes("whole", "tool3")}
    world = started(drawing, nodes=nodes).done("tool1").done("tool3").fails("tool2")
    assert world.data == {"whole": "tool3"}


@pytest.mark.parametrize(
    ("outputs", "result"),
    [
        ({"text.below": "result"}, 1),
        ({"list.name": "result"}, 1),
        ({"list[9]": "result"}, 1),
        ({"text": "result + 1"}, {}),
    ],
)
def test_a_write_that_cannot_be_applied_fails_its_step_and_leaves_the_state(outputs: object, result: object) -> None:
    world = started(
        "start -> tool1; tool1 -error-> tool2", nodes={"tool1": {"outputs": outputs}}, input={"text": "t", "list": []}
    )
    world.done("tool1", result)  # pyright: ignore[reportArgumentType] - plain JSON
    assert (world.working, world.data) == (["tool2"], {"text": "t", "list": []})


@pytest.mark.parametrize(
    ("reduce", "held", "value"), [("append", "text", 1), ("merge", {}, 1), ("add", 1, "x"), ("union", 3, 1)]
)
def test_a_reducer_that_does_not_fit_the_value_fails_the_step(reduce: str, held: object, value: object) -> None:
    world = started("start -> tool1", nodes=writes("x", "tool1"), state={"x": {"reduce": reduce}}, input={"x": held})  # pyright: ignore[reportArgumentType] - plain JSON
    assert world.done("tool1", value).failure.code == "write-failed"  # pyright: ignore[reportArgumentType] - plain JSON


@pytest.mark.requirement("S1-99", "T1-19")
def test_a_too_large_state_fails_its_step_before_the_write_and_lists_the_largest_fields() -> None:
    world = started(
        "start -> tool1; tool1 -error-> tool2",
        nodes=writes("big", "tool1"),
        config=limits(stateSize="1KB"),
        input={"old": "y" * 300},
    )
    world.done("tool1", "x" * 2_000)
    shown = world.state.root.nodes["tool1"]
    assert "big (2002 bytes), old (302 bytes)" in str(shown)
    assert (world.working, "big" in world.data) == (["tool2"], False)


def test_replaced_values_are_not_listed_among_the_largest_fields() -> None:
    drawing = "start -> tool1; tool1 -n > 0-> tool1; tool1 -error-> tool2"
    world = started(drawing, nodes=writes("big", "tool1"), config=limits(stateSize="1KB"), input={"n": 1})
    world.done("tool1", "x" * 900)
    world.done("tool1", "x" * 1_100)
    assert "big (1102 bytes)" in str(world.state.root.nodes["tool1"])


def test_replaced_values_do_not_count_towards_the_size() -> None:
    drawing = "start -> tool1; tool1 -n > 0-> tool1"
    world = started(drawing, nodes=writes("big", "tool1"), config=limits(stateSize="1KB"), input={"n": 1})
    for _ in range(5):
        world.done("tool1", "x" * 600)
    assert world.status == "running"


@pytest.mark.parametrize("kind", ["transform", "start", "human", "loop"])
def test_data_nodes_gates_and_loops_obey_the_size_limit_too(kind: str) -> None:
    nodes: dict[str, dict[str, object]] = {
        "transform": {"set1": {"config": {"set": {"x": "big + big"}}}},
        "start": {"start": {"config": {"set": {"x": "big + big"}}}},
        "human": {"ask1": {"outputs": {"x": "big + big"}}},
        "loop": {"loop": {"config": {"maxIterations": 2, "collect": "x"}}},
    }[kind]  # pyright: ignore[reportAssignmentType] - one of them
    drawing = {
        "transform": "start -> set1",
        "start": "start -> tool1",
        "human": "start -> ask1; ask1 -#approve-> tool1",
    }
    loop = "start -> set2; set2 -> loop; loop -body-> set1; set1 -> loop; loop -exit-> tool1"
    if kind == "loop":
        nodes["set1"] = {"type": "tool", "config": {"tool": "t"}}
    world = started(drawing.get(kind, loop), nodes=nodes, input={"big": "x" * 700}, config=limits(stateSize="1KB"))
    if kind == "human":
        world.answer("ask1", "approve")
    if kind == "loop":
        world.done("set1", "y" * 700)
    assert world.failure.code == "state-too-large"


def test_a_chain_of_instant_steps_is_split_into_bounded_rows() -> None:
    """Every value fits and the state stays small, but all of them together are one row."""
    names = [f"set{number}" for number in range(1, 9)]
    drawing = "; ".join(f"{one} -> {other}" for one, other in zip(["start", *names], names, strict=False))
    nodes = {name: {"config": {"jsonpath": "$.big"}} for name in names}
    few = started(drawing, nodes=nodes, input={"big": "x" * 400}, config=limits(stateSize="1KB"))
    assert few.status == "completed"
    many = started(drawing, nodes=nodes, input={"big": "x" * 700}, config=limits(stateSize="1KB"))
    assert many.failure.code == "state-too-large"


def test_a_copied_list_does_not_grow_with_its_original() -> None:
    drawing = "start -> tool1; tool1 -> set1; set1 -> tool2"
    nodes = {**writes("log", "tool1", "tool2"), "set1": {"config": {"set": {"copy": "log"}}}}
    world = started(drawing, nodes=nodes, state={"log": {"reduce": "append"}}).done("tool1", 1).done("tool2", 2)
    assert world.data == {"log": [1, 2], "copy": [1]}


def test_outputs_read_the_result_and_the_data() -> None:
    nodes = {"tool1": {"outputs": {"sum": "result.n + base", "all": "result"}}}
    world = started("start -> tool1", nodes=nodes, input={"base": 2}).done("tool1", {"n": 3})
    assert world.data == {"base": 2, "sum": 5, "all": {"n": 3}}


@pytest.mark.requirement("S1-43")
def test_each_operation_of_a_transform_reads_earlier_writes() -> None:
    operations = [
        {"set": "a", "value": 1},
        {"increment": "a", "by": 2},
        {"copy": "a", "to": "b"},
        {"push": "b", "to": "c"},
    ]
    world = started("start -> set1; set1 -> end", nodes={"set1": {"config": {"operations": operations}}})
    assert (world.data, world.status) == ({"a": 3, "b": 3, "c": [3]}, "completed")


def test_a_failed_transform_writes_nothing() -> None:
    operations = [{"set": "a", "value": 1}, {"push": "a", "to": "text"}]
    world = started(
        "start -> set1; set1 -error-> tool1",
        nodes={"set1": {"config": {"operations": operations}}},
        input={"text": "t"},
    )
    assert (world.working, world.data) == (["tool1"], {"text": "t"})


def test_the_initial_state_is_the_input_then_start_values_then_defaults() -> None:
    nodes = {"start": {"config": {"set": {"twice": "n * 2"}}}}
    world = started(
        "start -> tool1", nodes=nodes, state={"lang": {"default": "en"}, "n": {"default": 9}}, input={"n": 4}
    )
    assert world.data == {"lang": "en", "n": 4, "twice": 8}


def test_a_skipped_step_does_no_work_and_passes_the_value_on() -> None:
    nodes = {"tool2": {"skipWhen": "n > 1", "outputs": {"x": "result"}}}
    world = started("start -> tool1; tool1 -> tool2; tool2 -> end", nodes=nodes, input={"n": 2}).done("tool1", "v")
    assert (world.status, world.output, world.data) == ("completed", "v", {"n": 2})


def test_a_skipped_parallel_continues_at_its_join() -> None:
    drawing = "start -> tool1; tool1 -> fan; fan -> tool2; tool2 -> join; join -> tool3"
    world = started(drawing, nodes={"fan": {"skipWhen": "true"}}).done("tool1", "v")
    assert (world.working, world.state.root.nodes["join"]) == (["tool3"], "v")


def test_template_references_without_a_value_are_reported() -> None:
    world = started(
        "start -> tool1", nodes={"tool1": {"config": {"tool": "t", "parameters": {"a": "x {{nothing}} y"}}}}
    )
    assert world.warnings == ["template-missing"]


@pytest.mark.requirement("T3-25")
def test_an_undeclared_field_of_the_state_is_kept() -> None:
    nodes = {"tool1": {"outputs": {"other.deep": "result"}}}
    world = started("start -> tool1", nodes=nodes, state={"known": {"schema": {"type": "string"}}})
    assert world.done("tool1", 7).crash().data == {"other": {"deep": 7}}


READS = {"tool3": {"config": {"tool": "t", "parameters": {"n": "{{x}}"}}}}


@pytest.mark.parametrize("order", [["tool2", "tool3"], ["tool3", "tool2"]])
@pytest.mark.parametrize("state", [{}, {"x": {"reduce": "append"}}])
def test_a_step_that_reads_a_concurrently_written_path_fails_in_any_schedule(
    order: list[str], state: dict[str, object]
) -> None:
    """The way over `tool5` has a condition, so that the conflict is only known at run time."""
    drawing = """start -> tool1; tool1 -> tool2; tool1 -n > 1-> tool4; tool4 -> tool3; tool2 -> tool5; tool3 -> tool5"""
    both = started(drawing, nodes={**writes("x", "tool2"), **READS}, state=state, input={"n": 2})
    both.done("tool1")
    for name in order:
        if name == "tool3":
            both.done("tool4")
        both.crash()
        if both.status == "running":
            both.done(name)
    assert (both.status, both.failure.code) == ("failed", "read-race")
    assert "'tool3' reads 'x' while 'tool2'" in both.failure.message
    one = started(drawing, nodes={**writes("x", "tool2"), **READS}, state=state, input={"n": 1})
    assert one.done("tool1").done("tool2").done("tool5").status == "completed"


def test_a_write_before_the_split_and_a_read_after_the_join_are_not_a_race() -> None:
    nodes = {**writes("x", "tool1", "tool2"), "tool4": READS["tool3"]}
    world = started(SPLIT, nodes=nodes).done("tool1", 1).done("tool3").done("tool2", 2)
    assert world.asked("tool4")["parameters"] == {"n": 2}


def test_a_condition_on_a_concurrently_written_path_is_a_race() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -x > 1-> tool4"
    world = started(drawing, nodes=writes("x", "tool2")).done("tool1").done("tool3")
    assert world.status == "running"
    assert world.done("tool2", 5).failure.code == "read-race"


def test_only_possible_races_are_reported() -> None:
    quiet = started(SPLIT, nodes={**writes("x", "tool2"), **writes("y", "tool3")}).done("tool1").done("tool2")
    assert quiet.events(StateRead) == []
    told = started(SPLIT, nodes={**writes("x", "tool2"), **READS}).done("tool1")
    (read,) = told.events(StateRead)
    assert (read.node, read.paths) == ("tool3", (("x",),))


def test_agents_receive_the_sources_of_their_workflow() -> None:
    said: dict[str, object] = {"model": "scripted", "prompt": "Answer."}
    for system, expected in (
        (None, "Sources:\n\nOne.\n\nTwo."),
        ("You write.", "You write.\n\nSources:\n\nOne.\n\nTwo."),
        ("Know: {{ sources | upper }}", "Know: ONE.\n\nTWO."),
    ):
        config = {**said, **({"system": system} if system else {})}
        world = started("start -> agent1", nodes={"agent1": {"config": config}}, sources=["One.", "Two."])
        assert world.asked("agent1")["system"] == expected
