"""Conformance suite of the usage of executions, as functions for any address."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from pointsman.store.records import BudgetUsage, Spenders, SpendingQuery, Summary
from pointsman.testing.journals import Rule, opened
from pointsman.testing.usage import USAGE_RULES
from pointsman.values import ExecutionId, Instant, WorkflowId

DESK: Final = WorkflowId("desk")
TOKENS: Final = SpendingQuery(workflow=DESK, measure="tokens", near=50, most=100)


def desk(number: int, tokens: int, **more: object) -> Summary:
    """Return a summary that ended at its number."""
    one = Summary(
        execution=ExecutionId(f"exec-{number:03}"),
        workflow=DESK,
        revision=1,
        status="completed",
        started=Instant(0),
        updated=Instant(number),
        spent=BudgetUsage(tokens=tokens, model_calls=number, cost_usd=tokens / 1000),
    )
    return replace(one, **more)


async def what_executions_spent_is_added_up(url: str) -> None:
    async with opened(url) as store:
        assert await store.executions.spending(TOKENS) == []
        spent = (0, 49, 50, 99, 100, 250)
        for number, tokens in enumerate(spent):
            await store.executions.put(desk(number, tokens))
        await store.executions.put(desk(7, 900, workflow=WorkflowId("other")))
        await store.executions.put(desk(8, 900, revision=0))
        dearest = ExecutionId("exec-005")
        assert await store.executions.spending(TOKENS) == [
            Spenders(executions=6, near=2, over=2, highest=250, dearest=dearest)
        ], "of the saved revisions of this workflow"
        (calls,) = await store.executions.spending(replace(TOKENS, measure="modelCalls", near=0, most=0))
        assert (calls.near, calls.over, calls.highest) == (0, 5, 5), "nothing spent is no budget spent"
        (cost,) = await store.executions.spending(replace(TOKENS, measure="costUsd", near=0.05, most=0.1))
        assert (cost.near, cost.over, cost.highest) == (2, 2, 0.25)
        (tools,) = await store.executions.spending(replace(TOKENS, measure="toolCalls"))
        assert (tools.executions, tools.highest) == (6, 0)


async def a_period_bounds_what_has_ended_only(url: str) -> None:
    async with opened(url) as store:
        for number in range(6):
            await store.executions.put(desk(number, 10, status="waiting" if number == 0 else "failed"))

        async def told(since: float | None, until: float | None) -> int:
            found = await store.executions.spending(
                replace(
                    TOKENS,
                    since=None if since is None else Instant(since),
                    until=None if until is None else Instant(until),
                )
            )
            return sum(one.executions for one in found)

        assert [await told(2, 4), await told(None, 2), await told(5, None), await told(9, None)] == [3, 2, 2, 1]


async def who_spent_is_told_apart_by_what_decides_who_sees_it(url: str) -> None:
    async with opened(url) as store:
        for number, more in enumerate(
            (
                {"owner": "ann"},
                {"owner": "ann"},
                {"owner": "bob"},
                {"owner": "bob", "session": "talk"},
                {"owner": "bob", "parent": ExecutionId("exec-000")},
                {"owner": "bob", "revision": 2},
            )
        ):
            await store.executions.put(desk(number, number * 20, **more))
        found = await store.executions.spending(replace(TOKENS, apart=True))
        told = {(one.revision, one.owner, one.session, one.parent): (one.executions, one.highest) for one in found}
        assert told == {
            (1, "ann", None, None): (2, 20),
            (1, "bob", None, None): (1, 40),
            (1, "bob", "talk", None): (1, 60),
            (1, "bob", None, "exec-000"): (1, 80),
            (2, "bob", None, None): (1, 100),
        }


async def a_summary_that_only_paid_replaces_the_one_before(url: str) -> None:
    async with opened(url) as store:
        first = desk(1, 10, status="running", awaits=("door",))
        for one in (first, replace(first, spent=BudgetUsage(tokens=20), updated=Instant(7), awaits=("bell",))):
            await store.executions.put(one)
        assert await store.executions.find(first.execution) == replace(
            first, spent=BudgetUsage(tokens=20), updated=Instant(7), awaits=("bell",)
        )
        moved = replace(first, spent=BudgetUsage(tokens=30), session="talk", wakes=Instant(9))
        await store.executions.put(moved)
        assert await store.executions.list() == [moved]


SPENDING_RULES: Final[tuple[Rule, ...]] = (
    what_executions_spent_is_added_up,
    a_period_bounds_what_has_ended_only,
    who_spent_is_told_apart_by_what_decides_who_sees_it,
    a_summary_that_only_paid_replaces_the_one_before,
    *USAGE_RULES,
)
