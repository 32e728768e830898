"""The adapter of Restate with a real server: when a worker is called, and what happens when a part is away."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest

from pointsman.runtime import restate
from pointsman.runtime.restate import (
    BadRuntimeAddress,
    EngineUnreachable,
    Rest,
    RestateAddress,
    RestateClient,
    RestateWorker,
    restate_address,
)
from pointsman.values import ExecutionId
from tests.engine_servers import EngineProcess
from tests.patience import PATIENCE_S
from tests.server.processes import free_port

ONE = ExecutionId("exec-one")


class Driven:
    """Executions that a worker drives, as the test wants."""

    def __init__(self) -> None:
        self.begun = Counter[ExecutionId]()
        self.go_on = asyncio.Event()
        self.wakes: list[float | None] = []
        """The next wake-ups, one for each period of activity; none: no time continues it."""

    async def __call__(self, execution: ExecutionId) -> Rest:
        self.begun[execution] += 1
        await self.go_on.wait()
        return Rest(self.wakes.pop(0) if self.wakes else None)

    async def until(self, times: int) -> None:
        await until(lambda: self.begun[ONE] >= times)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - Restate calls a worker
            await asyncio.sleep(0.02)


async def running_calls(server: EngineProcess) -> set[str]:
    """Return the ids of the calls that Restate has not ended."""
    place = f"{restate_address(server.url).admin}/query"
    async with httpx2.AsyncClient() as http:
        query = {"query": "SELECT id FROM sys_invocation WHERE status != 'completed'"}
        answer = await http.post(place, json=query, headers={"accept": "application/json"})
        answer.raise_for_status()
        return {row["id"] for row in answer.json()["rows"]}


@asynccontextmanager
async def working(
    server: EngineProcess, driven: Driven, port: int = 0
) -> AsyncGenerator[tuple[RestateClient, RestateWorker], None]:
    """A worker that Restate reaches, and a client."""
    client, port = RestateClient(restate_address(server.url)), port or free_port()
    worker = RestateWorker(driven, client)
    serving = asyncio.create_task(worker.serve("127.0.0.1", port, address=f"http://127.0.0.1:{port}"))
    try:
        yield client, worker
    finally:
        worker.end()
        await asyncio.wait_for(serving, PATIENCE_S)
        driven.go_on.set()
        await client.close()


@asynccontextmanager
async def registered(server: EngineProcess, driven: Driven, port: int = 0) -> AsyncGenerator[RestateClient, None]:
    async with working(server, driven, port) as (client, worker):
        await asyncio.wait_for(worker.registered.wait(), PATIENCE_S)
        yield client


async def test_a_call_drives_once_and_schedules_the_next_wake_up(restate_server: EngineProcess) -> None:
    driven = Driven()
    driven.go_on.set()
    driven.wakes = [time.time() + 1.0]
    async with registered(restate_server, driven) as client:
        await client.drive(ONE, key="start")
        await client.drive(ONE, key="start")
        await driven.until(2)
        assert driven.begun[ONE] == 2, "the start, and the wake-up"


async def test_a_call_goes_on_for_longer_than_restate_waits_for_a_sign_of_life(
    restate_server: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restate, "SLICES_MAX", 2)
    monkeypatch.setattr(restate, "SLICE_S", 0.2)
    driven = Driven()
    async with registered(restate_server, driven) as client:
        await client.drive(ONE)
        await driven.until(1)
        calls = set[str]()
        async with asyncio.timeout(PATIENCE_S):
            while len(calls) < 4:  # Each has two slices.
                calls |= await running_calls(restate_server)
        driven.go_on.set()
        await client.drive(ExecutionId("exec-two"))
        await until(lambda: driven.begun.total() == 2)
        assert driven.begun[ONE] == 1


async def test_an_earlier_wake_up_replaces_a_later_one(restate_server: EngineProcess) -> None:
    driven = Driven()
    driven.go_on.set()
    driven.wakes = [time.time() + 3.0, time.time() + 1.0]
    async with registered(restate_server, driven) as client:
        await client.drive(ONE)
        await driven.until(1)
        await client.drive(ONE)
        await driven.until(3)
        last = ExecutionId("exec-last")
        driven.wakes = [time.time() + 3.0]
        await client.drive(last)
        await until(lambda: driven.begun[last] == 2)
        assert driven.begun[ONE] == 3, "the wake-up that was replaced drives nothing"


async def test_work_goes_on_while_restate_is_killed_and_is_not_begun_again(restate_server: EngineProcess) -> None:
    driven = Driven()
    async with registered(restate_server, driven) as client:
        await client.drive(ONE)
        await driven.until(1)
        restate_server.kill()
        with pytest.raises(EngineUnreachable):
            await client.drive(ONE)
        await asyncio.to_thread(restate_server.start)
        driven.wakes = [None]
        await client.drive(ExecutionId("exec-two"))
        await until(lambda: driven.begun[ExecutionId("exec-two")] == 1)
        assert driven.begun[ONE] == 1


async def test_a_worker_waits_for_restate(restate_server: EngineProcess) -> None:
    driven = Driven()
    driven.go_on.set()
    restate_server.kill()
    async with working(restate_server, driven) as (client, worker):
        assert not worker.registered.is_set()
        await asyncio.to_thread(restate_server.start)
        await asyncio.wait_for(worker.registered.wait(), PATIENCE_S)
        await client.drive(ONE)
        await driven.until(1)


async def test_a_worker_that_ends_gives_its_executions_to_another_one(restate_server: EngineProcess) -> None:
    first, second, port = Driven(), Driven(), free_port()
    second.go_on.set()
    async with registered(restate_server, first, port) as client:
        await client.drive(ONE)
        await first.until(1)
    async with registered(restate_server, second, port):
        await second.until(1)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("restate://one:8080", RestateAddress("http://one:8080", "http://one:9070")),
        ("restate://[::1]:8080?admin=1", RestateAddress("http://[::1]:8080", "http://[::1]:1")),
        ("restates://one:443", RestateAddress("https://one:443", "https://one:9070")),
    ],
)
def test_addresses_name_both_ports(url: str, address: RestateAddress) -> None:
    assert restate_address(url) == address


@pytest.mark.parametrize("url", ["restate://", "restate://one", "restate://one:1?more=2", "http://one:1"])
def test_addresses_that_cannot_be_read_are_refused(url: str) -> None:
    with pytest.raises(BadRuntimeAddress, match="not the address"):
        restate_address(url)
