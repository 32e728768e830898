"""Deletion of executions, conversations and memory is permanent, also across a restart; and retention."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.auth.subjects import UnknownSession
from pointsman.chat.memories import UnknownMemory
from pointsman.errors import CallerError
from pointsman.executions.deletion import ExecutionUnfinished
from pointsman.runtime.attempts import CACHE_SCOPE
from pointsman.runtime.local import LocalRuntime, UnknownExecution
from pointsman.settings import Settings
from pointsman.store.sqlite import writer
from pointsman.values import ExecutionId, Json, JsonObject
from tests.installation import HandClock, asking, listening, noting, opened

pytestmark = pytest.mark.integration

CANARY = "canary91c4"
DAY = 86_400.0


def in_files(path: Path, text: str) -> list[str]:
    return [one.name for one in path.iterdir() if text.encode() in one.read_bytes()]


def calling() -> Workflow:
    """Return a workflow that calls another one and stores the result in memory."""
    kept: JsonObject = {"scope": "session", "operation": "set", "key": "given", "value": "input.text"}
    nodes: list[Json] = [
        {"id": "call", "type": "workflow", "config": {"workflow": "report", "input": {"inner": "input"}}},
        {"id": "keep", "type": "memory", "config": kept},
    ]
    edges: list[Json] = [{"source": "call", "target": "keep"}]
    return Workflow.of({"id": "caller", "nodes": nodes, "edges": edges})


async def ran(app: Pointsman, workflow: Workflow | str, input: Json = None, session: str | None = None) -> ExecutionId:
    execution = await app.start(workflow, input, session=session)
    await execution.settled()
    await execution.drained()
    return execution.id


async def ids(app: Pointsman) -> set[ExecutionId]:
    return {one.execution for one in await app.executions()}


async def test_a_deleted_execution_is_removed_with_its_sub_workflows_and_all_traces(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        other = await ran(app, noting(), {"text": "harmless"})
        execution = await ran(app, calling(), {"text": f"{CANARY} {'x' * 90_000}"})
        assert (await app.open(execution)).status == "completed"
        assert len(await ids(app)) == 3
    assert in_files(tmp_path, CANARY)
    async with opened(tmp_path, clock) as app:
        gone = await app.storage.delete(execution)
        await app.storage.compact()
        assert len(gone) == 2
        assert gone[0] == execution
        assert in_files(tmp_path, CANARY) == []
    async with opened(tmp_path, clock) as app:
        assert await ids(app) == {other}
        with pytest.raises(UnknownExecution):
            await app.view(execution)
        assert await app.store.memory.get("session", execution, "given") is None
        assert await app.store.verify() == []
        assert (await app.view(other))["status"] == "completed"


async def test_an_open_execution_cannot_be_deleted(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        waiting = await ran(app, asking(), session="talk")
        with pytest.raises(ExecutionUnfinished, match="is waiting") as refused:
            await app.storage.delete(waiting)
        assert f"pointsman cancel {waiting}" in refused.value.hint
        with pytest.raises(ExecutionUnfinished):
            await app.storage.delete_session("talk")
        assert isinstance(refused.value, CallerError)
    async with opened(tmp_path, clock) as app:
        await (await app.reach(waiting)).cancel()
        assert await app.storage.delete(waiting) == [waiting]
        with pytest.raises(UnknownExecution):
            await app.storage.delete(waiting)


async def test_a_conversation_is_deleted_with_its_executions_and_memory(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        await app.save(noting())
        await ran(app, noting(), {"text": "one"}, session="talk")
        await ran(app, noting(), {"text": "two"}, session="talk")
        other = await ran(app, noting(), {"text": "three"}, session="other")
        await app.store.sessions.append("talk", ({"role": "user", "content": CANARY},), after=0)
        await app.store.memory.put("session", "talk", "name", CANARY)
        await app.store.memory.put(CACHE_SCOPE, "session/talk", "digest", CANARY)
    async with opened(tmp_path, clock) as app:
        assert len(await app.storage.delete_session("talk")) == 2
        await app.storage.compact()
        assert await ids(app) == {other}
        assert (await app.store.sessions.load("talk")).messages == ()
        assert await app.store.memory.get("session", "talk", "name") is None
        assert in_files(tmp_path, CANARY) == []
        with pytest.raises(UnknownSession):
            await app.storage.delete_session("talk")


async def test_memories_are_deleted_by_namespace(tmp_path: Path) -> None:
    async with opened(tmp_path, HandClock()) as app:
        await app.store.memory.put("shared", "desk", "style", "plain")
        await app.store.memory.put("shared", "other", "style", "odd")
        assert await app.memory.of("shared", "desk").clear() == 1
        assert await app.store.memory.get("shared", "desk", "style") is None
        assert await app.store.memory.get("shared", "other", "style") == "odd"
        with pytest.raises(UnknownMemory):
            app.memory.of("cache", "session/talk")


def keeping(**retention: object) -> Settings:
    return Settings.model_validate({"retention": retention})


async def test_gc_deletes_nothing_by_default(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock) as app:
        execution = await ran(app, noting())
        clock.move(10_000 * DAY)
        assert (await app.storage.collect()).executions == ()
        assert await ids(app) == {execution}


async def test_executions_are_kept_for_the_configured_time(tmp_path: Path) -> None:
    clock = HandClock()
    settings = keeping(completed="30d", cancelled=0, workflows={"other": {"completed": "1d"}})
    async with opened(tmp_path, clock) as app:
        old = await ran(app, noting())
        waiting = await ran(app, asking())
        cancelled = await ran(app, asking())
        await (await app.reach(cancelled)).cancel()
        clock.move(29 * DAY)
        short = await ran(app, noting("other"))
        young = await ran(app, noting())
        clock.move(2 * DAY)
    async with opened(tmp_path, clock, settings=settings) as app:
        planned = await app.storage.collect(dry_run=True)
        assert set(planned.executions) == {old, cancelled, short}
        assert planned.dry_run
        assert len(await ids(app)) == 5
        assert set((await app.storage.collect()).executions) == {old, cancelled, short}
        assert (await app.storage.collect()).executions == ()
    async with opened(tmp_path, clock) as app:
        assert await ids(app) == {waiting, young}


async def test_the_configured_number_of_newest_executions_per_workflow_is_kept(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock, settings=keeping(completed=2)) as app:
        made: list[ExecutionId] = []
        for _ in range(4):
            clock.move(1.0)
            made.append(await ran(app, noting()))
        clock.move(1.0)
        other = await ran(app, noting("other"))
        await app.storage.collect()
        assert await ids(app) == {*made[2:], other}


async def test_an_execution_is_collected_with_its_children_and_its_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "HOLD_S", -1.0)
    clock = HandClock()
    async with opened(tmp_path, clock, settings=keeping(completed="1d")) as app:
        await app.save(noting())
        execution = await ran(app, calling(), {"text": "x"})
        (state, _) = await app.state_and_events(execution)
        digest = state.setup.definition
        assert await app.store.blobs.get(digest) is not None
        assert (await app.storage.collect()).executions == ()
        clock.move(2 * DAY)
        assert len((await app.storage.collect()).executions) == 2
        assert await ids(app) == set()
        assert await app.store.blobs.get(digest) is None
        assert await app.store.verify() == []
        again = await ran(app, calling(), {"text": "x"})
        assert (await app.view(again))["status"] == "completed"


@pytest.mark.parametrize(
    "wrong", [{"completed": "soon"}, {"running": "1d"}, {"completed": -1}, {"completed": True}, {"workflows": {"a": 3}}]
)
def test_an_impossible_retention_is_refused(wrong: JsonObject) -> None:
    with pytest.raises(ValueError, match="retention"):
        Settings.model_validate({"retention": wrong})


async def test_outbox_messages_are_delivered_before_deletion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emit: JsonObject = {"id": "tell", "type": "emit", "config": {"event": "paid", "data": {}}}
    async with opened(tmp_path, HandClock()) as app:
        waiting = await app.start(listening())
        await waiting.settled()
        with monkeypatch.context() as patched:
            patched.setattr(LocalRuntime, "tell", never)
            execution = await app.start(Workflow.of({"id": "telling", "nodes": [emit], "edges": []}))
            driver = app.runtime.drivers[execution.id]
            await driver.until(lambda: driver.state.ended)
            await app.runtime.close()
    async with opened(tmp_path, HandClock()) as app:
        assert (await app.view(waiting.id))["status"] == "waiting"
        assert await app.storage.delete(execution.id) == [execution.id]
        assert (await app.open(waiting.id)).state.ended


async def never(*_: object) -> None:
    await asyncio.Event().wait()
