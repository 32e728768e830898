"""Steps that a process cannot perform wait for a worker that can, and nothing fails."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import cast

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.auth.callers import LOCAL
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.executions.execution import Execution
from pointsman.executors import registry
from pointsman.models.script import Script, read_script
from pointsman.runtime.leader import AGAIN_S
from pointsman.settings import Settings
from pointsman.store.records import ExecutionQuery
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject
from tests.installation import HandClock
from tests.models.test_provider_failures import answering
from tests.patience import PATIENCE_S
from tests.tools.mcp.test_mcp import PEER

GATE: JsonObject = {"id": "gate", "type": "human", "config": {"message": "Go on?"}}
WORK: JsonObject = {"id": "work", "type": "tool", "config": {"tool": "polish", "parameters": {"text": "abc"}}}
ASKED_FIRST = Workflow.of(
    {
        "id": "letter",
        "nodes": [GATE, WORK],
        "edges": [{"source": "gate", "target": "work"}],
        "output": {"got": "nodes.work"},
    }
)
PARENT = Workflow.of(
    {"id": "above", "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "letter"}}], "edges": []}
)
WAITS_FOR_POLISH: Json = [
    {"nodeId": "work", "step": "work", "needs": "tool:polish", "reason": "a worker with the tool 'polish'"}
]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@tool
async def polish(text: str) -> str:
    """Polish a text."""
    return text.upper()


@asynccontextmanager
async def opened(
    url: str,
    *tools: Tool,
    script: Script | None = None,
    clock: HandClock | None = None,
    settings: Settings | None = None,
) -> AsyncGenerator[Pointsman, None]:
    """Open an app like a separate process."""
    async with Pointsman(
        url, tools=tools, model="scripted", script=script, clock=clock, settings=settings or Settings()
    ) as app:
        yield app


async def began(url: str, workflow: Workflow = ASKED_FIRST, *tools: Tool, script: Script | None = None) -> str:
    """Start an execution in a process that has the tools, and leave it at its gate."""
    async with opened(url, *(tools or (polish,)), script=script) as app:
        execution = await app.start(workflow)
        await execution.settled()
        return execution.id


async def parent_started(app: Pointsman) -> Execution:
    """Start the parent of `ASKED_FIRST`, and leave its sub-workflow at its gate."""
    await app.save(ASKED_FIRST)
    execution = await app.start(PARENT)
    await execution.settled()
    return execution


def objects(value: object) -> list[JsonObject]:
    return cast("list[JsonObject]", value)


async def answered(app: Pointsman, name: str, gate: str = "gate") -> Execution:
    execution = await app.open(name)
    await execution.settled()
    await execution.answer(gate, "approve")
    await execution.settled()
    return execution


async def until(status: str, execution: Execution) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while execution.status != status:  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.02)


async def test_an_answer_in_a_process_without_the_tool_is_recorded_and_the_step_waits(url: str) -> None:
    name = await began(url)
    async with opened(url) as other:
        execution = await answered(other, name)
        view = await execution.view()
        assert (view["status"], view["errors"], view["waitingFor"]) == ("waiting", [], WAITS_FOR_POLISH)
        assert [one["action"] for one in objects(view["answers"])] == ["approve"]
        (listed,) = (await other.acting_as(LOCAL).executions.list())["executions"]
        assert (listed["status"], listed["waitingFor"]) == ("waiting", ["a worker with the tool 'polish'"])
        assert await other.store.verify() == []


async def test_opening_an_execution_again_without_the_tool_writes_nothing(url: str) -> None:
    name = await began(url)
    async with opened(url) as other:
        rows = len(await (await answered(other, name)).rows())
    async with opened(url) as other:
        execution = await other.open(name)
        await execution.resume()
        assert await execution.settled() == "waiting"
        assert len(await execution.rows()) == rows


async def test_a_process_that_has_the_tool_resumes_it(url: str) -> None:
    name = await began(url)
    async with opened(url) as other:
        await answered(other, name)
    async with opened(url, polish) as worker:
        execution = await worker.open(name)
        assert await execution.settled() == "completed"
        assert execution.state.outcome.output == {"got": "ABC"}
        assert (await execution.view())["waitingFor"] == []


async def test_the_starting_process_resumes_an_execution_automatically(url: str) -> None:
    async with opened(url, polish) as starter, opened(url) as other:
        execution = await starter.start(ASKED_FIRST)
        assert await execution.settled() == "waiting"
        await answered(other, execution.id)
        await until("completed", execution)
        assert await execution.settled() == "completed"
        assert execution.state.outcome.output == {"got": "ABC"}


@pytest.mark.integration
async def test_a_handle_shows_the_progress_of_the_newest_driver(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with opened(url, polish) as starter, opened(url) as other:
        execution = await starter.start(ASKED_FIRST)
        await execution.settled()
        await answered(other, execution.id)
        starter.runtime.drivers[execution.id].on_foreign_row(await starter.store.journal.last(execution.id))
        driver = await starter.runtime.open(execution.id)
        await driver.until(lambda: driver.state.ended)
        assert execution.id not in starter.runtime.drivers, "it ended before the handle was used again"
        assert execution.status == "completed"


async def test_a_program_that_awaits_an_execution_sees_answers_of_another_process(url: str) -> None:
    lingers, going_on = asyncio.Event(), asyncio.Event()

    @tool
    async def linger() -> str:
        """Take long."""
        lingers.set()
        await going_on.wait()
        return "done"

    both = Workflow.of(
        {
            "id": "both",
            "nodes": [
                {"id": "start", "type": "start"},
                GATE,
                WORK,
                {"id": "beside", "type": "tool", "config": {"tool": "linger"}},
            ],
            "edges": [
                {"source": "start", "target": "gate"},
                {"source": "gate", "target": "work"},
                {"source": "start", "target": "beside"},
            ],
        }
    )
    async with opened(url, polish, linger) as starter, opened(url) as other:
        execution = await starter.start(both)
        waiting = asyncio.ensure_future(execution.settled())
        await asyncio.wait_for(lingers.wait(), PATIENCE_S)
        if other.store.claims is None:
            await answered(other, execution.id)
        else:  # The starter works on it: it is not settled.
            await (await other.open(execution.id)).answer("gate", "approve")
        going_on.set()
        assert await asyncio.wait_for(waiting, PATIENCE_S) == "completed"


async def test_other_branches_continue_without_the_tool(url: str) -> None:
    wide = Workflow.of(
        {
            "id": "wide",
            "nodes": [
                GATE,
                {"id": "split", "type": "transform", "config": {"set": {"split": "1"}}},
                WORK,
                {"id": "note", "type": "transform", "config": {"set": {"noted": "'yes'"}}},
                {"id": "after", "type": "transform", "config": {"set": {"after": "'too'"}}},
            ],
            "edges": [
                {"source": "gate", "target": "split"},
                {"source": "split", "target": "work"},
                {"source": "split", "target": "note"},
                {"source": "note", "target": "after"},
            ],
        }
    )
    name = await began(url, wide)
    async with opened(url) as other:
        execution = await answered(other, name)
        view = await execution.view()
        assert (view["status"], view["state"]) == ("waiting", {"split": 1, "noted": "yes", "after": "too"})
    async with opened(url, polish) as worker:
        assert await (await worker.open(name)).settled() == "completed"


async def test_a_sub_workflow_waits_for_a_worker_and_its_parent_with_it(url: str) -> None:
    async with opened(url, polish) as app:
        execution = await parent_started(app)
    async with opened(url) as other:
        again = await answered(other, execution.id)
        view = await again.view()
        assert view["status"] == "waiting"
        assert [(one["nodeId"], one["needs"]) for one in objects(view["waitingFor"])] == [("work", "tool:polish")]
    async with opened(url, polish) as worker:
        assert await (await worker.open(execution.id)).settled() == "completed"


async def test_the_starter_resumes_a_sub_workflow_that_another_process_left(url: str) -> None:
    async with opened(url, polish) as starter, opened(url) as other:
        execution = await parent_started(starter)
        await answered(other, execution.id)
        await until("completed", execution)


CALLS = read_script(
    "rules:\n"
    "  - {node: write, call: 1, toolCalls: [{name: polish, arguments: {text: abc}}]}\n"
    "  - {node: write, text: Done.}\n"
)
AGENT = Workflow.of(
    {
        "id": "agent",
        "nodes": [GATE, {"id": "write", "type": "agent", "config": {"prompt": "Write.", "tools": ["polish"]}}],
        "edges": [{"source": "gate", "target": "write"}],
    }
)


async def test_an_agent_with_a_missing_tool_waits_and_pays_its_model_once(url: str) -> None:
    name = await began(url, AGENT, script=CALLS)
    async with opened(url) as other:
        execution = await answered(other, name)
        assert (await execution.view())["waitingFor"] == [
            {"nodeId": "write", "step": "write", "needs": "tool:polish", "reason": "a worker with the tool 'polish'"}
        ]
    async with opened(url, polish) as worker:
        execution = await worker.open(name)
        assert await execution.settled() == "completed"
        assert execution.state.usage.model_calls == 2


async def test_a_tool_that_the_starter_lacked_too_is_a_failure(url: str) -> None:
    async with opened(url, script=CALLS) as app:
        execution = await app.start(AGENT)
        await execution.settled()
    async with opened(url) as other:
        execution = await answered(other, execution.id)
        assert execution.status != "waiting"
        assert (await execution.view())["waitingFor"] == []


async def test_an_execution_that_waits_for_a_worker_can_be_cancelled(url: str) -> None:
    name = await began(url)
    async with opened(url) as other:
        execution = await answered(other, name)
        await execution.cancel()
        assert execution.status == "cancelled"
        assert (await other.acting_as(LOCAL).executions.list())["executions"][0]["waitingFor"] == []
        assert await other.store.verify() == []


async def test_a_pause_between_handing_over_and_resuming_is_kept(url: str) -> None:
    name = await began(url)
    async with opened(url) as other:
        execution = await answered(other, name)
        await execution.pause()
    async with opened(url, polish) as worker:
        execution = await worker.open(name)
        assert await execution.settled() == "paused"
        await execution.resume()
        assert await execution.settled() == "completed"


async def test_a_leader_with_the_tool_resumes_the_execution(url: str) -> None:
    name = await began(url)
    async with opened(url) as other:
        await answered(other, name)
    async with opened(url, polish) as worker, worker.leading():
        async with asyncio.timeout(PATIENCE_S):
            while (await worker.view(name))["status"] != "completed":  # noqa: ASYNC110 - the worker does it
                await asyncio.sleep(0.02)


@pytest.mark.integration
async def test_a_leader_without_the_tool_checks_again_every_minute(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    name = await began(url)
    clock = HandClock()
    async with opened(url, clock=clock) as other:
        execution = await answered(other, name)
        rows = len(await execution.rows())
        async with other.leading() as keeper:
            await keeper.look()
            await keeper.look()
            (listed,) = await other.executions()
            assert listed.wakes == clock.now() + AGAIN_S
            assert name not in other.runtime.drivers
            assert len(await execution.rows()) == rows


async def test_a_step_with_a_missing_secret_waits_for_a_worker_that_has_it(url: str) -> None:
    held: JsonObject = {
        "id": "work",
        "type": "tool",
        "config": {"tool": "polish", "parameters": {"text": "secret.WORD"}},
    }
    secretive = Workflow.of({"id": "secretive", "nodes": [GATE, held], "edges": [{"source": "gate", "target": "work"}]})
    known = Settings.model_validate({"secrets": {"WORD": {"value": "abcdefghijkl", "tools": ["polish"]}}})
    async with opened(url, polish, settings=known) as app:
        execution = await app.start(secretive)
        await execution.settled()
    async with opened(url, polish) as other:
        execution = await answered(other, execution.id)
        assert [one["needs"] for one in objects((await execution.view())["waitingFor"])] == ["secret:WORD"]
    async with opened(url, polish, settings=known) as worker:
        assert await (await worker.open(execution.id)).settled() == "completed"


# Other requirements of a worker ------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@asynccontextmanager
async def process(url: str, settings: Settings | None = None) -> AsyncGenerator[Pointsman, None]:
    """Open an app without a model for all agents."""
    async with Pointsman(url, settings=settings or Settings()) as app:
        yield app


def gated(**node: Json) -> Workflow:
    """Return a gate followed by this work."""
    work: JsonObject = {"id": "work", **node}
    return Workflow.of({"id": "gated", "nodes": [GATE, work], "edges": [{"source": "gate", "target": "work"}]})


async def left_and_taken_up(url: str, workflow: Workflow, having: Settings, needs: str) -> Execution:
    """Start in a process with the requirement, answer in one without, then open in one with it."""
    async with process(url, having) as app:
        execution = await app.start(workflow)
        assert await execution.settled() == "waiting"
        name = execution.id
    async with process(url) as other:
        execution = await answered(other, name)
        view = await execution.view()
        assert (view["status"], view["errors"]) == ("waiting", [])
        assert [one["needs"] for one in objects(view["waitingFor"])] == [needs]
        (listed,) = (await other.acting_as(LOCAL).executions.list())["executions"]
        (reason,) = listed["waitingFor"]
        assert needs.partition(":")[2] in reason
    async with process(url, having) as worker:
        execution = await worker.open(name)
        assert await execution.settled() == "completed", execution.state.outcome.failure
        return execution


@pytest.mark.integration
async def test_a_step_with_an_unavailable_model_waits_for_a_worker_that_has_it(store: str) -> None:
    head: JsonObject = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "small"}
    deltas: list[JsonObject] = [
        {"index": 0, "delta": {"role": "assistant", "content": "Dear Ada"}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    chunks = [f"data: {json.dumps({**head, 'choices': [delta]})}\n\n" for delta in deltas]
    body = "".join([*chunks, "data: [DONE]\n\n"]).encode()
    async with answering(200, body, "text/event-stream") as where:
        provider: JsonObject = {"kind": "openai-compatible", "base_url": f"http://{where}/v1", "keys": ["sk-12345678"]}
        having = Settings.model_validate({"providers": {"own": provider}})
        agent = gated(type="agent", config={"prompt": "Write.", "model": "own:small"})
        execution = await left_and_taken_up(store, agent, having, "model:own:small")
    assert execution.state.outcome.output == "Dear Ada"


@pytest.mark.integration
async def test_a_tool_of_an_mcp_server_waits_for_a_worker_that_has_the_server(store: str, tmp_path: Path) -> None:
    server: JsonObject = {"command": [sys.executable, PEER, str(tmp_path / "starts")], "tools": ["add"]}
    having = Settings.model_validate({"mcp": {"desk": server}})
    adds = gated(type="tool", config={"tool": "desk__add", "parameters": {"a": 1, "b": 2}})
    await left_and_taken_up(store, adds, having, "tool:desk__add")


@pytest.mark.integration
async def test_a_kind_of_work_waits_for_a_worker_that_has_its_package(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = [EntryPoint("shout", "tests.executors.test_node_types:Shout", registry.GROUP)]

    def announced(**_: str) -> list[EntryPoint]:
        return installed

    monkeypatch.setattr(registry, "entry_points", announced)
    loud = gated(type="shout", inputs={"text": "'hello'"})
    async with process(store) as app:
        execution = await app.start(loud)
        assert await execution.settled() == "waiting"
        name = execution.id
    package = installed.pop()
    async with process(store) as other:
        execution = await answered(other, name)
        view = await execution.view()
        assert [one["needs"] for one in objects(view["waitingFor"])] == ["executor:shout"]
    installed.append(package)
    async with process(store) as worker:
        assert await (await worker.open(name)).settled() == "completed"


# While it waits for a worker --------------------------------------------------------------------------------------


@pytest.mark.integration
async def test_a_fork_of_an_execution_that_waits_for_a_worker_waits_too(store: str) -> None:
    name = await began(store)
    async with opened(store) as other:
        await answered(other, name)
        fork = await other.fork(name)
        assert await fork.settled() == "waiting"
        assert (await fork.view())["waitingFor"] == WAITS_FOR_POLISH
    async with opened(store, polish) as worker:
        for one in (name, fork.id):
            assert await (await worker.open(one)).settled() == "completed"


@pytest.mark.integration
async def test_a_fork_in_a_process_with_the_tool_runs_and_its_origin_still_waits(store: str) -> None:
    name = await began(store)
    async with opened(store) as other:
        await answered(other, name)
    async with opened(store, polish) as worker:
        fork = await worker.fork(name)
        assert await fork.settled() == "completed"
        assert (await worker.view(name))["status"] == "waiting"


@pytest.mark.integration
async def test_an_execution_that_waits_for_a_worker_has_nothing_to_retry(store: str) -> None:
    name = await began(store)
    async with opened(store) as other:
        execution = await answered(other, name)
        rows = len(await execution.rows())
        with pytest.raises(WrongStatus):
            await execution.retry()
        assert len(await execution.rows()) == rows


@pytest.mark.integration
async def test_a_step_that_fails_with_a_worker_is_retried_by_another_that_lacks_the_tool_and_waits_again(
    store: str,
) -> None:
    @tool(name="polish")
    async def breaks(text: str) -> str:
        """Fail."""
        raise ValueError(text)

    name = await began(store)
    async with opened(store) as other:
        await answered(other, name)
    async with opened(store, breaks) as worker:
        assert await (await worker.open(name)).settled() == "failed"
    async with opened(store) as other:
        execution = await other.open(name)
        await execution.retry()
        assert await execution.settled() == "waiting"
        assert (await execution.view())["waitingFor"] == WAITS_FOR_POLISH
    async with opened(store, polish) as worker:
        assert await (await worker.open(name)).settled() == "completed"


@pytest.mark.integration
async def test_a_parent_that_is_cancelled_ends_a_sub_workflow_that_waits_for_a_worker(store: str) -> None:
    async with opened(store, polish) as app:
        execution = await parent_started(app)
    async with opened(store) as other:
        again = await answered(other, execution.id)
        await again.cancel()
        await again.drained()
        (below,) = await other.executions(ExecutionQuery(parent=execution.id))
        assert (again.status, below.status, below.needs) == ("cancelled", "cancelled", ())


@pytest.mark.integration
async def test_the_deadline_of_the_execution_counts_while_it_waits_for_a_worker(store: str) -> None:
    clock = HandClock()
    bounded = Workflow.of(
        {
            "id": "bounded",
            "config": {"limits": {"deadline": "1h"}},
            "nodes": [GATE, WORK],
            "edges": [{"source": "gate", "target": "work"}],
        }
    )
    async with opened(store, polish, clock=clock) as app:
        execution = await app.start(bounded)
        await execution.settled()
    async with opened(store, clock=clock) as other:
        await answered(other, execution.id)
    clock.move(7200)
    async with opened(store, clock=clock) as other:
        assert await (await other.open(execution.id)).settled() == "interrupted"
