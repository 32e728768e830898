"""Accounts: what one execution took and paid for, by day, node, model and key. Read off its journal and its effects.

    journal ─▶ steps, retries, failures, seconds of each node
    effects ─▶ calls, tokens and cost of each model and key: who answered is known there

Sub-workflows are executions of their own: what they paid for is in their accounts, not in those of their callers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from pointsman.engine import events
from pointsman.engine.reports import Usage
from pointsman.engine.steps import Step
from pointsman.journal.store import Store
from pointsman.ports import ModelReply, Row
from pointsman.values import ExecutionId, Json

USAGE: Final = "usage"
FOUND: Final = "history"
ALL: Final = "all"
"""Where accounts and words lie, beside the memory tiers: scopes, and the one namespace of each."""
SCRIPTED: Final = "scripted"
"""What the scripted model says it is, and where it is."""
FIELDS: Final = 3
"""An effect is recorded as kind, request and value."""


class Place(NamedTuple):
    """What an entry is about. `model` and `key` are empty where it is about the node's steps."""

    day: str
    node: str
    model: str = ""
    key: str = ""


class Taken(Struct, omit_defaults=True):
    """What was taken and paid for there."""

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
    """Calls of models whose price nobody knows."""
    scripted_calls: int = 0
    """Calls of the scripted model, which asks nobody and has no price."""

    def add(self, other: Taken) -> None:
        """Take in another one."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + other.cost_usd

    def pay(self, usage: Usage, *, scripted: bool) -> None:
        self.model_calls += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cache_read_tokens += usage.cache_read_tokens
        if scripted:
            self.scripted_calls += 1
        elif usage.cost_usd is None:
            self.unpriced_calls += 1
        else:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd


_SUMS: Final = tuple(name for name in Taken.__struct_fields__ if name != "cost_usd")


def day_of(at: float) -> str:
    """Of UTC."""
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _key_of(reply: ModelReply) -> str:
    """As `groq/1`; empty: it was asked without one. Replies of earlier releases do not say whose key it was."""
    if reply.key is None:
        return ""
    return f"{reply.provider}/{reply.key}" if reply.provider else str(reply.key)


class Account:
    """Grows with the rows of one execution."""

    def __init__(self) -> None:
        self.entries: dict[Place, Taken] = {}
        self._begun: dict[Step, float] = {}
        self._ended: dict[str, Place] = {}
        """Where what a step paid for belongs, by its name."""

    def take(self, row: Row) -> None:
        """The next row."""
        for event in row.events:
            match event:
                case events.StepStarted(step=step, runs=runs):
                    self._begin(step, row.at, runs=runs)
                case events.AttemptStarted(step=step):
                    self._begin(step, row.at, runs=True)
                case events.StepSucceeded(step=step, cached=cached):
                    self._end(step, row.at, Taken(steps=1, cached=cached))
                case events.StepFailed(step=step, final=final):
                    self._end(step, row.at, Taken(steps=final, failures=final, retries=not final))
                case events.StepCancelled(step=step):
                    self._end(step, row.at, Taken())
                case _:
                    pass

    def pay(self, step: str, reply: ModelReply) -> None:
        """A model answered an attempt of this step."""
        if step in self._ended:
            place = self._ended[step]._replace(model=reply.model, key=_key_of(reply))
            scripted = (reply.provider or reply.model) == SCRIPTED
            self.entries.setdefault(place, Taken()).pay(reply.usage, scripted=scripted)

    def call(self, step: str) -> None:
        """A tool was called."""
        if step in self._ended:
            self.entries.setdefault(self._ended[step], Taken()).tool_calls += 1

    def _begin(self, step: Step, at: float, *, runs: bool) -> None:
        self._ended[str(step)] = Place(day_of(at), step.node)
        if runs:
            self._begun[step] = at

    def _end(self, step: Step, at: float, taken: Taken) -> None:
        place = self._ended[str(step)] = Place(day_of(at), step.node)
        since = self._begun.pop(step, None)
        taken.seconds = 0.0 if since is None else at - since
        self.entries.setdefault(place, Taken()).add(taken)


async def account_of(store: Store, execution: ExecutionId) -> Account:
    """The account of an execution, as far as it is."""
    account = Account()
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


def summed(entries: Iterable[tuple[tuple[str, ...], Taken]]) -> dict[tuple[str, ...], Taken]:
    """By what they are about."""
    found: dict[tuple[str, ...], Taken] = {}
    for about, taken in entries:
        found.setdefault(about, Taken()).add(taken)
    return found
