"""Conformance suite of journals, deletion and leaders, as functions for any address, including third-party stores.

    @pytest.mark.parametrize("rule", [*JOURNAL_RULES, *STORE_RULES], ids=lambda rule: rule.__name__)
    async def test_my_store(rule, tmp_path):
        await rule(f"mystore://{tmp_path}/store")

Each rule needs its own unused address. `DURABLE_RULES` are for stores that outlive a process: they open one address
several times, also from a child process that is killed.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from pointsman.engine.causes import WORK_DONE, cause_of
from pointsman.engine.events.steps import StepSucceeded
from pointsman.engine.reports import GateAnswered
from pointsman.engine.steps import Branch, Step
from pointsman.errors import PointsmanError
from pointsman.ports import Row
from pointsman.store.api import Store, StoreJournal, open_store
from pointsman.store.errors import JournalMoved, LeaderExists, UnstorableValue
from pointsman.store.records import Summary, SweepResult
from pointsman.values import ExecutionId, Instant, Json, WorkflowId

Rule: TypeAlias = Callable[[str], Awaitable[None]]

ONE: Final = ExecutionId("exec-one")
MEGABYTE: Final = 1024 * 1024
ACKNOWLEDGED_MIN: Final = 300


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store, None]:
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


async def refused(call: Awaitable[object], with_: type[PointsmanError]) -> bool:
    """Check that the call raises exactly this error; other errors propagate."""
    try:
        await call
    except with_:
        return True
    return False


def row_of(seq: int, value: Json = None) -> Row:
    """Return a row with one event that carries `value`. Its cause has a report, or no report, or is missing."""
    step = Step("work", (Branch("each", 1, seq),), seq)
    answer = GateAnswered(step=step, action="approve", data=value, by="Ädä", groups=("a", "b"), key=str(seq))
    causes = (None, WORK_DONE, cause_of(answer, ()))
    return Row(seq, 1_700_000_000.25 + seq, (StepSucceeded(step=step, result=value),), causes[seq % 3])


async def rows_in(journal: StoreJournal, execution: ExecutionId, *, after: int = 0) -> list[Row]:
    return [row async for row in journal.read(execution, after=after)]


async def rows_are_read_unchanged_and_in_order(url: str) -> None:
    async with opened(url) as store:
        written = [row_of(seq, {"seq": seq, "text": "Grüße, 世界 🌍"}) for seq in range(1, 701)]
        for row in written:
            await store.journal.append(ONE, row)
        assert await rows_in(store.journal, ONE) == written
        assert await rows_in(store.journal, ONE, after=698) == written[698:]
        assert await rows_in(store.journal, ONE, after=700) == []
        assert await store.journal.last(ONE) == 700


async def unknown_execution_has_no_rows(url: str) -> None:
    async with opened(url) as store:
        assert await store.journal.last(ONE) == 0
        assert await rows_in(store.journal, ONE) == []


async def one_of_two_writers_is_refused(url: str) -> None:
    async with opened(url) as store:
        both = (store.journal.append(ONE, row_of(1, "a")), store.journal.append(ONE, row_of(1, "b")))
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes if outcome is not None] == [JournalMoved]
        assert [row.seq for row in await rows_in(store.journal, ONE)] == [1]


async def row_out_of_order_is_refused_without_effect(url: str) -> None:
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1))
        for seq in (-1, 0, 1, 3, 100):
            assert await refused(store.journal.append(ONE, row_of(seq)), JournalMoved), f"row {seq} came after row 1"
        await store.journal.append(ONE, row_of(2))
        assert [row.seq for row in await rows_in(store.journal, ONE)] == [1, 2]
        assert await store.journal.last(ExecutionId("exec-two")) == 0


async def concurrent_executions_do_not_affect_each_other(url: str) -> None:
    async with opened(url) as store:
        executions = [ExecutionId(f"exec-{number}") for number in range(64)]

        async def write(execution: ExecutionId) -> None:
            for seq in range(1, 21):
                await store.journal.append(execution, row_of(seq, execution))

        async def collide(execution: ExecutionId) -> None:
            for _ in range(10):
                await asyncio.gather(store.journal.append(execution, row_of(99)), return_exceptions=True)

        await asyncio.gather(*map(write, executions), *map(collide, executions[:8]))
        for execution in executions:
            assert await rows_in(store.journal, execution) == [row_of(seq, execution) for seq in range(1, 21)]


async def concurrent_appends_keep_their_order(url: str) -> None:
    async with opened(url) as store:
        rows = [row_of(seq) for seq in range(1, 201)]
        await asyncio.gather(*(store.journal.append(ONE, row) for row in rows))
        assert await rows_in(store.journal, ONE) == rows


async def batch_of_rows_is_stored_whole_or_not_at_all(url: str) -> None:
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1), row_of(2), row_of(3))
        assert await refused(store.journal.append(ONE, row_of(3), row_of(4)), JournalMoved)
        assert [row.seq for row in await rows_in(store.journal, ONE)] == [1, 2, 3]
        calls = [store.journal.append(ONE, row_of(seq), row_of(seq + 1)) for seq in range(4, 24, 2)]
        await asyncio.gather(*calls, store.journal.append(ONE, row_of(24)))
        assert [row.seq for row in await rows_in(store.journal, ONE)] == [*range(1, 25)]


async def reading_includes_rows_appended_during_it(url: str) -> None:
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1))
        numbers: list[int] = []
        async for row in store.journal.read(ONE):
            numbers.append(row.seq)
            if row.seq < 5:
                await store.journal.append(ONE, row_of(row.seq + 1))
        assert numbers == [1, 2, 3, 4, 5]


def nested(levels: int) -> Json:
    value: Json = "deep"
    for _ in range(levels):
        value = [value]
    return value


STRANGE: Final[tuple[Json, ...]] = (
    10**29 + 1,
    -(10**29) - 1,
    2**63,
    10**4000,
    0.1 + 0.2,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    "",
    "\x00\u2028\ufeff\U0010ffff",
    {"": None, "null": "null", " ": [[], {}]},
    [None, True, False, 0, 1, 0.0, 1.0],
    nested(64),
    nested(100_000),
    math.nan,
    {"list": [1, {"x": math.inf}]},
    -math.inf,
    "half \ud83d a pair",
    {"\udc00": 1},
    10**5000,
)


async def value_is_read_exactly_or_refused(url: str) -> None:
    async with opened(url) as store:
        for number, value in enumerate(STRANGE):
            execution = ExecutionId(f"exec-{number}")
            if await refused(store.journal.append(execution, row_of(1, value)), UnstorableValue):
                assert await store.journal.last(execution) == 0, "a refused row leaves nothing behind"
                continue
            (row,) = await rows_in(store.journal, execution)
            (event,) = row.events
            assert isinstance(event, StepSucceeded)
            assert event.result is value or same(event.result, value), f"value {number} came back as another one"


def same(one: Json, other: Json) -> bool:
    """Return whether values and types are equal: 1, 1.0 and True are different."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return type(one) is type(other) and repr(one) == repr(other) if isinstance(one, float) else one == other


async def rows_of_every_size_are_read_unchanged(url: str) -> None:
    async with opened(url) as store:
        chance = random.Random(1)
        sizes = (2047, 2049, 10_000, 65_535, 65_537, MEGABYTE)
        values: list[Json] = [*("x" * size for size in sizes), *(chance.randbytes(size).hex() for size in sizes)]
        for seq, value in enumerate(values, start=1):
            await store.journal.append(ONE, row_of(seq, value))
        assert await rows_in(store.journal, ONE) == [row_of(seq, value) for seq, value in enumerate(values, start=1)]


async def row_of_50_megabytes_is_read_unchanged(url: str) -> None:
    async with opened(url) as store:
        page = random.Random(2).randbytes(MEGABYTE // 2).hex()
        value: Json = [f"{number}{page}" for number in range(50)]
        await store.journal.append(ONE, row_of(1, value))
        await store.journal.append(ONE, row_of(2, "small"))
        assert await rows_in(store.journal, ONE) == [row_of(1, value), row_of(2, "small")]


async def summary_changes_with_its_row_or_not_at_all(url: str) -> None:
    async with opened(url) as store:
        running = Summary(
            execution=ONE,
            workflow=WorkflowId("desk"),
            revision=1,
            status="running",
            started=Instant(1.0),
            updated=Instant(1.0),
        )
        done = Summary(
            execution=ONE,
            workflow=WorkflowId("desk"),
            revision=1,
            status="completed",
            started=Instant(1.0),
            updated=Instant(2.0),
        )
        await store.journal.append(ONE, row_of(1), summary=running)
        assert await store.executions.find(ONE) == running
        outcome = await asyncio.gather(store.journal.append(ONE, row_of(1), summary=done), return_exceptions=True)
        assert isinstance(outcome[0], JournalMoved)
        assert await store.executions.find(ONE) == running
        await store.journal.append(ONE, row_of(2), summary=done)
        assert await store.executions.find(ONE) == done


JOURNAL_RULES: Final[tuple[Rule, ...]] = (
    rows_are_read_unchanged_and_in_order,
    unknown_execution_has_no_rows,
    one_of_two_writers_is_refused,
    row_out_of_order_is_refused_without_effect,
    concurrent_executions_do_not_affect_each_other,
    concurrent_appends_keep_their_order,
    batch_of_rows_is_stored_whole_or_not_at_all,
    reading_includes_rows_appended_during_it,
    value_is_read_exactly_or_refused,
    rows_of_every_size_are_read_unchanged,
    row_of_50_megabytes_is_read_unchanged,
    summary_changes_with_its_row_or_not_at_all,
)


async def all_rows_exist_after_reopening(url: str) -> None:
    rows = [row_of(seq, "x" * seq * 100) for seq in range(1, 51)]
    async with opened(url) as store:
        for row in rows[:25]:
            await store.journal.append(ONE, row)
    async with opened(url) as store:
        assert await store.journal.last(ONE) == 25
        for row in rows[25:]:
            await store.journal.append(ONE, row)
    async with opened(url) as store:
        assert await rows_in(store.journal, ONE) == rows
        assert await store.verify() == []


async def closing_commits_pending_rows(url: str) -> None:
    async with opened(url) as store:
        appends = [asyncio.ensure_future(store.journal.append(ONE, row_of(seq))) for seq in range(1, 51)]
        await asyncio.sleep(0)
    await asyncio.gather(*appends)
    async with opened(url) as store:
        assert await store.journal.last(ONE) == 50


async def only_one_of_two_open_stores_appends_a_row(url: str) -> None:
    async with opened(url) as first, opened(url) as second:
        for seq in range(1, 31):
            both = (first.journal.append(ONE, row_of(seq, "first")), second.journal.append(ONE, row_of(seq, "second")))
            outcomes = await asyncio.gather(*both, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes if outcome is not None] == [JournalMoved]
        assert [row.seq for row in await rows_in(first.journal, ONE)] == list(range(1, 31))
        assert await second.verify() == []


async def acknowledged_rows_survive_a_killed_process(url: str) -> None:
    """A child appends for eight executions and reports each row; it is killed in the middle without warning."""
    program = f"import asyncio, pointsman.testing.journals as j; asyncio.run(j.append_and_print({url!r}))"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    lines = [await child.stdout.readline() for _ in range(ACKNOWLEDGED_MIN)]
    child.kill()
    lines += (await child.stdout.read()).splitlines(keepends=True)
    await child.wait()
    acknowledged: dict[ExecutionId, int] = {}
    for line in lines:
        if line.endswith(b"\n"):
            execution, seq = line.decode().split()
            acknowledged[ExecutionId(execution)] = int(seq)
    assert sum(acknowledged.values()) >= ACKNOWLEDGED_MIN
    async with opened(url) as store:
        assert await store.verify() == []
        for execution, last in acknowledged.items():
            rows = await rows_in(store.journal, execution)
            assert last <= len(rows) <= last + 1, "at most the row that was on its way is there unacknowledged"
            assert rows == [row_of(seq, execution) for seq in range(1, len(rows) + 1)]
            await store.journal.append(execution, row_of(len(rows) + 1))


async def append_and_print(url: str) -> None:
    """Append to eight executions until killed; print each row when it was acknowledged."""

    async def write(store: Store, execution: ExecutionId) -> None:
        for seq in range(1, 1_000_000):
            await store.journal.append(execution, row_of(seq, execution))
            sys.stdout.write(f"{execution} {seq}\n")
            sys.stdout.flush()

    async with opened(url) as store:
        await asyncio.gather(*(write(store, ExecutionId(f"exec-{number}")) for number in range(8)))


DURABLE_RULES: Final[tuple[Rule, ...]] = (
    all_rows_exist_after_reopening,
    closing_commits_pending_rows,
    only_one_of_two_open_stores_appends_a_row,
    acknowledged_rows_survive_a_killed_process,
)


NOT_YET_S: Final = 0.01


async def store_has_one_leader_that_can_step_down(url: str) -> None:
    async with opened(url) as store:
        first = await store.lead("first")
        (why,) = await asyncio.gather(store.lead("second"), return_exceptions=True)
        assert isinstance(why, LeaderExists)
        assert "'first', since 20" in str(why), "it says who keeps the store, and since when"
        await store.journal.append(ONE, row_of(1))
        await first.release()
        await first.release()
        assert not first.lost.is_set(), "who steps back has lost nothing"
        second = await store.lead("second")
        assert (second.holder, second.epoch > first.epoch) == ("second", True)
        await store.journal.append(ONE, row_of(2))
        await store.effects.record(ONE, "write#1", 1, "paid")
        await store.memory.put("session", "ann", "name", "Ann")


async def standby_takes_over_when_the_leader_steps_down(url: str) -> None:
    async with opened(url) as store:
        first = await store.lead("first")
        waiting = asyncio.ensure_future(store.lead("second", wait=True))
        await asyncio.wait([waiting], timeout=NOT_YET_S)
        assert not waiting.done()
        await first.release()
        assert (await waiting).epoch > first.epoch


LEADER_RULES: Final[tuple[Rule, ...]] = (
    store_has_one_leader_that_can_step_down,
    standby_takes_over_when_the_leader_steps_down,
)


async def only_one_process_leads_and_others_may_write(url: str) -> None:
    async with opened(url) as one, opened(url) as other:
        await one.lead("one")
        assert await refused(other.lead("other"), LeaderExists)
        await one.journal.append(ONE, row_of(1))
        await other.journal.append(ONE, row_of(2))
        await one.journal.append(ONE, row_of(3))
        waiting = asyncio.ensure_future(other.lead("other", wait=True))
        await one.close()
        assert (await waiting).holder == "other"
        await other.journal.append(ONE, row_of(4))


async def standby_takes_over_from_a_killed_leader(url: str) -> None:
    program = f"import asyncio, pointsman.testing.journals as k; asyncio.run(k.lead_until_killed({url!r}))"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    epoch = int(await child.stdout.readline())
    async with opened(url) as store:
        assert await refused(store.lead("here"), LeaderExists)
        waiting = asyncio.ensure_future(store.lead("here", wait=True))
        await asyncio.wait([waiting], timeout=NOT_YET_S)
        assert not waiting.done()
        child.kill()
        assert (await waiting).epoch == epoch + 1
        await child.wait()
        await store.journal.append(ONE, row_of(2))


async def lead_until_killed(url: str) -> None:
    """Become the leader, write a row, print the epoch, and wait."""
    async with opened(url) as store:
        keep = await store.lead("child")
        await store.journal.append(ONE, row_of(1))
        sys.stdout.write(f"{keep.epoch}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


DURABLE_LEADER_RULES: Final[tuple[Rule, ...]] = (
    only_one_process_leads_and_others_may_write,
    standby_takes_over_from_a_killed_leader,
)


def ended_summary(execution: ExecutionId) -> Summary:
    return Summary(
        execution=execution,
        workflow=WorkflowId("desk"),
        revision=1,
        status="completed",
        started=Instant(1.0),
        updated=Instant(2.0),
    )


async def removal_deletes_one_execution_and_no_other(url: str) -> None:
    one, other = ONE, ExecutionId("exec-two")
    large = "large" * 50_000
    async with opened(url) as store:
        for execution in (one, other):
            for seq in range(1, 4):
                await store.journal.append(execution, row_of(seq, {"text": large, "only": f"{execution}" * 20_000}))
            await store.effects.record(execution, "write#1", 1, large)
            await store.executions.put(ended_summary(execution))
        remaining = await rows_in(store.journal, other)
        assert await refused(store.removal.remove(one, at=2), JournalMoved)
        assert len(await rows_in(store.journal, one)) == 3
        assert await store.removal.remove(one, at=3)
        assert not await store.removal.remove(one, at=0)
        assert await rows_in(store.journal, one) == []
        assert await store.journal.last(one) == 0
        assert await store.effects.recorded(one, "write#1") == {}
        assert await rows_in(store.journal, other) == remaining
        assert await store.effects.recorded(other, "write#1") == {1: large}
        await store.removal.sweep()
        await store.removal.compact()
        assert await rows_in(store.journal, other) == remaining
        assert await store.verify() == []


async def writer_of_a_removed_execution_is_refused(url: str) -> None:
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1, "before"))
        assert await store.removal.remove(ONE, at=1)
        assert await refused(store.journal.append(ONE, row_of(2)), JournalMoved)
        await store.journal.append(ONE, row_of(1, "after"))
        assert await rows_in(store.journal, ONE) == [row_of(1, "after")]
        assert await refused(store.removal.remove(ONE, at=2), JournalMoved)
        assert await store.verify() == []


async def summary_without_a_journal_can_be_removed(url: str) -> None:
    async with opened(url) as store:
        await store.executions.put(ended_summary(ONE))
        assert await store.removal.remove(ONE, at=0)
        assert await store.executions.find(ONE) is None


async def sweep_spares_new_blobs(url: str) -> None:
    async with opened(url) as store:
        digest = await store.blobs.put(b"a definition that is about to be used")
        assert await store.removal.sweep(dry_run=True) == SweepResult()
        assert await store.removal.sweep() == SweepResult()
        assert await store.blobs.get(digest) is not None


async def forgotten_conversation_starts_empty(url: str) -> None:
    async with opened(url) as store:
        await store.sessions.append("talk", ("hello", "there"), after=0)
        await store.sessions.close("talk")
        assert await store.sessions.forget("talk")
        assert not await store.sessions.forget("talk")
        await store.sessions.append("talk", ("again",), after=0)
        assert (await store.sessions.load("talk")).messages == ("again",)


async def all_values_of_a_namespace_can_be_read(url: str) -> None:
    async with opened(url) as store:
        await store.memory.put("session", "talk", "b", {"n": 1})
        await store.memory.put("session", "talk", "a", [None, 10**30])
        await store.memory.put("session", "other", "c", "not this")
        assert [(one.key, one.value) for one in await store.memory.every("session", "talk")] == [
            ("a", [None, 10**30]),
            ("b", {"n": 1}),
        ]
        assert await store.memory.every("execution", "talk") == []


REMOVAL_RULES: Final[tuple[Rule, ...]] = (
    removal_deletes_one_execution_and_no_other,
    writer_of_a_removed_execution_is_refused,
    summary_without_a_journal_can_be_removed,
    sweep_spares_new_blobs,
    forgotten_conversation_starts_empty,
    all_values_of_a_namespace_can_be_read,
)
