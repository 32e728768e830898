"""Every type of node: a rule of the core, or an executor that does its work."""

from __future__ import annotations

from typing import Final

import pytest

from pointsman.app import Pointsman
from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.actions import WorkAction
from pointsman.engine.compile import compile_workflow
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock
from pointsman.values import Json, JsonObject

CONFIGS: Final[dict[str, JsonObject]] = {
    "agent": {"prompt": "x"},
    "tool": {"tool": "calculator"},
    "decision": {"expression": "true"},
    "loop": {"maxIterations": 1},
    "memory": {"scope": "execution", "operation": "get", "key": "k"},
    "workflow": {"workflow": "other"},
    "code": {"language": "python", "source": "1"},
    "wait": {"duration": "1s"},
    "emit": {"event": "told"},
    "note": {"text": "x"},
    "http": {"url": "https://example.org"},
    "progress": {"message": "x"},
    "template-render": {"template": "x"},
    "human": {"message": "x"},
    "planner": {"goal": "x"},
    "verifier": {"criteria": "x"},
    "structured-record": {"schema": {"type": "object"}, "input": "x", "records": "records"},
}
OF_THE_CORE: Final = {
    "start": "StartAction",
    "end": "EndAction",
    "decision": "DecisionAction",
    "parallel": "ParallelAction",
    "join": "JoinAction",
    "loop": "LoopAction",
    "human": "HumanTaskAction",
    "transform": "TransformAction",
    "workflow": "WorkflowAction",
    "wait": "WaitAction",
    "emit": "EmitAction",
    "progress": "EmitAction",
    "template-render": "TransformAction",
}


async def kinds_of_work() -> tuple[str, ...]:
    """What an installation that nobody configured can do."""
    async with Pointsman("memory:", settings=Settings(), clock=VirtualClock()) as app:
        return app.context.services.executors.kinds()


@pytest.mark.requirement("T1-8")
@pytest.mark.parametrize("kind", CONFIG_OF)
async def test_every_type_of_node_has_a_rule_in_the_core_or_an_executor(kind: str) -> None:
    nodes: list[Json] = [{"id": "it", "type": kind, "config": CONFIGS.get(kind, {})}]
    edges: list[Json] = []
    if kind == "loop":
        nodes.append({"id": "body", "type": "transform", "config": {}})
        edges = [{"source": "it", "target": "body", "mark": "body"}, {"source": "body", "target": "it"}]
    workflow, problems = WorkflowDefinition.from_document({"id": "one", "entry": "it", "nodes": nodes, "edges": edges})
    assert workflow is not None, problems
    plan = compile_workflow(workflow)
    if kind == "note":
        assert "it" not in plan.nodes, "a comment never runs"
        return
    does = plan.nodes["it"].action
    if isinstance(does, WorkAction):
        assert kind not in OF_THE_CORE
        assert does.spec.kind in await kinds_of_work()
    else:
        assert type(does).__name__ == OF_THE_CORE[kind]
