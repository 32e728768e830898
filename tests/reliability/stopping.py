"""SIGTERM to a worker during running steps: it exits cleanly at once, and the next worker finishes everything."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

from pointsman import Pointsman, Workflow
from pointsman.engine.events.steps import StepSucceeded
from pointsman.models.script import read_script
from pointsman.ports import Row
from pointsman.store.api import open_store
from pointsman.values import ExecutionId, Json, JsonObject
from tests.quick_starts import quick_starts
from tests.reliability.findings import Finding
from tests.reliability.killing import wrong_in

ROOT: Final = Path(__file__).parents[2]
EXECUTIONS: Final = 5
STEPS: Final = 5
PATIENCE_S: Final = 60.0
END_S_MAX: Final = 20.0
"""Limit that only a hang exceeds; the figure contains the real time."""
SCRIPT: Final = "rules:\n  - {text: said, delay: 150ms}\n"


def document() -> JsonObject:
    nodes: list[Json] = [
        {"id": f"step{number}", "type": "agent", "config": {"prompt": "Say."}} for number in range(STEPS)
    ]
    edges: list[Json] = [{"source": f"step{number}", "target": f"step{number + 1}"} for number in range(STEPS - 1)]
    return {"id": "said", "nodes": nodes, "edges": edges}


def keeper(store: str) -> subprocess.Popen[str]:
    with quick_starts():
        return subprocess.Popen(
            [sys.executable, "-m", "pointsman", "worker", "--store", store],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )


async def begin(store: str) -> list[ExecutionId]:
    """Start executions in a process that exits before they do anything."""
    async with Pointsman(store, script=read_script(SCRIPT), model="scripted") as pointsman:
        return [(await pointsman.start(Workflow.of(document()), {})).id for _ in range(EXECUTIONS)]


async def rows_of(store: str, names: list[ExecutionId]) -> dict[ExecutionId, list[Row]]:
    opened = await open_store(store)
    try:
        return {name: [row async for row in opened.journal.read(name)] for name in names}
    finally:
        await opened.close()


def done_in(rows: dict[ExecutionId, list[Row]]) -> int:
    return sum(isinstance(event, StepSucceeded) for found in rows.values() for row in found for event in row.events)


async def until_done(store: str, names: list[ExecutionId], steps: int) -> int:
    """Return the number of recorded steps once it reaches `steps`."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done = done_in(await rows_of(store, names))
        if done >= steps or time.monotonic() > deadline:
            return done
        await asyncio.sleep(0.05)


async def stop(process: subprocess.Popen[str], violations: list[str]) -> float:
    """Send SIGTERM and return the seconds until the exit."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        _, error = await asyncio.to_thread(process.communicate, timeout=END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        violations.append(f"it did not end in {END_S_MAX:g} s")
        return END_S_MAX
    if process.returncode != 0:
        violations.append(f"it ended with {process.returncode}: {error[-300:]}")
    if "Traceback" in error:
        violations.append(f"it ended with a traceback: {error[-300:]}")
    return time.monotonic() - began


async def one_round(seed: str) -> tuple[list[str], float]:
    violations: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        store = f"sqlite:///{name}/store.db"
        names = await begin(store)
        goal = Random(seed).randint(1, EXECUTIONS * (STEPS - 2))
        with keeper(store) as process:
            at = await until_done(store, names, goal)
            took = await stop(process, violations)
        if not goal <= at < EXECUTIONS * STEPS:
            violations.append(f"stopped after {at} steps: nothing ran that could be stopped")
        with keeper(store) as process:
            await until_done(store, names, EXECUTIONS * STEPS)
            await stop(process, violations)
        for execution, rows in (await rows_of(store, names)).items():
            violations += [f"{execution}: {line}" for line in wrong_in(rows, "completed")]
    return violations, took


def examine(size: int, seed: int) -> Finding:
    """Stop `size` workers."""
    violations, slowest = list[str](), 0.0
    for number in range(size):
        wrong, took = asyncio.run(one_round(f"{seed}:{number}"))
        violations += wrong
        slowest = max(slowest, took)
    return Finding(f"{size} stops, the slowest took {slowest:.2f} s; {len(violations)} violations", tuple(violations))
