"""The adapter of Restate with a real server: when a worker is called, and what happens when a part is away."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest

from pointsman.runtime import restate
from pointsman.runtime.dispatched import BadRuntimeAddress, EngineUnreachable
from pointsman.runtime.restate import RestateAddress, RestateEngine, restate_address
from pointsman.values import ExecutionId
from tests.engine_servers import EngineProcess
from tests.patience import PATIENCE_S
from tests.server.processes import free_port

ONE = ExecutionId("exec-one")
TWO = ExecutionId("exec-two")


class Driven:
    """Executions that a worker drives, as the test wants."""

    def __init__(self) -> None:
        self.begun = Counter[ExecutionId]()
        self.go_on = asyncio.Event()
        self.due: list[float | None] = []
        """When to drive again, one for each period of activity; none: when woken."""

    async def __call__(self, execution: ExecutionId) -> float | None:
        self.begun[execution] += 1
        await self.go_on.wait()
        return self.due.pop(0) if self.due else None

    async def until(self, execution: ExecutionId, times: int) -> None:
        await until(lambda: self.begun[execution] >= times)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - Restate calls a worker
            await asyncio.sleep(0.02)


async def calls(server: EngineProcess) -> set[str]:
    """Return the ids of the calls that Restate has not ended."""
    place = f"{restate_address(server.url).admin}/query"
    async with httpx2.AsyncClient() as http:
        query = {"query": "SELECT id FROM sys_invocation WHERE status != 'completed'"}
        answer = await http.post(place, json=query, headers={"accept": "application/json"})
        answer.raise_for_status()
        return {row["id"] for row in answer.json()["rows"]}


@asynccontextmanager
async def working(
    url: str, driven: Driven, *, executions: int = 10, store: str = "one"
) -> AsyncGenerator[RestateEngine, None]:
    """A worker that Restate reaches. It ends behind the block, whatever it drives."""
    engine = await RestateEngine.connect(url, store)
    stopping = asyncio.Event()
    work = asyncio.create_task(engine.work(driven, executions=executions, stopping=stopping))
    try:
        yield engine
    finally:
        stopping.set()
        driven.go_on.set()
        await asyncio.wait_for(work, PATIENCE_S)
        await engine.close()


async def wake(engine: RestateEngine, execution: ExecutionId, due: float = 0.0) -> None:
    """Wake an execution as soon as the worker is registered."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await engine.wake(execution, due, "")
            except EngineUnreachable:
                await asyncio.sleep(0.05)


async def test_an_execution_is_driven_when_it_is_woken_and_when_it_is_due(restate_server: EngineProcess) -> None:
    driven = Driven()
    driven.go_on.set()
    driven.due = [time.time() + 1.0]
    async with working(restate_server.url, driven) as engine:
        await wake(engine, ONE)
        await driven.until(ONE, 2)
        await wake(engine, TWO, time.time() + 0.5)
        await driven.until(TWO, 1)
        assert driven.begun == {ONE: 2, TWO: 1}


async def test_a_call_goes_on_for_longer_than_restate_waits_for_a_sign_of_life(
    restate_server: EngineProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restate, "SLICES_MAX", 2)
    monkeypatch.setattr(restate, "SLICE_S", 0.2)
    driven, seen = Driven(), set[str]()
    async with working(restate_server.url, driven) as engine:
        await wake(engine, ONE)
        await driven.until(ONE, 1)
        async with asyncio.timeout(PATIENCE_S):
            while len(seen) < 4:  # Each call has two slices.
                seen |= await calls(restate_server)
        assert driven.begun[ONE] == 1


async def test_an_earlier_due_time_replaces_a_later_one(restate_server: EngineProcess) -> None:
    driven = Driven()
    driven.go_on.set()
    driven.due = [time.time() + 3.0, time.time() + 1.0]
    async with working(restate_server.url, driven) as engine:
        await wake(engine, ONE)
        await driven.until(ONE, 1)
        await wake(engine, ONE)
        await driven.until(ONE, 3)
        async with asyncio.timeout(PATIENCE_S):
            while await calls(restate_server):  # noqa: ASYNC110 - they end in Restate
                await asyncio.sleep(0.05)
        assert driven.begun[ONE] == 3, "the time that was replaced drives nothing"


async def test_work_goes_on_while_restate_is_killed_and_is_not_begun_again(restate_server: EngineProcess) -> None:
    driven = Driven()
    async with working(restate_server.url, driven) as engine:
        await wake(engine, ONE)
        await driven.until(ONE, 1)
        restate_server.kill()
        with pytest.raises(EngineUnreachable, match="no Restate server"):
            await engine.wake(ONE, 0.0, "")
        await asyncio.to_thread(restate_server.start)
        await wake(engine, TWO)
        await driven.until(TWO, 1)
        assert driven.begun[ONE] == 1


async def test_a_worker_that_ends_gives_its_executions_to_another_one(restate_server: EngineProcess) -> None:
    first, second = Driven(), Driven()
    second.go_on.set()
    async with working(restate_server.url, first) as engine:
        await wake(engine, ONE)
        await first.until(ONE, 1)
        first.due = [time.time()]  # It is released in the middle of its work.
    async with working(restate_server.url, second):
        await second.until(ONE, 1)


async def test_a_worker_takes_no_more_executions_than_it_may(restate_server: EngineProcess) -> None:
    driven = Driven()
    async with working(restate_server.url, driven, executions=1) as engine:
        await wake(engine, ONE)
        await driven.until(ONE, 1)
        await wake(engine, TWO)
        async with asyncio.timeout(PATIENCE_S):
            while "503" not in restate_server.log.read_text("utf-8"):  # noqa: ASYNC110 - Restate repeats it
                await asyncio.sleep(0.05)
        assert driven.begun == {ONE: 1}
        driven.go_on.set()
        await driven.until(TWO, 1)


async def test_two_stores_on_one_server_drive_their_own_executions(restate_server: EngineProcess) -> None:
    one, two = Driven(), Driven()
    one.go_on.set()
    two.go_on.set()
    elsewhere = f"{restate_server.url.partition('&listen')[0]}&listen=127.0.0.1:{free_port()}"
    async with working(restate_server.url, one) as of_one, working(elsewhere, two, store="two") as of_two:
        await wake(of_one, ONE)
        await wake(of_one, TWO)
        await wake(of_two, ONE)
        await one.until(TWO, 1)
        await one.until(ONE, 1)
        await two.until(ONE, 1)
    assert one.begun == {ONE: 1, TWO: 1}
    assert two.begun == {ONE: 1}


async def test_a_worker_does_not_begin_where_those_of_another_store_listen(
    restate_server: EngineProcess, caplog: pytest.LogCaptureFixture
) -> None:
    one = Driven()
    one.go_on.set()
    async with working(restate_server.url, one) as of_one:
        await wake(of_one, ONE)
        of_two = await RestateEngine.connect(restate_server.url, "two")
        with pytest.raises(BadRuntimeAddress, match="the workers of another store listen on 127"):
            await of_two.work(Driven(), executions=1, stopping=asyncio.Event())
        await of_two.close()
    assert "calls for another store arrive" in caplog.text


async def test_a_server_that_cannot_be_reached_is_named(restate_server: EngineProcess) -> None:
    restate_server.kill()
    with pytest.raises(EngineUnreachable, match="no Restate server can be used at http://127"):
        await RestateEngine.connect(restate_server.url, "one")


async def test_a_signal_goes_to_the_command_and_not_to_the_sdk(restate_server: EngineProcess) -> None:
    driven, heard = Driven(), asyncio.Event()
    driven.go_on.set()
    async with working(restate_server.url, driven) as engine:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, heard.set)
        await wake(engine, ONE)
        await driven.until(ONE, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(heard.wait(), PATIENCE_S)
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("restate://one", ("http://one:8080", "http://one:9070", "127.0.0.1:9080", "http://127.0.0.1:9080")),
        ("restates://one:443", ("https://one:443", "https://one:9070", "127.0.0.1:9080", "http://127.0.0.1:9080")),
        (
            "restate://[::1]:8080?admin=1&listen=0.0.0.0:2&address=http://workers:3",
            ("http://[::1]:8080", "http://[::1]:1", "0.0.0.0:2", "http://workers:3"),
        ),
    ],
)
def test_an_address_names_the_ports_of_the_server_and_the_workers(url: str, address: tuple[str, ...]) -> None:
    assert restate_address(url) == RestateAddress(*address)


@pytest.mark.parametrize("url", ["restate://", "restate://one?more=2", "http://one:1", "restate://one?listen=two"])
def test_addresses_that_cannot_be_read_are_refused(url: str) -> None:
    with pytest.raises(BadRuntimeAddress, match="not the address"):
        restate_address(url)
