"""The tools and memory of nodes: one registry of tools, and scopes of memory."""

from __future__ import annotations

import pytest

from pointsman import tool
from pointsman.testing.clock import run_virtually
from pointsman.values import Json
from tests.scenarios import agent_row, edge_row, installation, play, rows, tools_row, written


@pytest.mark.requirement("S1-05")
def test_one_registered_tool_serves_agents_nodes_and_tool_executors() -> None:
    asked: list[str] = []

    @tool
    async def look(at: str) -> str:
        """Look at something."""
        asked.append(at)
        return f"seen {at}"

    native = """\
pointsman: 1
id: w
nodes:
  - {id: direct, type: tool, config: {tool: look, parameters: {at: node}}, outputs: {first: result}}
  - {id: model, type: agent, config: {prompt: x, tools: [look]}}
edges: [{source: direct, target: model}]
"""
    call = "{node: %s, %s: 1, toolCalls: [{name: look, arguments: {at: %s}}]}, {text: done, next: END}"
    assert (
        play(native, script=f"rules: [{call % ('model', 'call', 'agent')}]", tools=(look,)).data["first"] == "seen node"
    )
    table = rows(
        [agent_row("A"), tools_row()],
        [edge_row("a", "tools", "tools"), edge_row("a", None, "END")],
        tools={"a": ["look"]},
    )
    assert play(table, script=f"rules: [{call % ('A', 'visit', 'graph')}]", tools=(look,)).path == ["a", "tools", "a"]
    assert asked == ["node", "agent", "graph"]


MEMORY = """\
pointsman: 1
id: remembers
nodes:
  - {id: had, type: memory, config: {scope: %(scope)s, operation: get, key: topic}, outputs: {had: result}}
  - {id: keep, type: memory, config: {scope: %(scope)s, operation: set, key: topic, value: "'tides'"}}
  - {id: now, type: memory, config: {scope: %(scope)s, operation: get, key: topic}, outputs: {now: result}}
edges: [{source: had, target: keep}, {source: keep, target: now}]
"""


@pytest.mark.requirement("S1-73", "S1-74", "S1-132", "S1-143")
@pytest.mark.parametrize(
    ("scope", "same_session", "other_session"),
    [("execution", None, None), ("session", "tides", None), ("long_term", "tides", "tides")],
)
def test_memory_lasts_as_long_as_its_tier(scope: str, same_session: Json, other_session: Json) -> None:
    async def run() -> list[Json]:
        found: list[Json] = []
        async with installation() as app:
            for session in ("one", "one", "two"):
                execution = await app.start(written(MEMORY % {"scope": scope}), {}, session=session)
                await execution.settled()
                data = execution.state.root.data.root
                assert data["now"] == "tides"
                found.append(data["had"])
        return found

    assert run_virtually(run()) == [None, same_session, other_session]
