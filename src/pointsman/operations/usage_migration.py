"""What earlier releases kept of usage, beside the memory tiers: put among the sums, once, by whoever asks first."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from msgspec import Struct

from pointsman.executions.usage_accounts import ALL, SCRIPTED
from pointsman.store.api import Store
from pointsman.store.records import Remembered
from pointsman.store.usage import MICROS, NANOS, Place, Taken, Taking
from pointsman.values import ExecutionId

SCOPE: Final = "usage"
AT_ONCE: Final = 50
"""So many are put together: one commit is enough for them."""


class TakenThen(Struct):
    """With fractions, whose sum depended on their order."""

    steps: int = 0
    retries: int = 0
    failures: int = 0
    cached: int = 0
    seconds: float = 0.0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cost_usd: float | None = None
    unpriced_calls: int = 0
    scripted_calls: int = 0


class KeptThen(Struct, array_like=True):
    """Under `day/execution`."""

    workflow: str
    revision: int
    entries: list[tuple[tuple[str, str, str, str], TakenThen]]
    """By day, node, model and key."""
    owner: str = ""


async def take_over(store: Store) -> None:
    """Safe to do twice, or by two at once: who takes an execution in anew knows better. Costs one look where none is
    left; a backup of then has some again."""
    while some := await store.memory.every(SCOPE, ALL, limit=AT_ONCE):
        await asyncio.gather(*(_take(store, one) for one in some))


async def _take(store: Store, one: Remembered) -> None:
    await store.usage.put(taking_of(one.key, msgspec.convert(one.value, KeptThen)), unless_known=True)
    await store.memory.put(SCOPE, ALL, one.key, None)


def taking_of(key: str, kept: KeptThen) -> Taking:
    day, _, execution = key.partition("/")
    return Taking(
        day=day,
        execution=ExecutionId(execution),
        workflow=kept.workflow,
        revision=kept.revision,
        owner=kept.owner,
        entries=tuple((Place(*about[1:]), _taken(about[2], then)) for about, then in kept.entries),
    )


def _taken(model: str, then: TakenThen) -> Taken:
    """The first of them took calls of the scripted model for some without a known price."""
    scripted, unpriced = then.scripted_calls, then.unpriced_calls
    if model == SCRIPTED:
        scripted, unpriced = scripted + unpriced, 0
    return Taken(
        steps=then.steps,
        retries=then.retries,
        failures=then.failures,
        cached=then.cached,
        micros=round(then.seconds * MICROS),
        model_calls=then.model_calls,
        tool_calls=then.tool_calls,
        input_tokens=then.input_tokens,
        output_tokens=then.output_tokens,
        cache_read_tokens=then.cache_read_tokens,
        nanos=round((then.cost_usd or 0.0) * NANOS),
        priced_calls=0 if then.cost_usd is None else max(1, then.model_calls - unpriced - scripted),
        unpriced_calls=unpriced,
        scripted_calls=scripted,
    )
