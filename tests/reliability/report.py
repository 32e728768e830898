"""The scorecard as a page: the result of each row, with date, machine and versions."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from tests.reliability.findings import Finding, Row

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "reliability.md"
SHOWN_MAX: Final = 10


class Result(NamedTuple):
    """One row and its result."""

    row: Row
    size: int
    seconds: float
    finding: Finding | None = None
    missing: str = ""
    """The reason why it could not run here."""
    times: int = 1
    """Number of runs of that size, each with its own seed."""
    seed: int = 0
    """The last seed."""

    @property
    def sized(self) -> str:
        """Return the amount of work as text."""
        return f"{f'{self.times} × ' if self.times > 1 else ''}{self.size} {self.row.unit}"

    @property
    def verdict(self) -> str:
        if self.finding is None:
            return f"not run: {self.missing}"
        return "holds" if self.finding.holds else f"**broken** ({len(self.finding.complaints)})"


def joined(before: Result | None, now: Result) -> Result:
    """Combine the runs of one row; the figure is that of the last run."""
    if before is None or before.finding is None:
        return now
    if now.finding is None:
        return before
    one, other = before.finding, now.finding
    finding = Finding(other.figure, one.violations + other.violations, one.late + other.late)
    return now._replace(seconds=before.seconds + now.seconds, finding=finding, times=before.times + 1)


def machine() -> str:
    """Return processors, system and versions, without the name of the machine."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("pointsman", "msgspec"))
    return (
        f"{os.cpu_count()} cores {platform.machine()}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {libraries}"
    )


def line_of(result: Result) -> str:
    """Return one line for the terminal."""
    figure = result.finding.figure if result.finding is not None else ""
    return f"{result.row.name:<14} {result.sized:<22} {result.seconds:6.1f} s  {result.verdict}  {figure}"


def page(results: Sequence[Result], *, command: str, seed: int) -> str:
    """Return the whole page as Markdown."""
    lines = [
        "# Reliability scorecard",
        "",
        "Experiments that try to lose, repeat or corrupt something, and what they found. Written by",
        f"`{command}`; do not edit. [How it is made](../how-to/reliability.md).",
        "",
        f"- when: {datetime.now(UTC):%Y-%m-%d}",
        f"- where: {machine()}",
        f"- seed: {seed}",
        "",
        "| experiment | size | must show | found | verdict |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        row = result.row
        figure = result.finding.figure if result.finding is not None else ""
        lines.append(f"| {row.experiment} | {result.sized} | {row.must_show} | {figure} | {result.verdict} |")
    return "\n".join(lines) + "\n"


def complaints(result: Result) -> list[str]:
    """Return what failed, and how to reproduce it."""
    if result.finding is None or result.finding.holds:
        return []
    shown = result.finding.complaints[:SHOWN_MAX]
    more = len(result.finding.complaints) - len(shown)
    return [f"{result.row.name}, seed {result.seed}: {one}" for one in shown] + ([f"… and {more} more"] if more else [])
