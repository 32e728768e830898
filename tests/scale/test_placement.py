"""Executions placed by a real Temporal or Restate server, with the journal on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from pointsman import Pointsman
from pointsman.executions.opening import open_execution
from pointsman.operations.health import findings
from pointsman.operations.worker_role import serving_queues, working
from pointsman.settings import Settings
from tests.engine_servers import EngineProcess
from tests.runtime.ownership_suite import (
    GATED,
    SCENARIOS,
    Scenario,
    Work,
    ended,
    journal,
    journals,
    stores_nothing_without_persistence,
    waits,
)
from tests.runtime.test_ownerships import reference
from tests.runtime.test_placement import PLACED, QUEUE, completes, journal_alone, waits_for_queue

pytestmark = pytest.mark.scale


def opened(url: str, work: Work, engine: EngineProcess) -> Pointsman:
    return Pointsman(url, tools=work.tools, model="scripted", settings=Settings(runtime=engine.url))


@asynccontextmanager
async def front_and_worker(
    url: str, work: Work, engine: EngineProcess
) -> AsyncGenerator[tuple[Pointsman, Pointsman], None]:
    """A process that serves requests and leads the store, and one that drives."""
    async with (
        opened(url, work, engine) as worker,
        working(worker.context, executions=20),
        opened(url, work, engine) as front,
        front.leading(),
    ):
        yield front, worker


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_an_execution_has_the_same_journal_when_an_engine_places_it(
    scenario: Scenario, postgres_url: str, engine_server: EngineProcess
) -> None:
    work = Work()
    async with front_and_worker(postgres_url, work, engine_server) as (front, _):
        await scenario(front, work)
        assert await journals(front) == await reference(scenario)


async def test_two_clusters_on_one_store_begin_no_step_twice(
    postgres_url: str, temporal_server: EngineProcess, restate_server: EngineProcess
) -> None:
    work = Work()
    async with (
        front_and_worker(postgres_url, work, temporal_server) as (one, _),
        opened(postgres_url, work, restate_server) as worker,
        working(worker.context, executions=20),
        opened(postgres_url, work, restate_server) as other,
    ):
        started = [await app.start(GATED) for app in (one, other) * 3]
        for execution in started:
            await waits(execution)
        for app, execution in zip((other, one) * 3, started, strict=True):
            await (await open_execution(app.context, execution.id)).answer("ask", "approve")
        for execution in started:
            await ended(execution)
        assert work.calls == {"charge": 2 * len(started)}
        assert "engines-differ" in {finding.code for finding in await findings(one.context)}


async def test_an_execution_without_persistence_runs_in_the_process_that_starts_it(
    postgres_url: str, engine_server: EngineProcess
) -> None:
    work = Work()
    async with opened(postgres_url, work, engine_server) as front:
        await stores_nothing_without_persistence(front, work)


async def test_a_placed_step_runs_in_a_worker_of_its_queue_and_waits_for_one(
    postgres_url: str, engine_server: EngineProcess
) -> None:
    here, there = Work(), Work()
    async with front_and_worker(postgres_url, here, engine_server) as (front, _):
        execution = await front.start(PLACED)
        await waits_for_queue(execution)
        async with (
            opened(postgres_url, there, engine_server) as gpu,
            serving_queues(gpu.context, [QUEUE], steps=2),
        ):
            await completes(execution)
            again = await front.start(PLACED)
            await completes(again)
        assert await journal(front, again.id) == await journal_alone()
    assert (here.calls, there.calls) == ({"charge": 4}, {"charge": 2})
