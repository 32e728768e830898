"""Executions placed by a real Restate server, with the journal on a real PostgreSQL."""

from __future__ import annotations

import pytest

from tests.engine_servers import EngineProcess
from tests.runtime.ownership_suite import SCENARIOS, Scenario, Work, journals
from tests.runtime.test_ownerships import reference
from tests.scale.test_temporal import front_and_worker

pytestmark = pytest.mark.scale


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_an_execution_has_the_same_journal_when_restate_places_it(
    scenario: Scenario, postgres_url: str, restate_server: EngineProcess
) -> None:
    work = Work()
    async with front_and_worker(postgres_url, work, restate_server) as (front, _):
        await scenario(front, work)
        assert await journals(front) == await reference(scenario)
