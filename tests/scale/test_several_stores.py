"""Two stores on one engine: neither drives nor wakes the executions of the other."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.engine_servers import EngineProcess
from tests.postgres import Cluster
from tests.scale.cluster import Installation, installation

pytestmark = pytest.mark.scale

STARTED: Final = 3


def pids(one: Installation) -> set[int]:
    return {worker.pid for worker in one.workers}


def processes(one: Installation) -> set[int]:
    """Return the processes that have called the tool."""
    return {call.process for call in one.calls}


async def test_two_stores_on_one_engine_have_their_own_workers(
    cluster: Cluster, engine_server: EngineProcess, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    stores = [cluster.url(schema=folder.name) for folder in folders]
    async with (
        installation(stores[0], engine_server, folders[0], workers=0) as one,
        installation(stores[1], engine_server, folders[1], workers=1) as two,
    ):
        of_one = [await one.start("short") for _ in range(STARTED)]
        of_two = [await two.start("short") for _ in range(STARTED)]
        await two.completed(of_two)
        assert not one.calls, "its store has no worker yet"
        await one.add_worker()
        await one.completed(of_one)
        for each in (one, two):
            each.check_calls(STARTED)
            assert processes(each) == pids(each)
