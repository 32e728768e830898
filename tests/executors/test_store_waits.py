"""Waits for the store inside a step do not count for the deadline of the step, and no step fails by an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.auth import vault
from pointsman.auth.vault import Vault
from pointsman.settings import Settings
from pointsman.store.errors import StoreUnreachable
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject
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


SECRET: Final = "sesame-open-the-door"


@tool
async def age() -> None:
    """Do nothing."""


@tool(timeout_s=0.05)
async def note(key: str) -> str:
    """Write a note."""
    return f"noted with {len(key)} characters"


def noting(key: str, **node: JsonObject) -> Workflow:
    config: JsonObject = {"tool": "note", "parameters": {"key": key}}
    nodes: list[Json] = [
        {"id": "age", "type": "tool", "config": {"tool": "age"}},
        {"id": "note", "type": "tool", "config": config, **node},
    ]
    edges: list[Json] = [{"source": "age", "target": "note"}]
    return Workflow.of({"id": "notes", "nodes": nodes, "edges": edges, "allowedGroups": ["finance"]})


def installed(*more: Tool, **rule: object) -> Pointsman:
    given = {"DOOR": {"value": SECRET, "tools": ["note"], **rule}}
    settings = Settings.model_validate({"secrets": given})
    return Pointsman("memory:", tools=[note, *more], model="scripted", settings=settings)


@pytest.mark.parametrize("key", ["secret.DOOR", "plain"])
async def test_a_tool_does_not_time_out_while_secrets_are_read_from_the_store(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, refresh = list[float](), Vault.refresh

    @tool
    async def age() -> None:
        """Let the secrets be read again."""
        monkeypatch.setattr(vault, "KNOWN_FOR_S", 0.0)

    async def slow(secrets: Vault, *, at_once: bool = False) -> None:
        if not secrets.is_fresh:
            waits.append(SLOW_S)
            await asyncio.sleep(SLOW_S)
            monkeypatch.setattr(vault, "KNOWN_FOR_S", 60.0)
        await refresh(secrets, at_once=at_once)

    async with installed(age) as app:
        execution = await app.start(noting(key, execution={"timeout": "100ms"}))
        monkeypatch.setattr(Vault, "refresh", slow)
        assert await asyncio.wait_for(execution.settled(), PATIENCE_S) == "completed"
    assert waits == [SLOW_S]


async def test_no_step_fails_while_the_rule_of_a_secret_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with installed(age, groups=["finance"]) as app:
        await app.save(noting("secret.DOOR"))
        find = app.store.workflows.find

        async def away(*_: object, **__: object) -> None:
            raise StoreUnreachable("the server is away")

        execution = await app.start("notes")
        monkeypatch.setattr(app.store.workflows, "find", away)
        with pytest.raises(StoreUnreachable):
            await asyncio.wait_for(execution.settled(), PATIENCE_S)
        monkeypatch.setattr(app.store.workflows, "find", find)
        again = await app.open(execution.id)
        assert await asyncio.wait_for(again.settled(), PATIENCE_S) == "completed"
