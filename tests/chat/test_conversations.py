"""Conversations: one turn at a time for all callers, and the effects of a turn that did not complete."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.executions.execution import Execution
from pointsman.executions.opening import SessionBusy
from pointsman.models.script import read_script
from pointsman.settings import Settings
from pointsman.store.errors import SessionClosed
from pointsman.values import JsonObject

TALK: JsonObject = {
    "id": "talk",
    "config": {"conversational": True},
    "nodes": [
        {"id": "ask", "type": "human", "config": {"message": "May I?", "actions": ["approve", "reject"]}},
        {"id": "say", "type": "agent", "config": {}},
    ],
    "edges": [{"source": "ask", "target": "say", "condition": {"type": "label", "label": "approve"}}],
}
SCRIPT = read_script("rules: [{node: say, contains: bye, text: Farewell., next: END}, {node: say, text: Yes.}]")


def installation(store: str) -> Pointsman:
    return Pointsman(store, settings=Settings(), model="scripted", script=SCRIPT)


async def begin(app: Pointsman, text: str, *, key: str | None = None) -> Execution:
    execution = await app.start(Workflow.of(TALK), text, session="s", key=key)
    await execution.settled()
    return execution


async def said(app: Pointsman) -> list[str]:
    messages = (await app.storage.conversation("s")).messages
    return [str(one["content"]) for one in messages if isinstance(one, dict)]


@pytest.mark.integration
async def test_a_turn_cannot_begin_while_another_is_open(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with installation(store) as app:
        waits = await begin(app, "one")
        with pytest.raises(SessionBusy, match=waits.id):
            await begin(app, "two")
    async with installation(store) as app:
        assert await app.storage.open_turn("s") == waits.id
        with pytest.raises(SessionBusy, match=waits.id) as refused:
            await begin(app, "two", key="k")
        assert "pointsman cancel" in refused.value.hint
        taken = await app.open(waits.id)
        await taken.answer("ask", "approve")
        assert await taken.settled() == "completed"
        assert await app.storage.open_turn("s") is None
        assert await said(app) == ["one", "Yes."]
        await begin(app, "two")


@pytest.mark.integration
async def test_one_of_many_concurrent_messages_begins_the_turn(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with installation(store) as one, installation(store) as other:
        for expected in (1, 2, 3):
            speaks = [begin(app, f"{number}") for number in range(4) for app in (one, other)]
            came = await asyncio.gather(*speaks, return_exceptions=True)
            [begun] = [each for each in came if isinstance(each, Execution)]
            assert [type(each) for each in came if not isinstance(each, Execution)] == [SessionBusy] * 7
            await begun.answer("ask", "approve" if expected != 2 else "reject")
            await begun.settled()
            assert len(await one.executions()) == expected
        assert await said(other) != []
        assert len(await said(other)) == 4, "the rejected turn left nothing"


async def test_concurrent_starts_with_one_key_are_one_execution() -> None:
    note: JsonObject = {
        "id": "note",
        "nodes": [{"id": "n", "type": "transform", "config": {"set": {"a": "1"}}}],
        "edges": [],
    }
    async with installation("memory:") as app:
        begun = await asyncio.gather(*(app.start(Workflow.of(note), {"x": 1}, key="k") for _ in range(5)))
        assert len({one.id for one in begun}) == 1
        assert [await one.settled() for one in begun] == ["completed"] * 5


async def test_an_incomplete_turn_leaves_the_conversation_unchanged() -> None:
    async with installation("memory:") as app:
        for number in range(3):
            execution = await begin(app, f"{number}")
            await execution.cancel()
            assert await execution.settled() == "cancelled"
        assert await said(app) == []
        kept = await begin(app, "now")
        await kept.answer("ask", "approve")
        await kept.settled()
        assert await said(app) == ["now", "Yes."]
        assert len({one.execution for one in await app.executions()}) == 4


async def test_an_ended_conversation_accepts_no_messages_until_it_is_reopened() -> None:
    async with installation("memory:") as app:
        ends = await begin(app, "bye")
        await ends.answer("ask", "approve")
        await ends.settled()
        with pytest.raises(SessionClosed):
            await begin(app, "more")
        assert len(await app.executions()) == 1
        await app.storage.reopen("s")
        again = await begin(app, "more")
        await again.answer("ask", "approve")
        await again.settled()
        assert await said(app) == ["bye", "Farewell.", "more", "Yes."]
        assert not (await app.storage.conversation("s")).closed


async def test_a_deleted_conversation_starts_anew_under_its_name() -> None:
    async with installation("memory:") as app:
        first = await begin(app, "one")
        await first.answer("ask", "approve")
        await first.settled()
        await app.storage.delete_session("s")
        again = await begin(app, "two")
        await again.answer("ask", "approve")
        await again.settled()
        assert await said(app) == ["two", "Yes."]


async def test_executions_that_only_share_the_memory_of_a_session_do_not_wait_for_its_turns() -> None:
    note: JsonObject = {
        "id": "note",
        "nodes": [{"id": "n", "type": "memory", "config": {"scope": "session", "operation": "get", "key": "k"}}],
        "edges": [],
    }
    async with installation("memory:") as app:
        await begin(app, "one")
        beside = await app.start(Workflow.of(note), {}, session="s")
        assert await beside.settled() == "completed"
