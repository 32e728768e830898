"""Agents that run at once and share one tool executor."""

from __future__ import annotations

from pointsman.tools.functions import tool
from tests.scenarios import play

TOGETHER = """
id: together
nodes:
  - {id: start, type: start}
  - {id: left, type: agent, config: {prompt: look left, tools: [look]}}
  - {id: right, type: agent, config: {prompt: look right, tools: [look]}}
  - {id: tools, type: tool_executor}
edges:
  - {source: start, target: left}
  - {source: start, target: right}
  - {source: left, target: tools, condition: {type: label, label: tools}}
  - {source: right, target: tools, condition: {type: label, label: tools}}
"""

SCRIPT = """
rules:
  - {node: left, visit: 1, toolCalls: [{name: look, arguments: {side: left}}]}
  - {node: right, visit: 1, toolCalls: [{name: look, arguments: {side: right}}]}
  - {node: left, text: left is clear}
  - {node: right, text: right is clear}
"""


def test_the_calls_of_agents_that_run_at_once_are_all_run_and_each_goes_back_to_its_caller() -> None:
    asked: list[str] = []

    @tool
    async def look(side: str) -> str:
        """Look to one side."""
        asked.append(side)
        return "clear"

    played = play(TOGETHER, script=SCRIPT, tools=(look,))
    assert played.status == "completed", played.errors
    assert sorted(asked) == ["left", "right"]
    assert sorted(str(node) for node in played.path) == ["left", "left", "right", "right", "start", "tools", "tools"]
