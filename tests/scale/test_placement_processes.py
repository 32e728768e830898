"""`pointsman serve` and `pointsman worker` on a real engine and a real PostgreSQL: killed, stopped, and cut off."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.engine_servers import EngineProcess
from tests.patience import PATIENCE_S
from tests.scale.test_three_servers import Call, chain
from tests.server.processes import ROOT, ServerProcess

pytestmark = pytest.mark.scale

STEPS: Final = 12
STARTED: Final = 12
ENDED_S_MAX: Final = 120.0


class Installation:
    """One server, workers, and the calls of their tools."""

    def __init__(self, store: str, engine: EngineProcess, folder: Path) -> None:
        self.engine = engine
        self.workers: list[ServerProcess] = []
        self.client = httpx2.AsyncClient(timeout=30)
        self._store = store
        self._folder = folder
        self._file = folder / "calls"
        self._file.touch()

    async def add(self, stack: AsyncExitStack, *command: str, charges: bool = True) -> ServerProcess:
        """Start a process, which is killed at the end of the test."""
        place = self._folder / f"process-{len(self.workers)}-{bool(command)}"
        place.mkdir()
        module = ("tests.server.charging", str(self._file)) if charges else ("pointsman",)
        given = (*command, "--runtime", self.engine.url) if command else ()
        settings = f'runtime = "{self.engine.url}"'
        one = ServerProcess(self._store, folder=place, module=module, command=given, settings=settings)
        stack.push_async_callback(one.stop, signal.SIGKILL)
        await one.begin()
        if command:
            self.workers.append(one)
        return one

    async def request(self, method: str, path: str, body: object = None) -> httpx2.Response:
        return await self.client.request(method, f"/api/workflows{path}", json=body)

    async def start(self, workflow: str) -> str:
        answer = await self.request("POST", f"/{workflow}/execute", {"input": {}})
        assert answer.status_code in (200, 202), answer.text
        return str(answer.json()["executionId"])

    async def completed(self, executions: list[str]) -> None:
        for execution in executions:
            await until(lambda execution=execution: self._is(execution, "completed"), ENDED_S_MAX)

    async def _is(self, execution: str, status: str) -> bool:
        seen = (await self.request("GET", f"/executions/{execution}")).json()["status"]
        assert seen not in ("failed", "cancelled"), f"{execution} is {seen}"
        return seen == status

    @property
    def calls(self) -> list[Call]:
        lines = [line.split(" ") for line in self._file.read_text(encoding="utf-8").splitlines()]
        return [Call(float(at), int(process), *names) for at, process, *names in lines]

    def busiest(self) -> ServerProcess:
        (pid, _), *_ = Counter(call.process for call in self.calls).most_common(1)
        return next(one for one in self.workers if one.process is not None and one.process.pid == pid)

    async def have_begun(self, executions: list[str]) -> bool:
        return {call.execution for call in self.calls} >= {*executions}

    async def until_calls(self, number: int) -> None:
        async def reached() -> bool:
            return len(self.calls) >= number

        await until(reached)


async def until(holds: Callable[[], Awaitable[bool]], patience_s: float = PATIENCE_S) -> None:
    async with asyncio.timeout(patience_s):
        while not await holds():  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.05)


@asynccontextmanager
async def installation(
    store: str, engine: EngineProcess, folder: Path, *, workers: int
) -> AsyncGenerator[tuple[Installation, AsyncExitStack], None]:
    async with AsyncExitStack() as stack:
        one = Installation(store, engine, folder)
        server = await one.add(stack)
        one.client = await stack.enter_async_context(httpx2.AsyncClient(base_url=server.url, timeout=30))
        for _ in range(workers):
            await one.add(stack, "worker", "--executions", "50")
        answer = await one.request("POST", "", chain("short", STEPS))
        assert answer.status_code == 201, answer.text
        yield one, stack


def check_calls(one: Installation, executions: int, in_flight: set[str] | None = None) -> None:
    """Check that each step was performed, and that only calls in flight were repeated."""
    begun = Counter(call.key for call in one.calls)
    assert len(begun) == executions * STEPS
    assert {key for key, times in begun.items() if times > 1} <= (in_flight or set())


async def test_a_killed_worker_repeats_only_the_calls_in_flight(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=3) as (one, _):
        started = [await one.start("short") for _ in range(STARTED)]
        await one.until_calls(STARTED * 3)
        lost = one.busiest()
        assert lost.process is not None
        lost.process.kill()
        await lost.process.wait()
        last = {call.execution: call.key for call in one.calls if call.process == lost.process.pid}
        await one.completed(started)
        check_calls(one, STARTED, {*last.values()})
        assert {call.process for call in one.calls} == {one.process.pid for one in one.workers if one.process}


async def test_a_stopped_worker_hands_its_executions_over_without_a_lost_step(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=2) as (one, _):
        started = [await one.start("short") for _ in range(STARTED)]
        await one.until_calls(STARTED * 3)
        assert await one.busiest().stop(signal.SIGTERM) == 0
        await one.completed(started)
        check_calls(one, STARTED)


async def test_executions_go_on_while_the_engine_is_away_and_new_ones_run_when_it_is_back(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=2) as (one, _):
        started = [await one.start("short") for _ in range(3)]
        await until(lambda: one.have_begun(started))
        engine_server.kill()
        later = [await one.start("short") for _ in range(3)]
        await one.completed(started)
        assert not {call.execution for call in one.calls} & {*later}
        engine_server.start()
        await one.completed(later)
        check_calls(one, 6)


@pytest.mark.scale("full")  # A worker is asked again after a minute.
async def test_an_execution_waits_for_a_worker_with_the_tool_that_it_needs(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=0) as (one, stack):
        poor = await one.add(stack, "worker", charges=False)
        execution = await one.start("short")

        async def lacks() -> bool:
            return "charge" in (await one.request("GET", f"/executions/{execution}")).text

        await until(lacks)
        assert await poor.stop() == 0
        await one.add(stack, "worker")
        await one.completed([execution])
        check_calls(one, 1)


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("temporal://127.0.0.1:1", ("engine-unreachable", "temporal server start-dev")),
        ("temporal://{address}/nowhere", ("engine-unreachable", "temporal operator namespace create nowhere")),
        ("kafka://here", ("bad-runtime-address", "temporal://HOST:PORT")),
    ],
    ids=["no server", "no namespace", "no engine"],
)
async def test_a_worker_that_cannot_use_its_engine_names_the_next_step(
    runtime: str, expected: tuple[str, str], postgres_url: str, temporal_server: EngineProcess
) -> None:
    code, told = await run("worker", runtime.format(address=temporal_server.url.partition("//")[2]), postgres_url)
    assert code != 0
    assert all(part in told for part in expected), told


async def test_an_engine_needs_a_store_that_several_processes_share(tmp_path: Path) -> None:
    code, told = await run("serve", "temporal://127.0.0.1:7233", f"sqlite:///{tmp_path / 'a.db'}")
    assert code != 0
    assert "store-cannot-be-shared" in told


async def run(command: str, runtime: str, store: str) -> tuple[int | None, str]:
    """Run a command that ends at once; return its exit code and its messages."""
    given = (command, "--runtime", runtime, "--store", store)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pointsman",
        *given,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    _, told = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    return process.returncode, " ".join(told.decode().split())
