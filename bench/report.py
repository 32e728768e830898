"""The report: medians and spread of everything that was measured, the goals beside it, as Markdown."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.measure import Measured
from bench.profiling import Shares
from bench.resume import Resumed
from bench.shapes import Shape
from bench.startup import GOALS_MS


class Cell(NamedTuple):
    """One thing to measure."""

    shape: str
    store: str
    size: int


class Found(NamedTuple):
    """All that a run of the benchmarks found out."""

    shapes: dict[str, Shape]
    measured: Mapping[Cell, list[Measured]]
    """One per repetition."""
    resumed: list[Resumed]
    startups: dict[str, float]
    profile: Shares | None
    repetitions: int
    seconds: float


def written_report(found: Found) -> str:
    parts = [
        _opening(found),
        *(_steps(found, store) for store in HEADS),
        _peers(found),
        _memory(found),
        _resumed(found.resumed),
        _startups(found.startups),
        _profile(found.profile) if found.profile is not None else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(found: Found) -> str:
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, msgspec {version('msgspec')}"
    effort = f"{found.repetitions} repetitions in {found.seconds / 60:.0f} minutes"
    return f"""# What a step costs

Orchestration only: the work of every step answers at once, in the process. CPU time, of all threads, in µs per step
taken (a visit of control to a node). Every cell is the median of so many processes as
there are repetitions and, in brackets, their least and greatest; all cells take turns. Written by `make bench`.

- {datetime.now(UTC):%Y-%m-%d}, Pointsman at {_commit()}, {effort}
- {_cpu()}, {os.cpu_count()} cores, shared with others; load at the end {load}
- {platform.platform()}, {versions}"""


HEADS: Final = {
    "memory": "## In memory",
    "sqlite": """## In SQLite, every step on the disk before the next one

A bare commit (one small row, `sqlite3`, WAL, `synchronous=FULL`) took {cpu} µs of CPU
and {wall} µs on the wall, in the same processes, half before and half after what is compared with it.
How long the disk takes decides how the rows of a lone execution are written: below a few milliseconds in the event
loop's own thread; above it by another thread, which costs CPU and keeps the event loop free.""",
    "sqlite-async": """## In SQLite, rows up to a tenth of a second behind

The mode of durability `async`: a crash may take the last tenth of a second, and what it took is done again.""",
    "postgresql": """## In PostgreSQL, every step committed before the next one

CPU of this process; what the server spends is not counted. It is on the same machine, behind a socket. A bare commit
(one small row, `psycopg`) took {cpu} µs of CPU and {wall} µs on the wall.""",
}
"""What is said before the figures of a store."""


def _steps(found: Found, store: str) -> str:
    lines: list[Sequence[str]] = []
    bare = [one for cell, runs in found.measured.items() for one in runs if cell.store == store and one.bare_cpu]
    for name, shape in found.shapes.items():
        sizes = [size for one, at, size in found.measured if (one, at) == (name, store)]
        for size in sizes:
            runs = found.measured[Cell(name, store, size)]
            goal = shape.goal.get(store, "") if size == sizes[-1] else ""
            ratios = [
                _ratio(runs, lambda one: one.cpu / one.bare_cpu),
                _ratio(runs, lambda one: one.wall / one.bare_wall),
            ]
            shown = f"{name}: {shape.title}" if size == sizes[0] else ""
            lines.append([shown, f"{size:,}", _spread([one.cpu for one in runs]), *(ratios if bare else []), goal])
    if not lines:
        return ""
    head = ["shape", "size", "CPU µs per step", *(["CPU ÷ bare commit", "wall ÷ bare commit"] if bare else []), "goal"]
    if not bare:
        return f"{HEADS[store]}\n\n{_table(head, lines)}"
    cpu, wall = _spread([one.bare_cpu for one in bare]), _spread([one.bare_wall for one in bare])
    return f"{HEADS[store].format(cpu=cpu, wall=wall)}\n\n{_table(head, lines)}"


def _ratio(runs: list[Measured], of: Callable[[Measured], float]) -> str:
    return f"{median(of(one) for one in runs):.2f}" if all(one.bare_cpu for one in runs) else ""


def _peers(found: Found) -> str:
    names = dict.fromkeys(
        peer
        for shape in found.shapes.values()
        for sizes in shape.peers.values()
        for figures in sizes.values()
        for peer in figures
    )
    lines: list[Sequence[str]] = []
    for name, shape in found.shapes.items():
        for store, sizes in shape.peers.items():
            for size, figures in sizes.items():
                runs = found.measured.get(Cell(name, store, size))
                ours = f"{median(one.cpu for one in runs):.0f}" if runs else ""
                others = [f"{figures[peer]:,.0f}" if peer in figures else "" for peer in names]
                lines.append([f"{name}, {store}, {size:,}", ours, *others])
    if not lines:
        return ""
    return f"""## Beside others

The figures of others are not of this run: they were measured in November 2026 on a shared two-core machine with Python
3.11, in the same unit, with the releases of that month. They give the order of magnitude, not a ratio.

{_table(["shape", "Pointsman", *names], lines)}"""


def _memory(found: Found) -> str:
    lines = [
        [f"{name}, {store}", f"{size:,}", f"{median(r.peak_mb for r in runs):.0f}", _spread([r.compile for r in runs])]
        for (name, store, size), runs in found.measured.items()
        if store == "memory"
    ]
    return f"""## Memory, and compiling

Peak resident size of the whole process, definition, plan and journal included; CPU of compiling, per node.

{_table(["shape", "size", "peak MB", "compile µs per node"], lines)}"""


def _resumed(resumed: list[Resumed]) -> str:
    lines = [
        [f"{one.steps:,}", f"{one.rows:,}", f"{one.cpu_ms:.0f}", f"{one.wall_ms:.0f}", f"{one.peak_mb:.0f}"]
        for one in resumed
    ]
    return f"""## Taking up an execution

Reading the journal of one execution from SQLite and folding it, as after a crash. Goal: 100,000 steps in less than a
second.

{_table(["steps", "rows", "CPU ms", "wall ms", "peak MB"], lines)}"""


def _startups(startups: dict[str, float]) -> str:
    lines = [
        [f"`{name}`", f"{ms:.0f}", f"≤ {GOALS_MS[name]}" if name in GOALS_MS else ""] for name, ms in startups.items()
    ]
    return f"## Beginning\n\n{_table(['process', 'CPU ms', 'goal'], lines)}"


def _profile(profile: Shares) -> str:
    below = [[f"`{name}`", f"{share:.0%}"] for name, share in profile.below]
    own = [[f"`{name}`", f"{share:.1%}"] for name, share in profile.own]
    return f"""## Where the time of the chain goes

Sampled ({profile.samples:,} samples), a chain of 1,000 in memory. With what it calls:

{_table(["function", "share"], below)}

By itself:

{_table(["function", "share"], own)}"""


def _spread(values: Iterable[float]) -> str:
    found = sorted(values)
    if len(found) == 1:
        return f"{found[0]:.1f}"
    return f"{median(found):.1f} ({found[0]:.1f}–{found[-1]:.1f})"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return platform.machine()


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    return found.stdout.strip()
