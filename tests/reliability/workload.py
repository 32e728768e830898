"""The work of the experiments that kill processes: what a victim does, and the facts that checks use."""

from __future__ import annotations

import asyncio
import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from pointsman import Workflow
from pointsman.models.script import Script, read_script
from pointsman.tools.functions import tool
from pointsman.tools.tool import Tool, ToolContext
from pointsman.values import Json, JsonObject
from tests.reliability.effect_log import write_down

Load: TypeAlias = Literal["sequential", "parallel"]

EFFECT_S: Final[dict[Load, float]] = {"sequential": 0.04, "parallel": 0.08}
"""Duration of an effect."""
AT_ONCE: Final[dict[Load, int]] = {"sequential": 1, "parallel": 4}
"""Number of concurrent executions."""
ROUNDS: Final = 3
"""Number of tool calls of an agent before it answers."""
ITEMS: Final = 4
INPUT: Final[JsonObject] = {"items": [f"item{number}" for number in range(ITEMS)]}

SCRIPT: Final = """
rules:
  - {node: clerk, call: 1, toolCalls: [{name: charge, arguments: {what: first}}]}
  - {node: clerk, call: 2, toolCalls: [{name: charge, arguments: {what: second}}]}
  - {node: clerk, call: 3, toolCalls: [{name: charge, arguments: {what: third}}]}
  - {node: clerk, text: done}
"""


def _charge(name: str, what: str = "", **more: Json) -> JsonObject:
    config: JsonObject = {"tool": "charge", "parameters": {"what": what or name}}
    return {"id": name, "type": "tool", "config": config, "outputs": {name: "result"}, **more}


def _linked(*names: str) -> list[Json]:
    return [{"source": one, "target": other} for one, other in pairwise(names)]


def _document(name: str, nodes: list[JsonObject], edges: list[Json]) -> JsonObject:
    return {"id": name, "config": {"humanInLoop": "approval_gates"}, "nodes": [*nodes], "edges": edges}


CHAIN: Final = _document("chain", [_charge(name) for name in "abcd"], _linked(*"abcd"))
AGENT: Final = _document(
    "agent",
    [
        {"id": "clerk", "type": "agent", "config": {"prompt": "Charge three times.", "tools": ["charge"]}},
        _charge("last"),
    ],
    _linked("clerk", "last"),
)
FAN: Final = _document(
    "fan",
    [
        {"id": "each", "type": "parallel", "config": {"items": "items", "as": "one"}},
        {"id": "work", "type": "tool", "config": {"tool": "charge", "parameters": {"what": "{{one}}"}}},
        {"id": "all", "type": "join", "config": {}},
        _charge("sum"),
    ],
    _linked("each", "work", "all", "sum"),
)
GATE: Final = _document(
    "gate",
    [
        _charge("before"),
        {"id": "ask", "type": "human", "config": {"message": "Go on?", "options": [{"value": "yes"}]}},
        _charge("after"),
    ],
    [*_linked("before", "ask"), {"source": "ask", "target": "after", "condition": {"type": "label", "label": "yes"}}],
)


class Kind(NamedTuple):
    """One workflow of the load."""

    document: JsonObject
    effects: int
    """Number of effects of each execution."""


KINDS: Final = {
    "chain": Kind(CHAIN, 4),
    "agent": Kind(AGENT, ROUNDS + 1),
    "fan": Kind(FAN, ITEMS + 1),
    "gate": Kind(GATE, 2),
}
OF: Final[dict[Load, tuple[str, ...]]] = {
    "sequential": ("chain", "agent"),
    "parallel": ("fan", "chain", "gate", "agent"),
}


def script() -> Script:
    return read_script(SCRIPT)


def workflow(name: str) -> Workflow:
    return Workflow.of(KINDS[name].document)


def charging(world: Path, seconds: float, *, dies_after: int = 0) -> Tool:
    """Return the tool whose calls must not be paid twice. After `dies_after` effects, its process dies at once."""
    done = 0

    @tool
    async def charge(what: str, context: ToolContext) -> str:
        """Charge an account."""
        nonlocal done
        write_down(world, "begins", context.idempotency_key)
        await asyncio.sleep(seconds)
        write_down(world, "happened", context.idempotency_key)
        done += 1
        if done == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return what

    return charge
