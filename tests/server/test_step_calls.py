"""The calls of a step: the answers of models with their time, and the tool calls that they requested."""

from __future__ import annotations

from typing import Final

from pointsman.workflows.scripts import parse_script
from tests.server.conftest import serving

SUMS: Final = """\
pointsman: 1
id: sums
nodes:
  - {id: add, type: agent, config: {prompt: "Add one and one.", tools: [calculator]}}
"""
SCRIPT: Final = """\
rules:
  - {node: add, call: 1, toolCalls: [{name: calculator, arguments: {expression: 1 + 1}}]}
  - {node: add, text: It is two.}
"""


async def test_calls_of_a_step_have_the_time_of_each_answer(file_store: str) -> None:
    async with serving(file_store, script=parse_script(SCRIPT)) as served:
        await served.save(SUMS)
        execution = await served.execute("sums")
        reply = await served.client.get(f"/api/workflows/executions/{execution}/calls", params={"step": "add"})
        first, second = reply.json()["calls"]
        assert (first["calls"][0]["tool"], first["calls"][0]["result"], second["text"]) == (
            "calculator",
            2,
            "It is two.",
        )
        assert all(one["tookMs"] >= 0 for one in (first, second))
