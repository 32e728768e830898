"""Steps with `placement: worker:QUEUE`, on a real PostgreSQL: performed by the workers of their queue."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast

import pytest

from pointsman import Pointsman, Workflow
from pointsman.auth.callers import LOCAL
from pointsman.definition.model.nodes import queue_of
from pointsman.executions.execution import Execution
from pointsman.operations.worker_role import StoreWithoutQueues, serving_queues
from pointsman.settings import Settings
from pointsman.store.coordination import Claims
from pointsman.store.errors import StoreFailed
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject
from tests.runtime.ownership_suite import Work, call, ended, flow, journal, until, waits

QUEUE: Final = "gpu"
NO_TOOLS: Final[list[Tool]] = []


def placed(name: str, of: str = "charge") -> JsonObject:
    return {**call(name, of), "placement": f"worker:{QUEUE}"}


PLACED: Final = flow("placed", call("before"), placed("work"), call("after"))


def opened(url: str, tools: list[Tool]) -> Pointsman:
    return Pointsman(url, tools=tools, model="scripted", settings=Settings())


@asynccontextmanager
async def server(url: str, tools: list[Tool]) -> AsyncGenerator[Pointsman, None]:
    async with opened(url, tools) as app, app.leading():
        yield app


@asynccontextmanager
async def worker(url: str, tools: list[Tool], *, steps: int = 10) -> AsyncGenerator[Pointsman, None]:
    async with opened(url, tools) as app, serving_queues(app.context, [QUEUE], steps=steps):
        yield app


def claims_of(app: Pointsman) -> Claims:
    assert app.store.claims is not None
    return app.store.claims


async def has_worker(app: Pointsman) -> bool:
    return any(QUEUE in one.facts.queues for one in await claims_of(app).runtimes())


async def waits_for_queue(execution: Execution) -> None:
    async def reported() -> bool:
        view = cast("JsonObject", await execution.view())
        return f"a worker of the queue '{QUEUE}'" in str(view["waitingFor"])

    await until(reported)


async def completes(execution: Execution) -> None:
    """Wait until an execution that waits for a worker has completed."""

    async def completed() -> bool:
        return cast("JsonObject", await execution.view())["status"] == "completed"

    await until(completed)


@pytest.mark.integration
async def test_a_worker_of_the_queue_performs_the_step_and_the_journal_is_that_of_one_process(
    postgres_url: str,
) -> None:
    here, there = Work(), Work()
    async with server(postgres_url, here.tools) as app, worker(postgres_url, there.tools):
        await until(lambda: has_worker(app))
        execution = await app.start(PLACED)
        await ended(execution)
        found = await journal(app, execution.id)
        await until(lambda: _is_empty(app))
    assert (here.calls, there.calls) == ({"charge": 2}, {"charge": 1})
    assert await journal_alone() == found


async def journal_alone() -> list[Json]:
    """Return the journal of the same execution in a store of one process."""
    work = Work()
    async with opened("memory:", work.tools) as app:
        execution = await app.start(PLACED)
        await ended(execution)
        assert work.calls == {"charge": 3}
        return await journal(app, execution.id)


@pytest.mark.integration
async def test_without_a_worker_of_the_queue_the_execution_waits_and_states_why(postgres_url: str) -> None:
    here, there = Work(), Work()
    async with server(postgres_url, here.tools) as app:
        execution = await app.start(PLACED)
        await waits_for_queue(execution)
        (listed,) = (await app.acting_as(LOCAL).executions.list())["executions"]
        assert "gpu" in str(listed["waitingFor"])
        async with worker(postgres_url, there.tools):
            await completes(execution)
    assert (here.calls, there.calls) == ({"charge": 2}, {"charge": 1})


@pytest.mark.integration
async def test_a_step_waits_again_when_the_last_worker_of_its_queue_leaves(postgres_url: str) -> None:
    there, then = Work(), Work()
    async with server(postgres_url, Work().tools) as app:
        async with worker(postgres_url, there.tools):
            execution = await app.start(flow("slow", placed("work", "slow")))
            await until(lambda: begun(there))
        await waits_for_queue(execution)
        then.go_on.set()
        async with worker(postgres_url, then.tools):
            await completes(execution)
    assert (there.calls, then.calls) == ({"slow": 1}, {"slow": 1})


async def begun(work: Work) -> bool:
    return work.begun.is_set()


@pytest.mark.integration
async def test_another_worker_performs_the_step_of_one_that_shows_no_beat(postgres_url: str) -> None:
    lost, other = Work(), Work()
    other.go_on.set()
    async with server(postgres_url, Work().tools) as app, worker(postgres_url, lost.tools, steps=1) as first:
        execution = await app.start(flow("slow", placed("work", "slow")))
        await until(lambda: begun(lost))
        async with worker(postgres_url, other.tools):
            await claims_of(first).retire()  # As if it had shown no beat for 12 s.
            await ended(execution)
            lost.go_on.set()
        assert (lost.calls, other.calls) == ({"slow": 1}, {"slow": 1})
        assert [one async for one in app.store.journal.read(execution.id)]


@pytest.mark.integration
async def test_cancel_stops_the_step_in_its_worker(postgres_url: str) -> None:
    work = Work()
    async with server(postgres_url, Work().tools) as app, worker(postgres_url, work.tools):
        execution = await app.start(flow("slow", placed("work", "slow")))
        await until(lambda: begun(work))
        await execution.cancel()
        await ended(execution, "cancelled")
        await until(lambda: _is_empty(app))
    assert work.calls == {"slow": 1}


async def _is_empty(app: Pointsman) -> bool:
    return await claims_of(app).steps.queues() == []


@pytest.mark.integration
async def test_a_paused_execution_keeps_the_result_of_its_placed_step(postgres_url: str) -> None:
    work = Work()
    async with server(postgres_url, Work().tools) as app, worker(postgres_url, work.tools):
        execution = await app.start(flow("slow", placed("work", "slow"), placed("after")))
        await until(lambda: begun(work))
        await execution.pause()
        work.go_on.set()
        await ended(execution, "paused")
        await until(lambda: _is_empty(app))
        await execution.resume()
        await ended(execution)
    assert work.calls == {"slow": 1, "charge": 1}


@pytest.mark.integration
async def test_a_worker_that_lacks_the_tool_leaves_the_step_to_another_one_of_the_queue(postgres_url: str) -> None:
    """The server lacks the tool as well."""
    work = Work()
    async with server(postgres_url, NO_TOOLS) as app, worker(postgres_url, NO_TOOLS) as poor:
        execution = await app.start(flow("short", placed("work")))
        await waits(execution)
        assert "'charge'" in str(cast("JsonObject", await execution.view())["waitingFor"])
        async with worker(postgres_url, work.tools):
            await completes(execution)
        assert poor.runtime.drivers == {}
    assert work.calls == {"charge": 1}


@pytest.mark.integration
async def test_a_step_that_an_outage_of_the_store_left_with_its_worker_is_left_to_others_later(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, failures = Work(), [StoreFailed("the store is away")]
    async with server(postgres_url, NO_TOOLS) as app, opened(postgres_url, NO_TOOLS) as poor:
        steps = claims_of(poor).steps
        give_back = steps.give_back

        async def fails_once(no: int) -> None:
            if failures:
                raise failures.pop()
            await give_back(no)

        monkeypatch.setattr(steps, "give_back", fails_once)

        async def has_failed() -> bool:
            return not failures

        async with serving_queues(poor.context, [QUEUE], steps=1):
            execution = await app.start(flow("short", placed("work")))
            await until(has_failed)
            async with worker(postgres_url, work.tools):
                await completes(execution)
    assert work.calls == {"charge": 1}


@pytest.mark.integration
async def test_a_worker_performs_no_more_steps_at_a_time_than_it_may(postgres_url: str) -> None:
    work = Work()
    async with server(postgres_url, Work().tools) as app, worker(postgres_url, work.tools, steps=2):
        await until(lambda: has_worker(app))
        executions = [await app.start(flow("slow", placed("work", "slow"))) for _ in range(5)]
        await until(lambda: _waiting(app, 3))
        await until(lambda: _calls(work, 2))
        work.go_on.set()
        for execution in executions:
            await ended(execution)
    assert work.calls == {"slow": 5}


async def _waiting(app: Pointsman, number: int) -> bool:
    queues = await claims_of(app).steps.queues()
    return [(one.queue, one.waiting) for one in queues] == [(QUEUE, number)]


@pytest.mark.integration
async def test_each_workflow_gets_an_equal_share_of_the_workers(postgres_url: str) -> None:
    async with server(postgres_url, Work().tools) as app:
        for name in ("many", "many", "many", "many", "few"):
            await waits_for_queue(await app.start(flow(name, placed("work"))))
        async with opened(postgres_url, NO_TOOLS) as other:
            steps = claims_of(other).steps
            await claims_of(other).register("a worker")
            taken = [*await steps.take([QUEUE], most=2, but=[])]
            workflows = {(await app.open(one.execution)).state.setup.workflow for one in taken}
            assert workflows == {"many", "few"}
            (left_out,) = await steps.take([QUEUE], most=1, but=[])
            await steps.give_back(left_out.no)
            assert left_out.no not in [
                one.no for one in await steps.take([QUEUE], most=9, but=[(left_out.no, left_out.version)])
            ]


@pytest.mark.integration
async def test_a_fan_out_is_spread_over_the_workers_of_its_queue(postgres_url: str) -> None:
    first, second = Work(), Work()
    async with (
        server(postgres_url, Work().tools) as app,
        worker(postgres_url, first.tools, steps=2),
        worker(postgres_url, second.tools, steps=2),
    ):
        branches = [placed(f"work{number}", "slow") for number in range(4)]
        edges: list[Json] = [{"source": "split", "target": one["id"]} for one in branches]
        edges += [{"source": one["id"], "target": "meet"} for one in branches]
        nodes: list[Json] = [{"id": "split", "type": "parallel"}, *branches, {"id": "meet", "type": "join"}]
        execution = await app.start(Workflow.of({"pointsman": 1, "id": "fan", "nodes": nodes, "edges": edges}))
        await until(lambda: _calls(first, 2))
        await until(lambda: _calls(second, 2))
        first.go_on.set()
        second.go_on.set()
        await ended(execution)
    assert (first.calls, second.calls) == ({"slow": 2}, {"slow": 2})


async def _calls(work: Work, number: int) -> bool:
    return work.calls == {"slow": number}


async def test_in_a_store_of_one_process_a_placement_has_no_effect() -> None:
    work = Work()
    async with opened("memory:", work.tools) as app:
        await ended(await app.start(PLACED))
        assert work.calls == {"charge": 3}
        with pytest.raises(StoreWithoutQueues, match="performs every step itself"):
            async with serving_queues(app.context, [QUEUE], steps=1):
                pass


@pytest.mark.parametrize(
    ("placement", "queue"),
    [("worker:gpu", "gpu"), ("worker:eu-west.2_a", "eu-west.2_a"), ("gpu", ""), ("worker:", ""), ("worker:GPU", "")],
)
def test_a_placement_names_a_queue(placement: str, queue: str) -> None:
    assert queue_of(placement) == queue
