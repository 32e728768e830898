"""Executions placed by a real Temporal or Restate server, with the journal on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from pointsman import Pointsman
from pointsman.operations.worker_role import working
from pointsman.settings import Settings
from tests.engine_servers import EngineProcess
from tests.runtime.ownership_suite import SCENARIOS, Scenario, Work, journals
from tests.runtime.test_ownerships import reference

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
