"""Lists show an execution with waiting sub-workflows with the status of its view."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman import Pointsman
from pointsman.auth.callers import LOCAL
from pointsman.executions.bulk import BulkSelection, fitting
from pointsman.executions.pages import executions_page
from pointsman.store.records import Summary
from pointsman.values import JsonObject
from tests.scenarios import written

pytestmark = pytest.mark.integration

ASKS: JsonObject = {"id": "asks", "nodes": [{"id": "ask", "type": "human", "config": {"message": "Well?"}}]}
CALLS: JsonObject = {"id": "calls", "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "asks"}}]}
OUTER: JsonObject = {"id": "outer", "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "calls"}}]}


async def all_(_: Summary) -> bool:
    return True


async def statuses(app: Pointsman, *wanted: str) -> set[tuple[str, str]]:
    """Return workflows and statuses, on which all lists agree."""
    listed = (await app.acting_as(LOCAL).executions.list(statuses=wanted))["executions"]
    paged = (await executions_page(app.context, sees=all_, statuses=wanted, limit=2))["executions"]
    assert paged == listed[:2]
    return {(one["workflowId"], one["status"]) for one in listed}


async def test_an_execution_whose_sub_workflow_waits_is_listed_as_waiting(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with Pointsman(store) as app:
        for document in (ASKS, CALLS, OUTER):
            await app.save(written({"pointsman": 1, **document}))
        execution = await app.start(written({"pointsman": 1, **OUTER}))
        assert await execution.settled() == "waiting"
        name = execution.id
    async with Pointsman(store) as app:
        everything = {("outer", "waiting"), ("calls", "waiting"), ("asks", "waiting")}
        assert (await app.view(name))["status"] == "waiting"
        assert await statuses(app) == everything
        assert await statuses(app, "waiting") == everything
        assert await statuses(app, "running", "stopped") == set()
        (found,) = await fitting(app.context, "cancel", BulkSelection(statuses=frozenset({"waiting"})))
        assert found.execution == name
        again = await app.open(name)
        await again.answer("ask", "approve")
        assert await again.settled() == "completed"
        assert await statuses(app) == {(workflow, "completed") for workflow, _ in everything}


BOTH: JsonObject = {
    "id": "both",
    "nodes": [
        {"id": "fork", "type": "parallel"},
        {"id": "one", "type": "workflow", "config": {"workflow": "asks"}},
        {"id": "two", "type": "workflow", "config": {"workflow": "asks"}},
    ],
    "edges": [{"source": "fork", "target": "one"}, {"source": "fork", "target": "two"}],
}


async def test_a_gate_of_a_sub_workflow_can_be_delegated_and_answered_at_once_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    config: JsonObject = {"message": "Well?", "approvers": {"users": ["ada"]}}
    asks: JsonObject = {"id": "asks", "nodes": [{"id": "ask", "type": "human", "config": config}]}
    async with Pointsman(store) as app:
        for document in (asks, CALLS):
            await app.save(written({"pointsman": 1, **document}))
        execution = await app.start(written({"pointsman": 1, **OUTER}))
        await execution.settled()
    async with Pointsman(store) as app:
        await (await app.open(execution.id)).delegate("ask", "ben", by="ada")
    async with Pointsman(store) as app:
        again = await app.open(execution.id)
        await again.answer("ask", "approve", by="ben")
        assert await again.settled() == "completed"


async def test_an_execution_with_a_paused_sub_workflow_has_the_status_of_its_view(tmp_path: Path) -> None:
    async with Pointsman(f"sqlite:///{tmp_path / 'store.db'}") as app:
        for document in (ASKS, BOTH):
            await app.save(written({"pointsman": 1, **document}))
        execution = await app.start(written({"pointsman": 1, **BOTH}))
        await execution.settled()
        assert ("both", "waiting") in await statuses(app)
        child = next(one for one in (await app.acting_as(LOCAL).executions.list())["executions"] if one["parent"])
        await (await app.open(child["executionId"])).pause()
        assert ("both", (await app.view(execution.id))["status"]) in await statuses(app)
