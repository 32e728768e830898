"""Workers of two releases at once: an execution is driven only by workers that understand its journal."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import pytest

from tests.engine_servers import EngineProcess
from tests.scale.cluster import chain, installation

pytestmark = pytest.mark.scale("full")

NEWER: Final = "tests.server.newer"
STARTED: Final = 6
LONG_STEPS: Final = 30


async def test_a_newer_worker_joins_and_drives_what_the_older_ones_cannot_read(
    postgres_url: str, engine_server: EngineProcess, tmp_path: Path
) -> None:
    async with installation(postgres_url, engine_server, tmp_path, workers=1) as one:
        await one.save(chain("long", LONG_STEPS))
        before = [await one.start("long") for _ in range(STARTED)]
        await one.until_calls(STARTED)
        older = one.workers[0]
        await one.serve(module=NEWER)
        later = [await one.start("long") for _ in range(STARTED)]
        newer = await one.add_worker(module=NEWER)
        await one.completed(later)
        assert {call.process for call in one.calls if call.execution in later} == {newer.pid}
        assert {call.process for call in one.calls if call.execution in before} == {older.pid}
        again = [await one.start("long") for _ in range(STARTED)]
        assert await older.server.stop(signal.SIGTERM) == 0, older.server.log_tail()
        await one.completed([*before, *again])
        one.check_calls(3 * STARTED, steps=LONG_STEPS)
        report = (await one.client.get("/api/workers")).json()
        assert {worker["version"] for worker in report["workers"]} >= {"99.0"}
