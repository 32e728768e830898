"""Deterministic simulation: per seed three random graphs, executed with every known disturbance, checked against the
laws."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from typing import Final, NamedTuple

from pointsman.engine.plan import Plan
from pointsman.engine.reports import PauseRequested, ResumeRequested
from pointsman.testing.graphs import INPUT, perform
from pointsman.testing.simulation import Simulation, SimulationResult
from tests.engine.laws import hold, hunt, must_end, must_settle_once, net_for, outcome_of, plan_for, run
from tests.engine.replays import must_replay
from tests.reliability.disturbances import DisturbedSimulation, cancelled_at, retried_or_resumed
from tests.reliability.findings import Finding
from tests.reliability.human_actions import plan_with_people, with_people
from tests.reliability.irregular_graphs import irregular_plan
from tests.reliability.rare_states import RARE, seen_in

SEEDS_FOR_ALL_STATES: Final = 200
"""With at least this many seeds, every rare state must occur."""
SPLIT_FROM: Final = 50
"""With at least this many seeds, separate processes are worth their start."""


class SeedResults(NamedTuple):
    """The results of some seeds."""

    states: frozenset[str]
    executions: int
    rows: int
    violations: tuple[str, ...]


class Tally:
    """Counts executions and the rare states in them."""

    def __init__(self) -> None:
        self.states: set[str] = set()
        self.executions = 0
        self.rows = 0

    def count(self, outcome: SimulationResult) -> SimulationResult:
        self.executions += 1
        self.rows += len(outcome.rows)
        self.states |= seen_in(outcome.rows, self.states)
        return outcome


def plans_of(number: int) -> Iterator[tuple[str, Plan]]:
    """Yield the graphs of one seed: well-formed (one outcome), irregular (races by definition), and an unstructured
    net."""
    found = {"tame": plan_for(number, 7), "rough": irregular_plan(number), "net": net_for(number)}
    yield from ((name, plan) for name, plan in found.items() if plan is not None)


def must_survive_storms(plan: Plan, number: int, tally: Tally, *, tame: bool) -> None:
    """Check that crashes at every row and rival drivers do not change the outcome."""
    world = DisturbedSimulation(plan, number, rivals=number % 2 == 0)
    outcome = tally.count(world.run(INPUT))
    if world.rows_of_rivals:
        tally.states.add("a rival appends first")
    if outcome.state.status == "running":
        hold(any(at.gate is not None for at in outcome.state.steps.values()), "stands still, and nobody is asked")
        tally.states.add("a gate whose person never comes")
        return
    must_end(outcome)
    must_settle_once(outcome)
    if tame:
        hold(outcome_of(outcome) == outcome_of(run(plan, 0, wild=False, checked=False)), "a storm changed the outcome")


def must_end_when_cancelled(plan: Plan, number: int, tally: Tally) -> None:
    """Check that nothing happens after a cancellation at any row, whatever is reported late."""
    rows = 1 + Random(number).randrange(30)
    outcome, after = cancelled_at(plan, number, rows)
    tally.count(outcome)
    hold(outcome.state.ended, f"cancelled after row {rows} and {outcome.status}")
    hold(after == 0, f"{after} rows after the cancellation behind row {rows}")
    must_settle_once(outcome)


def must_be_taken_up(plan: Plan, number: int, tally: Tally) -> None:
    outcome = tally.count(retried_or_resumed(plan, number))
    must_end(outcome)


def must_pause_anywhere(plan: Plan, number: int, tally: Tally) -> None:
    """Check that an execution paused after any row, with crashes, continues and ends."""
    world = Simulation(plan, number, work=perform, chance_of_crash=0.3)
    world.run_rows(INPUT, 1 + number % 11)
    if world.state.status == "running":
        world.tell(PauseRequested())
        world.go_on()
        world.tell(ResumeRequested())
    must_end(tally.count(world.go_on()))


def must_end_with_people(number: int, tally: Tally) -> None:
    """Check that with any actions of people an execution ends, no step settles twice, and a replay gives the same
    decisions."""
    plan = plan_with_people(number)
    if plan is None:
        return
    outcome = tally.count(with_people(plan, number))
    must_end(outcome)
    must_settle_once(outcome)
    must_replay(plan, outcome)


def examine_seed(number: int, tally: Tally) -> None:
    """Check all laws for one seed. Raises `LawBroken`, or the exception of a bug."""
    hunt(range(number, number + 1))
    for name, plan in plans_of(number):
        must_survive_storms(plan, number, tally, tame=name == "tame")
        must_end_when_cancelled(plan, number, tally)
        must_be_taken_up(plan, number, tally)
        must_pause_anywhere(plan, number, tally)
    must_end_with_people(number, tally)


def examine_seeds(numbers: range) -> SeedResults:
    """Check all seeds, also after a violation."""
    tally, violations = Tally(), list[str]()
    for number in numbers:
        try:
            examine_seed(number, tally)
        except Exception as why:
            violations.append(f"seed {number}: {type(why).__name__}: {str(why)[:300]} (--seed {number} --size 1)")
    return SeedResults(frozenset(tally.states), tally.executions, tally.rows, tuple(violations))


def examine(size: int, seed: int) -> Finding:
    """Check `size` seeds from `seed` on, on all cores."""
    numbers = range(seed, seed + size)
    if size < SPLIT_FROM:
        parts = [examine_seeds(numbers)]
    else:
        workers = os.cpu_count() or 1
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(examine_seeds, [numbers[start::workers] for start in range(workers)]))
    violations = [line for part in parts for line in part.violations]
    states = frozenset[str]().union(*(part.states for part in parts))
    if size >= SEEDS_FOR_ALL_STATES:
        violations += [f"never seen: {state}" for state in sorted(RARE - states)]
    executions, rows = sum(part.executions for part in parts), sum(part.rows for part in parts)
    figure = (
        f"{executions} executions, {rows} rows, {len(violations)} violations, {len(states)} of {len(RARE)} rare states"
    )
    return Finding(figure, tuple(violations))
