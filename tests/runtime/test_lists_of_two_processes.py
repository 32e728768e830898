"""The list entry of an execution that two processes have opened."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.engine.state import ExecutionState
from pointsman.settings import Settings
from pointsman.values import ExecutionId

pytestmark = pytest.mark.integration

FLOW = Workflow.of(
    {"pointsman": 1, "id": "pays", "nodes": [{"id": "pay", "type": "tool", "config": {"tool": "pay"}}], "edges": []}
)


async def test_a_late_process_does_not_list_a_completed_execution_as_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid, begun = asyncio.Event(), asyncio.Event()

    @tool
    async def pay() -> str:
        """Pay."""
        begun.set()
        await paid.wait()
        return "paid"

    url = f"sqlite:///{tmp_path}/store.db"
    async with (
        Pointsman(url, tools=[pay], model="scripted", settings=Settings()) as first,
        Pointsman(url, tools=[pay], model="scripted", settings=Settings()) as late,
    ):
        execution = await first.start(FLOW)
        await begun.wait()
        load = late.runtime.load

        async def loaded(name: ExecutionId) -> ExecutionState:
            state = await load(name)
            paid.set()
            assert await execution.settled() == "completed"
            return state

        monkeypatch.setattr(late.runtime, "load", loaded)
        await late.open(execution.id)
        (listed,) = await first.executions()
        assert listed.status == "completed"
