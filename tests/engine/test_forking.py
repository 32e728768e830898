"""Forks with edits: their positions, their effects, and refusals."""

from __future__ import annotations

import pytest

from pointsman.engine.decide.outputs import EditRefused
from pointsman.engine.events.lifecycle import UndoBegan
from pointsman.engine.reports import ForkRequested, WorkDone
from pointsman.engine.steps import Branch, DataEdit
from tests.engine.replays import forked
from tests.engine.world import World, limits, started


def fork(world: World, *edits: DataEdit, **limits: float) -> World:
    """Return a world that continues from the rows of another one."""
    plan = world.simulation.plan
    rows = tuple(world.simulation.rows)
    copy = World(plan)
    report = ForkRequested(origin="simulated", row=len(rows), edits=edits, limits=limits)
    copy.simulation = forked(plan, rows, report, seed=2)
    return copy


def test_a_fork_reissues_only_open_commands() -> None:
    world = started("tool1 -> tool2; tool2 -> tool3").done("tool1", "one")
    copy = fork(world)
    assert (copy.working, copy.data) == (["tool2"], world.data)
    copy.done("tool2").done("tool3")
    assert (copy.status, world.status) == ("completed", "running")


def test_an_edit_of_a_fork_overrides_a_write_and_later_steps_read_it() -> None:
    world = started("tool1 -> tool2", nodes={"tool1": {"outputs": {"a.b": "result"}}}).done("tool1", "old")
    copy = fork(world, DataEdit(("a", "b"), "new"))
    assert (copy.data, world.data) == ({"a": {"b": "new"}}, {"a": {"b": "old"}})
    copy.crash()
    assert copy.data == {"a": {"b": "new"}}


def test_an_edit_in_a_branch_reaches_the_outer_data_at_the_join() -> None:
    world = started(
        "fork1 -> tool1; tool1 -> tool2; tool2 -> join1",
        nodes={
            "fork1": {"type": "parallel", "config": {"items": "['x', 'y']"}},
            "join1": {"type": "join"},
            "tool1": {"outputs": {"seen.current_fanout_item": "result"}},
        },
    )
    world.done("fork1[1.0]/tool1", 1).done("fork1[1.1]/tool1", 2)
    copy = fork(world, DataEdit(("seen", "x"), 7, (Branch("fork1", 1, 0),)))
    copy.done("fork1[1.0]/tool2").done("fork1[1.1]/tool2")
    assert copy.status == "completed"
    assert copy.data["seen"] == {"x": 7, "y": 2}


@pytest.mark.parametrize(
    "edit",
    [
        DataEdit(("text", "x"), 1),
        DataEdit(("x",), 1, (Branch("nowhere", 1, 0),)),
        DataEdit(("x",), "y" * 2_000),
    ],
)
def test_an_edit_without_a_target_or_over_the_limit_is_refused_before_any_write(edit: DataEdit) -> None:
    world = started(
        "tool1 -> tool2", nodes={"tool1": {"outputs": {"text": "result"}}}, config={"limits": {"stateSize": "1KB"}}
    ).done("tool1", "text")
    copy = fork(world)
    rows = len(copy.simulation.rows)
    with pytest.raises(EditRefused):
        _decide(copy, ForkRequested(origin="simulated", row=2, edits=(edit,)))
    assert len(copy.simulation.rows) == rows


def _decide(world: World, report: ForkRequested) -> None:
    from pointsman.engine.decide.dispatch import decide

    decide(world.simulation.plan, world.state, report, world.now)


def test_a_fork_of_a_failed_execution_retries_its_step() -> None:
    world = started("tool1 -> tool2").fails("tool1")
    assert world.status == "failed"
    copy = fork(world)
    assert (copy.status, copy.working) == ("running", ["tool1"])
    copy.done("tool1").done("tool2")
    assert (copy.status, world.status) == ("completed", "failed")


def test_a_fork_of_a_paused_execution_runs_and_ignores_late_results_of_its_origin() -> None:
    world = started("tool1 -> tool2").pause()
    copy = fork(world)
    assert copy.status == "running"
    step, attempt = copy.at("tool1")
    copy.tell(WorkDone(step=step, attempt=attempt - 1, result="late"))
    assert copy.working == ["tool1"]


def test_a_fork_keeps_the_due_times_of_timers() -> None:
    world = started("wait1 -> tool1", nodes={"wait1": {"config": {"duration": "1h"}}}).later(600)
    assert fork(world).timers == [3600.0]


def test_a_fork_compensates_only_its_own_steps() -> None:
    """Otherwise both would compensate a step that was completed once, before the fork."""
    nodes = {"tool1": {"compensate": "tool8"}, "tool2": {"compensate": "tool8"}}
    world = started("tool1 -> tool2; tool2 -> tool3; tool8", nodes=nodes, entry="tool1").done("tool1")
    copy = fork(world).crash().done("tool2").fails("tool3")
    assert copy.working == ["tool8"]
    copy.done("tool8")
    assert (copy.status, [str(event.step) for event in copy.events(UndoBegan)]) == ("failed", ["tool2"])
    world.done("tool2").fails("tool3").done("tool8").done("tool8#2")
    assert [str(event.step) for event in world.events(UndoBegan)] == ["tool2", "tool1"]


def test_forks_of_older_journals_keep_their_compensations() -> None:
    nodes = {"tool1": {"compensate": "tool8"}}
    world = started("tool1 -> tool2; tool8", nodes=nodes, entry="tool1").done("tool1")
    plan, rows = world.simulation.plan, tuple(world.simulation.rows)
    copy = World(plan)
    copy.simulation = forked(plan, rows, ForkRequested(origin="simulated", row=len(rows), undoes="all"), seed=2)
    assert copy.fails("tool2").working == ["tool8"]


@pytest.mark.parametrize("ends", ["runs", "failed", "interrupted", "paused"])
def test_limits_given_to_a_fork_apply_in_any_status_of_its_origin(ends: str) -> None:
    world = started("tool1 -> tool2; tool2 -> tool3; tool3 -> tool4", config=limits(steps=2)).done("tool1")
    match ends:
        case "failed":
            world.fails("tool2")
        case "interrupted":
            world.done("tool2")
        case "paused":
            world.pause()
        case _:
            pass
    assert fork(world, steps=50).rest().status == "completed"
    assert fork(world, steps=50).state.limits.raised == {"steps": 50}
