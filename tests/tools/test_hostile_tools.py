"""Any behaviour of a tool ends its call with a typed failure, and the execution continues and reports it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.tools.functions import tool
from pointsman.tools.tool import Tool
from pointsman.values import JsonObject
from pointsman.workflows.scripts import parse_script


def cyclic() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("not even a name")


class OddError(Exception):
    def __str__(self) -> str:
        return "x" * 10_000_000


def raises(why: BaseException) -> object:
    raise why


ANSWERS: dict[str, tuple[Callable[[], object], str]] = {
    "floods": (lambda: "x" * 3_000_000, "tool-output-too-large"),
    "floods in keys": (lambda: {str(number): "x" * 100 for number in range(50_000)}, "tool-output-too-large"),
    "raises": (lambda: raises(KeyError("lost")), "tool-failed"),
    "raises a long story": (lambda: raises(OddError()), "tool-failed"),
    "runs out of memory": (lambda: raises(MemoryError()), "tool-failed"),
    "recurses": (lambda: raises(RecursionError("too deep")), "tool-failed"),
    "stops the iteration": (lambda: raises(StopAsyncIteration()), "tool-failed"),
    "answers a lock": (threading.Lock, "tool-failed"),
    "answers itself": (cyclic, "tool-failed"),
    "answers too deep": (deep, "tool-failed"),
    "answers no number": (lambda: [None, float("nan")], "tool-failed"),
    "answers infinity": (lambda: {"a": None, "b": float("-inf")}, "tool-failed"),
    "answers half a letter": (lambda: "\ud800", "tool-failed"),
    "answers bytes that are no text": (lambda: b"\xff\xfe\x00", "tool-failed"),
    "answers what cannot be shown": (Odd, "tool-failed"),
}


async def told(evil: Tool, code: str) -> None:
    """Call it from an agent, which receives the failure and continues, and from a node, which fails."""
    agent: JsonObject = {"id": "a", "type": "agent", "config": {"prompt": "Go.", "tools": ["evil"]}}
    alone: JsonObject = {"id": "a", "type": "tool", "config": {"tool": "evil"}}
    script = parse_script(
        f"rules: [{{call: 1, toolCalls: [{{name: evil, arguments: {{}}}}]}}, {{contains: {code}, text: I go on.}}]"
    )
    async with Pointsman("memory:", settings=Settings(), tools=[evil], script=script) as app:
        assert await (await app.start(Workflow.of({"id": "w", "nodes": [agent], "edges": []}))).output() == "I go on."
        execution = await app.start(Workflow.of({"id": "w", "nodes": [alone], "edges": []}))
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == code
        assert len(execution.state.outcome.failure.message) < 1000
        assert (await app.start(Workflow.of({"id": "w", "nodes": [agent], "edges": []}))).id != execution.id


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_hostile_tool_ends_only_its_call(name: str) -> None:
    answer, code = ANSWERS[name]

    @tool
    async def evil() -> Any:
        """Misbehave."""
        return answer()

    await told(evil, code)


async def test_a_hanging_tool_times_out() -> None:
    @tool(timeout_s=0.01)
    async def evil() -> None:
        """Never answer."""
        await asyncio.Event().wait()

    await told(evil, "tool-timeout")


async def test_a_large_number_is_unchanged() -> None:
    @tool
    async def evil() -> int:
        """Return a number of 31 digits."""
        return 10**30 + 1

    async with Pointsman("memory:", settings=Settings(), tools=[evil]) as app:
        node: JsonObject = {"id": "a", "type": "tool", "config": {"tool": "evil"}}
        assert await (await app.start(Workflow.of({"id": "w", "nodes": [node], "edges": []}))).output() == 10**30 + 1
