"""Memory tools of agents: their writes last, and they reach only the memory that their node names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow
from pointsman.definition.problems import WorkflowInvalid
from pointsman.engine.events.steps import StepSucceeded
from pointsman.executions.execution import Execution
from pointsman.executors.tool_calls import offered
from pointsman.settings import Settings
from pointsman.tools.memory import MemoryTool
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script

pytestmark = pytest.mark.integration

TOOLS: list[Json] = ["memory_get", "memory_set", "memory_append", "memory_delete", "memory_search"]


def call(name: str, **arguments: Json) -> JsonObject:
    return {"name": f"memory_{name}", "arguments": arguments}


def remembering(*calls: JsonObject, tools: list[Json] | None = None, **memory: Json) -> tuple[Workflow, str]:
    """Return a workflow with an agent that makes these calls in order and then repeats the last result."""
    rules: list[Json] = [{"node": "desk", "call": at + 1, "toolCalls": [one]} for at, one in enumerate(calls)]
    config: JsonObject = {"tools": TOOLS if tools is None else tools, "maxIterations": 20}
    if memory:
        config["memory"] = memory
    node: JsonObject = {"id": "desk", "type": "agent", "config": config}
    script = Workflow.of({"rules": [*rules, {"node": "desk", "text": "done"}]}).document.text
    flow: JsonObject = {"id": "desk", "config": {"conversational": True}, "nodes": [node], "edges": []}
    return Workflow.of(flow), script


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


async def told(url: str, given: tuple[Workflow, str], *, by: str = "ann", session: str | None = None) -> list[Json]:
    """Return the results of the agent's calls in order."""
    flow, script = given
    async with Pointsman(url, script=parse_script(script), settings=Settings(delays=False)) as app:
        execution = await app.start(flow, "go", by=by, session=session)
        assert await execution.settled() == "completed", execution.state.outcome.failure
        assert (await app.replay(execution.id)).differences == []
        return [read(str(one["content"])) for one in await messages_of(execution) if one.get("role") == "tool"]


async def messages_of(execution: Execution) -> list[JsonObject]:
    """Return the new messages of the conversation."""
    steps = [event for row in await execution.rows() for event in row.events if isinstance(event, StepSucceeded)]
    return [one for step in steps for one in step.messages if isinstance(one, dict)]


def read(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return text


def code_of(said: Json) -> Json:
    assert isinstance(said, dict)
    error = said["error"]
    assert isinstance(error, dict)
    return error["code"]


@pytest.mark.requirement("S1-73", "S1-74")
async def test_memory_of_an_agent_is_available_in_a_later_process(url: str) -> None:
    wrote = await told(
        url,
        remembering(
            call("set", key="tone", value="short"),
            call("append", key="log", value="one"),
            call("append", key="log", value="one"),
            call("set", key="gone", value="x"),
            call("delete", key="gone"),
        ),
        session="s",
    )
    assert wrote == ["short", ["one"], ["one", "one"], "x", True]
    found = await told(
        url,
        remembering(call("get", key="tone"), call("get", key="gone"), call("search", query="ONE")),
        session="s",
    )
    assert found == ["short", None, [{"key": "log", "value": ["one", "one"]}]]
    others = await told(url, remembering(call("get", key="tone"), call("search", query="one")), session="other")
    assert others == [None, []]


async def test_an_intended_second_write_is_applied(url: str) -> None:
    there_and_back = [call("set", key="k", value=value) for value in ("a", "b", "a")]
    assert (await told(url, remembering(*there_and_back, call("get", key="k"))))[-1] == "a"


async def test_an_agent_reaches_only_the_scopes_of_its_node(url: str) -> None:
    wide = remembering(
        call("set", scope="user", key="k", value="hers"),
        call("set", scope="session", key="k", value="here"),
        call("get", scope="user", key="k"),
        call("set", scope="workflow", key="k", value="all"),
        call("get", key="k"),
        scopes=["session", "user"],
    )
    *fine, refused, unsaid = await told(url, wide, session="s")
    assert fine == ["hers", "here", "hers"]
    assert [code_of(refused), code_of(unsaid)] == ["tool-arguments", "tool-arguments"]
    narrow = remembering(call("set", scope="user", key="k", value="stolen"), call("get", key="k"))
    refused, own = await told(url, narrow, session="s")
    assert (code_of(refused), own) == ("tool-arguments", "here")
    assert await told(url, remembering(call("get", key="k"), scopes=["user"]), by="ben") == [None]
    assert await told(url, remembering(call("get", key="k"), scopes=["user"])) == ["hers"]


async def test_a_namespace_bounds_the_memory_tools(url: str) -> None:
    await told(url, remembering(call("set", key="a", value="1"), scopes=["user"], namespace="notes"))
    assert await told(url, remembering(call("get", key="a"), call("get", key="notes/a"), scopes=["user"])) == [None] * 2
    shared = remembering(call("set", key="rule", value="be kind"), scopes=["shared"], namespace="handbook")
    assert await told(url, shared) == ["be kind"]
    again = remembering(call("search", query="kind"), scopes=["shared"], namespace="handbook")
    assert await told(url, again, by="ben") == [[{"key": "rule", "value": "be kind"}]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [({}, "tool-arguments"), ({"key": ""}, "tool-arguments"), ({"key": "a\u0007b"}, "memory-key-invalid")],
)
async def test_an_invalid_call_is_returned_to_the_agent_which_continues(
    url: str, arguments: JsonObject, code: str
) -> None:
    flow, script = remembering({"name": "memory_get", "arguments": arguments})
    (said,) = await told(url, (flow, script))
    assert code_of(said) == code


async def test_a_full_memory_is_reported_to_the_agent(url: str) -> None:
    settings = Settings.model_validate({"delays": False, "memory": {"value_bytes_max": 1000}})
    flow, script = remembering(call("set", key="k", value="x" * 2000))
    async with Pointsman(url, script=parse_script(script), settings=settings) as app:
        execution = await app.start(flow, "go")
        assert await execution.settled() == "completed"
        assert "memory-full" in str(await messages_of(execution))


async def test_an_agent_without_memory_tools_has_no_memory(url: str) -> None:
    (refused,) = await told(url, remembering(call("set", key="k", value="v"), tools=["memory_get"]))
    assert code_of(refused) == "tool-not-allowed"


async def test_tool_nodes_use_memory_nodes_instead(url: str) -> None:
    config: JsonObject = {"tool": "memory_set", "parameters": {"key": "k", "value": "v"}}
    node: JsonObject = {"id": "keep", "type": "tool", "config": config}
    async with Pointsman(url, model="scripted") as app:
        execution = await app.start(Workflow.of({"id": "keeps", "nodes": [node], "edges": []}), {})
        assert await execution.settled() == "failed"
        assert execution.state.outcome.failure is not None
        assert (execution.state.outcome.failure.code, "memory node" in execution.state.outcome.failure.hint) == (
            "memory-no-owner",
            True,
        )


async def test_a_shared_memory_without_a_name_is_refused_before_the_start(url: str) -> None:
    flow, _ = remembering(call("get", key="k"), scopes=["shared"])
    async with Pointsman(url, model="scripted") as app:
        checked = await app.check(flow)
        assert [problem.code for problem in checked.problems] == ["memory-incomplete"]
        with pytest.raises(WorkflowInvalid):
            await app.start(flow, "go")


def test_a_single_scope_is_not_a_parameter() -> None:
    tool = MemoryTool("memory_get")
    assert offered(tool.spec, ["user"]) is tool.spec
    properties = offered(tool.spec, ["user", "session"]).parameters["properties"]
    assert isinstance(properties, dict)
    assert [*properties] == ["scope", "key"]
