"""Conformance suite of deletion, as functions for any address. See `testing.journals`."""

from __future__ import annotations

from typing import Final

from pointsman.store.errors import JournalMoved
from pointsman.store.records import Summary, SweepResult
from pointsman.testing.journals import ONE, Rule, opened, refused, row_of, rows_in
from pointsman.values import ExecutionId, Instant, WorkflowId


def summary_of(execution: ExecutionId) -> Summary:
    return Summary(
        execution=execution,
        workflow=WorkflowId("desk"),
        revision=1,
        status="completed",
        started=Instant(1.0),
        updated=Instant(2.0),
    )


async def an_execution_that_is_removed_is_gone_and_leaves_the_others_alone(url: str) -> None:
    one, other = ONE, ExecutionId("exec-two")
    large = "large" * 50_000
    async with opened(url) as store:
        for execution in (one, other):
            for seq in range(1, 4):
                await store.journal.append(execution, row_of(seq, {"text": large, "only": f"{execution}" * 20_000}))
            await store.effects.record(execution, "write#1", 1, large)
            await store.executions.put(summary_of(execution))
        kept = await rows_in(store.journal, other)
        assert await refused(store.removal.remove(one, at=2), JournalMoved)
        assert len(await rows_in(store.journal, one)) == 3
        assert await store.removal.remove(one, at=3)
        assert not await store.removal.remove(one, at=0)
        assert await rows_in(store.journal, one) == []
        assert await store.journal.last(one) == 0
        assert await store.effects.recorded(one, "write#1") == {}
        assert await rows_in(store.journal, other) == kept
        assert await store.effects.recorded(other, "write#1") == {1: large}
        await store.removal.sweep()
        await store.removal.compact()
        assert await rows_in(store.journal, other) == kept
        assert await store.verify() == []


async def whoever_believes_in_a_removed_execution_is_refused_and_its_name_is_free(url: str) -> None:
    async with opened(url) as store:
        await store.journal.append(ONE, row_of(1, "before"))
        assert await store.removal.remove(ONE, at=1)
        assert await refused(store.journal.append(ONE, row_of(2)), JournalMoved)
        await store.journal.append(ONE, row_of(1, "after"))
        assert await rows_in(store.journal, ONE) == [row_of(1, "after")]
        assert await refused(store.removal.remove(ONE, at=2), JournalMoved)
        assert await store.verify() == []


async def a_summary_without_a_journal_can_be_removed(url: str) -> None:
    async with opened(url) as store:
        await store.executions.put(summary_of(ONE))
        assert await store.removal.remove(ONE, at=0)
        assert await store.executions.find(ONE) is None


async def what_was_put_a_moment_ago_is_not_swept(url: str) -> None:
    async with opened(url) as store:
        digest = await store.blobs.put(b"a definition that is about to be used")
        assert await store.removal.sweep(dry_run=True) == SweepResult()
        assert await store.removal.sweep() == SweepResult()
        assert await store.blobs.get(digest) is not None


async def a_conversation_that_is_forgotten_begins_anew(url: str) -> None:
    async with opened(url) as store:
        await store.sessions.append("talk", ("hello", "there"), after=0)
        await store.sessions.close("talk")
        assert await store.sessions.forget("talk")
        assert not await store.sessions.forget("talk")
        await store.sessions.append("talk", ("again",), after=0)
        assert (await store.sessions.load("talk")).messages == ("again",)


async def everything_remembered_under_a_namespace_can_be_read(url: str) -> None:
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
    an_execution_that_is_removed_is_gone_and_leaves_the_others_alone,
    whoever_believes_in_a_removed_execution_is_refused_and_its_name_is_free,
    a_summary_without_a_journal_can_be_removed,
    what_was_put_a_moment_ago_is_not_swept,
    a_conversation_that_is_forgotten_begins_anew,
    everything_remembered_under_a_namespace_can_be_read,
)
