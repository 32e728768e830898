"""Saved workflows as tools of agents: each call is a sub-workflow, and survives restarts."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.definition.problems import WorkflowInvalid
from pointsman.executions.children import pause_with_children, resume_with_children
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, WorkflowId
from pointsman.workflows.scripts import parse_script
from pointsman.workflows.tool_verbs import list_tools

pytestmark = pytest.mark.integration

GREET = """\
pointsman: 1
id: greet
description: Greets somebody.
input: {type: object, required: [name], properties: {name: {type: string}}}
output: {said: said}
nodes:
  - {id: greeter, type: agent, config: {prompt: "Greet {{name}}"}, outputs: {said: result}}
edges: []
"""
ASKING = """\
pointsman: 1
id: greet
input: {type: object, required: [name], properties: {name: {type: string}}}
output: {said: said}
nodes:
  - {id: may, type: human, config: {message: "Greet {{name}}?"}, outputs: {said: name}}
edges: []
"""
FAILING = """\
pointsman: 1
id: greet
nodes:
  - {id: bad, type: transform, config: {set: {x: "1 / 0"}}}
edges: []
"""
HOST = """\
pointsman: 1
id: host
output: {said: said}
nodes:
  - {id: host, type: agent, config: {prompt: "Greet all", tools: [workflow__greet]}, outputs: {said: result}}
edges: []
"""
NODE = """\
pointsman: 1
id: node
output: {said: said}
nodes:
  - {id: greet, type: tool, config: {tool: workflow__greet, parameters: {name: Ada}}, outputs: {said: result.said}}
edges: []
"""
SCRIPT = """\
rules:
  - {node: host, call: 1, toolCalls: [{name: workflow__greet, arguments: {name: Ada}},
     {name: workflow__greet, arguments: {name: Ben}}]}
  - {node: host, contains: Ben!, text: Both were greeted.}
  - {node: host, contains: nested-too-deep, text: Too deep.}
  - {node: host, contains: tool-arguments, text: Wrong arguments.}
  - {node: host, contains: error, text: It did not work.}
  - {node: host, text: Done.}
  - {node: greeter, contains: Ada, text: Ada!}
  - {node: greeter, contains: Ben, text: Ben!}
"""

DIES = """\
import asyncio, os, signal, sys
from pointsman import Pointsman, Workflow
from pointsman.workflows.scripts import parse_script


async def main(url, script, flow, moment):
    async with Pointsman(url, script=parse_script(script)) as app:
        def see(event):
            asks = moment == "begun" and event.get("kind") == "children_asked"
            ends = moment == "ended" and event.get("kind") == "completed" and event.get("executionId") != execution
            if asks or ends:
                os.kill(os.getpid(), signal.SIGKILL)
        execution = "exec-parent"
        app.watch(see)
        started = await app.start(Workflow.parse(flow, name="flow"), {}, execution=execution)
        await started.settled()

asyncio.run(main(*sys.argv[1:]))
"""


class World:
    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/store.db"

    def open(self, script: str = SCRIPT) -> Pointsman:
        return Pointsman(self.url, script=parse_script(script))

    async def save(self, flow: str) -> None:
        async with self.open() as app:
            await app.save(parsed(flow))


def parsed(flow: str) -> Workflow:
    return Workflow.parse(flow, name="flow")


async def below(app: Pointsman, parent: str) -> list[Summary]:
    return await app.executions(ExecutionQuery(parent=ExecutionId(parent)))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_each_workflow_call_is_a_child_execution(world: World) -> None:
    await world.save(GREET)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        assert await execution.output() == {"said": "Both were greeted."}
        children = await below(app, execution.id)
        assert [(child.workflow, child.status) for child in children] == [("greet", "completed")] * 2
        assert sorted([str((await app.view(child.execution))["output"]) for child in children]) == [
            "{'said': 'Ada!'}",
            "{'said': 'Ben!'}",
        ]
        assert (await app.replay(execution.id)).differences == []


async def test_usage_of_child_executions_counts_for_the_parent(world: World) -> None:
    await world.save(GREET)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        await execution.output()
        assert (execution.state.usage.model_calls, execution.state.usage.tool_calls) == (4, 2)


async def test_models_receive_the_description_of_the_workflow(world: World) -> None:
    await world.save(GREET)
    async with world.open() as app:
        (shown,) = [one for one in await list_tools(app.context) if one["origin"] == "workflow"]
        assert (shown["name"], shown["description"]) == ("workflow__greet", "Greets somebody.")
        assert shown["parameters"]["required"] == ["name"]


async def test_a_workflow_saved_later_is_a_tool_in_the_same_process(world: World) -> None:
    async with world.open() as app:
        assert not any(one["origin"] == "workflow" for one in await list_tools(app.context))
        await app.save(parsed(GREET))
        await app.save(parsed(GREET.replace("Greets somebody.", "Welcomes somebody.")))
        (shown,) = [one for one in await list_tools(app.context) if one["origin"] == "workflow"]
        assert shown["description"] == "Welcomes somebody."


async def test_a_tool_node_can_call_a_workflow(world: World) -> None:
    await world.save(GREET)
    async with world.open() as app:
        execution = await app.start(parsed(NODE), {})
        assert await execution.output() == {"said": "Ada!"}


async def test_a_tool_node_with_an_unknown_workflow_is_refused(world: World) -> None:
    async with world.open() as app:
        with pytest.raises(WorkflowInvalid, match="workflow__greet"):
            await app.start(parsed(NODE), {})


async def test_workflow_calls_wait_for_their_workflows_even_over_restarts(world: World) -> None:
    await world.save(ASKING)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        await execution.settled()
        assert (await app.view(execution.id))["status"] == "waiting"
        children = {child.execution for child in await below(app, execution.id)}
        assert len(children) == 2
    async with world.open() as app:
        shown = await app.view(execution.id)
        assert (shown["status"], len(cast("list[object]", shown["waiting"]))) == ("waiting", 2)
        again = await app.open(execution.id)
        for child in children:
            await (await app.open(child)).answer("may", "approve")
        assert await again.output() == {"said": "Done."}
        assert {child.execution for child in await below(app, execution.id)} == children
        assert again.state.usage.model_calls == 2
        assert (await app.replay(execution.id)).differences == []


async def test_a_restart_between_two_answers_loses_neither(world: World) -> None:
    await world.save(ASKING)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        await execution.settled()
        first, second = [child.execution for child in await below(app, execution.id)]
        await (await app.open(first)).answer("may", "approve")
        await execution.settled()
        assert (await app.view(execution.id))["status"] == "waiting"
    async with world.open() as app:
        again = await app.open(execution.id)
        await again.settled()
        await (await app.open(second)).answer("may", "approve")
        assert await again.output() == {"said": "Done."}


async def test_a_cancelled_execution_cancels_its_called_workflows(world: World) -> None:
    await world.save(ASKING)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        await execution.settled()
    async with world.open() as app:
        again = await app.open(execution.id)
        await again.cancel()
        await again.settled()
        assert [child.status for child in await below(app, execution.id)] == ["cancelled"] * 2


async def test_called_workflows_pause_and_resume_with_the_caller(world: World) -> None:
    await world.save(ASKING)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        await execution.settled()
        driver = app.runtime.drivers[ExecutionId(execution.id)]
        await pause_with_children(app.runtime, driver, "ada")
        assert [child.status for child in await below(app, execution.id)] == ["paused"] * 2
        await resume_with_children(app.runtime, driver, {}, "ada")
        assert [child.status for child in await below(app, execution.id)] == ["waiting"] * 2


async def test_the_model_receives_the_failure_of_a_called_workflow(world: World) -> None:
    await world.save(FAILING)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        assert await execution.output() == {"said": "It did not work."}
        assert [child.status for child in await below(app, execution.id)] == ["failed"] * 2
        assert (await app.replay(execution.id)).differences == []


async def test_invalid_arguments_start_no_workflow(world: World) -> None:
    await world.save(GREET)
    async with world.open(SCRIPT.replace("name: Ada}", "name: 1}").replace("name: Ben}", "name: 2}")) as app:
        execution = await app.start(parsed(HOST), {})
        assert await execution.output() == {"said": "Wrong arguments."}
        assert await below(app, execution.id) == []


async def test_a_workflow_that_calls_itself_ends(world: World) -> None:
    await world.save(HOST.replace("id: host\noutput", "id: greet\noutput"))
    script = SCRIPT.replace(
        """}},
     {name: workflow__greet, arguments: {name: Ben}}]""",
        "}}]",
    )
    async with world.open(script) as app:
        execution = await app.start("greet", {})
        assert await execution.output() == {"said": "Done."}
        told = [one.status for one in await app.executions(ExecutionQuery(workflow=None, limit=50))]
        assert told == ["completed"] * 17


async def test_a_tool_node_that_calls_its_own_workflow_fails_with_a_code(world: World) -> None:
    # A tool exists before a node can name it, and its parameters are those of the saved revision.
    await world.save(GREET.replace("required: [name], ", ""))
    await world.save(NODE.replace("id: node", "id: greet").replace("parameters: {name: Ada}", "parameters: {}"))
    async with world.open() as app:
        execution = await app.start("greet", {})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert execution.state.outcome.failure.code == "nested-too-deep"
        told = [one.status for one in await app.executions(ExecutionQuery(limit=50))]
        assert told == ["failed"] * 17
        assert await (await app.start(parsed(GREET), {"name": "Ben"})).output() == {"said": "Ben!"}
    async with world.open() as app:
        again = await app.open(execution.id)
        assert again.status == "failed", "it is there, and tells why"


@pytest.mark.parametrize("moment", ["begun", "ended"])
async def test_a_process_killed_around_a_call_starts_its_workflow_once(world: World, moment: str) -> None:
    """It is killed directly after the row that starts the sub-workflows, or after the last row of a sub-workflow."""
    await world.save(GREET)
    died = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, world.url, SCRIPT, HOST, moment)
    await asyncio.wait_for(died.wait(), timeout=60)
    assert died.returncode == -signal.SIGKILL
    async with world.open() as app:
        (parent,) = await app.executions(ExecutionQuery(workflow=WorkflowId("host")))
        before = {one.execution for one in await below(app, parent.execution)}
        execution = await app.open(parent.execution)
        assert await execution.output() == {"said": "Both were greeted."}
        children = await below(app, parent.execution)
        assert [(one.workflow, one.status) for one in children] == [("greet", "completed")] * 2
        assert before <= {one.execution for one in children}
        assert (execution.state.usage.model_calls, execution.state.usage.tool_calls) == (4, 2)


async def test_an_execution_calls_the_revision_from_its_start(world: World) -> None:
    await world.save(ASKING)
    async with world.open() as app:
        flow = HOST.replace("nodes:\n", "nodes:\n  - {id: first, type: human, config: {message: Now?}}\n")
        flow = flow.replace("edges: []", "edges: [{id: on, source: first, target: host}]")
        execution = await app.start(parsed(flow), {})
        await execution.settled()
        await app.save(parsed(GREET))
        await execution.answer("first", "approve")
        await execution.settled()
        assert (await app.view(execution.id))["status"] == "waiting"
        assert [child.revision for child in await below(app, execution.id)] == [1, 1]


async def test_a_fork_starts_its_own_workflow_calls(world: World) -> None:
    await world.save(ASKING)
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        await execution.settled()
    async with world.open() as app:
        copy = await app.fork(execution.id)
        await copy.settled()
        mine = {child.execution for child in await below(app, execution.id)}
        its = {child.execution for child in await below(app, copy.id)}
        assert (len(mine), len(its), mine & its) == (2, 2, set())
        for child in its:
            await (await app.open(child)).answer("may", "approve")
        assert await copy.output() == {"said": "Done."}
        assert (await app.view(execution.id))["status"] == "waiting"


async def test_an_exported_execution_with_children_continues_in_another_store(world: World, tmp_path: Path) -> None:
    await world.save(ASKING)
    file = tmp_path / "family.jsonl"
    async with world.open() as app:
        execution = await app.start(parsed(HOST), {})
        await execution.settled()
        file.write_bytes(b"".join([line async for line in app.storage.export(execution.id)]))
    (tmp_path / "other").mkdir()
    async with World(tmp_path / "other").open() as app:
        name = await app.storage.bring_in(file, name=app.storage.new_id())
        children = [child.execution for child in await below(app, name)]
        assert (name != execution.id, len(children)) == (True, 2)
        again = await app.open(name)
        for child in children:
            await (await app.open(child)).answer("may", "approve")
        assert await again.output() == {"said": "Done."}
        assert len(await below(app, name)) == 2


async def test_a_budget_counts_usage_of_child_executions(world: World) -> None:
    await world.save(GREET)
    async with world.open() as app:
        flow = HOST.replace("output:", "config: {limits: {modelCalls: 2}}\noutput:")
        execution = await app.start(parsed(flow), {})
        assert await execution.settled() == "interrupted"
        assert (execution.state.limits.interruption, execution.state.usage.model_calls) == ("modelCalls", 2)
        await execution.resume(limits={"modelCalls": 10})
        assert await execution.output() == {"said": "Both were greeted."}
