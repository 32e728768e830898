"""Workers on a real engine while a part hangs, is cut off or crashes: nothing is lost, fails, or is still for long."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from pointsman.runtime.local import REST_S
from pointsman.values import Json, JsonObject
from tests.engine_servers import EngineProcess
from tests.postgres import Cluster
from tests.scale.cluster import Installation, WorkerProcess, chain, installation, until

pytestmark = pytest.mark.scale("full")  # Each takes about a minute.

STARTED: Final = 12
LONG_STEPS: Final = 40
STILL_S_MAX: Final = 30.0
MACHINE_S: Final = 5.0
"""Allowance for a busy machine."""


def hang(worker: WorkerProcess) -> None:
    worker.send(signal.SIGSTOP)


def cut_from_store(worker: WorkerProcess) -> None:
    worker.store.whole.clear()


def cut_from_engine(worker: WorkerProcess) -> None:
    for wire in worker.engine:
        wire.whole.clear()


def mend(worker: WorkerProcess) -> None:
    """Let a worker continue that hung or was cut off."""
    for wire in (worker.store, *worker.engine):
        wire.whole.set()
    worker.send(signal.SIGCONT)


async def until_taken_over(one: Installation, lost: WorkerProcess, executions: int) -> None:
    """Return when every execution that the worker drove has continued in another one."""

    async def continued() -> bool:
        return len({call.execution for call in one.last_calls() if call.process != lost.pid}) == executions

    async with asyncio.timeout(STILL_S_MAX + MACHINE_S):
        while not await continued():  # noqa: ASYNC110 - other processes change it
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("fault", [hang, cut_from_store], ids=["hangs", "is cut off from the store"])
async def test_a_worker_that_hangs_or_loses_its_store_is_replaced(
    fault: Callable[[WorkerProcess], None], postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=3) as one:
        await one.save(chain("long", LONG_STEPS))
        started = [await one.start("long") for _ in range(STARTED)]
        await one.until_calls(STARTED * 3)
        lost = one.busiest()
        fault(lost)
        in_flight = one.in_flight(lost)
        await until_taken_over(one, lost, STARTED)
        mend(lost)
        await one.completed(started)
        one.check_calls(STARTED, in_flight, steps=LONG_STEPS)
        assert one.longest_pause_s() < STILL_S_MAX + MACHINE_S


async def test_a_worker_that_the_engine_cannot_reach_goes_on_and_no_step_begins_twice(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=3) as one:
        await one.save(chain("long", LONG_STEPS))
        started = [await one.start("long") for _ in range(STARTED)]
        await one.until_calls(STARTED * 3)
        apart = one.busiest()
        driven = {call.execution for call in one.last_calls() if call.process == apart.pid}
        cut_from_engine(apart)
        await one.completed(started)
        mend(apart)
        one.check_calls(STARTED, steps=LONG_STEPS)
        assert {call.execution for call in one.last_calls() if call.process == apart.pid} >= driven
        assert one.longest_pause_s() < STILL_S_MAX + MACHINE_S


async def test_an_engine_that_hangs_delays_starts_only(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=2) as one:
        started = [await one.start("short") for _ in range(3)]
        await one.until_begun(started)
        engine_server.stop()
        later = [await one.start("short") for _ in range(3)]
        await one.completed(started)
        engine_server.go_on()
        await one.completed(later)
        one.check_calls(6)


async def test_a_crash_of_postgresql_fails_nothing_and_repeats_only_calls_in_flight(
    cluster: Cluster, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(cluster.url(schema="crashes"), engine_server, tmp_path, workers=3) as one:
        started = [await one.start("short") for _ in range(STARTED)]
        await one.until_calls(STARTED * 3)
        await asyncio.to_thread(cluster.stop)
        await asyncio.to_thread(cluster.start)
        await one.completed(started)
        one.check_calls(STARTED)
        assert one.longest_pause_s() < STILL_S_MAX + MACHINE_S


async def test_timers_fire_and_answers_arrive_in_a_worker_whose_clock_is_minutes_ahead(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    call: JsonObject = {"type": "tool", "config": {"tool": "charge"}}
    rest: JsonObject = {"id": "rest", "type": "wait", "config": {"duration": f"{1.5 * REST_S:g}s"}}
    ask: JsonObject = {"id": "ask", "type": "human", "config": {"message": "Go on?"}}
    nodes: list[Json] = [{"id": "first", **call}, rest, {"id": "second", **call}, ask, {"id": "third", **call}]
    names = ["first", "rest", "second", "ask", "third"]
    edges: list[Json] = [{"source": source, "target": target} for source, target in pairwise(names)]
    async with installation(postgres_url, engine_server, tmp_path, workers=0) as one:
        await one.save({"pointsman": 1, "id": "waits", "nodes": nodes, "edges": edges})
        await one.add_worker(module="tests.server.shifted")
        execution = await one.start("waits")
        answer = {"gateId": "ask", "action": "approve"}

        async def answered() -> bool:
            return (await one.request("POST", f"/executions/{execution}/respond", answer)).is_success

        await until(answered, STILL_S_MAX + MACHINE_S)  # It is refused before the timer has fired.
        await one.completed([execution])
        one.check_calls(1, steps=3)
