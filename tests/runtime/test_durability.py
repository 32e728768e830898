"""Durability modes: rows are written before the next step, shortly after it, or when the execution is settled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pointsman.engine.commands import Execute
from pointsman.engine.reports import CancelRequested, GateAnswered, Start
from pointsman.engine.steps import Step
from pointsman.ports import Row
from pointsman.runtime.commits import BEHIND_ROWS_MAX, DriverLost
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.store.api import open_store
from pointsman.store.errors import JournalMoved, StoreFull
from pointsman.store.memory import MemoryJournal, MemoryStore
from pointsman.store.records import EffectRecord, Summary
from pointsman.store.sqlite import open_sqlite
from pointsman.values import ExecutionId, Json, JsonObject
from tests.runtime.world import FIRST, Shelf, chain, make_runtime, named, tool

STEPS = [f"n{number}" for number in range(200)]


async def rows_of(runtime: LocalRuntime) -> int:
    return await runtime.journal.last(FIRST)


async def behind_while_running(durability: str, tmp_path: Path, *, asked: str = "") -> list[int]:
    """Return, before each step, how many rows are not in the store yet."""
    document = chain(*STEPS, config={"durability": durability} if durability else {})
    shelf, behind = Shelf(chain=document), list[int]()

    async def look(command: Execute) -> Json:
        driver = runtime.drivers[FIRST]
        behind.append(driver.state.seq - await rows_of(runtime))
        return None

    store = await open_sqlite(f"sqlite:///{tmp_path}/store.db")
    runtime, _ = await make_runtime(shelf, look, store=store)
    options: JsonObject = {"durability": asked} if asked else {}
    begin = Start(input={}, definition="chain", options=options)
    driver = await runtime.start(FIRST, shelf.plans["chain"], begin)
    await driver.until(lambda: driver.state.ended)
    assert await rows_of(runtime) == driver.state.seq, "an end is durable when it is told"
    await store.close()
    return behind


@pytest.mark.integration
@pytest.mark.requirement("S1-66")
async def test_a_step_is_stored_before_the_next_one_starts(tmp_path: Path) -> None:
    assert set(await behind_while_running("step", tmp_path)) == {0}


@pytest.mark.integration
async def test_steps_are_committed_one_by_one_by_default(tmp_path: Path) -> None:
    assert set(await behind_while_running("", tmp_path)) == {0}


@pytest.mark.integration
async def test_mode_behind_keeps_uncommitted_rows_within_its_bound(tmp_path: Path) -> None:
    behind = await behind_while_running("async", tmp_path)
    assert 1 < max(behind) <= BEHIND_ROWS_MAX


@pytest.mark.integration
@pytest.mark.requirement("S1-66")
async def test_mode_end_commits_only_the_start_before_the_end(tmp_path: Path) -> None:
    assert await behind_while_running("exit", tmp_path) == [*range(len(STEPS))]


@pytest.mark.integration
async def test_the_durability_of_a_start_overrides_the_definition(tmp_path: Path) -> None:
    assert set(await behind_while_running("exit", tmp_path, asked="step")) == {0}


async def test_a_row_is_uncommitted_for_at_most_a_tenth_of_a_second() -> None:
    clock = asyncio.get_running_loop()
    second, go = asyncio.Event(), asyncio.Event()

    async def hold(command: Execute) -> Json:
        if command.step.node == "b":
            second.set()
            await go.wait()
        return None

    shelf = Shelf(chain=chain("a", "b", config={"durability": "async"}))
    runtime, _ = await make_runtime(shelf, hold)
    driver = await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    await second.wait()
    began = clock.time()
    assert (await rows_of(runtime), driver.committing) == (1, 1)
    await driver.until(lambda: True)
    assert (await rows_of(runtime), clock.time() >= began + 0.09) == (2, True)
    go.set()
    await driver.until(lambda: driver.state.ended)


GATED: JsonObject = {
    "id": "gated",
    "config": {"durability": "exit"},
    "nodes": [tool("a"), {"id": "ask", "type": "human", "config": {"message": "Go on?"}}, tool("b")],
    "edges": [{"source": "a", "target": "ask"}, {"source": "ask", "target": "b", "label": "approve"}],
}


async def test_a_gate_and_its_answer_are_stored_before_they_are_shown() -> None:
    shelf, seen = Shelf(gated=GATED), list[int]()
    runtime, _ = await make_runtime(shelf)

    def watch(one: Committed | Delta) -> None:
        if isinstance(one, Committed):
            seen.append(one.row.seq)

    runtime.feed.watch(watch)
    driver = await runtime.start(FIRST, shelf.plans["gated"], Start(input={}, definition="gated"))
    await driver.until(
        lambda: bool(driver.state.steps) and not driver.state.counters.running_steps and not driver.committing
    )
    assert await rows_of(runtime) == driver.state.seq == 2
    assert seen == [1, 2], "watchers see what is durable, in order"
    events = await driver.deliver(GateAnswered(step=Step("ask"), action="approve"))
    assert events
    assert await rows_of(runtime) >= 3
    await driver.until(lambda: driver.state.ended)
    assert seen == [*range(1, driver.state.seq + 1)]


async def test_a_cancel_commits_earlier_rows_with_it() -> None:
    second = asyncio.Event()

    async def hold(command: Execute) -> Json:
        if command.step.node == "b":
            second.set()
            await asyncio.Event().wait()
        return None

    shelf = Shelf(chain=chain("a", "b", config={"durability": "exit"}))
    runtime, _ = await make_runtime(shelf, hold)
    driver = await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    await second.wait()
    assert await rows_of(runtime) == 1
    await driver.deliver(CancelRequested(reason="enough"))
    assert (driver.state.status, await rows_of(runtime)) == ("cancelled", driver.state.seq)


async def test_an_orderly_close_loses_no_decision() -> None:
    second = asyncio.Event()

    async def hold(command: Execute) -> Json:
        if command.step.node == "b":
            second.set()
            await asyncio.Event().wait()
        return None

    shelf, store = Shelf(chain=chain("a", "b", config={"durability": "exit"})), MemoryStore()
    runtime, _ = await make_runtime(shelf, hold, store=store)
    await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    await second.wait()
    await runtime.close()
    again, doing = await make_runtime(shelf, named, store=store)
    driver = await again.open(FIRST)
    await driver.until(lambda: driver.state.ended)
    assert [command.step.node for command in doing.asked] == ["b"]


class FullJournal(MemoryJournal):
    """Accepts the first row and refuses all others."""

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        if rows[0].seq > 1:
            raise StoreFull("no room", hint="Make room.")
        await super().append(execution, *rows, summary=summary, effects=effects)


@pytest.mark.parametrize("durability", ["step", "async", "exit"])
async def test_a_driver_that_loses_its_journal_stops_and_notifies_waiters(durability: str) -> None:
    store = MemoryStore()
    store.journal = FullJournal({})
    forever = asyncio.Event()

    async def hang(command: Execute) -> Json:
        if command.step.node == "slow":
            await forever.wait()
        return None

    document: JsonObject = {
        "id": "two",
        "config": {"durability": durability},
        "nodes": [tool("first"), tool("slow"), *(tool(name) for name in STEPS)],
        "edges": [
            {"source": "first", "target": "slow"},
            *({"source": one, "target": other} for one, other in zip(["first", *STEPS], STEPS, strict=False)),
        ],
    }
    shelf = Shelf(two=document)
    runtime, doing = await make_runtime(shelf, hang, store=store)
    driver = await runtime.start(FIRST, shelf.plans["two"], Start(input={}, definition="two"))
    waits = asyncio.ensure_future(driver.until(lambda: driver.state.ended))
    if durability == "exit":
        await asyncio.sleep(0)
        with pytest.raises(StoreFull):
            await driver.deliver(CancelRequested())
    with pytest.raises(StoreFull):
        await waits
    with pytest.raises(DriverLost):
        await driver.deliver(CancelRequested())
    await asyncio.gather(*driver.tasks, return_exceptions=True)
    assert not driver.tasks
    assert len(doing.asked) <= BEHIND_ROWS_MAX + 3 or durability == "exit"


class LateJournal(MemoryJournal):
    """Acknowledges the row of the second step long after it has written it."""

    def __init__(self) -> None:
        super().__init__({})
        self.has_it, self.says_so = asyncio.Event(), asyncio.Event()

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        await super().append(execution, *rows, summary=summary, effects=effects)
        if rows[0].seq == 2:
            self.has_it.set()
            await self.says_so.wait()


async def test_a_row_seen_before_its_acknowledgement_is_not_foreign() -> None:
    store, journal = MemoryStore(), LateJournal()
    store.journal = journal
    shelf = Shelf(chain=chain("a", "b"))
    runtime, _ = await make_runtime(shelf, store=store)
    driver = await runtime.start(FIRST, shelf.plans["chain"], Start(input={}, definition="chain"))
    await journal.has_it.wait()
    driver.on_foreign_row(await journal.last(FIRST))
    journal.says_so.set()
    await driver.until(lambda: driver.state.ended)
    assert driver.state.status == "completed"
    with pytest.raises(JournalMoved):
        await losing(driver)


async def losing(driver: Driver) -> None:
    """Let another process write the next row."""
    driver.on_foreign_row(driver.state.seq + 1)
    await driver.until(lambda: False)


LONG = """
import asyncio, sys
from pathlib import Path
from pointsman.engine.reports import Start
from pointsman.store.api import open_store
from tests.runtime.world import FIRST, Shelf, Work, chain, make_runtime, named, tool
from tests.runtime.test_durability import long_chain, noting

async def main(address, notes, durability):
    store = await open_store(address)
    shelf = Shelf(long=long_chain(durability))
    runtime, _ = await make_runtime(shelf, noting(Path(notes)), store=store)
    driver = await runtime.start(FIRST, shelf.plans["long"], Start(input={}, definition="long"))
    await driver.until(lambda: driver.state.ended)

asyncio.run(main(*sys.argv[1:]))
"""


def killed_after(lines: int, notes: Path, command: list[str]) -> None:
    """Run a process, and kill it once it has written that many notes."""
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        while notes.read_text().count("\n") < lines and process.poll() is None:
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def long_chain(durability: str) -> JsonObject:
    return chain(*(f"n{number}" for number in range(3000)), config={"durability": durability})


def noting(notes: Path):
    """Return work that writes a line to a file each time."""

    async def note(command: Execute) -> Json:
        with notes.open("a") as file:
            file.write(f"{command.step.node}\n")
        return command.step.node

    return note


@pytest.mark.integration
@pytest.mark.parametrize(("durability", "repeated_max"), [("step", 1), ("async", BEHIND_ROWS_MAX + 1), ("exit", 3000)])
async def test_a_killed_process_repeats_no_more_than_its_mode_allows(
    durability: str, repeated_max: int, tmp_path: Path
) -> None:
    address, notes = f"sqlite:///{tmp_path}/store.db", tmp_path / "notes"
    notes.touch()
    await asyncio.to_thread(killed_after, 400, notes, [sys.executable, "-c", LONG, address, str(notes), durability])
    before = notes.read_text().split()
    assert 400 <= len(before) < 3000, "it was killed in the middle"
    store = await open_store(address)
    assert await store.verify() == []
    shelf = Shelf(long=long_chain(durability))
    runtime, _ = await make_runtime(shelf, noting(notes), store=store)
    driver = await runtime.open(FIRST)
    await driver.until(lambda: driver.state.ended)
    after = notes.read_text().split()
    assert (driver.state.status, driver.state.outcome.output) == ("completed", "n2999")
    assert len(after) - len(set(after)) <= repeated_max
    assert [*dict.fromkeys(after)] == [f"n{number}" for number in range(3000)], "in order, none left out"
    await store.close()
