"""Workers of an engine leave executions to others: when they stop, at once and with all that is decided, and when they
lack what a step needs."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest

from pointsman import Pointsman, wiring
from pointsman.engine.commands import Execute
from pointsman.engine.reports import PauseRequested, ResumeRequested, Start
from pointsman.errors import OperatorError
from pointsman.operations.worker_role import working
from pointsman.ports import Row
from pointsman.runtime.dispatched import Drive
from pointsman.runtime.local import DRAINED_AGAIN_S, OFFER_AGAIN_S, HoldingExecutor
from pointsman.runtime.ownership import Claim
from pointsman.settings import Settings
from pointsman.store.api import StoreJournal
from pointsman.store.coordination import ReleasedClaim
from pointsman.store.memory import MemoryStore
from pointsman.store.records import EffectRecord, Summary
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import ExecutionId, Json, JsonObject, Seconds
from tests.patience import PATIENCE_S
from tests.runtime.ownership_suite import Work, call, flow, until, waits
from tests.runtime.world import FIRST, Shelf, chain, make_runtime


class HeldJournal:
    """A journal that holds the row with one number until a test releases it. A write that is cancelled is lost."""

    def __init__(self, journal: StoreJournal, seq: int) -> None:
        self._journal = journal
        self._seq = seq
        self._append = journal.append
        self.read = journal.read
        self.last = journal.last
        self.is_held = asyncio.Event()
        self.go_on = asyncio.Event()

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        if rows[0].seq == self._seq:
            self.is_held.set()
            await self.go_on.wait()
        await self._append(execution, *rows, summary=summary, effects=effects)


async def a_few_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_row_that_is_being_written_becomes_durable_and_the_execution_continues_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released: list[ReleasedClaim] = []

    async def story() -> None:
        shelf, store, clock = Shelf(it=chain("a", "b", "c")), MemoryStore(), VirtualClock()
        runtime, doing = await make_runtime(shelf, store=store, clock=clock)
        journal = HeldJournal(store.journal, 2)
        monkeypatch.setattr(runtime, "journal", journal)

        def held(execution: ExecutionId) -> Claim:
            return Claim(execution, 1, released.append)

        monkeypatch.setattr(runtime.ownership, "held", held)
        driver = await runtime.start(FIRST, shelf.plans["it"], Start(input={}, definition="it"))
        await journal.is_held.wait()
        handing_over = asyncio.create_task(runtime.hand_over())
        await a_few_turns()
        journal.go_on.set()
        await handing_over
        (release,) = released
        assert release.entry is not None
        assert release.entry.wakes == clock.now()
        assert await store.journal.last(FIRST) == driver.state.seq == 2
        assert [command.step.node for command in doing.asked] == ["a"]
        assert runtime.drivers == {}

    run_virtually(story())


async def test_a_runtime_that_closes_stores_the_row_that_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, store = Shelf(it=chain("a", "b", "c")), MemoryStore()
    runtime, _ = await make_runtime(shelf, store=store)
    journal = HeldJournal(store.journal, 2)
    monkeypatch.setattr(runtime, "journal", journal)
    driver = await runtime.start(FIRST, shelf.plans["it"], Start(input={}, definition="it"))
    await journal.is_held.wait()
    closing = asyncio.create_task(runtime.close())
    await a_few_turns()
    journal.go_on.set()
    await closing
    assert (driver.failure, await store.journal.last(FIRST)) == (None, 2)
    heir, doing = await make_runtime(shelf, store=store)
    continued = await heir.open(FIRST)
    await continued.until(lambda: continued.state.ended)
    assert [command.step.node for command in doing.asked] == ["b", "c"]


async def test_a_caller_that_is_cancelled_while_its_row_is_written_neither_loses_it_nor_stops_the_execution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shelf, store = Shelf(it=chain("a", "b")), MemoryStore()
    runtime, doing = await make_runtime(shelf, held_call := HeldCall(), store=store)
    journal = HeldJournal(store.journal, 2)
    monkeypatch.setattr(runtime, "journal", journal)
    driver = await runtime.start(FIRST, shelf.plans["it"], Start(input={}, definition="it"))
    pausing = asyncio.create_task(driver.deliver(PauseRequested()))
    await journal.is_held.wait()
    pausing.cancel()
    await asyncio.wait({pausing})
    assert pausing.cancelled()
    journal.go_on.set()
    held_call.go_on.set()
    await driver.until(lambda: driver.state.is_halted)
    assert [command.step.node for command in doing.asked] == ["a"]
    await driver.deliver(ResumeRequested())
    await driver.until(lambda: driver.state.ended)
    assert [command.step.node for command in doing.asked] == ["a", "b"]


class HeldCall:
    """Work that waits until a test releases it."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def __call__(self, command: Execute) -> Json:
        await self.go_on.wait()
        return None


async def lacking(command: Execute) -> Json:
    raise OperatorError("this process has no tool", needs="tool:charge")


def test_a_process_that_stops_offers_waiting_steps_to_other_workers_soon() -> None:
    async def story() -> None:
        shelf, store, clock = Shelf(it=chain("a")), MemoryStore(), VirtualClock()
        runtime, doing = await make_runtime(shelf, lacking, store=store, clock=clock)
        begin = Start(input={}, definition="it")
        driver = await runtime.start(FIRST, shelf.plans["it"], begin, begun_here=False)
        await driver.drained()
        assert driver.state.steps_without_worker
        runtime.executors = HoldingExecutor(runtime)
        await runtime.park(driver)
        summary = await store.executions.find(FIRST)
        assert summary is not None
        assert summary.wakes == clock.now() + DRAINED_AGAIN_S
        assert len(doing.asked) == 1

    run_virtually(story())


class InProcessEngine:
    """An engine that dispatches what is due to the worker that began last. A new worker gets everything that waits."""

    def __init__(self) -> None:
        self.begun = Counter[ExecutionId]()
        """Calls of `drive`."""
        self.dues: dict[ExecutionId, float | None] = {}
        """The last result of `drive` for each execution."""
        self.wakes: dict[ExecutionId, float] = {}
        """The last wake-up of each execution."""
        self._drive: Drive | None = None
        self._waiting: list[ExecutionId] = []
        self._calls: set[asyncio.Task[None]] = set()

    async def wake(self, execution: ExecutionId, due: float, share: str) -> None:
        self.wakes[execution] = due
        if self._drive is None or due > time.time() + 1:
            self._waiting.append(execution)
        else:
            self._call(self._drive, execution)

    async def work(self, drive: Drive, *, executions: int, stopping: asyncio.Event) -> None:
        self._drive = drive
        for execution in self._waiting:
            self._call(drive, execution)
        self._waiting = []
        await stopping.wait()
        self._drive = None
        await asyncio.gather(*self._calls)

    async def close(self) -> None:
        """Do nothing: the test ends it."""

    def _call(self, drive: Drive, execution: ExecutionId) -> None:
        self.begun[execution] += 1

        async def one() -> None:
            self.dues[execution] = due = await drive(execution)
            if due is not None:
                await self.wake(execution, due, "")

        task = asyncio.create_task(one())
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> InProcessEngine:
    one = InProcessEngine()

    async def connect(address: str, store: str) -> InProcessEngine:
        return one

    monkeypatch.setattr(wiring, "connect", connect)
    return one


DOOR: Final[JsonObject] = {"DOOR": {"value": "a-long-secret", "tools": ["charge"]}}
NO_SECRETS: Final[JsonObject] = {}


def opened(url: str, work: Work, secrets: JsonObject = NO_SECRETS) -> Pointsman:
    settings = Settings.model_validate({"runtime": "temporal://127.0.0.1:7233", "secrets": secrets})
    return Pointsman(url, tools=work.tools, model="scripted", settings=settings)


@asynccontextmanager
async def worker(url: str, work: Work, secrets: JsonObject = NO_SECRETS) -> AsyncGenerator[Pointsman, None]:
    async with opened(url, work, secrets) as app, working(app.context, executions=5, patience=Seconds(0.0)):
        yield app


@pytest.mark.integration
async def test_another_worker_continues_at_once_when_one_stops_while_it_writes_a_row(
    postgres_url: str, engine: InProcessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work()
    async with opened(postgres_url, work) as front:
        async with worker(postgres_url, work) as first:
            journal = HeldJournal(first.store.journal, 3)
            monkeypatch.setattr(first.store.journal, "append", journal.append)
            execution = await front.start(flow("chain", call("one"), call("two"), call("three")))
            await asyncio.wait_for(journal.is_held.wait(), PATIENCE_S)
            writing = asyncio.create_task(_goes_on(journal))  # The block ends: the worker stops, and the write ends.
        await writing
        due = engine.dues[execution.id]
        assert due is not None
        assert due <= time.time()
        async with worker(postgres_url, work):
            await until(lambda: _has_ended(execution.id, front))
    assert work.calls == {"charge": 3}


@pytest.mark.integration
async def test_a_step_waits_for_a_worker_that_has_its_secret_and_others_do_not_try_it_again_at_once(
    postgres_url: str, engine: InProcessEngine
) -> None:
    work = Work()
    pay: JsonObject = {**call("pay"), "config": {"tool": "charge", "parameters": {"text": "secret.DOOR"}}}
    async with opened(postgres_url, work, DOOR) as front:
        async with worker(postgres_url, work):
            execution = await front.start(flow("paid", pay))
            await until(lambda: _is_put_off(execution.id, engine))
            due = engine.dues[execution.id]
            assert due is not None
            assert due > time.time() + OFFER_AGAIN_S / 2
        assert engine.begun == {execution.id: 1}
        summary = await front.store.executions.find(execution.id)
        assert summary is not None
        assert summary.needs == ("secret:DOOR",)
        assert not work.calls
        async with worker(postgres_url, work, DOOR):
            await until(lambda: _has_ended(execution.id, front))
    assert work.calls == {"charge": 1}


ASK: Final[JsonObject] = {"id": "ask", "type": "human", "config": {"message": "Pay?"}}


@pytest.mark.integration
async def test_an_execution_that_only_waits_for_a_person_is_not_dispatched(
    postgres_url: str, engine: InProcessEngine
) -> None:
    work = Work()
    async with opened(postgres_url, work) as front, worker(postgres_url, work):
        execution = await front.start(flow("asked", ASK, call("pay")))
        await waits(execution)
        async with opened(postgres_url, work) as other:
            summary = await other.store.executions.find(execution.id)
        assert (summary and summary.wakes, engine.begun) == (None, {}), "no worker has anything to do"
        await execution.answer("ask", "approve")
        await until(lambda: _has_ended(execution.id, front))
    assert (work.calls, engine.begun) == ({"charge": 1}, {execution.id: 1})


@pytest.mark.integration
async def test_a_gate_that_was_opened_without_a_worker_times_out_by_a_wake_up_of_the_engine(
    postgres_url: str, engine: InProcessEngine
) -> None:
    work, due = Work(), time.time() + 3_600
    gate: JsonObject = {**ASK, "config": {"message": "Pay?", "timeout": "1h", "onTimeout": "approve"}}
    async with opened(postgres_url, work) as front:
        execution = await front.start(flow("timed", gate))
        await waits(execution)
        await until(lambda: _is_sent(execution.id, engine))
        assert engine.wakes[execution.id] == pytest.approx(due, abs=60)


async def _is_sent(execution: ExecutionId, engine: InProcessEngine) -> bool:
    return execution in engine.wakes


async def _is_put_off(execution: ExecutionId, engine: InProcessEngine) -> bool:
    return execution in engine.dues


async def _goes_on(journal: HeldJournal) -> None:
    await a_few_turns()
    journal.go_on.set()


async def _has_ended(execution: ExecutionId, app: Pointsman) -> bool:
    summary = await app.store.executions.find(execution)
    return summary is not None and summary.status == "completed"
