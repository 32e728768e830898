"""The summary of a parent that another process drives: a child that ends wakes it, and preserves the other process's
changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from pointsman.engine.events.lifecycle import ExecutionPaused
from pointsman.engine.state import ExecutionState
from pointsman.ports import Row
from pointsman.runtime.children import ChildExecutions, ChildHost
from pointsman.runtime.ownership import LocalOwnership
from pointsman.store.memory import MemoryStore
from pointsman.store.records import Summary
from pointsman.values import ExecutionId, Instant, WorkflowId

PARENT, CHILD = ExecutionId("exec-parent"), ExecutionId("exec-child")
ROW = Row(1, 1.0, (ExecutionPaused(by="ann"),))


def summary(status: str) -> Summary:
    return Summary(
        execution=PARENT,
        workflow=WorkflowId("flow"),
        revision=0,
        status=status,
        started=Instant(0.0),
        updated=Instant(1.0),
    )


@pytest.mark.parametrize("moment", ["before the summary is read", "after the summary is read", "never"])
async def test_the_end_of_a_child_does_not_overwrite_a_summary_of_another_process(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    await store.journal.append(PARENT, ROW, summary=summary("running"))
    find = store.executions.find

    async def write() -> None:
        await store.journal.append(PARENT, replace(ROW, seq=2), summary=summary("paused"))

    async def found(execution: ExecutionId) -> Summary | None:
        if moment.startswith("before"):
            await write()
        read = await find(execution)
        if moment.startswith("after"):
            await write()
        return read

    monkeypatch.setattr(store.executions, "find", found)
    home = SimpleNamespace(drivers={}, store=store, ownership=LocalOwnership(), clock=SimpleNamespace(now=lambda: 5.0))
    child = ExecutionState(CHILD)
    child.setup.parent = PARENT
    await ChildExecutions(cast("ChildHost", home)).ended(child)
    kept = await find(PARENT)
    assert kept is not None
    assert (kept.status, kept.wakes) == (("running", 5.0) if moment == "never" else ("paused", None))
