"""An installation in processes of their own: servers, workers, a real engine and a real PostgreSQL, with wires between
them that a test cuts.

    server ──┬── PostgreSQL wire ── PostgreSQL          Temporal   worker ── wire ── Temporal
    worker ──┘                                          Restate    Restate ── balancer ── wire ── worker

The balancer leaves out workers that do not answer their probe `/health`.
"""

from __future__ import annotations

import asyncio
import math
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import httpx2

from pointsman.store.postgres.connections import address_of
from pointsman.values import Json, JsonObject
from tests.engine_servers import EngineProcess, RestateServer, TemporalServer
from tests.patience import PATIENCE_S
from tests.postgres_wire import Wire
from tests.server.charge_cli import TAKES_S
from tests.server.processes import ServerProcess, free_port
from tests.tcp_wire import TcpWire

STEPS: Final = 12
CHARGING: Final = "tests.server.charge_cli"
"""`pointsman` with the tool `charge`, which records its calls."""
ENDED_S_MAX: Final = 300.0
HEALTH_S: Final = 2.0
"""Pause between two health checks of the balancer, and the time that an answer may take."""


class Call(NamedTuple):
    """A call of the tool that began."""

    at: float
    process: int
    execution: str
    key: str


def chain(name: str, steps: int, *, seconds: float = TAKES_S) -> JsonObject:
    """Return a workflow that calls the tool `charge` so many times, one call after the other."""
    call: JsonObject = {"tool": "charge", "parameters": {"seconds": seconds}}
    nodes: list[Json] = [{"id": f"n{number}", "type": "tool", "config": call} for number in range(steps)]
    edges: list[Json] = [{"source": f"n{number}", "target": f"n{number + 1}"} for number in range(steps - 1)]
    return {"pointsman": 1, "id": name, "nodes": nodes, "edges": edges}


FLOWS: Final = (chain("short", STEPS),)


def calls_in(file: Path) -> list[Call]:
    """Return the calls that `tests.server.charge_cli` has recorded."""
    lines = [line.split(" ") for line in file.read_text(encoding="utf-8").splitlines()]
    return [Call(float(at), int(process), *names) for at, process, *names in lines]


def behind(url: str, wire: Wire) -> str:
    """Return the address of a store through a wire."""
    host = host_of(url)
    return url.replace(quote(host, safe=""), quote(str(wire.folder), safe=""))


def host_of(url: str) -> str:
    pairs = (pair.split("=", 1) for pair in address_of(url).conninfo.split(" ") if "=" in pair)
    return dict(pairs)["host"].strip("'")


async def until(holds: Callable[[], Awaitable[bool]], patience_s: float = PATIENCE_S) -> None:
    async with asyncio.timeout(patience_s):
        while not await holds():  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.05)


class WorkerProcess(NamedTuple):
    """A worker, and its connections."""

    server: ServerProcess
    store: Wire
    engine: tuple[TcpWire, ...]
    probes: int

    @property
    def pid(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    def send(self, number: signal.Signals) -> None:
        assert self.server.process is not None
        self.server.process.send_signal(number)


class Installation:
    """One server, workers, and the calls of their tools."""

    def __init__(self, store: str, engine: EngineProcess | None, folder: Path, stack: AsyncExitStack) -> None:
        """Without an engine, the server drives everything."""
        self.engine = engine
        self.servers: list[ServerProcess] = []
        self.workers: list[WorkerProcess] = []
        self.client = httpx2.AsyncClient(timeout=30)
        self._store = store
        self._folder = folder
        self._stack = stack
        self._file = folder / "calls"
        self._file.touch()
        self._balancer: TcpWire | None = None
        self._begun = 0
        self._prober = httpx2.AsyncClient(timeout=HEALTH_S)
        stack.push_async_callback(self._prober.aclose)

    async def serve(self, *, module: str = CHARGING) -> ServerProcess:
        """Start a server; further requests go to it."""
        one = await self._begin(self._store, "" if self.engine is None else self.engine.url, (), module)
        self.servers.append(one)
        self.client = await self._stack.enter_async_context(httpx2.AsyncClient(base_url=one.url, timeout=30))
        return one

    async def add_worker(self, *options: str, at_a_time: int = 50, module: str = CHARGING) -> WorkerProcess:
        """Start a worker, which is killed at the end of the test. `module`: the program that it runs."""
        wire = await self._stack.enter_async_context(Wire(Path(host_of(self._store))))
        url, wires = await self._engine_wires()
        probes = free_port()
        given = ("--executions", str(at_a_time), "--probes", f"127.0.0.1:{probes}", "--runtime", url)
        command = ("worker", *given, *options)
        server = await self._begin(behind(self._store, wire), url, command, module)
        self.workers.append(WorkerProcess(server, wire, wires, probes))
        return self.workers[-1]

    async def _begin(self, store: str, engine: str, command: tuple[str, ...], module: str) -> ServerProcess:
        self._begun += 1
        place = self._folder / f"process-{self._begun}"
        place.mkdir()
        program = ("pointsman",) if module == "pointsman" else (module, str(self._file))
        settings = f'runtime = "{engine}"' if engine else ""
        one = ServerProcess(store, folder=place, module=program, command=command, settings=settings)
        self._stack.push_async_callback(one.stop, signal.SIGKILL)
        await one.begin()
        return one

    async def _engine_wires(self) -> tuple[str, tuple[TcpWire, ...]]:
        """Return the address of the engine for a new worker, through wires of its own."""
        assert self.engine is not None, "workers need an engine"
        server = self.engine.server
        if isinstance(server, TemporalServer):
            wire = await self._stack.enter_async_context(TcpWire(server.port))
            return f"temporal://127.0.0.1:{wire.port}", (wire,)
        assert isinstance(server, RestateServer)
        if self._balancer is None:
            self._balancer = await self._stack.enter_async_context(TcpWire())
            checking = asyncio.create_task(self._check_health(self._balancer))
            self._stack.callback(checking.cancel)
        own, ingress, admin = free_port(), *(int(url.rpartition(":")[2]) for url in (server.ingress, server.admin))
        calls = await self._stack.enter_async_context(TcpWire(own))
        wakes = await self._stack.enter_async_context(TcpWire(ingress))
        place = f"listen=127.0.0.1:{own}&address=http://127.0.0.1:{self._balancer.port}"
        return f"restate://127.0.0.1:{wakes.port}?admin={admin}&{place}", (calls, wakes)

    async def _check_health(self, balancer: TcpWire) -> None:
        """Let the balancer use the workers that answer."""
        while True:
            workers = [*self.workers]
            are_healthy = await asyncio.gather(*(self._is_healthy(one) for one in workers))
            healthy = [one.engine[0].port for one, is_healthy in zip(workers, are_healthy, strict=True) if is_healthy]
            balancer.targets = healthy
            await asyncio.sleep(HEALTH_S)

    async def _is_healthy(self, worker: WorkerProcess) -> bool:
        try:
            answer = await self._prober.get(f"http://127.0.0.1:{worker.probes}/health")
        except httpx2.HTTPError:
            return False
        return answer.is_success

    async def request(self, method: str, path: str, body: object = None) -> httpx2.Response:
        return await self.client.request(method, f"/api/workflows{path}", json=body)

    async def save(self, document: JsonObject) -> None:
        answer = await self.request("POST", "", document)
        assert answer.status_code == 201, answer.text

    async def start(self, workflow: str) -> str:
        answer = await self.request("POST", f"/{workflow}/execute", {"input": {}})
        assert answer.status_code in (200, 202), answer.text
        return str(answer.json()["executionId"])

    async def completed(self, executions: Iterable[str]) -> None:
        for execution in executions:
            await until(lambda execution=execution: self.has(execution, "completed"), ENDED_S_MAX)

    async def has(self, execution: str, status: str) -> bool:
        answer = await self.request("GET", f"/executions/{execution}")
        if answer.status_code == 503:  # The store is away.
            return False
        seen = answer.json()["status"]
        assert seen not in ("failed", "cancelled"), f"{execution} is {seen}"
        return seen == status

    @property
    def calls(self) -> list[Call]:
        return calls_in(self._file)

    def last_calls(self, before: float = math.inf) -> list[Call]:
        """Return the last call of each execution."""
        return [*{call.execution: call for call in self.calls if call.at < before}.values()]

    def busiest(self) -> WorkerProcess:
        """Return the worker that drives most executions now."""
        (pid, _), *_ = Counter(call.process for call in self.last_calls()).most_common(1)
        return next(one for one in self.workers if one.pid == pid)

    def in_flight(self, worker: WorkerProcess) -> set[str]:
        """Return the keys of the last calls of the executions that a worker drives."""
        return {call.key for call in self.last_calls() if call.process == worker.pid}

    async def until_begun(self, executions: Iterable[str]) -> None:
        """Wait until each execution has called its tool."""

        async def begun() -> bool:
            return {call.execution for call in self.calls} >= {*executions}

        await until(begun)

    async def until_calls(self, number: int) -> None:
        async def reached() -> bool:
            return len(self.calls) >= number

        await until(reached)

    def check_calls(self, executions: int, in_flight: Iterable[str] = (), *, steps: int = STEPS) -> None:
        """Check that each step was performed, and that only calls in flight were repeated, once."""
        begun = Counter(call.key for call in self.calls)
        assert len(begun) == executions * steps
        repeated = {key for key, times in begun.items() if times > 1}
        assert repeated <= {*in_flight}, f"{len(repeated - {*in_flight})} steps began twice"
        assert max(begun.values()) <= 2

    def longest_pause_s(self) -> float:
        """Return the longest time between two calls of an execution."""
        times: dict[str, list[float]] = {}
        for call in self.calls:
            times.setdefault(call.execution, []).append(call.at)
        return max((later - at for ats in times.values() for at, later in pairwise(ats)), default=0.0)

    def hand_overs_s(self, worker: WorkerProcess, fell: float) -> list[float]:
        """Return how long each execution of a lost worker was still after it fell (unix seconds), in rising order."""
        lost = {call.execution for call in self.last_calls(fell) if call.process == worker.pid}
        first: dict[str, float] = {}
        for call in self.calls:
            if call.execution in lost and call.at >= fell and call.process != worker.pid:
                first.setdefault(call.execution, call.at - fell)
        return sorted(first.values())


@asynccontextmanager
async def installation(
    store: str,
    engine: EngineProcess | None,
    folder: Path,
    *,
    workers: int,
    at_a_time: int = 50,
    flows: Sequence[JsonObject] = FLOWS,
) -> AsyncGenerator[Installation, None]:
    async with AsyncExitStack() as stack:
        one = Installation(store, engine, folder, stack)
        await one.serve()
        for _ in range(workers):
            await one.add_worker(at_a_time=at_a_time)
        for document in flows:
            await one.save(document)
        yield one
