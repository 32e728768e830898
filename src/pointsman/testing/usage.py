"""Conformance suite of usage sums, as functions for any address."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from itertools import combinations
from typing import Final, get_args

from pointsman.store.usage import (
    OF_EXECUTIONS,
    About,
    UsageAmounts,
    UsageName,
    UsagePlace,
    UsageQuery,
    UsageRecord,
    added_up,
)
from pointsman.testing.journals import Rule, opened
from pointsman.values import ExecutionId

DAYS: Final = ("2026-11-20", "2026-11-21", "2026-11-22")
NAMES: Final[tuple[UsageName, ...]] = get_args(UsageName)
SUMMED: Final[tuple[UsageName, ...]] = tuple(one for one in NAMES if one not in OF_EXECUTIONS)


def taking(number: int, day: str = DAYS[0], **about: str) -> UsageRecord:
    """Return one model call that costs a thousand nanodollars times its number."""
    amounts = UsageAmounts(model_calls=1, nanos=1000 * number, priced_calls=1)
    return UsageRecord(
        day=day,
        execution=ExecutionId(f"exec-{number:03}"),
        workflow=about.get("workflow", "desk"),
        revision=1,
        owner=about.get("owner", ""),
        entries=((UsagePlace(about.get("node", "ask"), "gpt-5", "openai/1"), amounts),),
    )


def any_taking(chance: random.Random) -> UsageRecord:
    """Draw from few executions and names, so that they repeat often."""
    places = {
        UsagePlace(chance.choice("abc"), chance.choice(("", "gpt-5", "größe")), chance.choice(("", "openai/1")))
        for _ in range(chance.randrange(4))
    }
    amounts = UsageAmounts.__struct_fields__
    return UsageRecord(
        day=chance.choice(DAYS),
        execution=ExecutionId(f"exec-{chance.randrange(6)}"),
        workflow=chance.choice(("desk", "other")),
        revision=chance.randrange(3),
        owner=chance.choice(("", "ann")),
        entries=tuple((place, UsageAmounts(*(chance.randrange(1 << 40) for _ in amounts))) for place in sorted(places)),
    )


def sorted_sums(found: Iterable[tuple[About, UsageAmounts]]) -> list[tuple[list[str], UsageAmounts]]:
    return sorted((([str(one) for one in about], taken) for about, taken in found), key=lambda one: one[0])


async def sums_are_what_the_takings_say(url: str) -> None:
    """Put random usage records, some of them again with other values."""
    chance = random.Random(152)
    some: list[tuple[UsageName, ...]] = [by for count in (1, 2, 3) for by in combinations(SUMMED, count)]
    queries = [UsageQuery(by=by) for by in some]
    queries += [UsageQuery(by=("owner",)), UsageQuery(by=("execution", "node"), of={"owner": "ann"})]
    queries += [
        UsageQuery(by=("node", "workflow"), since=DAYS[1]),
        UsageQuery(by=("day",), until=DAYS[1], of={"model": "größe"}),
        UsageQuery(by=("key",), since=DAYS[1], until=DAYS[1], of={"workflow": "desk", "node": "a"}),
    ]
    known: dict[tuple[str, str], UsageRecord] = {}
    async with opened(url) as store:
        for _ in range(6):
            for _ in range(12):
                one = any_taking(chance)
                await store.usage.put(one)
                known[one.day, one.execution] = one
            for query in queries:
                wanted = sorted_sums(added_up(known.values(), query))
                assert sorted_sums(await store.usage.sums(query)) == wanted, query
            assert await store.verify() == []


async def who_takes_in_at_once_loses_nothing(url: str) -> None:
    async with opened(url) as store:
        for _ in range(2):
            await asyncio.gather(*(store.usage.put(taking(number)) for number in range(1, 21)))
            ((_, total),) = await store.usage.sums(UsageQuery(by=("workflow",)))
            assert (total.model_calls, total.nanos) == (20, 210_000), "nothing is counted twice either"
        await asyncio.gather(*(store.usage.put(taking(1, node=node)) for node in "abcdefgh"))
        found = await store.usage.sums(UsageQuery(by=("node",)))
        assert sum(taken.nanos for _, taken in found) == 210_000, "one of those who took it in is the last"


async def long_and_strange_names_are_told_apart(url: str) -> None:
    async with opened(url) as store:
        names = ["ö" * 2000 + end for end in ("a", "b")] + ["?", "%s", "'; DROP TABLE usage; --"]
        for number, name in enumerate(names, start=1):
            await store.usage.put(taking(number, node=name))
        found = {about[0]: taken.nanos for about, taken in await store.usage.sums(UsageQuery(by=("node",)))}
        assert found == {name: 1000 * number for number, name in enumerate(names, start=1)}
        ((about, _),) = await store.usage.sums(UsageQuery(by=("execution",), of={"node": names[-1]}))
        assert about == ("exec-005",)


USAGE_RULES: Final[tuple[Rule, ...]] = (
    sums_are_what_the_takings_say,
    who_takes_in_at_once_loses_nothing,
    long_and_strange_names_are_told_apart,
)
