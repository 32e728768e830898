"""SIGTERM while PostgreSQL is away: the process ends, and the next one continues."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.patience import PATIENCE_S
from tests.postgres import Cluster
from tests.scale.cluster import CHARGING, calls_in, chain
from tests.server.processes import ServerProcess

STEPS: Final = 40
HOUR: Final = "&patience=3600"
"""How long a server waits for PostgreSQL, unless it ends."""


@asynccontextmanager
async def serving(store: str, calls: Path) -> AsyncGenerator[tuple[ServerProcess, httpx2.AsyncClient], None]:
    one = ServerProcess(store, folder=calls.parent, module=(CHARGING, str(calls)))
    await one.begin()
    try:
        async with httpx2.AsyncClient(base_url=one.url, timeout=30) as client:
            yield one, client
    finally:
        await one.stop(signal.SIGKILL)


@pytest.mark.integration
async def test_a_drain_ends_while_postgresql_is_away_and_the_next_server_continues(
    cluster: Cluster, tmp_path: Path
) -> None:
    calls, store = tmp_path / "calls", f"{cluster.url(schema='drains')}{HOUR}"
    calls.touch()
    async with serving(store, calls) as (server, client):
        assert (await client.post("/api/workflows", json=chain("long", STEPS))).status_code == 201
        started = (await client.post("/api/workflows/long/execute", json={"input": {}})).json()
        place = f"/api/workflows/executions/{started['executionId']}"
        async with asyncio.timeout(PATIENCE_S):
            while not calls_in(calls):  # noqa: ASYNC110 - the server calls the tool
                await asyncio.sleep(0.02)
        await asyncio.to_thread(cluster.stop)
        assert await server.stop() == 0, server.log_tail()
        assert "are not stored at the end of the drain" in server.log_tail()
    await asyncio.to_thread(cluster.start)
    async with serving(store, calls) as (_, client), asyncio.timeout(PATIENCE_S):
        while (await client.get(place)).json()["status"] != "completed":  # noqa: ASYNC110 - the server drives it
            await asyncio.sleep(0.05)
    assert len({call.key for call in calls_in(calls)}) == STEPS
