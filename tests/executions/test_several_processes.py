"""Several processes on one store: a process that writes to an execution takes it over, and the former driver stops at
once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.auth.callers import LOCAL
from pointsman.authoring.tools import Workbench
from pointsman.executions.execution import Execution, OwnershipLost
from pointsman.runtime import workers
from pointsman.server.streaming.broker import SseBroker
from pointsman.server.streaming.sse import WIRE
from pointsman.settings import Settings
from pointsman.store.errors import StoreLocked
from pointsman.store.records import ExecutionQuery
from pointsman.values import ExecutionId, Json, JsonObject
from tests.patience import PATIENCE_S

CALL: Json = {"id": "work", "type": "tool", "config": {"tool": "linger"}}
SLOW = Workflow.of({"id": "slow", "nodes": [CALL], "edges": []})
ABOVE = Workflow.of(
    {
        "id": "above",
        "nodes": [{"id": "call", "type": "workflow", "config": {"workflow": "slow"}}],
        "edges": [],
    }
)
WAITS = Workflow.of(
    {"id": "waits", "nodes": [{"id": "wait", "type": "wait", "config": {"event": {"name": "end"}}}], "edges": []}
)
STORES = ["sqlite", "postgres"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


class SlowTool:
    """A tool that runs until the test releases it, and records how it ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.go_on = asyncio.Event()

    @asynccontextmanager
    async def opened(self, url: str) -> AsyncGenerator[Pointsman, None]:
        @tool
        async def linger() -> str:
            """Wait."""
            self.begun.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "done"

        async with Pointsman(url, tools=[linger], settings=Settings()) as app:
            yield app


async def heard(execution: Execution) -> list[JsonObject]:
    return [event async for event in execution.journal()]


async def soon(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE_S)


async def test_a_cancel_from_another_process_stops_the_tool_and_notifies_waiters(url: str) -> None:
    here, there = SlowTool(), SlowTool()
    async with here.opened(url) as app, there.opened(url) as other:
        execution = await app.start(SLOW)
        waiting = asyncio.ensure_future(execution.settled())
        watching = asyncio.ensure_future(Workbench(app.context, LOCAL).watched(execution, lambda _: None))
        await soon(here.begun)
        await (await other.reach(execution.id)).cancel(reason="enough")
        await soon(here.cancelled)
        if app.store.claims is not None:  # The owner performs the request.
            assert await asyncio.wait_for(waiting, PATIENCE_S) == "cancelled"
            assert await asyncio.wait_for(heard(execution), PATIENCE_S)
        else:
            with pytest.raises(OwnershipLost):
                await asyncio.wait_for(waiting, PATIENCE_S)
            with pytest.raises(OwnershipLost):
                await asyncio.wait_for(heard(execution), PATIENCE_S)
        assert (await asyncio.wait_for(watching, PATIENCE_S))["status"] == "cancelled"
        assert (await app.view(execution.id))["status"] == "cancelled"
        assert (await app.open(execution.id)).status == "cancelled"
        assert not there.begun.is_set()


@pytest.mark.parametrize(("verb", "becomes"), [("cancel", "cancelled"), ("pause", "paused"), ("signal", "waiting")])
async def test_a_request_to_an_execution_that_progressed_meanwhile_is_applied(
    url: str, verb: str, becomes: str
) -> None:
    async with Pointsman(url, settings=Settings()) as app, Pointsman(url, settings=Settings()) as other:
        execution = await app.start(WAITS)
        await execution.settled()
        reached = await other.reach(execution.id)
        for name in "abc":
            await execution.signal(name)
        await (reached.signal("d") if verb == "signal" else getattr(reached, verb)())
        assert (await app.view(execution.id))["status"] == becomes
        _, events = await app.state_and_events(execution.id)
        taken = [event["name"] for event in events if event["kind"] == "event_taken"]
        assert taken == ["a", "b", "c", *(["d"] if verb == "signal" else [])]


async def test_one_of_two_concurrent_resumes_succeeds_and_the_other_is_refused(url: str) -> None:
    async with Pointsman(url, settings=Settings()) as app, Pointsman(url, settings=Settings()) as other:
        execution = await app.start(WAITS)
        await execution.pause()
        reached = await other.reach(execution.id)
        await execution.resume()
        with pytest.raises(OwnershipLost):
            await reached.resume()
        assert (await app.view(execution.id))["status"] == "waiting"


@pytest.mark.integration
async def test_a_stream_continues_after_the_store_was_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with Pointsman(url, settings=Settings()) as app, Pointsman(url, settings=Settings()) as other:
        execution = await other.start(WAITS)
        await execution.settled()
        broker = SseBroker(app.context, WIRE, heartbeat_s=0.05)
        frames = broker.frames(execution.id)
        assert b"workflow.start" in await anext(frames)
        last, refused = app.store.journal.last, list[ExecutionId]()

        async def away(name: ExecutionId) -> int:
            if len(refused) < 3:
                refused.append(name)
                raise StoreLocked("somebody else writes")
            return await last(name)

        monkeypatch.setattr(app.store.journal, "last", away)
        await execution.signal("end")
        async with asyncio.timeout(PATIENCE_S):
            heard = b"".join([chunk async for chunk in frames])
        assert b"workflow.complete" in heard
        assert len(refused) == 3
        await broker.close()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_pause_from_another_process_stops_the_step_and_resume_runs_it_again(url: str) -> None:
    here, there = SlowTool(), SlowTool()
    async with here.opened(url) as app, there.opened(url) as other:
        execution = await app.start(SLOW)
        await soon(here.begun)
        await (await other.reach(execution.id)).pause()
        await soon(here.cancelled)
        here.go_on.set()
        again = await app.open(execution.id)
        assert again.status == "paused"
        await again.resume()
        assert await asyncio.wait_for(again.settled(), PATIENCE_S) == "completed"


async def test_a_cancel_of_the_parent_in_another_process_stops_its_sub_workflow(url: str) -> None:
    here, there = SlowTool(), SlowTool()
    async with here.opened(url) as app, there.opened(url) as other:
        await app.save(SLOW)
        execution = await app.start(ABOVE)
        await soon(here.begun)
        reached = await other.reach(execution.id)
        await reached.cancel()
        await reached.drained()
        await soon(here.cancelled)
        assert await child_of(app, execution.id) == "cancelled"
        assert (await app.view(execution.id))["status"] == "cancelled"


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_parent_waits_for_a_sub_workflow_in_another_process(url: str) -> None:
    here, there = SlowTool(), SlowTool()
    async with here.opened(url) as app, there.opened(url) as other:
        await app.save(SLOW)
        execution = await app.start(ABOVE)
        waiting = asyncio.ensure_future(execution.settled())
        await soon(here.begun)
        (child,) = await app.executions(ExecutionQuery(parent=execution.id))
        taken = await other.open(child.execution)
        await soon(there.begun)
        there.go_on.set()
        assert await taken.settled() == "completed"
        assert await asyncio.wait_for(waiting, PATIENCE_S) == "completed"
        assert here.cancelled.is_set(), "the tool here never came to its end"


async def test_an_execution_that_only_received_an_event_continues_when_opened(url: str) -> None:
    here, there = SlowTool(), SlowTool()
    async with here.opened(url) as app:
        execution = await app.start(SLOW)
        await soon(here.begun)
    async with there.opened(url) as app:
        reached = await app.reach(execution.id)
        await reached.pause()
        taken = await app.open(execution.id)
        await taken.resume()
        await soon(there.begun)
        await app.open(execution.id)
        there.go_on.set()
        assert await taken.settled() == "completed"


async def child_of(app: Pointsman, execution: ExecutionId) -> str:
    (child,) = await app.executions(ExecutionQuery(parent=execution))
    return child.status


async def test_a_leader_yields_an_execution_and_resumes_it_later(url: str) -> None:
    here, there = SlowTool(), SlowTool()
    async with here.opened(url) as app, there.opened(url) as other, app.leading():
        await app.save(SLOW)
        execution = await app.start(ABOVE)
        await soon(here.begun)
        (child,) = await app.executions(ExecutionQuery(parent=execution.id))
        await (await other.reach(child.execution)).cancel()
        await soon(here.cancelled)
        assert await asyncio.wait_for((await app.open(execution.id)).settled(), PATIENCE_S) == "failed"


async def test_a_single_process_does_not_take_its_own_rows_for_foreign_ones(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is polled all the time: a row is there before its writer receives the acknowledgement."""
    monkeypatch.setattr(workers, "LOOKS_S", 0.0)
    monkeypatch.setattr(workers, "SHARE_MAX", 0)
    rounds: list[Json] = [
        {"id": "rounds", "type": "loop", "config": {"maxIterations": 100}},
        {"id": "count", "type": "tool", "config": {"tool": "count"}},
    ]
    edges: list[Json] = [
        {"source": "rounds", "target": "count", "mark": "body"},
        {"source": "count", "target": "rounds"},
    ]
    document: JsonObject = {"id": "alone", "entry": "rounds", "nodes": rounds, "edges": edges}

    @tool
    async def count() -> int:
        """Count."""
        await asyncio.sleep(0)
        return 1

    async with Pointsman(url, tools=[count], model="scripted") as app:
        execution = await app.start(Workflow.of(document))
        assert await execution.settled() == "completed"
