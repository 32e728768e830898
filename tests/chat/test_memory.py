"""Memory end to end: owners, crashes, access."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.chat.memories import MemoryKeyInvalid
from pointsman.ports import ChangeId, MemoryChange
from pointsman.settings import Settings
from pointsman.settings.sections import MemorySettings
from pointsman.store.errors import MemoryFull
from pointsman.values import Json, JsonObject


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def now(self) -> float:
        return self.at

    async def sleep_until(self, at: float) -> None:
        raise AssertionError("nothing here waits")


def remembering(scope: str, *, id: str = "desk", **config: Json) -> Workflow:
    """Return a workflow that appends its input and returns the whole list."""
    node: JsonObject = {"operation": "append", "key": "log", "value": "text", **config, "scope": scope}
    schema: JsonObject = {"type": "object", "properties": {"text": {}, "where": {}}, "required": ["text"]}
    document = {"id": id, "input": schema, "nodes": [{"id": "keep", "type": "memory", "config": node}], "edges": []}
    return Workflow.parse(json.dumps(document), name=id)


async def kept(app: Pointsman, workflow: Workflow, text: str, *, by: str = "", session: str | None = None) -> Json:
    execution = await app.start(workflow, {"text": text}, by=by, session=session)
    return await execution.output()


@pytest.mark.integration
@pytest.mark.requirement("S1-73", "S1-74", "S1-143")
async def test_memory_survives_a_restart_for_its_owner_only(store_url: str) -> None:
    user, own = remembering("user"), remembering("workflow")
    async with Pointsman(store_url, settings=Settings()) as app:
        assert await kept(app, user, "a", by="ann") == ["a"]
        assert await kept(app, own, "x") == ["x"]
    async with Pointsman(store_url, settings=Settings()) as app:
        assert await kept(app, user, "b", by="ann") == ["a", "b"]
        assert await kept(app, user, "c", by="ben") == ["c"]
        assert await kept(app, remembering("user", id="other"), "d", by="ann") == ["a", "b", "d"], "hers everywhere"
        assert await kept(app, remembering("workflow", id="other"), "y") == ["y"]
        assert await kept(app, own, "z", by="ben") == ["x", "z"]
        owners = [(one.scope, one.namespace, one.keys) for one in await app.memory.owners()]
        assert owners == [("user", "ann", 1), ("user", "ben", 1), ("workflow", "desk", 1), ("workflow", "other", 1)]


@pytest.mark.parametrize("where", ["desk", "ann", "user/ann", "../desk", "desk%", "*", "log", "workflow"])
async def test_a_caller_chosen_namespace_does_not_reach_other_memories(where: str) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        await kept(app, remembering("workflow"), "secret")
        await kept(app, remembering("user"), "secret", by="ann")
        for scope in ("shared", "workflow", "user", "session"):
            open_ = remembering(scope, id="open", namespace="{where}")
            execution = await app.start(open_, {"text": "hi", "where": where}, by="mallory", session="mallory's")
            assert await execution.output() == ["hi"], scope
            for key in ("log", "ann/log", "desk/log", "/log", "%2Flog"):
                reads = remembering(scope, id="open", namespace="{where}", operation="get", key=key)
                found = await (await app.start(reads, {"text": "", "where": where}, by="mallory")).output()
                assert found in (None, ["hi"]), (scope, key)
            searches = remembering(scope, id="open", namespace="{where}", operation="search", query="secret OR *")
            assert await (await app.start(searches, {"text": "", "where": where}, by="mallory")).output() == []


async def test_memory_without_an_owner_is_not_shared_by_all() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        execution = await app.start(remembering("user"), {"text": "a"})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == "memory-no-owner"


async def test_sub_workflows_write_the_memory_of_the_starter(store_url: str) -> None:
    parent = {
        "id": "parent",
        "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "desk", "input": {"text": "'inside'"}}}],
        "edges": [],
    }
    async with Pointsman(store_url, settings=Settings()) as app:
        await app.save(remembering("user"))
        await (await app.start(Workflow.parse(json.dumps(parent), name="parent"), {}, by="ann")).output()
        assert await app.memory.of("user", "ann").get("log") == ["inside"]


async def test_a_value_expires_after_its_time_to_live_and_gc_deletes_it(store_url: str) -> None:
    clock = HandClock()
    async with Pointsman(store_url, settings=Settings(), clock=clock) as app:
        assert await kept(app, remembering("workflow", ttl="1h"), "a") == ["a"]
        clock.at += 3599
        assert await kept(app, remembering("workflow", ttl="1h"), "b") == ["a", "b"], "it begins anew"
        clock.at += 3599
        assert await app.memory.of("workflow", "desk").get("log") == ["a", "b"]
        clock.at += 1
        assert await app.memory.of("workflow", "desk").get("log") is None
        assert await app.memory.of("workflow", "desk").list() == []
        assert await app.memory.owners() == []
        assert (await app.storage.collect(dry_run=True)).memories == 1
        assert (await app.storage.collect()).memories == 1
        assert (await app.storage.collect()).memories == 0


async def test_a_full_memory_refuses_writes_and_keeps_its_values() -> None:
    settings = Settings(memory=MemorySettings(keys_max=1, value_bytes_max=20))
    async with Pointsman("memory:", settings=settings) as app:
        await kept(app, remembering("workflow"), "a")
        execution = await app.start(remembering("workflow", key="other"), {"text": "b"})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert (execution.state.outcome.failure.code, execution.state.outcome.failure.retryable) == (
            "memory-full",
            False,
        )
        with pytest.raises(MemoryFull):
            await app.memory.of("workflow", "desk").set("log", "x" * 50)
        assert await app.memory.of("workflow", "desk").get("log") == ["a"]


async def test_a_retry_after_a_lost_answer_appends_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is committed but its answer is lost: the next attempt of the step finds it."""
    workflow = json.loads(json.dumps(remembering("workflow").original))
    workflow["nodes"][0]["execution"] = {"retries": 2, "retryDelay": "1ms"}
    async with Pointsman(store_url, settings=Settings()) as app:
        memory = app.store.memory
        real, lost = memory.change, 0

        async def change(change: MemoryChange, *, once: ChangeId | None = None) -> Json:
            nonlocal lost
            answer = await real(change, once=once)
            if lost < 2:
                lost += 1
                raise MemoryFull("the answer was lost on its way")
            return answer

        monkeypatch.setattr(memory, "change", change)
        execution = await app.start(Workflow.parse(json.dumps(workflow), name="desk"), {"text": "a"})
        status = await execution.settled()
        if status == "failed":
            await execution.retry()
            await execution.settled()
            if execution.status == "failed":
                await execution.retry()
                await execution.settled()
        assert execution.status == "completed"
        assert lost == 2
        assert await app.memory.of("workflow", "desk").get("log") == ["a"]


async def test_a_fork_writes_memory_again_and_a_replay_does_not(store_url: str) -> None:
    async with Pointsman(store_url, settings=Settings()) as app:
        execution = await app.start(remembering("workflow"), {"text": "a"})
        await execution.settled()
        await app.replay(execution.id)
        log = app.memory.of("workflow", "desk")
        assert await log.get("log") == ["a"]
        fork = await app.fork(execution.id, at=1)
        await fork.settled()
        assert await log.get("log") == ["a", "a"]


DIES = """
import asyncio, os, signal, sys
from pointsman.app import Pointsman, Workflow
from pointsman.ports import ChangeId, MemoryChange
from pointsman.settings import Settings


async def main(store, document, moment):
    async with Pointsman(store, settings=Settings()) as app:
        real = app.store.memory.change
        async def change(*given, **named):
            if moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            await real(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)
        app.store.memory.change = change
        execution = await app.start(Workflow.parse(document, name="desk"), {"text": "a"}, by="ann")
        await execution.settled()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.integration
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_killed_around_a_change_applies_it_once(tmp_path: Path, moment: str) -> None:
    store, workflow = f"sqlite:///{tmp_path}/store.db", remembering("user")
    died = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DIES, store, json.dumps(workflow.original), moment, env={**os.environ}
    )
    await asyncio.wait_for(died.wait(), timeout=60)
    assert died.returncode == -signal.SIGKILL
    async with Pointsman(store, settings=Settings()) as app:
        [summary] = await app.executions()
        execution = await app.open(summary.execution)
        assert await execution.output() == ["a"]
        assert await app.memory.of("user", "ann").get("log") == ["a"]
        assert summary.owner == "ann"


async def test_people_read_and_correct_one_memory_at_a_time() -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        notes, whole = app.memory.of("user", "ann", namespace="no/tes"), app.memory.of("user", "ann")
        await notes.set("a/b", 1)
        await notes.append("list", "x", ttl=60)
        await whole.set("no/tes/a/b", 2)
        assert [(one.namespace, one.key, one.value) for one in await whole.list()] == [
            ("", "no/tes/a/b", 2),
            ("no/tes", "a/b", 1),
            ("no/tes", "list", ["x"]),
        ]
        first, *_ = await whole.list(limit=1)
        assert [one.key for one in await whole.list(after=first)] == ["a/b", "list"]
        assert [(one.key, one.expires is not None) for one in await notes.list()] == [("a/b", False), ("list", True)]
        assert [(one.namespace, one.key) for one in await whole.search("x")] == [("no/tes", "list")]
        assert (await notes.delete("a/b"), await notes.delete("a/b")) == (True, False)
        assert await notes.clear() == 1
        assert await whole.get("no/tes/a/b") == 2


@pytest.mark.parametrize("name", ["", "\x00", "a\nb", "x" * 501, "\u202e"])
async def test_an_invalid_memory_name_is_refused(name: str) -> None:
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(MemoryKeyInvalid):
            await app.memory.of("user", "ann").set(name, 1)
        with pytest.raises(MemoryKeyInvalid):
            app.memory.of("user", name)


@pytest.fixture(params=["memory:", "sqlite"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite" or "restart" in request.node.name:
        return f"sqlite:///{tmp_path}/store.db"
    return str(request.param)
