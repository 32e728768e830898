"""Origin and results of an execution, and the requests of its steps to models and tools."""

from __future__ import annotations

from typing import Any

import pytest

from pointsman.models.script import read_script
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER

ABOVE = """\
pointsman: 1
id: above
input: {type: object}
nodes:
  - {id: call, type: workflow, config: {workflow: letter}, inputs: {goal: "'tides'"}}
"""
ASKS = """\
pointsman: 1
id: asks
input: {type: object}
config: {observability: LEVEL}
nodes:
  - {id: tell, type: agent, config: {prompt: "What time is it?", tools: [clock]}}
  - {id: again, type: tool, config: {tool: clock}, inputs: {zone: "'Oslo'"}}
edges: [{source: tell, target: again}]
"""
SCRIPT = """\
rules:
  - {node: tell, contains: noon, text: It is noon.}
  - {node: tell, text: Let me see., toolCalls: [{name: clock, arguments: {zone: UTC, password: hunter2}}]}
tools:
  clock:
    description: The time.
    parameters: {type: object, properties: {zone: {type: string}, password: {type: string}}}
    result: {time: noon}
"""


async def ask(served: Served, execution: str, what: str, expect: int = 200) -> Any:
    reply = await served.client.get(f"/api/workflows/executions/{execution}/{what}")
    assert reply.status_code == expect, reply.text
    return reply.json()


async def fork(served: Served, execution: str, **how: Any) -> str:
    return str((await served.act(execution, "fork", how, expect=202))["executionId"])


async def test_each_fork_lists_its_origin_and_other_forks(served: Served) -> None:
    await served.save(LETTER)
    first = await served.execute("letter", {"goal": "tides"})
    await served.execute("letter", {"goal": "tides"})  # An equal execution without a relation.
    second = await fork(served, first, at=2)
    third = await fork(served, second, step="write")
    shown = await ask(served, first, "family")
    assert [(one["executionId"], one["origin"], one["before"]) for one in shown["forks"]] == [
        (second, first, None),
        (third, second, "write"),
    ]
    assert shown["forks"][0]["row"] == 2
    assert shown["origin"] is None
    assert shown["complete"] is True
    shown = await ask(served, third, "family")
    assert [(one["executionId"], one["origin"]) for one in shown["forks"]] == [(first, None), (second, first)]
    assert shown["origin"]["origin"] == second


async def test_sub_workflows_link_to_their_parent_and_back(served: Served) -> None:
    await served.save(LETTER)
    await served.save(ABOVE)
    above = await served.execute("above")
    below = (await ask(served, above, "family"))["children"]
    assert [one["workflowId"] for one in below] == ["letter"]
    shown = await ask(served, below[0]["executionId"], "family")
    assert [one["executionId"] for one in shown["parents"]] == [above]
    assert (shown["forks"], shown["origin"]) == ([], None)


async def test_hidden_related_executions_are_not_shown() -> None:
    async with serving(is_local=False) as served:
        served.client.headers.update(await served.key("root", "admin"))
        await served.save(CHAIN.replace("id: chain", "id: secret\nallowedGroups: [board]"))
        hidden = await served.execute("secret")
        served.client.headers.update(await served.key("ada", "operator", "desk"))
        for what in ("family", "calls?step=first"):
            await ask(served, hidden, what, expect=404)


async def test_a_step_lists_its_calls_with_their_results() -> None:
    async with serving(script=read_script(SCRIPT)) as served:
        await served.save(ASKS.replace("LEVEL", "full"))
        execution = await served.execute("asks")
        first, second = (await ask(served, execution, "calls?step=tell"))["calls"]
        assert (first["kind"], first["text"], first["usage"]["modelCalls"]) == ("model", "Let me see.", 1)
        (call,) = first["calls"]
        assert (call["tool"], call["done"], call["result"]) == ("clock", True, {"time": "noon"})
        assert call["arguments"]["zone"] == "UTC"
        assert "hunter2" not in str(call), "names of secrets hide what they name"
        assert (second["text"], second["calls"]) == ("It is noon.", [])
        (alone,) = (await ask(served, execution, "calls?step=again"))["calls"]
        assert (alone["kind"], alone["result"]) == ("tool", {"time": "noon"})
        assert (await ask(served, execution, "calls?step=nobody"))["calls"] == []


async def test_a_workflow_with_minimal_observability_lists_no_calls() -> None:
    async with serving(script=read_script(SCRIPT)) as served:
        await served.save(ASKS.replace("LEVEL", "minimal"))
        execution = await served.execute("asks")
        assert (await ask(served, execution, "calls?step=tell"))["calls"] == []


@pytest.mark.parametrize("what", ["family", "calls?step=first"])
async def test_details_of_an_unknown_execution_are_not_found(served: Served, what: str) -> None:
    told = await ask(served, "exec-nothing", what, expect=404)
    assert told["code"] == "unknown-execution"
