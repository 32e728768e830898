"""`pointsman serve` and `pointsman worker` on a real engine and a real PostgreSQL: killed, stopped, and cut off."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.engine_servers import EngineProcess
from tests.patience import PATIENCE_S
from tests.scale.cluster import chain, installation, until
from tests.server.processes import ROOT

pytestmark = pytest.mark.scale

STARTED: Final = 12


async def test_a_killed_worker_repeats_only_the_calls_in_flight(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=3) as one:
        started = [await one.start("short") for _ in range(STARTED)]
        await one.until_calls(STARTED * 3)
        lost = one.busiest()
        await lost.server.stop(signal.SIGKILL)
        in_flight = one.in_flight(lost)
        await one.completed(started)
        one.check_calls(STARTED, in_flight)
        assert {call.process for call in one.calls} == {one.pid for one in one.workers}


async def test_a_stopped_worker_hands_its_executions_over_without_a_lost_step(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=2) as one:
        started = [await one.start("short") for _ in range(STARTED)]
        await one.until_calls(STARTED * 3)
        assert await one.busiest().server.stop(signal.SIGTERM) == 0
        await one.completed(started)
        one.check_calls(STARTED)


async def test_executions_go_on_while_the_engine_is_away_and_new_ones_run_when_it_is_back(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=2) as one:
        started = [await one.start("short") for _ in range(3)]
        await one.until_begun(started)
        engine_server.kill()
        later = [await one.start("short") for _ in range(3)]
        await one.completed(started)
        assert not {call.execution for call in one.calls} & {*later}
        engine_server.start()
        await one.completed(later)
        one.check_calls(6)


async def test_a_workflow_with_many_executions_does_not_delay_another_one(
    postgres_url: str, temporal_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, temporal_server, tmp_path, workers=1, at_a_time=1) as one:
        await one.save(chain("seldom", 1))
        many = [await one.start("short") for _ in range(STARTED)]
        await one.until_calls(1)
        seldom = await one.start("seldom")
        await one.completed([seldom])
        begun = {call.execution for call in one.calls} - {seldom}
        assert begun < {*many}, "without shares all of them would have begun before"


@pytest.mark.scale("full")  # A worker is asked again after a minute.
async def test_an_execution_waits_for_a_worker_with_the_tool_that_it_needs(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=0) as one:
        poor = await one.add_worker(module="pointsman")
        execution = await one.start("short")

        async def lacks() -> bool:
            return "charge" in (await one.request("GET", f"/executions/{execution}")).text

        await until(lacks)
        assert await poor.server.stop() == 0
        await one.add_worker()
        await one.completed([execution])
        one.check_calls(1)


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
