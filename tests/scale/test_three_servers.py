"""Three servers on one PostgreSQL store behind a balancer that sends every request to a random one."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Final

import httpx2
import pytest

from pointsman.values import JsonObject
from tests.postgres_wire import Wire
from tests.scale.cluster import CHARGING, STEPS, Call, behind, calls_in, chain, host_of
from tests.server.processes import ServerProcess

pytestmark = pytest.mark.scale

LONG_STEPS: Final = 30
ENDED_S_MAX: Final = 300.0
REPLACED_S_MAX: Final = 15.0
WARM: Final[JsonObject] = {
    "pointsman": 1,
    "id": "warm",
    "nodes": [{"id": "sum", "type": "transform", "config": {"set": {"n": "1 + 1"}}}],
    "edges": [],
}
"""Each server executes it before a test begins: the first execution of a process takes seconds on a busy machine."""
MACHINE_S: Final = 3.0
"""Allowance for a busy machine."""


class Servers:
    """Three servers, and the balancer."""

    def __init__(self, processes: list[ServerProcess], wires: list[Wire], file: Path, seed: int) -> None:
        self.processes = processes
        self.wires = wires
        self.random = Random(seed)
        self.clients = [httpx2.AsyncClient(base_url=one.url, timeout=30) for one in processes]
        self._file = file

    async def request(self, method: str, path: str, body: JsonObject | None = None, **more: str) -> httpx2.Response:
        client = self.random.choice(self.clients)
        return await client.request(method, f"/api/workflows{path}", json=body, headers=more)

    async def start(self, workflow: str, key: str) -> str:
        answer = await self.request("POST", f"/{workflow}/execute", {"input": {}}, **{"idempotency-key": key})
        assert answer.status_code in (200, 202), answer.text
        return str(answer.json()["executionId"])

    async def completed(self, executions: Iterable[str]) -> None:
        async with asyncio.timeout(ENDED_S_MAX):
            for execution in executions:
                while (seen := await self._status(execution)) != "completed":
                    assert seen in ("running", ""), f"{execution} is {seen}"
                    await asyncio.sleep(0.2)

    async def _status(self, execution: str) -> str:
        try:
            return str((await self.request("GET", f"/executions/{execution}")).json().get("status", ""))
        except httpx2.TransportError:
            return ""

    async def called(self, processes: set[int]) -> None:
        """Return when each of the processes has begun a call."""
        async with asyncio.timeout(ENDED_S_MAX):
            while not processes <= {call.process for call in self.calls}:  # noqa: ASYNC110 - a file of processes
                await asyncio.sleep(0.05)

    @property
    def calls(self) -> list[Call]:
        return calls_in(self._file)

    def pid(self, number: int) -> int:
        process = self.processes[number].process
        assert process is not None
        return process.pid


@asynccontextmanager
async def three(url: str, folder: Path, program: str = CHARGING) -> AsyncGenerator[Servers, None]:
    """The first one is the leader, the others stand by."""
    file = folder / "calls"
    file.touch()
    async with AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(Wire(Path(host_of(url)))) for _ in range(3)]
        processes = list[ServerProcess]()
        for number, wire in enumerate(wires):
            place = folder / f"server-{number}"
            place.mkdir()
            module = (program, str(file))
            one = ServerProcess(behind(url, wire), folder=place, module=module, standby=number > 0)
            stack.push_async_callback(one.stop, signal.SIGKILL)
            await one.begin()
            processes.append(one)
        servers = Servers(processes, wires, file, seed=7)
        for client in servers.clients:
            await stack.enter_async_context(client)
        for document in (WARM, chain("short", STEPS), chain("long", LONG_STEPS)):
            answer = await servers.request("POST", "", document)
            assert answer.status_code == 201, answer.text
        for client in servers.clients:
            warm: JsonObject = {"input": {}, "wait": True}
            assert (await client.post("/api/workflows/warm/execute", json=warm)).is_success
        yield servers


async def disturb(servers: Servers, execution: str, key: str) -> None:
    """Send requests about a running execution to random servers."""
    for number in range(4):
        await asyncio.sleep(servers.random.uniform(0, 0.3))
        place = f"/executions/{execution}"
        verb = servers.random.choice(("start", "signal", "pause", "resume", "respond"))
        if verb == "start":
            assert await servers.start("short", key) == execution
        elif verb == "signal":
            await servers.request("POST", f"{place}/signals", {"name": f"news {number}"})
        elif verb == "respond":
            answer = await servers.request("POST", f"{place}/respond", {"nodeId": "nothing", "action": "approve"})
            assert answer.status_code >= 400
        elif verb == "pause":
            await servers.request("POST", f"{place}/pause")
        await servers.request("POST", f"{place}/resume")


async def test_requests_through_any_server_never_begin_a_step_twice(postgres_url: str, tmp_path: Path) -> None:
    async with three(postgres_url, tmp_path) as servers:
        started = {f"order {number}": await servers.start("short", f"order {number}") for number in range(9)}
        await asyncio.gather(*(disturb(servers, execution, key) for key, execution in started.items()))
        await servers.completed([*started.values()])
        begun = Counter(call.key for call in servers.calls)
        assert set(begun.values()) == {1}, "a step began twice"
        assert len(begun) == 9 * STEPS
        assert len({call.process for call in servers.calls}) == 3, "every server drives some"


def kill(servers: Servers, number: int) -> None:
    process = servers.processes[number].process
    assert process is not None
    process.kill()


def hang(servers: Servers, number: int) -> None:
    process = servers.processes[number].process
    assert process is not None
    process.send_signal(signal.SIGSTOP)


def cut(servers: Servers, number: int) -> None:
    servers.wires[number].whole.clear()


def mend(servers: Servers, number: int) -> None:
    """Let a server continue that hung or was cut off."""
    servers.wires[number].whole.set()
    process = servers.processes[number].process
    assert process is not None
    if process.returncode is None:
        process.send_signal(signal.SIGCONT)


Fault = Callable[[Servers, int], None]


@pytest.mark.parametrize("faults", [{0: kill}, {0: hang, 1: cut}], ids=["kill", "hang and cut"])
async def test_servers_that_fail_are_replaced_within_seconds(
    faults: dict[int, Fault], postgres_url: str, tmp_path: Path
) -> None:
    async with three(postgres_url, tmp_path) as servers:
        started = await asyncio.gather(*(servers.start("long", f"order {number}") for number in range(9)))
        lost = {servers.pid(number) for number in faults}
        await servers.called(lost)
        for number, fault in faults.items():
            fault(servers, number)
        fell = time.time()
        servers.clients = [client for number, client in enumerate(servers.clients) if number not in faults]
        replaced_s = await until_replaced(servers, lost)
        assert replaced_s - fell < REPLACED_S_MAX + MACHINE_S
        for number in faults:
            mend(servers, number)
        await servers.completed(started)
        begun = Counter(call.key for call in servers.calls)
        assert len(begun) == 9 * LONG_STEPS
        assert max(begun.values()) == 2
        repeated = {key for key, times in begun.items() if times > 1}
        assert repeated <= last_calls(servers.calls, lost), "only calls in flight repeat"


def last_calls(calls: list[Call], lost: set[int]) -> set[str]:
    """Return the keys of the calls after which executions left the lost servers for the first time."""
    left = dict[str, str]()
    by_execution = groupby(sorted(calls, key=attrgetter("execution")), attrgetter("execution"))
    for execution, of_one in by_execution:
        for before, after in pairwise(of_one):
            if before.process in lost and after.process != before.process:
                left.setdefault(execution, before.key)
    return {*left.values()}


async def until_replaced(servers: Servers, lost: set[int]) -> float:
    """Return when the last execution that the lost servers had not finished continued elsewhere."""
    async with asyncio.timeout(ENDED_S_MAX):
        while True:
            calls = servers.calls
            last = {call.execution: call for call in calls if call.process in lost}
            orphans = {execution for execution, call in last.items() if f":n{LONG_STEPS - 1}:" not in call.key}
            taken = [call for call in reversed(calls) if call.execution in orphans and call.process not in lost]
            continued = {call.execution: call.at for call in taken}
            assert orphans, "the lost servers had finished before the fault"
            if continued.keys() == orphans:
                return max(continued.values())
            await asyncio.sleep(0.1)
