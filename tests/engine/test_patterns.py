"""The workflow patterns have the same outcome in every schedule, and the reference shows how to write each."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure
from pointsman.engine.reports import WorkDone, WorkFailed
from pointsman.engine.state import ExecutionState
from pointsman.testing.simulation import Simulation
from tests.engine.patterns import PATTERNS, UNSUPPORTED
from tests.engine.world import plan_of

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "patterns.md"
SCHEDULES = 12


def name_of_node(command: Execute) -> WorkDone | WorkFailed:
    """Return the name of the node as its result, or a failure where the pattern has one."""
    step, attempt = command.step, command.attempt
    if step.node.startswith("bad"):
        return WorkFailed(step=step, attempt=attempt, failure=Failure(code="bad", message="meant to"))
    return WorkDone(step=step, attempt=attempt, result=step.node)


@pytest.mark.requirement("S3-09", "S3-12", "S1-128", "X-1")
@pytest.mark.parametrize("number", PATTERNS)
def test_a_pattern_has_the_same_outcome_in_every_schedule(number: int) -> None:
    pattern = PATTERNS[number]
    plan = plan_of(pattern.drawing, nodes=pattern.nodes, edges=pattern.edges)
    for seed in range(SCHEDULES):
        chance = 0.3 if seed % 2 else 0.0
        simulation = Simulation(
            plan,
            seed,
            work=name_of_node,
            checked=seed < 4,
            chance_of_crash=chance,
            chance_of_duplicate=chance,
            chance_of_zombie=chance,
        )
        outcome = simulation.run(dict(pattern.input))
        assert (outcome.status, outcome.output) == (pattern.status, pattern.output), f"schedule {seed}"
        visited = " ".join(sorted(outcome.path))
        assert visited in (pattern.visits, pattern.or_visits), f"schedule {seed}: {visited}"
        assert nothing_is_left(outcome.state), f"schedule {seed}"


def nothing_is_left(state: ExecutionState) -> bool:
    return not state.steps and not state.parallel_frames and not state.held_arrivals and not state.root.parked


def test_every_pattern_has_an_example_or_a_reason() -> None:
    assert sorted([*PATTERNS, *UNSUPPORTED]) == list(range(1, 44))


def test_the_reference_shows_how_to_write_each_pattern() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference()


def reference() -> str:
    """Return the reference page, made from the table of the tests."""
    lines = [
        "# Workflow patterns",
        "",
        "The 43 control-flow patterns of van der Aalst, ter Hofstede, Kiepuszewski, Barros and Russell, and how each",
        "is spelled. Every one that can be spelled is a small workflow in `tests/engine/patterns.py`, which runs under",
        "many schedules, with crashes, duplicates and stale results, and must come out the same each time.",
        "",
        "| | pattern | spelling |",
        "|---|---|---|",
    ]
    for number in range(1, 44):
        if number in PATTERNS:
            lines.append(f"| {number} | {PATTERNS[number].name} | {PATTERNS[number].spelling} |")
        else:
            name, reason = UNSUPPORTED[number]
            lines.append(f"| {number} | {name} | not supported: {reason} |")
    return "\n".join(lines) + "\n"
