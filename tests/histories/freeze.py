"""python -m tests.histories.freeze RELEASE: add events that the histories of a release lack. Existing files never
change.

Random graphs are executed with everything that can happen to an execution; those with new kinds of events are stored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from pointsman.engine.failures import Failure
from pointsman.engine.plan import Plan
from pointsman.engine.reports import PauseRequested, ResumeRequested, WorkerMissing, WorkerOffered
from pointsman.ports import Row
from pointsman.testing.graphs import INPUT, perform, random_workflow
from pointsman.testing.simulation import Simulation, SimulationResult
from pointsman.values import JsonObject
from tests.engine.laws import compiled, random_net
from tests.histories.frozen import FOLDER, histories, read_history, write_history
from tests.reliability.disturbances import cancelled_at, retried_or_resumed
from tests.reliability.human_actions import with_people, workflow_with_people
from tests.reliability.irregular_graphs import irregular_workflow
from tests.reliability.rare_states import seen_in

SEEDS: Final = range(1, 1_200)
ROWS_MAX: Final = 60
WANTED: Final = 40
"""Number of histories that is enough for a release."""
PEOPLED_EACH: Final = 4
"""People act in one of this many seeds."""
Drive: TypeAlias = Callable[[Plan, int], SimulationResult]
Draw: TypeAlias = Callable[[int], JsonObject]


def calm(plan: Plan, seed: int) -> SimulationResult:
    return Simulation(plan, seed, work=perform).run(INPUT)


def cancelled(plan: Plan, seed: int) -> SimulationResult:
    return cancelled_at(plan, seed, 1 + seed % 12)[0]


def paused(plan: Plan, seed: int) -> SimulationResult:
    """Return an execution that is paused, continued and ended."""
    world = Simulation(plan, seed, work=perform)
    world.run_rows(INPUT, 1 + seed % 7)
    world.tell(PauseRequested(by="somebody"))
    world.go_on()
    world.tell(ResumeRequested(by="somebody"))
    return world.go_on()


def left_to_a_worker(plan: Plan, seed: int) -> SimulationResult:
    """Return an execution in which one attempt waits for a worker with a tool until one performs it."""
    world = Simulation(plan, seed, work=perform)
    world.run_rows(INPUT, 1 + seed % 7)
    for command in [*world.asked.work.values()][:1]:
        del world.asked.work[command.step]
        lacking = Failure(
            code="tool-missing", message="There is no tool 'press' here", hint="Start a worker.", needs="tool:press"
        )
        world.tell(WorkerMissing(step=command.step, attempt=command.attempt, failure=lacking))
        world.go_on()
        world.tell(WorkerOffered(step=command.step, attempt=command.attempt))
    return world.go_on()


DRIVES: Final[tuple[Drive, ...]] = (calm, retried_or_resumed, paused, cancelled, left_to_a_worker)
DRAWS: Final[tuple[Draw, ...]] = (lambda seed: random_workflow(seed, 5), irregular_workflow, random_net)


def shown_by(rows: tuple[Row, ...]) -> set[str]:
    """Return the reasons to keep a history: kinds of events with their fields, and rare states."""
    kinds = {type(event).__name__ for row in rows for event in row.events}
    return {*kinds, *seen_in(rows)}


def candidates() -> Iterator[tuple[JsonObject, SimulationResult]]:
    for seed in SEEDS:
        peopled = seed % PEOPLED_EACH == 0
        document = workflow_with_people(seed) if peopled else DRAWS[seed % len(DRAWS)](seed)
        plan = compiled(document)
        if plan is None:
            continue
        outcome = with_people(plan, seed) if peopled else DRIVES[seed // len(DRAWS) % len(DRIVES)](plan, seed)
        if len(outcome.rows) <= ROWS_MAX and outcome.state.ended:
            yield document, outcome


def freeze(release: str) -> list[str]:
    """Write the histories that a release lacks, and return their names."""
    folder = FOLDER / release
    folder.mkdir(exist_ok=True)
    known = histories(release)
    seen, names = set[str]().union(*(shown_by(read_history(path).rows) for path in known)), list[str]()
    for document, outcome in candidates():
        new = shown_by(outcome.rows) - seen
        if not new:
            continue
        seen |= new
        name = f"{len(known) + len(names) + 1:02}"
        write_history(folder / f"{name}.jsonl", document, outcome.rows, status=outcome.status, output=outcome.output)
        names.append(f"{name}: {', '.join(sorted(new))}")
        if len(known) + len(names) == WANTED:
            break
    return names


if __name__ == "__main__":
    for line in freeze(sys.argv[1]):
        sys.stdout.write(f"{line}\n")
