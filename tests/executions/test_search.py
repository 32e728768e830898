"""Full-text search also finds executions that wait or are stopped."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.executions.usage_rollup import LATE_S, UsageRollup
from pointsman.settings import Settings
from pointsman.store.records import Summary
from pointsman.values import JsonObject
from tests.installation import HandClock

QUIET = Settings(delays=False)
SLOW: JsonObject = {"id": "slow", "nodes": [{"id": "a", "type": "tool", "config": {"tool": "hang"}}], "edges": []}
ASKS: JsonObject = {"id": "asks", "nodes": [{"id": "a", "type": "human", "config": {"message": "Go?"}}], "edges": []}


async def everyone(_: Summary) -> bool:
    return True


async def found(app: Pointsman) -> list[str]:
    return [one.execution for one in await UsageRollup(app.context).search("harbour", sees=everyone)]


@pytest.mark.integration
@pytest.mark.parametrize("how", ["stopped", "waiting", "paused"])
async def test_a_waiting_execution_is_found_by_its_input(tmp_path: Path, how: str) -> None:
    started = asyncio.Event()

    @tool
    async def hang() -> str:
        """Never end."""
        started.set()
        await asyncio.Event().wait()
        return ""

    store = f"sqlite:///{tmp_path}/store.db"
    async with Pointsman(store, tools=[hang], settings=QUIET, model="scripted") as app:
        execution = await app.start(Workflow.of(SLOW if how == "stopped" else ASKS), {"about": "harbour"})
        if how == "stopped":
            await started.wait()
            assert await found(app) == [], "it is running"
        else:
            await execution.settled()
        if how == "paused":
            await execution.pause()
    async with Pointsman(store, settings=QUIET, model="scripted") as app:
        assert await found(app) == [execution.id]
        assert await found(app) == [execution.id]


async def test_a_round_looks_at_no_waiting_execution_that_has_not_changed_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = HandClock()
    async with Pointsman("memory:", clock=clock, settings=QUIET, model="scripted") as app:
        rollup, looked = UsageRollup(app.context), list[str]()
        get = app.store.memory.get

        async def counting(workflow: str, session: str, name: str) -> object:
            looked.append(name)
            return await get(workflow, session, name)

        monkeypatch.setattr(app.store.memory, "get", counting)
        executions = [await app.start(Workflow.of(ASKS), {"about": "harbour"}) for _ in range(3)]
        for execution in executions:
            await execution.settled()
        await rollup.catch_up()
        assert {*looked} == {execution.id for execution in executions}

        clock.move(3 * LATE_S)
        await rollup.catch_up()
        looked.clear()
        await rollup.catch_up()
        assert looked == []

        await executions[1].pause()
        await rollup.catch_up()
        assert looked == [executions[1].id]
        assert {*await found(app)} == {execution.id for execution in executions}
