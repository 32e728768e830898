"""The history of memory end to end: authors, restarts, crashes, deletion."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from pointsman.app import Pointsman
from pointsman.chat.memories import NOBODY, NoSuchMemory, OneMemory
from pointsman.ports import ChangeAuthor
from pointsman.settings import Settings
from pointsman.settings.sections import MemorySettings
from pointsman.values import Json
from pointsman.workflows.scripts import parse_script
from tests.chat.test_memory import HandClock, kept, remembering
from tests.chat.test_memory_tools import call
from tests.chat.test_memory_tools import remembering as agent_that

ANN = ChangeAuthor(person="ann", entrance="login")


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return str(request.getfixturevalue("postgres_url"))


async def told(memory: OneMemory, key: str) -> list[tuple[Json, str]]:
    """Return values and authors, the latest first."""
    return [(one.value, "?" if one.by is None else one.by.person or one.by.node) for one in await memory.history(key)]


async def test_history_shows_writer_and_previous_value_after_a_restart(store_url: str) -> None:
    note = remembering("workflow", operation="set", key="tone")
    async with Pointsman(store_url, settings=Settings()) as app:
        execution = await app.start(note, {"text": "short"}, by="ann")
        await execution.output()
    async with Pointsman(store_url, settings=Settings()) as app:
        memory = app.memory.of("workflow", "desk")
        await memory.set("tone", "long", by=ANN)
        assert await told(memory, "tone") == [("long", "ann"), ("short", "keep")]
        earlier = (await memory.history("tone"))[1]
        assert earlier.by == ChangeAuthor(execution=execution.id, workflow="desk", node="keep")
        assert await memory.put_back("tone", earlier.number, by=ANN) == "short"
    async with Pointsman(store_url, settings=Settings()) as app:
        memory = app.memory.of("workflow", "desk")
        assert await told(memory, "tone") == [("short", "ann"), ("long", "ann"), ("short", "keep")]
        with pytest.raises(NoSuchMemory, match="change number 9 of 'tone'"):
            await memory.put_back("tone", 9)
        assert await memory.get("tone") == "short"


async def test_a_write_of_an_agent_records_its_tool() -> None:
    flow, script = agent_that(call("set", key="tone", value="short"))
    async with Pointsman("memory:", script=parse_script(script), settings=Settings(delays=False)) as app:
        execution = await app.start(flow, "keep it short", session="talk-1")
        await execution.settled()
        (now,) = await app.memory.of("session", "talk-1").history("tone")
        assert now.by == ChangeAuthor(execution=execution.id, workflow="desk", node="desk", tool="memory_set")


async def test_a_restored_value_keeps_its_expiry() -> None:
    clock = HandClock()
    async with Pointsman("memory:", settings=Settings(), clock=clock) as app:
        memory = app.memory.of("user", "ann")
        await memory.set("tone", "short", ttl=100.0)
        clock.at += 10
        await memory.set("tone", "long")
        await memory.put_back("tone", 1)
        (known,) = await memory.list()
        assert (known.value, known.changed, known.expires) == ("short", clock.at, clock.at + 90)
        assert [one.by for one in await memory.history("tone")] == [NOBODY] * 3
        clock.at += 90
        assert await memory.history("tone") == []


@pytest.mark.requirement("S1-73")
async def test_deleting_a_persons_memory_deletes_its_history(store_url: str) -> None:
    async with Pointsman(store_url, settings=Settings()) as app:
        for text in ("a secret", "another"):
            await kept(app, remembering("user", operation="set"), text, by="ann")
            await kept(app, remembering("session", operation="set"), text, session="ann's")
            await kept(app, remembering("user", operation="set"), text, by="ben")
        assert await app.memory.of("user", "ann").clear() == 1
        await app.storage.delete_session("ann's")
    async with Pointsman(store_url, settings=Settings()) as app:
        for scope, owner in (("user", "ann"), ("session", "ann's")):
            memory = app.memory.of(scope, owner)
            assert await memory.history("log") == []
            assert await app.store.memory.every(f"past {scope}", owner) == []
            await memory.set("log", "anew")
            assert await told(memory, "log") == [("anew", "")]
        assert await told(app.memory.of("user", "ben"), "log") == [("another", "keep"), ("a secret", "keep")]


async def test_deleted_executions_and_expired_values_lose_their_history(store_url: str) -> None:
    clock = HandClock()
    async with Pointsman(store_url, settings=Settings(), clock=clock) as app:
        execution = await app.start(remembering("execution", operation="set"), {"text": "a"})
        await execution.output()
        await app.memory.of("execution", execution.id).set("log", "b")
        ann = app.memory.of("user", "ann")
        await ann.set("tone", "short")
        await ann.set("tone", "long", ttl=10.0)
        await app.storage.delete(execution.id)
        clock.at += 11
        assert (await app.storage.collect()).memories == 1
        assert await app.store.memory.every("past execution", execution.id) == []
        assert await app.store.memory.every("past user", "ann") == []


async def test_a_restored_backup_has_the_history_without_deleted_people(tmp_path: Path, postgres_url: str) -> None:
    first, last, file = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db", tmp_path / "a.backup"
    async with Pointsman(first, settings=Settings()) as app:
        memory = app.memory.of("user", "ann")
        for value in ("an old harbour", "a new street"):
            await memory.set("place", value, by=ANN)
        await app.storage.back_up(file)
    for number, url in enumerate((postgres_url, last)):
        async with Pointsman(url, settings=Settings()) as app:
            await app.storage.restore(file)
            memory = app.memory.of("user", "ann")
            assert await told(memory, "place") == [("a new street", "ann"), ("an old harbour", "ann")]
            assert await app.store.memory.search("past user", "ann", "harbour old street place") == []
            assert [one.key for one in await memory.search("street")] == ["place"]
            file = tmp_path / f"{number}.backup"
            await app.storage.back_up(file)


async def test_history_is_reachable_only_through_its_own_verb() -> None:
    async with Pointsman("memory:", settings=Settings(memory=MemorySettings(earlier_values_max=1))) as app:
        memory = app.memory.of("user", "ann")
        for value in ("one harbour", "two harbours", "three"):
            await memory.set("tone", value)
        assert [one.namespace for one in await app.memory.owners()] == ["ann"]
        assert await memory.search("harbour") == []
        assert [one.value for one in await memory.list()] == ["three"]
        assert [one.value for one in await memory.history("tone")] == ["three", "two harbours"]
        reads = remembering("past user", operation="get", key="tone")
        assert any("scope" in problem.message for problem in reads.problems)


CHILD = """
import asyncio, os, signal, sys
from pointsman.app import Pointsman
from pointsman.store.sqlite import database
from pointsman.settings import Settings

real, killed = database.execute, sys.argv[2] == "kill"

def execute(step, *given):
    if killed and getattr(step, "values", ("",))[:1] == ["past user"]:
        os.kill(os.getpid(), signal.SIGKILL)  # the value is written, its history is not
    return real(step, *given)

database.execute = execute

async def main():
    async with Pointsman(sys.argv[1], settings=Settings()) as app:
        await app.memory.of("user", "ann").set("tone", "long")

asyncio.run(main())
"""


@pytest.mark.integration
async def test_crash_between_value_and_history_leaves_neither(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"

    async def child(how: str) -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, url, how, env=os.environ)
        return await process.wait()

    async with Pointsman(url, settings=Settings()) as app:
        await app.memory.of("user", "ann").set("tone", "short", by=ANN)
    assert await child("kill") == -signal.SIGKILL
    async with Pointsman(url, settings=Settings()) as app:
        assert await told(app.memory.of("user", "ann"), "tone") == [("short", "ann")]
        assert len(await app.store.memory.every("past user", "ann")) == 1
    assert await child("live") == 0
    async with Pointsman(url, settings=Settings()) as app:
        assert await told(app.memory.of("user", "ann"), "tone") == [("long", ""), ("short", "ann")]
        assert await app.store.verify() == []
