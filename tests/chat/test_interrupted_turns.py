"""A conversation keeps a turn whose process died at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.engine.state import ExecutionState
from pointsman.executions import opening
from pointsman.store.api import Store
from pointsman.values import JsonObject

pytestmark = pytest.mark.integration

TALK: JsonObject = {
    "id": "talk",
    "config": {"conversational": True},
    "nodes": [{"id": "say", "type": "agent", "config": {"prompt": "Answer."}}],
    "edges": [],
}


async def turn(app: Pointsman, text: str) -> None:
    execution = await app.start(Workflow.of(TALK), text, session="s")
    assert await execution.settled() == "completed"


async def test_messages_of_a_turn_that_crashed_at_its_end_are_in_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"

    async def died(store: Store, state: ExecutionState) -> None:
        return

    with monkeypatch.context() as patch:
        patch.setattr(opening, "save_turn", died)
        async with Pointsman(store, model="scripted") as app:
            await turn(app, "one")
    async with Pointsman(store, model="scripted") as app:
        assert (await app.store.sessions.load("s")).messages == ()
        await turn(app, "two")
        said = [m for m in (await app.store.sessions.load("s")).messages if isinstance(m, dict)]
        assert [message["content"] for message in said if message["role"] == "user"] == ["one", "two"]


async def test_a_reopened_session_stays_open(tmp_path: Path) -> None:
    async with Pointsman(f"sqlite:///{tmp_path}/store.db", model="scripted") as app:
        await turn(app, "one")
        await app.store.sessions.close("s")
        await app.store.sessions.close("s", closed=False)
        await turn(app, "two")
        assert not (await app.store.sessions.load("s")).closed
