"""One measurement, in a process of its own: `python -m bench.measure SHAPE SIZE STORE` prints it as JSON.

The floor of durable steps is measured in the same process, before and after: a plain loop over `sqlite3` that commits
one small row at a time.
"""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from bench.answers import Answers
from bench.shapes import Shape, read_shapes
from pointsman.definition.workflow import Workflow
from pointsman.engine.compile import compile_workflow
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Start
from pointsman.engine.state import ExecutionState
from pointsman.journal.store import Store, open_store
from pointsman.runtime.clock import SystemClock
from pointsman.runtime.feed import Feed
from pointsman.runtime.local import LocalRuntime
from pointsman.values import ExecutionId, JsonObject

WARM_SIZE: Final = 100
"""What runs for the first time runs slower: Python has not specialised its code yet."""
BARE_COMMITS: Final = 300
BARE_ROW: Final = b"x" * 200


class Measured(msgspec.Struct, frozen=True):
    """What one process found out. Times in µs."""

    shape: str
    size: int
    store: str
    steps: int
    """Visits of control to a node, those of children included: what costs are divided by."""
    cpu: float
    """CPU per step, all threads of the process."""
    wall: float
    compile: float
    """CPU per node."""
    bare_cpu: float
    """CPU per bare durable commit; 0 where nothing is durable."""
    bare_wall: float
    peak_mb: float


class Children:
    """Finds the plans of sub-workflows."""

    def __init__(self, shape: Shape, size: int) -> None:
        self._plans = {name: plan_of(shape.child(name, size)) for name in shape.children}

    async def pinned(self, definition: str, options: JsonObject) -> Plan:
        raise AssertionError("nothing is taken up again here")

    async def child(self, reference: str, parent: ExecutionState) -> tuple[Plan, Start]:
        return self._plans[reference], Start(input={})


class Spent:
    """CPU and wall time since it was made, in µs."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def cpu(self) -> float:
        return (time.process_time() - self._cpu) * 1e6

    def wall(self) -> float:
        return (time.perf_counter() - self._wall) * 1e6


def plan_of(document: JsonObject) -> Plan:
    workflow, problems = Workflow.from_document(document)
    assert workflow is not None, problems
    return compile_workflow(workflow)


async def run(shape: Shape, size: int, store: Store, plan: Plan, name: str) -> tuple[int, ExecutionId]:
    """Run it to its end. The steps taken, and the execution that was started first."""
    runtime = LocalRuntime(store, Children(shape, size), Answers(size), SystemClock(), Feed())
    given = shape.start(size)

    async def one(number: int) -> int:
        execution = ExecutionId(f"exec-{name}-{number}")
        driver = await runtime.start(execution, plan, Start(input=given))
        await driver.until(lambda: driver.state.ended)
        assert driver.state.status == "completed", driver.state.failure
        runtime.let_go(execution)
        return driver.state.taken

    steps = sum(await asyncio.gather(*(one(number) for number in range(shape.at_once(size)))))
    steps += sum(child.state.taken for child in runtime.drivers.values())
    await runtime.close()
    return steps, ExecutionId(f"exec-{name}-0")


async def measure(name: str, size: int, address: str, beside: Path) -> Measured:
    shape = read_shapes()[name]
    workflow, problems = Workflow.from_document(shape.document(size))
    assert workflow is not None, problems
    spent = Spent()
    plan = compile_workflow(workflow)
    compiled = spent.cpu() / len(workflow.nodes)
    store = await open_store(address)
    await run(shape, WARM_SIZE, store, plan_of(shape.document(WARM_SIZE)), "warm")
    bare = bare_commits(beside / "before.db") if address != "memory:" else (0.0, 0.0)
    spent = Spent()
    steps, _ = await run(shape, size, store, plan, "measured")
    cpu, wall = spent.cpu() / steps, spent.wall() / steps
    if address != "memory:":
        bare = mean(bare, bare_commits(beside / "after.db"))
    await store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Measured(name, size, address.partition(":")[0], steps, cpu, wall, compiled, *bare, peak)


def bare_commits(path: Path) -> tuple[float, float]:
    """CPU and wall time of one durable commit of one small row, by itself."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)")
    insert(connection, BARE_COMMITS // 10)
    spent = Spent()
    insert(connection, BARE_COMMITS)
    found = spent.cpu() / BARE_COMMITS, spent.wall() / BARE_COMMITS
    connection.close()
    return found


def mean(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def insert(connection: sqlite3.Connection, rows: int) -> None:
    for _ in range(rows):
        connection.execute("INSERT INTO rows (data) VALUES (?)", (BARE_ROW,))


def main() -> None:
    name, size, store = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="bench-") as beside:
        address = "memory:" if store == "memory" else f"sqlite:///{beside}/store.db"
        found = asyncio.run(measure(name, int(size), address, Path(beside)))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()
