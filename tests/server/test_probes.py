"""Probes of a worker: its health, its readiness, and the metrics of what it owns."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pointsman import Pointsman
from pointsman.auth.keys import KEYS
from pointsman.executions.opening import open_execution
from pointsman.operations.readiness import Lifecycle
from pointsman.server.probes import probes
from pointsman.settings import Settings
from pointsman.settings.sections import MetricsSettings
from tests.runtime.ownership_suite import GATED, Work, ended, waits
from tests.runtime.test_placement import claims_of

KEY = "scrape-0b1f77aa32"


@asynccontextmanager
async def probed(app: Pointsman, lifecycle: Lifecycle | None = None) -> AsyncGenerator[httpx2.AsyncClient, None]:
    async with (
        probes(app, "127.0.0.1", 0, lifecycle or Lifecycle()) as place,
        httpx2.AsyncClient(base_url=place) as client,
    ):
        yield client


async def measured(client: httpx2.AsyncClient) -> dict[str, float]:
    """Return the metrics by name and outcome."""
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    return {" ".join((one.name, *one.labels.values())): one.value for one in samples}


@pytest.mark.integration
async def test_a_worker_is_ready_until_it_stops() -> None:
    lifecycle = Lifecycle()
    async with Pointsman("memory:", settings=Settings()) as app, probed(app, lifecycle) as client:
        assert (await client.get("/health")).json()["status"] == "ok"
        assert (await client.get("/ready")).json()["store"] is True
        lifecycle.stopping = True
        unready = await client.get("/ready")
        assert (unready.status_code, unready.json()["stopping"]) == (503, True)
        assert (await client.get("/api/workers")).status_code == 404


@pytest.mark.integration
async def test_metrics_need_the_key_once_the_store_has_keys() -> None:
    settings = Settings(metrics=MetricsSettings(key=KEY))
    async with Pointsman("memory:", settings=settings) as app, probed(app) as client:
        assert "pointsman_executions_owned" not in await measured(client), "one process owns everything"
        await app.context[KEYS].require()
        assert (await client.get("/metrics")).status_code == 401
        assert (await client.get("/metrics", headers={"authorization": "Bearer wrong"})).status_code == 401
        client.headers["authorization"] = f"Bearer {KEY}"
        assert "pointsman_journal_rows_total" in await measured(client)


@pytest.mark.integration
async def test_metrics_count_owned_executions_hand_overs_and_refused_claims(postgres_url: str) -> None:
    first, second = (Pointsman(postgres_url, tools=Work().tools, settings=Settings()) for _ in range(2))
    async with first, second, probed(first) as former, probed(second) as heir:
        execution = await first.start(GATED)
        await waits(execution)
        assert (await measured(former))["pointsman_executions_owned"] == 1
        assert await second.runtime.ownership.claim(execution.id) is None
        assert (await measured(heir))["pointsman_claims_total refused"] == 1
        await claims_of(first).retire()
        answered = await open_execution(second.context, execution.id)
        await answered.answer("ask", "approve")
        await ended(answered)
        after = await measured(heir)
        assert after["pointsman_claims_total taken_over"] == 1
        assert after["pointsman_wake_delay_seconds_count"] == 0, "it only waited for the answer"
