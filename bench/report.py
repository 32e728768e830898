"""The report: medians and spread of everything that was measured, the goals beside it, as Markdown."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from bench.engine_alone import EngineFigures
from bench.profiling import Shares
from bench.rest import rest_section
from bench.resume import ResumeFigures
from bench.shapes import Shape
from bench.startup import GOALS_MS
from bench.turns import Cell, Measurements, spread, table

ENGINE_ALONE: Final = "engine alone"


class ReportFigures(NamedTuple):
    """All figures of one run of the benchmarks."""

    shapes: dict[str, Shape]
    public: Measurements
    rest: Measurements
    engine: Mapping[Cell, list[EngineFigures]]
    resumed: list[ResumeFigures]
    startups: dict[str, float]
    profile: Shares | None
    repetitions: int
    seconds: float


def written_report(found: ReportFigures) -> str:
    parts = [
        _opening(found),
        *(_public(found, store) for store in PUBLIC_HEADS),
        _agents(found),
        rest_section(found.rest),
        _startups(found.startups),
        _profile(found.profile) if found.profile is not None else "",
        ENGINE,
        *(_steps(found, store) for store in HEADS),
        _memory(found),
        _resumed(found.resumed),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _opening(found: ReportFigures) -> str:
    return f"""# What a step costs

Every figure comes through the public API (`Pointsman(...)`, `Workflow.of`, `app.start`, `execution.output()`) with
Python functions as tools, agents on a model server in a process of its own, and REST through an HTTP client; only the
last part measures the engine alone. CPU is that of all threads of the process. Each figure is the median of as many
fresh processes as there are repetitions and, in brackets, the least and the greatest; all cells take turns.
`make bench` writes this page.

{environment(found.repetitions, found.seconds)}"""


def environment(repetitions: int, seconds: float) -> str:
    """Describe machine, versions and effort of a run that just ended, as a Markdown list."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, msgspec {version('msgspec')}"
    effort = f"repetitions: {repetitions}, {seconds / 60:.0f} minutes"
    return f"""- {datetime.now(UTC):%Y-%m-%d}, Pointsman at {_commit()}, {effort}
- {_cpu()}, {os.cpu_count()} cores, shared with other work; load average at the end {load}
- {platform.platform()}, {versions}"""


PUBLIC_HEADS: Final = {
    "memory": """## In memory

µs per call of a node function. *First run*: the same in the first run of the process, with everything that happens once
(imports, checking and compiling the definition); the other columns are the second run.""",
    "sqlite": """## In SQLite, durable at each step

The default: the rows of a step are on the disk before the next step starts. A bare commit (one row of 200 bytes,
`sqlite3`, WAL, `synchronous=FULL`) took {cpu} µs of CPU and
{wall} µs of wall time in the same processes, half before and half after the run that is divided by it.""",
    "sqlite-async": """## In SQLite, durability `async`

Rows reach the disk within a tenth of a second. A bare commit took {cpu} µs of CPU and
{wall} µs of wall time.""",
}


def _public(found: ReportFigures, store: str) -> str:
    lines: list[Sequence[str]] = []
    cells = [cell for cell in found.public if cell.store == store and cell.shape != "agent"]
    durable = store != "memory"
    for cell in cells:
        shape, runs = found.shapes[cell.shape], found.public[cell]
        sizes = shape.public[store]
        title = f"{cell.shape}: {shape.title}" if cell.size == sizes[0] else ""
        goal = shape.public_goal.get(store, "") if cell.size == sizes[-1] else ""
        ratios = (
            [
                f"{median(one.cpu / one.bare_cpu for one in runs):.2f}",
                f"{median(one.wall / one.bare_wall for one in runs):.2f}",
            ]
            if durable
            else []
        )
        cpu, wall = spread([one.cpu for one in runs]), spread([one.wall for one in runs])
        first, peak = f"{median(one.first for one in runs):,.0f}", f"{median(one.peak_mb for one in runs):.0f}"
        lines.append([title, f"{cell.size:,}", cpu, wall, *ratios, first, peak, goal])
    if not lines:
        return ""
    commit = ["CPU ÷ bare commit", "wall ÷ bare commit"] if durable else []
    head = ["shape", "size", "CPU µs", "wall µs", *commit, "first run, CPU µs", "peak MB", "goal, CPU µs"]
    bare = [one for cell in cells for one in found.public[cell]]
    cpu, wall = spread([one.bare_cpu for one in bare]), spread([one.bare_wall for one in bare])
    return f"{PUBLIC_HEADS[store].format(cpu=cpu, wall=wall)}\n\n{table(head, lines)}"


def _agents(found: ReportFigures) -> str:
    lines: list[Sequence[str]] = []
    for cell in [cell for cell in found.public if cell.shape == "agent"]:
        runs, shape = found.public[cell], found.shapes[cell.shape]
        cpu = spread([one.cpu / 1000 for one in runs], 2)
        wall = spread([one.wall / 1000 for one in runs], 2)
        goal = shape.public_goal.get(cell.store, "") if cell.size == shape.public[cell.store][-1] else ""
        lines.append([cell.store, f"{cell.size}", cpu, wall, goal])
    if not lines:
        return ""
    return f"""## Agents on the OpenAI wire

One execution of one agent with one tool: each round is a request of Chat Completions over loopback HTTP and a call of a
Python function. ms per round, of this process; the model server is another process.

{table(["store", "rounds", "CPU ms", "wall ms", "goal, CPU ms"], lines)}"""


ENGINE: Final = """## The engine alone (executors replaced)

The runtime called directly, without the public API: the work of each step answers at once inside the process. A step
is a visit of control to a node. These figures show what the engine itself costs; no user reaches them."""

HEADS: Final = {
    "memory": "### In memory",
    "sqlite": """### In SQLite, every step on the disk before the next one

A bare commit (one small row, `sqlite3`, WAL, `synchronous=FULL`) took {cpu} µs of CPU
and {wall} µs on the wall, in the same processes, half before and half after what is compared with it.
How long the disk takes decides how the rows of a lone execution are written: below a few milliseconds in the event
loop's own thread; above it by another thread, which costs CPU and keeps the event loop free.""",
    "sqlite-async": """### In SQLite, rows up to a tenth of a second behind

The mode of durability `async`: a crash may take the last tenth of a second, and what it took is done again.""",
    "postgresql": """### In PostgreSQL, every step committed before the next one

CPU of this process; what the server spends is not counted. It is on the same machine, behind a socket. A bare commit
(one small row, `psycopg`) took {cpu} µs of CPU and {wall} µs on the wall.""",
}
"""Text before the figures of a store."""


def _steps(found: ReportFigures, store: str) -> str:
    lines: list[Sequence[str]] = []
    bare = [one for cell, runs in found.engine.items() for one in runs if cell.store == store and one.bare_cpu]
    for name, shape in found.shapes.items():
        sizes = [cell.size for cell in found.engine if (cell.shape, cell.store) == (name, store)]
        for size in sizes:
            runs = found.engine[Cell(ENGINE_ALONE, name, store, size)]
            goal = shape.goal.get(store, "") if size == sizes[-1] else ""
            ratios = [
                _ratio(runs, lambda one: one.cpu / one.bare_cpu),
                _ratio(runs, lambda one: one.wall / one.bare_wall),
            ]
            shown = f"{name}: {shape.title}" if size == sizes[0] else ""
            lines.append([shown, f"{size:,}", spread([one.cpu for one in runs]), *(ratios if bare else []), goal])
    if not lines:
        return ""
    head = ["shape", "size", "CPU µs per step", *(["CPU ÷ bare commit", "wall ÷ bare commit"] if bare else []), "goal"]
    if not bare:
        return f"{HEADS[store]}\n\n{table(head, lines)}"
    cpu, wall = spread([one.bare_cpu for one in bare]), spread([one.bare_wall for one in bare])
    return f"{HEADS[store].format(cpu=cpu, wall=wall)}\n\n{table(head, lines)}"


def _ratio(runs: list[EngineFigures], of: Callable[[EngineFigures], float]) -> str:
    return f"{median(of(one) for one in runs):.2f}" if all(one.bare_cpu for one in runs) else ""


def _memory(found: ReportFigures) -> str:
    lines = [
        [f"{name}, {store}", f"{size:,}", f"{median(r.peak_mb for r in runs):.0f}", spread([r.compile for r in runs])]
        for (_, name, store, size), runs in found.engine.items()
        if store == "memory"
    ]
    return f"""### Memory, and compiling

Peak resident size of the whole process, definition, plan and journal included; CPU of compiling, per node.

{table(["shape", "size", "peak MB", "compile µs per node"], lines)}"""


def _resumed(resumed: list[ResumeFigures]) -> str:
    lines = [
        [f"{one.steps:,}", f"{one.rows:,}", f"{one.cpu_ms:.0f}", f"{one.wall_ms:.0f}", f"{one.peak_mb:.0f}"]
        for one in resumed
    ]
    return f"""### Taking up an execution

Reading the journal of one execution from SQLite and folding it, as after a crash. Goal: 100,000 steps in less than a
second.

{table(["steps", "rows", "CPU ms", "wall ms", "peak MB"], lines)}"""


def _startups(startups: dict[str, float]) -> str:
    lines = [
        [f"`{name}`", f"{ms:.0f}", f"≤ {GOALS_MS[name]}" if name in GOALS_MS else ""] for name, ms in startups.items()
    ]
    return f"## Beginning\n\n{table(['process', 'CPU ms', 'goal'], lines)}"


def _profile(profile: Shares) -> str:
    below = [[f"`{name}`", f"{share:.0%}"] for name, share in profile.below]
    own = [[f"`{name}`", f"{share:.1%}"] for name, share in profile.own]
    return f"""## Where the time of the chain goes

Sampled ({profile.samples:,} samples), a chain of 1,000 in memory. With what it calls:

{table(["function", "share"], below)}

By itself:

{table(["function", "share"], own)}"""


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return platform.machine()


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True)
    return found.stdout.strip()
