"""How long calls may take: a tool's own time goes before the workflow's, which goes before the default."""

from __future__ import annotations

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.definition.model.base import Duration
from pointsman.definition.model.policies import Limits
from pointsman.engine.actions import WorkAction
from pointsman.engine.compile import compile_workflow
from pointsman.engine.failures import Failure
from pointsman.executors.effect_ledger import CallTimes
from pointsman.settings import Settings
from pointsman.testing.clock import run_virtually
from pointsman.values import Json, JsonObject, Seconds

AGENT: JsonObject = {"id": "a", "type": "agent", "config": {"prompt": "Hi."}}


def times(document: JsonObject, caps: Limits | None = None) -> tuple[Json, Json]:
    definition, problems = Workflow.of(document).definition, ()
    assert definition is not None, problems
    does = compile_workflow(definition, caps=caps or Limits()).nodes["a"].action
    assert isinstance(does, WorkAction)
    return does.spec.settings["modelCallTime"], does.spec.settings["toolCallTime"]


@pytest.mark.parametrize(
    ("document", "caps", "found"),
    [
        ({"pointsman": 1, "id": "w", "nodes": [AGENT]}, None, (600.0, 120.0)),
        ({"id": "w", "nodes": [AGENT]}, None, (30.0, 30.0)),
        ({"pointsman": 1, "id": "w", "nodes": [AGENT], "config": {"limits": {"nodeTime": "5s"}}}, None, (5.0, 5.0)),
        ({"pointsman": 1, "id": "w", "nodes": [AGENT]}, 300.0, (300.0, 120.0)),
        ({"pointsman": 1, "id": "w", "nodes": [AGENT]}, 60.0, (60.0, 60.0)),
        ({"id": "w", "nodes": [AGENT]}, 10.0, (10.0, 10.0)),
    ],
)
def test_a_document_gives_its_calls_so_many_seconds(
    document: JsonObject, caps: float | None, found: tuple[float, float]
) -> None:
    operator = None if caps is None else Limits(node_time=Duration(Seconds(caps)))
    assert times(document, operator) == found


@tool(timeout_s=45)
async def patient() -> str:
    """Takes 40 s."""
    import asyncio

    await asyncio.sleep(40)
    return "done"


@tool(timeout_s=5)
async def hurried() -> str:
    """Takes 40 s, and has 5."""
    import asyncio

    await asyncio.sleep(40)
    return "done"


def calling(name: str, **more: Json) -> Workflow:
    return Workflow.of({"id": "w", "nodes": [{"id": "a", "type": "tool", "config": {"tool": name}}], **more})


def outcome(workflow: Workflow, *, caps: Limits | None = None) -> tuple[str, Failure | None]:
    async def run() -> tuple[str, Failure | None]:
        settings = Settings(store="memory:", limits=caps or Limits())
        async with Pointsman(tools=[patient, hurried], model="scripted", settings=settings) as app:
            execution = await app.start(workflow)
            return await execution.settled(), execution.state.outcome.failure

    return run_virtually(run())


def test_a_tool_keeps_its_own_longer_time_in_old_and_new_documents() -> None:
    assert outcome(calling("patient"))[0] == "completed"
    assert outcome(calling("patient", pointsman=1))[0] == "completed"


def test_a_timeout_names_the_tool_the_limit_and_the_setting() -> None:
    status, failure = outcome(calling("hurried"))
    assert status == "failed"
    assert failure is not None
    assert (failure.code, failure.message) == ("tool-timeout", "the tool 'hurried' did not answer within 5 s")
    assert "timeout_s" in failure.hint


def test_the_operator_caps_the_time_of_a_tool() -> None:
    status, failure = outcome(calling("patient"), caps=Limits(node_time=Duration(Seconds(2.0))))
    assert status == "failed"
    assert failure is not None
    assert failure.message == "the tool 'patient' did not answer within 2 s"
    assert "operator" in failure.hint


def test_a_tool_without_a_time_of_its_own_has_that_of_the_workflow() -> None:
    assert CallTimes(None, {"toolCallTime": 7.0}).of_tool(None)[0] == 7.0
    assert CallTimes(9.0, {"toolCallTime": 7.0}).of_tool(None)[0] == 9.0, "what was raised for this execution counts"


def test_an_edge_for_timeouts_takes_those_of_calls_too() -> None:
    document: JsonObject = {
        "id": "w",
        "nodes": [
            {"id": "a", "type": "tool", "config": {"tool": "hurried"}},
            {"id": "late", "type": "transform", "config": {"set": {"late": "true"}}},
        ],
        "edges": [{"source": "a", "target": "late", "condition": {"type": "error", "codes": ["timeout"]}}],
    }
    assert outcome(Workflow.of(document))[0] == "completed"
