"""Frozen histories of every release: each folds, keeps its meaning, and can be finished from any of its rows."""

from __future__ import annotations

from pathlib import Path

from pointsman.engine.state import ENDED
from pointsman.testing.simulation import refolded
from tests.histories.frozen import histories, read_history, taken_up
from tests.reliability.findings import Finding

CUTS: tuple[float, ...] = (0.0, 0.3, 0.7, 1.0)
"""Places where a history is cut and continued, as shares of its rows; the first row always remains."""


def wrong_with(path: Path) -> list[str]:
    """Return how a frozen history deviates."""
    name = f"{path.parent.name}/{path.stem}"
    try:
        history = read_history(path)
        state = refolded("simulated", [*history.rows])
        wrong: list[str] = []
        if (state.status, state.outcome.output) != (history.head.status, history.head.output):
            wrong.append(f"it was {history.head.status} and is {state.status}, or its output is another one")
        for cut in CUTS:
            rows = history.rows[: max(1, round(cut * len(history.rows)))]
            status = taken_up(history.plan, rows).state.status
            # Some histories are cycles that only their limits stop.
            if status not in ENDED and status != "interrupted":
                wrong.append(f"taken up behind row {len(rows)} it does not end: {status}")
    except Exception as why:
        wrong = [f"{type(why).__name__}: {why}"]
    return [f"history {name}: {line}" for line in wrong]


def examine(size: int, seed: int) -> Finding:
    """Test all histories."""
    files = histories()
    violations = [line for path in files for line in wrong_with(path)]
    if not files:
        violations.append("there are no histories")
    releases = ", ".join(sorted({path.parent.name for path in files}))
    return Finding(f"{len(files)} histories of {releases}, {len(violations)} violations", tuple(violations))
