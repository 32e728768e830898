"""A fork appears in lists and inboxes from its first row on, also if it waits there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.executions.lists import inbox
from pointsman.settings import Settings

pytestmark = pytest.mark.integration

GATE = """\
pointsman: 1
id: letter
nodes:
  - {id: review, type: human, config: {message: "Send it?", options: [{value: approve}]}}
"""
WAITS = """\
pointsman: 1
id: waits
nodes:
  - {id: knock, type: wait, config: {event: knock}}
"""


async def test_a_fork_of_a_waiting_execution_is_listed_as_waiting_and_receives_its_event(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with Pointsman(store, settings=Settings(delays=False)) as app:
        execution = await app.start(Workflow.parse(WAITS), {})
        await execution.settled()
        copy = await app.fork(execution.id)
    async with Pointsman(store, settings=Settings(delays=False)) as app:
        assert {one.execution: (one.status, one.awaits) for one in await app.executions()} == {
            execution.id: ("waiting", ("knock",)),
            copy.id: ("waiting", ("knock",)),
        }
        published = await app.publish("knock", "who is there?")
        assert {*published.delivered} == {execution.id, copy.id}


async def test_a_fork_with_an_open_gate_is_in_the_inbox(tmp_path: Path) -> None:
    async with Pointsman(f"sqlite:///{tmp_path / 'store.db'}", settings=Settings(delays=False)) as app:
        execution = await app.start(Workflow.parse(GATE), {})
        await execution.settled()
        copy = await app.fork(execution.id)
        assert {str(gate["executionId"]) for gate in await inbox(app.context)} == {execution.id, copy.id}
