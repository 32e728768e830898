"""Processes on one store share the rate limits of their keys."""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from pointsman.engine.failures import Failure
from pointsman.engine.reports import Usage
from pointsman.errors import Outage
from pointsman.models.key_pool import DayLimit, KeyLease, KeyPool, KeysExhausted, KeySpending, Pacing
from pointsman.models.provider import Provider
from pointsman.models.transcript import user_message
from pointsman.models.transport import PydanticModels
from pointsman.operations.provider_keys import AHEAD_S, LEASES, StoredKeyLeases
from pointsman.ports import ModelRequest
from pointsman.store.api import Store, open_store
from pointsman.store.errors import StoreLocked
from pointsman.testing.clock import VirtualClock, run_virtually
from tests.models.slow_provider import END, words

LIMITED = Failure(code="model-rate-limited", message="slow down", retryable=True)
CALLS = 8
PACE_S = 0.1


def pool(store: Store, pacing: Pacing) -> KeyPool:
    return KeyPool("house", keys=3, pacing=pacing, leases=StoredKeyLeases(store, VirtualClock()))


async def calls(number: int, of: KeyPool, count: int, began: list[tuple[float, int, int]]) -> None:
    """Make `count` concurrent calls and record time, process and key of each."""

    async def call(key: int) -> None:
        taken = await of.take(key)
        began.append((asyncio.get_running_loop().time(), number, taken))
        of.give_back(taken)

    await asyncio.gather(*(call(each % 3) for each in range(count)))


@pytest.mark.parametrize("pacing", [Pacing(interval_s=0.4), Pacing(interval_s=0.4, key_interval_s=3.0)])
def test_processes_of_one_store_share_the_rate_and_the_order(pacing: Pacing) -> None:
    began: list[tuple[float, int, int]] = []

    async def story() -> None:
        store = await open_store("memory:")
        pools = [pool(store, pacing) for _ in range(3)]
        async with asyncio.timeout(600):
            await asyncio.gather(*(calls(number, one, 30, began) for number, one in enumerate(pools)))
        for one in pools:
            await one.close()

    random.seed(1)
    run_virtually(story())
    assert len(began) == 90
    assert min(after[0] - before[0] for before, after in pairwise(began)) >= 0.4 - 1e-6
    for key in range(3):
        times = [at for at, _, used in began if used == key]
        assert min(after - before for before, after in pairwise(times)) >= pacing.key_interval_s - 1e-6
    # Halfway, each process has had its share: a process with a head start starves no other.
    halfway = Counter(number for _, number, _ in began[:45])
    assert all(halfway[number] >= 5 for number in range(3)), halfway


def test_a_key_limited_in_one_process_rests_in_all() -> None:
    async def story() -> tuple[int, int, Failure]:
        store = await open_store("memory:")
        here, there = pool(store, Pacing(rest_s_max=7200.0)), pool(store, Pacing(rest_s_max=7200.0))
        for key in (0, 1, 2):
            here.rest(key, 5.0 if key == 0 else 3600.0, LIMITED)
            await here.tell(key)
        loop = asyncio.get_running_loop()
        began, first = loop.time(), await there.take(1)
        waited = loop.time() - began
        here.rest(0, 3600.0, LIMITED)
        await here.tell(0)
        with pytest.raises(KeysExhausted) as caught:
            await there.take(0)
        for one in (here, there):
            await one.close()
        return first, round(waited), caught.value.failure

    first, waited, failure = run_virtually(story())
    assert (first, waited) == (0, 5), "the keys that rest for an hour are no choice, there either"
    assert (failure.code, failure.retryable) == ("model-rate-limited", True)


def test_a_crash_wastes_one_turn_and_a_cancel_blocks_none() -> None:
    async def story() -> float:
        store = await open_store("memory:")
        pacing = Pacing(interval_s=10.0)
        dies, lives = pool(store, pacing), pool(store, pacing)
        loop = asyncio.get_running_loop()
        dies.give_back(await dies.take())
        lost = asyncio.ensure_future(dies.take())
        await asyncio.sleep(9.99)
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        began = loop.time()
        for _ in range(2):
            lives.give_back(await lives.take())
        dies.give_back(await asyncio.wait_for(dies.take(), 60.0))
        for one in (dies, lives):
            await one.close()
        return loop.time() - began

    assert run_virtually(story()) <= 40.0


def test_a_clock_that_ran_ahead_does_not_block_calls() -> None:
    async def story() -> float:
        store = await open_store("memory:")
        ahead = VirtualClock().now() + 100 * AHEAD_S
        await store.entries.put(LEASES, "house", {"next": ahead, "keys": {"0": ahead}})
        one = pool(store, Pacing(interval_s=0.4, key_interval_s=1.0))
        began = asyncio.get_running_loop().time()
        one.give_back(await one.take(0))
        await one.close()
        return asyncio.get_running_loop().time() - began

    assert run_virtually(story()) < 0.4


class UnreachableStore:
    """Leases and spending in a store that is unreachable."""

    async def take(self, provider: str, key: int, *, interval_s: float, key_interval_s: float) -> KeyLease:
        raise StoreLocked("store.db: database is locked")

    async def rest(self, provider: str, key: int, seconds: float) -> None:
        raise StoreLocked("store.db: database is locked")

    async def spent(self, provider: str, key: int, day: int) -> KeySpending:
        raise StoreLocked("store.db: database is locked")

    async def add(self, provider: str, key: int, day: int, usage: Usage) -> None:
        raise StoreLocked("store.db: database is locked")


@pytest.mark.parametrize("how", [Provider(shared=True), Provider(day=DayLimit(calls=1))], ids=["shared", "day"])
async def test_a_store_outage_does_not_fail_the_model(how: Provider) -> None:
    own = replace(how, base_url="http://own.test/v1")
    models = PydanticModels(providers={"own": own}, leases=UnreachableStore(), spending=UnreachableStore())
    for _ in range(2):
        with pytest.raises(Outage):
            await models.ask(ModelRequest(model="own:m", messages=[user_message("hello")]))
    await models.close()


@asynccontextmanager
async def provider(heard: list[tuple[float, str]]) -> AsyncGenerator[str]:
    """Run a provider that answers at once and records time and key of its calls."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length, key = re.search(rb"content-length: (\d+)", head), re.search(rb"bearer (\S+)", head)
        assert length is not None
        assert key is not None
        await reader.readexactly(int(length[1]))
        heard.append((asyncio.get_running_loop().time(), key[1].decode()))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        writer.write(b"".join([*words("Aye."), *END]))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


async def begun(url: str, address: str) -> asyncio.subprocess.Process:
    """Start a process with many agents: it has made one call and waits for a line."""
    command = [sys.executable, "-m", "tests.models.paced_process", url, address, str(CALLS), str(PACE_S)]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


async def crowded(url: str) -> tuple[list[tuple[float, str]], list[bytes]]:
    """Return the times of the calls of two processes from their common start, and their last output."""
    heard: list[tuple[float, str]] = []
    async with asyncio.timeout(90), provider(heard) as address:
        processes = await asyncio.gather(*(begun(url, address) for _ in range(2)))
        heard.clear()
        told = asyncio.get_running_loop().time()
        said = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    return [(at - told, key) for at, key in heard], [out for out, _ in said]


def sqlite(request: pytest.FixtureRequest) -> str:
    path: Path = request.getfixturevalue("tmp_path")
    return f"sqlite:///{path / 'store.db'}"


def postgresql(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres_url"))


@pytest.mark.requirement("S2-69")
@pytest.mark.parametrize("address", [sqlite, postgresql])
async def test_two_processes_share_the_rate_of_their_keys(
    address: Callable[[pytest.FixtureRequest], str], request: pytest.FixtureRequest
) -> None:
    heard, said = await crowded(address(request))
    assert said == [b"completed\n"] * 2
    assert len(heard) == 2 * CALLS, "no call is lost, none is made twice"
    # Delays on the way make a call later, never earlier: the last call has waited for all before it.
    early = [number for number, (at, _) in enumerate(sorted(heard)) if at < number * PACE_S - 1e-3]
    assert early == []
    assert {key for _, key in heard} == {"first", "second", "third"}
