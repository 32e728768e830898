"""Limits that no prompt can change, and their consequences."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pointsman.engine.decide.limits import LimitUsed
from pointsman.engine.events.waits import LimitHit
from pointsman.engine.reports import TimerFired
from pointsman.values import Json
from tests.engine.world import More, World, limits, started

CYCLE = "start -> tool1; tool1 -> tool1"


@pytest.mark.requirement("S0-50", "S0-51", "S0-52", "S0-53", "T0-6", "S3-22")
def test_the_step_limit_interrupts_the_execution_keeps_its_state_and_can_be_raised() -> None:
    world = started(CYCLE, config=limits(steps=3)).done("tool1").done("tool1")
    assert (world.status, world.state.limits.interruption, world.steps) == (
        "interrupted",
        "steps",
        ["start", "tool1", "tool1#2"],
    )
    world.resume(steps=5)
    assert world.working == ["tool1#3"]
    assert world.done("tool1").done("tool1").status == "interrupted"


def test_a_limit_that_stops_a_waiting_node_keeps_its_arrivals() -> None:
    drawing = "start -> tool1; tool1 -> tool2, tool3; tool2 -> tool4; tool3 -> tool4"
    world = started(drawing, config=limits(steps=4)).done("tool1").done("tool3", "c").done("tool2", "b")
    assert (world.status, len(world.state.root.parked["tool4"])) == ("interrupted", 2)
    assert world.resume(steps=10).working == ["tool4"]
    assert world.state.steps[world.at("tool4")[0]].incoming.value == "c"


def test_a_limit_stops_running_steps_and_a_resume_runs_them_again() -> None:
    world = started(
        "start -> tool1, wait1, tool2; tool2 -> tool3",
        nodes={"wait1": {"config": {"duration": "60s"}}},
        config=limits(steps=4),
    )
    world.done("tool2")
    assert world.status == "interrupted"
    waiting = TimerFired(timer=next(iter(world.state.timers)))
    world.tell(waiting)
    assert world.status == "interrupted", "no timer is heard while it stands still"
    world.resume(steps=9)
    assert (world.working, world.timers) == (["tool1", "tool3"], [60.0])


def test_a_result_that_comes_after_the_interruption_is_not_lost() -> None:
    world = started("start -> tool1, tool2; tool2 -> tool3; tool1 -> tool4", config=limits(steps=3)).done("tool2")
    world.done("tool1", "paid for")
    assert (world.status, [one.node for one in world.state.held_arrivals]) == ("interrupted", ["tool3", "tool4"])
    assert world.resume(steps=9).working == ["tool3", "tool4"]


def test_branches_that_a_limit_kept_from_starting_begin_after_it_is_raised() -> None:
    drawing = "start -> fan; fan -> tool1; tool1 -> join; join -> tool2"
    nodes = {"fan": {"config": {"items": "input.items", "maxParallel": 2}}}
    world = started(drawing, nodes=nodes, input={"items": ["a", "b", "c"]}, config=limits(steps=2))
    assert (world.status, world.working) == ("interrupted", [])
    assert world.resume(steps=99).working == ["fan[1.0]/tool1", "fan[1.1]/tool1"]
    assert world.rest().status == "completed"


@pytest.mark.requirement("S0-56", "S0-58", "S0-59", "T0-9")
def test_the_fallback_node_takes_over_and_other_steps_are_dropped() -> None:
    drawing = "start -> tool1, tool2, tool4; tool1 -> tool3; tool2 -> tool3; tool3 -> tool5; tool9"
    world = started(drawing, config={**limits(steps=4), "onLimit": "tool9"}).done("tool1").done("tool2")
    assert (world.working, [event.limit for event in world.events(LimitHit)]) == (["tool9"], ["steps"])
    assert (world.state.root.parked, world.state.root.tokens) == ({}, 1)
    world.done("tool9", "a person will call")
    assert (world.status, world.output) == ("completed", "a person will call")


def test_the_fallback_node_is_limited_too() -> None:
    world = (
        started(CYCLE + "; tool9 -> tool9", config={**limits(steps=3), "onLimit": "tool9"}).done("tool1").done("tool1")
    )
    for _ in range(3):
        assert world.status == "running"
        world.done("tool9")
    assert (world.status, world.path.count("tool9")) == ("interrupted", 3)


def test_visits_bound_each_node_but_not_the_bodies_of_loops() -> None:
    world = started(CYCLE, config=limits(visits=2)).done("tool1").done("tool1")
    assert (world.status, world.state.limits.interruption) == ("interrupted", "visits")
    assert world.resume(visits=3).working == ["tool1#3"]
    drawing = "start -> loop; loop -body-> set1; set1 -> loop; loop -exit-> end"
    looped = started(drawing, nodes={"loop": {"config": {"maxIterations": 5}}}, config=limits(visits=2))
    assert looped.status == "completed"


def test_each_branch_counts_its_own_visits() -> None:
    nodes = {"fan": {"config": {"items": "input.items"}}}
    world = started(
        "start -> fan; fan -> tool1; tool1 -> join", nodes=nodes, input={"items": [1, 2, 3]}, config=limits(visits=1)
    )
    assert world.rest().status == "completed"


@pytest.mark.requirement("S0-54", "S1-25", "S3-88")
def test_execution_time_counts_only_while_work_runs() -> None:
    drawing = "start -> tool1; tool1 -> ask1; ask1 -#approve-> tool2; tool2 -> tool3"
    world = started(drawing, config=limits(executionTime="10s"))
    assert world.timers == [10.0]
    world.later(6).done("tool1").later(10_000).ring()
    assert world.status == "running", "nobody worked in that time"
    world.answer("ask1", "approve")
    assert world.timers == [4.0]
    world.later(3).done("tool2").ring()
    assert (world.status, world.state.limits.interruption) == ("interrupted", "executionTime")


@pytest.mark.requirement("S0-55", "T0-7", "S3-90")
def test_the_time_limit_stops_hanging_steps_and_more_time_resumes_them() -> None:
    world = started("start -> tool1", config=limits(executionTime="10s")).ring()
    assert world.status == "interrupted"
    world.later(1_000).resume(executionTime=15)
    assert (world.working, world.timers) == (["tool1"], [5.0])
    assert world.ring().status == "interrupted"


@pytest.mark.requirement("S0-57")
def test_the_fallback_node_takes_over_once_after_the_time_limit() -> None:
    world = started("start -> tool1; tool9", config={**limits(executionTime="10s"), "onLimit": "tool9"}).ring()
    assert (world.working, world.timers) == (["tool9"], [])


def test_a_deadline_is_wall_clock_time_and_includes_waits() -> None:
    world = started("start -> ask1; ask1 -#approve-> tool1", config=limits(deadline="60s"))
    assert world.timers == [60.0]
    world.ring()
    assert (world.status, world.state.limits.interruption, world.gates) == ("interrupted", "deadline", ["ask1"])
    world.later(40).resume(deadline=120)
    assert world.timers == [20.0]
    assert world.answer("ask1", "approve").working == ["tool1"]


def test_a_deadline_in_the_past_cannot_be_set_again() -> None:
    world = started("start -> ask1", config=limits(deadline="60s")).ring().later(600)
    with pytest.raises(LimitUsed, match="'deadline' cannot be 100: 660 are already used"):
        world.refused_resume(deadline=100)
    assert world.resume(deadline=700).timers == [40.0]
    assert world.ring().status == "interrupted"


def test_a_spent_cost_budget_stops_the_next_step() -> None:
    world = started("start -> tool1; tool1 -> tool2; tool2 -> tool3", config=limits(costUsd=0.10))
    world.done("tool1", cost=0.06).done("tool2", cost=0.05)
    assert (world.status, world.state.limits.interruption) == ("interrupted", "costUsd")
    assert world.resume(costUsd=1).working == ["tool3"]


def agents(*answers: str) -> World:
    """Return a world with two agents that hand over to each other, each with given answers."""
    drawing = "start -> agent1; agent1 -#two-> agent2; agent2 -#one-> agent1"
    nodes = {name: {"routing": "label"} for name in ("agent1", "agent2")}
    world = started(drawing, nodes=nodes)
    for number, answer in enumerate(answers):
        if world.status != "running":
            break
        world.done("agent2" if number % 2 else "agent1", answer, next="one" if number % 2 else "two")
    return world


@pytest.mark.requirement("S0-49")
def test_agents_that_pass_the_same_value_back_and_forth_are_stopped() -> None:
    world = agents(*["you do it"] * 20)
    assert (world.status, world.state.limits.interruption) == ("interrupted", "no-progress")
    assert world.path.count("agent1") == 3


def test_a_new_answer_of_an_agent_counts_as_progress() -> None:
    assert agents(*[f"{number}" for number in range(20)]).status == "running"


def test_a_stalled_agent_can_be_given_more_attempts() -> None:
    world = agents(*["you do it"] * 20)
    world.resume(**{"no-progress": 5})
    assert world.done("agent2", "you do it", next="one").status == "running"


def circle(*said: tuple[str, str], between: str = "", nodes: More | None = None, state: Json = None) -> World:
    """Return a world with agents in a circle that repeat the given answers; `between` is a transform after the last
    one."""
    names = [name for name, _ in said]
    ways = pairwise(["start", *names, *([between] if between else []), names[0]])
    drawing = "; ".join(f"{source} -> {target}" for source, target in ways)
    world = started(drawing, nodes=nodes, config=limits(steps=80), state=state or {})
    for number in range(60):
        if world.status != "running":
            break
        name, answer = said[number % len(said)]
        world.done(next(step for step in world.working if step.startswith(name)), answer)
    return world


def test_stall_detection_finds_longer_cycles_of_agents() -> None:
    world = circle(("agent1", "a"), ("agent2", "b"), ("agent3", "c"))
    assert (world.state.limits.interruption, world.path.count("agent3")) == ("no-progress", 3)
    answers = ["a", "b"] * 30
    alone = started("start -> agent1; agent1 -> agent1")
    for answer in answers:
        if alone.status == "running":
            alone.done(alone.working[0], answer)
    assert (alone.state.limits.interruption, alone.path.count("agent1")) == ("no-progress", 6)


def test_writes_of_other_steps_count_as_progress() -> None:
    counted = {"set1": {"config": {"set": {"n": "(n ?? 0) + 1"}}}}
    assert circle(("agent1", "a"), between="set1", nodes=counted).state.limits.interruption == "steps"
    same = {"set1": {"config": {"set": {"n": "1"}}}}
    assert circle(("agent1", "a"), between="set1", nodes=same).state.limits.interruption == "no-progress"


def test_appending_the_same_value_to_a_list_is_not_progress() -> None:
    nodes = {"agent1": {"outputs": {"log": "result"}}}
    world = circle(("agent1", "a"), ("agent2", "b"), nodes=nodes, state={"log": {"reduce": "append"}})
    assert world.state.limits.interruption == "no-progress"


def test_a_new_answer_of_one_agent_is_progress_for_all() -> None:
    world = started("start -> agent1; agent1 -> agent2; agent2 -> agent1", config=limits(steps=40))
    for number in range(40):
        if world.status == "running":
            world.done(world.working[0], "go on" if number % 2 == 0 else f"draft {number}")
    assert world.state.limits.interruption == "steps"


def test_stall_detection_remembers_answers_from_before_a_crash() -> None:
    world = started("start -> agent1; agent1 -> agent1").done("agent1", "a").done("agent1#2", "a").crash()
    assert world.done("agent1#3", "a").state.limits.interruption == "no-progress"


@pytest.mark.requirement("S1-69")
@pytest.mark.parametrize(
    "drawing",
    [CYCLE, "start -> tool1, tool2; tool1 -> tool1; tool2 -> tool1", "start -> fan; fan -> tool1; tool1 -> tool1"],
)
def test_every_cycle_ends_at_the_step_limit(drawing: str) -> None:
    world = started(drawing, config=limits(steps=50))
    assert world.rest().status == "interrupted"
    assert world.state.counters.steps == 50
