"""The engine alone, executors replaced: `python -m bench.engine_alone SHAPE SIZE STORE [ADDRESS]` prints one sample.

The runtime is called directly and each step is answered at once. The difference to `bench.public` is the cost of
everything around the engine: checks, tools, models, the app.

memory          nothing is durable
sqlite          a new file; every row is on the disk before what follows from it
sqlite-async    the same with the mode of durability `async`: rows are up to a tenth of a second behind
postgresql      an ADDRESS where nothing is yet: `postgresql://…?schema=new`

The floor of durable steps is measured in the same process, before and after: a plain loop that commits one small row at
a time. What a database server spends is not counted.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from bench.meter import ROW, Spent, each, in_sqlite, peak_mb
from bench.shapes import Shape, read_shapes
from pointsman.cli import YOUNG_OBJECTS_MAX
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.compile import compile_workflow
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Start, ToolCall, WorkDone, WorkFailed
from pointsman.engine.state import ExecutionState
from pointsman.ports import ExecutionPort
from pointsman.runtime.dependencies import Feed, SystemClock
from pointsman.runtime.local import LocalRuntime
from pointsman.store.api import Store, open_store
from pointsman.values import ExecutionId, Json, JsonObject

WARM_SIZES: Final = (100, 1000)
"""The least and greatest size of the run before: what runs for the first time runs slower, Python has not specialised
its code yet, and what only large rows need is loaded with the first."""


class EngineFigures(msgspec.Struct, frozen=True):
    """The measurements of one process. Times in µs."""

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

    async def child(self, reference: str, parent: ExecutionState, node: str) -> tuple[Plan, Start]:
        return self._plans[reference], Start(input={})


def plan_of(document: JsonObject) -> Plan:
    workflow, problems = WorkflowDefinition.from_document(document)
    assert workflow is not None, problems
    return compile_workflow(workflow)


class Stage:
    """A shape at a size, ready to be run in a store: what the measurement itself needs is made before it."""

    def __init__(
        self, shape: Shape, size: int, store: Store, plan: Plan | None = None, *, durability: str = "step"
    ) -> None:
        self._plan = plan or plan_of(shape.document(size))
        self._start = Start(input=shape.start(size), options={"durability": durability})
        self._at_once = shape.at_once(size)
        self._steps = 0
        self.runtime = LocalRuntime(
            store, Children(shape, size), Answers(size), SystemClock(), Feed(), on_ended=self._ended
        )

    async def run(self, name: str) -> int:
        """Run it to its end; the steps that were taken."""
        self._steps = 0
        await asyncio.gather(*(self._one(execution_of(name, one)) for one in range(self._at_once)))
        await self.runtime.close()
        return self._steps

    async def _ended(self, state: ExecutionState) -> None:
        """Children are executions too."""
        self._steps += state.counters.steps

    async def _one(self, execution: ExecutionId) -> None:
        driver = await self.runtime.start(execution, self._plan, self._start)
        await driver.until(lambda: driver.state.ended)
        assert driver.state.status == "completed", driver.state.outcome.failure


def execution_of(name: str, number: int) -> ExecutionId:
    return ExecutionId(f"exec-{name}-{number}")


async def measure(name: str, size: int, store: str, address: str, beside: Path) -> EngineFigures:
    shape = read_shapes()[name]
    workflow, problems = WorkflowDefinition.from_document(shape.document(size))
    assert workflow is not None, problems
    spent = Spent()
    plan = compile_workflow(workflow)
    compiled = spent.cpu() / len(workflow.nodes)
    opened = await open_store(address)
    durability = "async" if store == "sqlite-async" else "step"
    least, greatest = WARM_SIZES
    await Stage(shape, min(max(size, least), greatest), opened, durability=durability).run("warm")
    stage = Stage(shape, size, opened, plan, durability=durability)
    bare = bare_commits(store, address, beside / "before.db")
    gc.collect()  # Otherwise a collection of what was made before falls into some runs: 20 µs per step of a short one.
    spent = Spent()
    steps = await stage.run("measured")
    cpu, wall = spent.cpu() / steps, spent.wall() / steps
    bare = mean(bare, bare_commits(store, address, beside / "after.db"))
    await opened.close()
    return EngineFigures(name, size, store, steps, cpu, wall, compiled, *bare, peak_mb())


def mean(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2


def main() -> None:
    name, size, store, *given = sys.argv[1:]
    gc.set_threshold(YOUNG_OBJECTS_MAX)  # as every process of the command line
    with tempfile.TemporaryDirectory(prefix="bench-") as beside:
        address = given[0] if given else "memory:" if store == "memory" else f"sqlite:///{beside}/store.db"
        found = asyncio.run(measure(name, int(size), store, address, Path(beside)))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


def bare_commits(store: str, address: str, path: Path) -> tuple[float, float]:
    """CPU and wall time of one commit by itself, in µs; zeros where no step waits for one. `path`: a new file."""
    if store == "sqlite":
        return each(in_sqlite(path))
    return each(in_postgresql(address)) if store == "postgresql" else (0.0, 0.0)


@contextmanager
def in_postgresql(address: str) -> Generator[Callable[[], object], None, None]:
    import psycopg  # Only this store needs it.

    with psycopg.connect(_without_schema(address), autocommit=True) as connection:
        connection.execute("CREATE TABLE bare_rows (id bigserial PRIMARY KEY, data bytea)")
        yield lambda: connection.execute("INSERT INTO bare_rows (data) VALUES (%s)", (ROW,))
        connection.execute("DROP TABLE bare_rows")


def _without_schema(address: str) -> str:
    """The address as other programs know it."""
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "schema"]
    return parts._replace(query=urlencode(kept)).geturl()


class Answers:
    """Executors of a run of some size."""

    def __init__(self, size: int) -> None:
        self._by_kind = {"tool": Tool(size), "agent": Agent(size), "tool_executor": ToolExecutor()}

    def executor_for(self, command: Execute) -> Tool | Agent | ToolExecutor:
        return self._by_kind[command.work]

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Nothing but its definition and its input decides a result."""
        return None

    async def has(self, need: str) -> bool:
        """Every attempt can be performed here: none waits for another process."""
        return True


class Tool:
    """`answer` returns 1, `count` the number of its calls, `wide` an object with as many keys as the size."""

    def __init__(self, size: int) -> None:
        self._wide: JsonObject = {f"key_{number}": number for number in range(size)}

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        tool = command.input["tool"]
        result: Json = self._wide if tool == "wide" else command.step.visit if tool == "count" else 1
        return WorkDone(step=command.step, attempt=command.attempt, result=result)


class Agent:
    """Calls a tool as often as the size, then answers, each time with another text."""

    def __init__(self, size: int) -> None:
        self._rounds = size

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        turn = command.step.visit
        assert len(command.messages) == 2 * (turn - 1)
        text = f"I look again ({turn})."
        said: tuple[Json, ...] = ({"role": "assistant", "content": text},)
        if turn > self._rounds:
            return WorkDone(step=command.step, attempt=command.attempt, result=text, messages=said, next="done")
        calls = (ToolCall(id=f"call-{turn}", name="look", arguments={"at": turn}),)
        return WorkDone(step=command.step, attempt=command.attempt, result=text, messages=said, pending=calls)


class ToolExecutor:
    """Answers the calls an agent left pending."""

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        calls = command.input["calls"]
        assert isinstance(calls, list)
        seen: list[Json] = [f"what there is to see, {command.step.visit}" for _ in calls]
        said: tuple[Json, ...] = tuple({"role": "tool", "content": text} for text in seen)
        return WorkDone(step=command.step, attempt=command.attempt, result=seen, messages=said)


if __name__ == "__main__":
    main()
