"""Taking up an execution: `python -m bench.resume STEPS` prints what reading and folding a stored journal costs."""

from __future__ import annotations

import asyncio
import sys
import tempfile

import msgspec

from bench.engine_alone import Stage, execution_of
from bench.meter import Spent, peak_mb
from bench.shapes import read_shapes
from pointsman.store.api import open_store


class ResumeFigures(msgspec.Struct, frozen=True):
    """One execution, read again by a runtime that has never seen it."""

    steps: int
    rows: int
    cpu_ms: float
    wall_ms: float
    peak_mb: float


async def resumed(steps: int, address: str) -> ResumeFigures:
    """Run a loop of that many steps in memory, copy its rows into a file, and resume from there."""
    shape = read_shapes()["loop"]
    rounds = steps // 2
    memory = await open_store("memory:")
    await Stage(shape, rounds, memory).run("kept")
    execution = execution_of("kept", 0)
    store = await open_store(address)
    rows = 0
    pending: list[asyncio.Future[None]] = []
    async for row in memory.journal.read(execution):
        rows += 1
        pending.append(asyncio.ensure_future(store.journal.append(execution, row)))
    await asyncio.gather(*pending)
    await store.close()
    store = await open_store(address)
    stage = Stage(shape, rounds, store)
    spent = Spent()
    state = await stage.runtime.load(execution)
    cpu, wall = spent.cpu() / 1000, spent.wall() / 1000
    await store.close()
    return ResumeFigures(state.counters.steps, rows, cpu, wall, peak_mb())


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as beside:
        found = asyncio.run(resumed(int(sys.argv[1]), f"sqlite:///{beside}/store.db"))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
