"""Usage accounts: what one execution used and cost, by day, node, model and key, read from its journal and effects.

    journal ─▶ steps, retries, failures, seconds of each node
    effects ─▶ calls, tokens and cost of each model and key: only they record which model answered

Sub-workflows are executions of their own: their usage is in their own accounts, not in those of their callers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from pointsman.engine.events import steps as events
from pointsman.engine.reports import Usage
from pointsman.engine.steps import Step
from pointsman.ports import ModelReply, Row
from pointsman.store.api import Store
from pointsman.store.usage import MICROS, NANOS, UsageAmounts, UsagePlace
from pointsman.values import ExecutionId, Json

FOUND: Final = "history"
ALL: Final = "all"
"""Scope and namespace of the indexed words, beside the memory tiers."""
SCRIPTED: Final = "scripted"
"""Name of the scripted model, and of its provider."""
FIELDS: Final = 3
"""An effect is recorded as kind, request and value."""


def day_of(at: float) -> str:
    """Return the day in UTC."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _key_of(reply: ModelReply) -> str:
    """Return the provider key, such as `groq/1`; empty: no key was used. Replies of earlier releases name no
    provider."""
    if reply.key is None:
        return ""
    return f"{reply.provider}/{reply.key}" if reply.provider else str(reply.key)


class ExecutionUsage:
    """The usage of one execution, built row by row."""

    def __init__(self) -> None:
        self.days: dict[str, dict[UsagePlace, UsageAmounts]] = {}
        self._begun: dict[Step, float] = {}
        self._ended: dict[str, tuple[str, UsagePlace]] = {}
        """The day and place to which the usage of a step is added, by the step's name."""

    def take(self, row: Row) -> None:
        """Add the next row."""
        for event in row.events:
            match event:
                case events.StepStarted(step=step, runs=runs):
                    self._begin(step, row.at, runs=runs)
                case events.AttemptStarted(step=step):
                    self._begin(step, row.at, runs=True)
                case events.StepSucceeded(step=step, cached=cached):
                    self._end(step, row.at, UsageAmounts(steps=1, cached=cached))
                case events.StepFailed(step=step, final=final):
                    self._end(step, row.at, UsageAmounts(steps=final, failures=final, retries=not final))
                case events.StepCancelled(step=step):
                    self._end(step, row.at, UsageAmounts())
                case _:
                    pass

    def pay(self, step: str, reply: ModelReply) -> None:
        """Add a model's answer to an attempt of this step."""
        if step in self._ended:
            day, place = self._ended[step]
            scripted = (reply.provider or reply.model) == SCRIPTED
            taken = self._at(day, place._replace(model=reply.model, key=_key_of(reply)))
            taken.add(paid(reply.usage, scripted=scripted))

    def call(self, step: str) -> None:
        """Add a tool call."""
        if step in self._ended:
            self._at(*self._ended[step]).tool_calls += 1

    def _at(self, day: str, place: UsagePlace) -> UsageAmounts:
        return self.days.setdefault(day, {}).setdefault(place, UsageAmounts())

    def _begin(self, step: Step, at: float, *, runs: bool) -> None:
        self._ended[str(step)] = day_of(at), UsagePlace(step.node)
        if runs:
            self._begun[step] = at

    def _end(self, step: Step, at: float, taken: UsageAmounts) -> None:
        day, place = self._ended[str(step)] = day_of(at), UsagePlace(step.node)
        since = self._begun.pop(step, None)
        taken.micros = 0 if since is None else round((at - since) * MICROS)
        self._at(day, place).add(taken)


def paid(usage: Usage, *, scripted: bool) -> UsageAmounts:
    """Return the usage of one model call."""
    taken = UsageAmounts(
        model_calls=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
    )
    if scripted:
        taken.scripted_calls = 1
    elif usage.cost_usd is None:
        taken.unpriced_calls = 1
    else:
        taken.priced_calls, taken.nanos = 1, round(usage.cost_usd * NANOS)
    return taken


async def account_of(store: Store, execution: ExecutionId) -> ExecutionUsage:
    """Return the account of an execution up to its latest row."""
    account = ExecutionUsage()
    async for row in store.journal.read(execution):
        account.take(row)
    async for step, kind, value in _effects(store, execution):
        if kind == "tool":
            account.call(step)
        elif isinstance(value, dict) and "usage" in value:
            account.pay(step, msgspec.convert(value, ModelReply))
    return account


async def _effects(store: Store, execution: ExecutionId) -> AsyncIterator[tuple[str, str, Json]]:
    for attempt in await store.effects.attempts(execution):
        step = attempt.rpartition(":")[0]
        for effect in (await store.effects.recorded(execution, attempt)).values():
            if isinstance(effect, list) and len(effect) == FIELDS:
                yield step, str(effect[0]), effect[2]
