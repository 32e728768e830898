"""The conformance suite on the ownerships that need no engine: the leader of a store, and claims of several servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeAlias

import pytest

from pointsman import Pointsman
from pointsman.errors import EngineBug
from pointsman.runtime import local
from pointsman.runtime.ownership import Claim
from pointsman.settings import Settings
from pointsman.values import ExecutionId, Seconds
from tests.runtime.ownership_suite import (
    GATED,
    SCENARIOS,
    Scenario,
    Work,
    ended,
    journals,
    stores_nothing_without_persistence,
    until,
    waits,
)


def opened(url: str, work: Work) -> Pointsman:
    return Pointsman(url, tools=work.tools, model="scripted", settings=Settings())


@asynccontextmanager
async def leader(url: str, work: Work) -> AsyncGenerator[Pointsman, None]:
    """The server leads its store and drives everything."""
    async with opened(url, work) as app, app.leading():
        yield app


@asynccontextmanager
async def standby(url: str, work: Work) -> AsyncGenerator[Pointsman, None]:
    """Another server leads the store; this one drives what it starts, and releases what only waits."""
    async with opened(url, work) as other, other.leading(), opened(url, work) as app:
        app.runtime.stands_by = True
        yield app


Opening: TypeAlias = Callable[[str, Work], AbstractAsyncContextManager[Pointsman]]
OWNERSHIPS: Final[dict[str, tuple[Opening, str]]] = {
    "local": (leader, "memory:"),
    "claims": (leader, "postgres"),
    "claims of a standby": (standby, "postgres"),
}


@pytest.fixture(autouse=True)
def resting_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """An execution is released if it waits for a second or longer."""
    monkeypatch.setattr(local, "REST_S", Seconds(1.0))


@pytest.fixture(params=[pytest.param(name, id=name, marks=pytest.mark.integration) for name in OWNERSHIPS])
def ownership(request: pytest.FixtureRequest) -> tuple[Opening, str]:
    opening, url = OWNERSHIPS[request.param]
    return opening, request.getfixturevalue("postgres_url") if url == "postgres" else url


async def reference(scenario: Scenario) -> list[object]:
    """Return the journals of a scenario in one process alone."""
    work = Work()
    async with opened("memory:", work) as app:
        await scenario(app, work)
        return [*await journals(app)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
async def test_an_execution_has_the_same_journal_under_every_ownership(
    scenario: Scenario, ownership: tuple[Opening, str]
) -> None:
    opening, url = ownership
    work = Work()
    async with opening(url, work) as app:
        await scenario(app, work)
        assert await journals(app) == await reference(scenario)


async def test_an_execution_without_persistence_runs_and_is_not_stored(ownership: tuple[Opening, str]) -> None:
    opening, url = ownership
    work = Work()
    async with opening(url, work) as app:
        await stores_nothing_without_persistence(app, work)


async def test_what_only_waits_is_released(ownership: tuple[Opening, str]) -> None:
    opening, url = ownership
    work = Work()
    async with opening(url, work) as app:
        execution = await app.start(GATED)
        await waits(execution)
        await until(lambda: _is_released(app))
        await execution.answer("ask", "approve")
        await ended(execution)
        assert work.calls == {"charge": 2}


async def _is_released(app: Pointsman) -> bool:
    return not app.runtime.drivers


async def test_a_local_runtime_gets_every_claim_and_has_no_other_owner_to_write_to() -> None:
    async with opened("memory:", Work()) as app:
        assert isinstance(await app.runtime.ownership.claim(ExecutionId("exec-1")), Claim)
        assert app.runtime.ownership.mailbox is None
        assert await app.runtime.ownership.resume(ExecutionId("exec-1"))


async def test_an_owner_that_cannot_be_reached_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened("memory:", Work()) as app:
        execution = (await app.start(GATED)).id

        async def refuses(execution: ExecutionId, *, begins: bool = False, under: ExecutionId | None = None) -> None:
            return None

        monkeypatch.setattr(app.runtime.ownership, "claim", refuses)
        app.runtime.drivers.clear()
        with pytest.raises(EngineBug, match="has another owner"):
            await app.runtime.open(execution)
