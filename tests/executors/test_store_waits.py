"""Waits for the store inside a step do not count for the deadline of the step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from pointsman import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import JsonObject
from tests.patience import PATIENCE_S

SLOW_S: Final = 0.15
"""Longer than the step may take."""


def workflow(operation: str) -> Workflow:
    config: JsonObject = {"operation": operation, "scope": "workflow", "key": "note", "value": "new"}
    node: JsonObject = {"id": "note", "type": "memory", "config": config, "execution": {"timeout": "50ms"}}
    return Workflow.of({"id": "notes", "nodes": [node], "edges": []})


@pytest.mark.parametrize(("operation", "method"), [("get", "get"), ("set", "change"), ("search", "search")])
async def test_a_memory_node_does_not_time_out_while_it_waits_for_the_store(
    operation: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Pointsman("memory:", model="scripted", settings=Settings()) as app:
        fast: Callable[..., Awaitable[object]] = getattr(app.store.memory, method)

        async def slow(*arguments: object, **options: object) -> object:
            await asyncio.sleep(SLOW_S)
            return await fast(*arguments, **options)

        monkeypatch.setattr(app.store.memory, method, slow)
        execution = await app.start(workflow(operation))
        assert await asyncio.wait_for(execution.settled(), PATIENCE_S) == "completed"
