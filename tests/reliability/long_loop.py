"""A loop of a hundred thousand steps, and then the resume of its execution: bounded memory, no recursion.

It runs in its own process, so that its peak memory is measured alone. Memory is measured after a tenth of the rounds
and at the end; a leak per round would show as a factor of ten.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, cast

from pointsman import Pointsman, Workflow
from pointsman.tools.functions import tool
from pointsman.values import JsonObject
from tests.quick_starts import run_module
from tests.reliability.findings import Finding, NotHere

STATM: Final = Path("/proc/self/statm")
GROWTH_MB_MAX: Final = 60
"""Maximum growth from a tenth of the rounds to the end. An execution that kept its rows would need hundreds of
megabytes."""
RESUME_MB_MAX: Final = 150
SHALLOW: Final = 250
"""Recursion limit that is enough for correct code; recursion per round would need thousands of frames."""


def document(rounds: int) -> JsonObject:
    return {
        "id": "long",
        "config": {"limits": {"steps": rounds * 3 + 100, "visits": rounds + 100}, "durability": "async"},
        "nodes": [
            {"id": "rounds", "type": "loop", "config": {"maxIterations": rounds}},
            {"id": "work", "type": "tool", "config": {"tool": "count"}, "outputs": {"last": "result"}},
            {"id": "ask", "type": "human", "config": {"message": "Done?", "options": [{"value": "yes"}]}},
        ],
        "edges": [
            {"source": "rounds", "target": "work", "mark": "body"},
            {"source": "work", "target": "rounds"},
            {"source": "rounds", "target": "ask", "mark": "exit"},
        ],
        "entry": "rounds",
    }


def resident_mb() -> float:
    pages = int(STATM.read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def run(store: str, rounds: int) -> JsonObject:
    """Run the loop until a person is asked."""
    seen = {"calls": 0, "early": 0.0}

    @tool
    async def count() -> int:
        """Count one round."""
        seen["calls"] += 1
        if seen["calls"] == rounds // 10:
            seen["early"] = resident_mb()
        return int(seen["calls"])

    async with Pointsman(store, tools=[count], model="scripted") as pointsman:
        execution = await pointsman.start(Workflow.of(document(rounds)), {})
        status = await execution.settled()
        return {
            "id": execution.id,
            "status": status,
            "calls": seen["calls"],
            "growth": resident_mb() - seen["early"],
            "rows": execution.state.seq,
        }


async def resume(store: str, name: str) -> JsonObject:
    """Open the execution again, answer its gate, and wait for its end."""

    @tool
    async def count() -> int:
        """Fail: it must not be called again."""
        raise AssertionError("a recorded step runs again")

    async with Pointsman(store, tools=[count], model="scripted") as pointsman:
        before, cpu, began = resident_mb(), time.process_time(), time.perf_counter()
        execution = await pointsman.open(name)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        growth = resident_mb() - before
        await execution.answer("ask", "yes")
        return {"status": await execution.settled(), "growth": growth, "seconds": took, "cpu": cpu}


def in_a_process(*words: str) -> JsonObject:
    done = run_module("tests.reliability.long_loop", *words)
    if done.returncode != 0:
        return {"error": done.stderr[-500:]}
    return cast("JsonObject", json.loads(done.stdout))


def examine(size: int, seed: int) -> Finding:
    """Run a loop of `size` rounds."""
    if not STATM.exists():
        raise NotHere("what a process has in memory is read from /proc")
    with tempfile.TemporaryDirectory() as name:
        store = f"sqlite:///{name}/store.db"
        went = in_a_process("run", store, str(size))
        if "error" in went:
            return Finding("it broke", (f"running: {went['error']}",))
        again = in_a_process("resume", store, str(went["id"]))
        if "error" in again:
            return Finding("its resume broke", (f"resuming: {again['error']}",))
    violations: list[str] = []
    if (went["status"], went["calls"]) != ("waiting", size):
        violations.append(f"it is {went['status']} after {went['calls']} of {size} rounds")
    if again["status"] != "completed":
        violations.append(f"resumed, it is {again['status']}")
    growth_mb, resumed = cast(float, went["growth"]), cast(float, again["growth"])
    if growth_mb > GROWTH_MB_MAX:
        violations.append(f"memory grew by {growth_mb:.0f} MB in nine tenths of the rounds")
    if resumed > RESUME_MB_MAX:
        violations.append(f"resuming took {resumed:.0f} MB")
    seconds, cpu = cast(float, again["seconds"]), cast(float, again["cpu"])
    figure = f"{went['rows']} rows; memory grew by {growth_mb:.0f} MB; resumed in {seconds:.2f} s ({cpu:.2f} s of CPU)"
    return Finding(figure, tuple(violations))


if __name__ == "__main__":
    sys.setrecursionlimit(SHALLOW * 2)
    verb, address, what = sys.argv[1:]
    found = asyncio.run(run(address, int(what)) if verb == "run" else resume(address, what))
    sys.stdout.write(json.dumps(found))
