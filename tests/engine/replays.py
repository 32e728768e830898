"""Replays and forks of simulated executions, for laws and scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from pointsman.engine.decide.context import Parts
from pointsman.engine.plan import Plan
from pointsman.engine.replay import Plans, RecordedRow, Replay, replay_until_step, replaying, row_of
from pointsman.engine.reports import ForkRequested
from pointsman.engine.steps import Step
from pointsman.ports import Row
from pointsman.testing.graphs import perform
from pointsman.testing.simulation import LawBroken, Simulation, SimulationResult, describe, refolded, stored
from tests.engine.laws import hold, outcome_of, run

T = TypeVar("T")


def run_parts(work: Parts[T]) -> T:
    """Do all parts of the work, and return its result."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


def replay(plans: Plans, execution: str, rows: Sequence[RecordedRow]) -> Replay:
    """Decide every row again."""
    return run_parts(replaying(plans, execution, rows))


def must_replay(plan: Plan, outcome: SimulationResult) -> None:
    """Check that a replay makes every row and the final state again."""
    found = replay(lambda _: plan, outcome.state.id, outcome.rows)
    if found.differences:
        raise LawBroken(f"a replay differs: {found.differences[0]}")
    hold(found.rows == len(outcome.rows), "the replay ended early")
    hold(describe(found.state) == describe(outcome.state), "the replay ended in another state")
    hold(not found.rows_without_report, f"rows {found.rows_without_report} lack their report")


def forked(plan: Plan, rows: tuple[Row, ...], report: ForkRequested, seed: int) -> Simulation:
    """Return a simulation that begins with the rows of another one."""
    fork = Simulation(plan, seed, work=perform)
    fork.rows = [*rows]
    fork.state = refolded(fork.state.id, fork.rows)
    fork.now = rows[-1].at
    fork.tell(report)
    return fork


def must_fork_anywhere(plan: Plan, seed: int) -> None:
    """Check that a fork without changes, at any row, has the same outcome."""
    calm = run(plan, 0, wild=False, checked=False)
    if calm.status == "interrupted" or len(calm.rows) < 2:
        return
    at = Random(seed).randrange(1, len(calm.rows))
    fork = forked(plan, calm.rows[:at], ForkRequested(origin="simulated", row=at), seed)
    outcome = fork.go_on()
    hold(
        outcome_of(outcome) == outcome_of(calm),
        f"a fork at row {at} came to {outcome_of(outcome)}, its origin to {outcome_of(calm)}",
    )
    must_replay(plan, outcome)


def must_run_any_step_again(plan: Plan, seed: int) -> None:
    """Check that a fork before any step has the same outcome, and that the step keeps its name."""
    calm = run(plan, 0, wild=False, checked=False)
    if calm.status == "interrupted":
        return
    step = Random(seed).choice(calm.steps)
    number, found = row_of(calm.rows, str(step))
    hold(found == step, "another step was found")
    begun = refolded("simulated", list(calm.rows[:number]))
    events = run_parts(replay_until_step(plan, begun, calm.rows[number], step))
    rows = (*calm.rows[:number], stored(Row(begun.seq, begun.at, events, calm.rows[number].cause)))
    report = ForkRequested(origin="simulated", row=number + 1, before=step)
    outcome = forked(plan, rows, report, seed).go_on()
    hold(step in begun_steps(outcome, len(rows)), f"{step} did not begin again")
    hold(
        outcome_of(outcome) == outcome_of(calm),
        f"running {step} again came to {outcome_of(outcome)}, before it was {outcome_of(calm)}",
    )
    must_replay(plan, outcome)


def begun_steps(outcome: SimulationResult, after: int) -> set[Step]:
    """Return the steps that began after that many rows."""
    later = SimulationResult(outcome.status, None, outcome.rows[after:], outcome.state)
    return {*later.steps}
