"""Ephemeral executions: they behave like others and leave nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow
from pointsman.executions.start import EPHEMERAL
from pointsman.runtime.local import UnknownExecution
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from tests.installation import HandClock, listening, noting, opened
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.integration

NONE: Json = {"persistence": "none"}
SECRET = "canary-of-an-input"


def calling() -> Workflow:
    nodes: list[Json] = [{"id": "call", "type": "workflow", "config": {"workflow": "report"}}]
    return Workflow.of({"id": "caller", "nodes": nodes, "edges": [], "config": NONE})


def written_in(path: Path, text: str) -> bool:
    return any(text.encode() in file.read_bytes() for file in path.iterdir())


@pytest.mark.requirement("S1-03")
async def test_an_ephemeral_execution_is_not_stored_and_returns_its_output(tmp_path: Path) -> None:
    seen: list[JsonObject] = []
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting("report"))
        leave = app.watch(seen.append)
        execution = await app.start(calling(), {"text": SECRET})
        assert await execution.settled() == "completed"
        leave()
        view = await execution.view()
        assert (view["status"], view["executionId"]) == ("completed", execution.id)
        assert not execution.is_kept
        assert [event["kind"] for event in seen if event["execution"] == execution.id][-1] == "completed"
        assert await app.executions() == []
        with pytest.raises(UnknownExecution):
            await app.view(execution.id)
    async with opened(tmp_path, HandClock()) as app:
        with pytest.raises(UnknownExecution):
            await app.open(execution.id)
        assert await app.store.verify() == []
    assert not written_in(tmp_path, SECRET)


@pytest.mark.requirement("S1-03")
@pytest.mark.parametrize("persistence", [None, "session", "long_term"])
async def test_other_executions_are_stored(persistence: Json, tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        config: JsonObject = {} if persistence is None else {"persistence": persistence}
        execution = await app.start(noting("kept", config=config), {"text": SECRET})
        assert await execution.settled() == "completed"
        assert execution.is_kept
    async with opened(tmp_path, HandClock()) as app:
        assert (await app.view(execution.id))["status"] == "completed"
    assert written_in(tmp_path, SECRET)


async def test_an_ephemeral_execution_is_found_by_its_key_in_its_process(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.save(noting("fleeting", config=NONE))
        first = await app.start("fleeting", {"n": 1}, key="order-7")
        again = await app.start("fleeting", {"n": 1}, key="order-7")
        assert first.id == again.id
        assert await app.executions() == []


async def test_an_event_of_an_ephemeral_execution_reaches_stored_ones(tmp_path: Path) -> None:
    emit: Json = {"id": "tell", "type": "emit", "config": {"event": "paid", "data": {"sum": "{{input.sum}}"}}}
    telling = Workflow.of({"id": "telling", "nodes": [emit], "edges": [], "config": NONE})
    async with opened(tmp_path, HandClock()) as app:
        waiting = await app.start(listening())
        await waiting.settled()
        execution = await app.start(telling, {"sum": 7})
        await execution.settled()
        await asyncio.wait_for(waiting.settled(), PATIENCE_S)
        assert waiting.status == "completed"
        assert (await waiting.view())["output"] == {"got": {"sum": 7}}


async def test_a_store_in_memory_does_not_store_ephemeral_executions(tmp_path: Path) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.start(noting("fleeting", config=NONE))
        assert (await app.view(execution.id))["executionId"] == execution.id


async def test_an_unused_ephemeral_execution_is_evicted_after_an_hour(tmp_path: Path) -> None:
    """Otherwise a server would run out of memory."""
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        store = app.context[EPHEMERAL].store
        await app.save(noting("fleeting", config=NONE))
        held = await app.start("fleeting", {"n": 0})
        others = [(await app.start("fleeting", {"n": n}, session="s")).id for n in range(1, 4)]
        clock.move(3000)
        late = (await app.start("fleeting", {"n": 4})).id
        clock.move(1000)
        await (await app.start("fleeting", {"n": 5})).settled()
        assert [await store.journal.last(name) > 0 for name in (held.id, *others, late)] == [
            True,
            *(False for _ in others),
            True,
        ]
        assert (await held.view())["status"] == "completed"
        assert len(await store.executions.list()) == 3
