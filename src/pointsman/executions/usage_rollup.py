"""Usage rollup: adds up what executions cost, and indexes their words for search.

An execution is counted when it ends. Its words are indexed also while it stands still (waiting, paused, interrupted,
stopped).

    ended since the last look ─▶ its account  ─▶ usage   by day, workflow, node, model, key, user, execution
                              └▶ its words    ─▶ search  in inputs, outputs, errors; not of `minimal` ones

An account is read from the journal (steps, retries, failures and seconds of each node) and from the effects (calls,
tokens and cost of each model and key: only they record which model answered). Sub-workflows are executions of their
own: their usage is in their own accounts, not in those of their callers.

The store adds up the usage; words are stored beside the memory tiers, under a scope that no memory node can name.
Everything can be rebuilt from the journals while they exist; usage outlives a deleted execution.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec
from msgspec import structs
from typing_extensions import TypedDict

from pointsman.auth.redaction import Redactor, redactor_for
from pointsman.background import BackgroundRound
from pointsman.context import AppContext
from pointsman.engine.events import steps as events
from pointsman.engine.reports import Usage
from pointsman.engine.state import ENDED, ExecutionState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.executions.deletion import ALL, SEARCH_SCOPE, summaries
from pointsman.executions.views import observability_of, status_shown
from pointsman.ports import ModelReply, Row
from pointsman.runtime.local import UnknownExecution
from pointsman.store.api import Store
from pointsman.store.records import (
    ENTRY_MAX,
    MICROS,
    NANOS,
    About,
    ExecutionQuery,
    Summary,
    UsageAmounts,
    UsageName,
    UsagePosition,
    UsageQuery,
    UsageRecord,
)
from pointsman.store.remembered_values import texts, words_of
from pointsman.values import ExecutionId, Instant, Json

CURSOR: Final = ("history", "cursor")
LATE_S: Final = 60.0
"""How late a row may become visible after its time, in seconds."""
LOOKS_S: Final = 30.0
"""Seconds between the leader's looks for ended executions."""
WORDS_MAX: Final = 5_000
"""At most this many words of one execution are indexed."""
RANKED: Final = 500
"""A search examines this many of the best matches."""
PAGE: Final = 500

Dimension: TypeAlias = Literal["day", "workflow", "node", "model", "key", "user", "execution"]
DIMENSIONS: Final[tuple[Dimension, ...]] = get_args(Dimension)
NAMES: Final[Mapping[Dimension, UsageName]] = {one: "owner" if one == "user" else one for one in DIMENSIONS}
"""Names of the dimensions in stores."""
Sees: TypeAlias = Callable[[str, int], Awaitable[bool]]
"""Whether the caller may see what a revision of a workflow cost."""
VisibilityCheck: TypeAlias = Callable[[str], Awaitable[bool]]
"""Whether the caller may see an execution and its starter."""


STANDING: Final = frozenset({"waiting", "paused", "interrupted"})
"""Statuses in which an execution stands still without having ended."""


class PeriodInvalid(CallerError):
    """A value that should be a day is not one."""

    code: ClassVar[str] = "period-invalid"


class UsageAudience(NamedTuple):
    """The rights of a caller with limited access."""

    workflow: Sees
    execution: VisibilityCheck
    listed: Callable[[Summary], Awaitable[bool]]
    """Whether the caller may see an execution, judged by its summary alone: its owner and its workflow."""


class UsageDimensions(TypedDict, total=False):
    """The names by which usage is grouped."""

    day: str
    workflow: str
    node: str
    model: str
    key: str
    user: str
    execution: str


class UsageRow(UsageDimensions):
    """Usage of one group of steps."""

    steps: int
    retries: int
    failures: int
    cached: int
    seconds: float
    modelCalls: int
    toolCalls: int
    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    costUsd: float | None
    """Cost of the calls whose price is known; null: no price is known."""
    unpricedCalls: int
    """Calls of models whose price is unknown."""
    scriptedCalls: int
    """Calls of the scripted model, which costs nothing."""


class UsageRollup:
    """Usage and search index of one installation."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._redact: Redactor = redactor_for(app.settings)

    async def catch_up(self) -> int:
        """Read executions that ended since the last call and return their number. Safe to repeat and to run
        concurrently."""
        return await self._catch_up(self._app.store)

    async def _caught_up(self) -> list[Store]:
        """Catch up, and return the stores that hold usage and words.

        If the store is read-only, a second one in memory holds those of executions that nothing has counted yet. An
        execution that ended again after it was counted stays as it was counted.
        """
        store = self._app.store
        if not store.read_only:
            await self.catch_up()
            return [store]
        from pointsman.store.memory import MemoryStore  # Imported late: few stores are read-only.

        late = MemoryStore()
        await self._catch_up(late)
        return [store, late]

    async def _catch_up(self, into: Store) -> int:
        now = self._app.clock.now()
        cursor = await self._app.store.entries.find(*CURSOR)
        since = float(cursor.value) if cursor is not None and isinstance(cursor.value, int | float) else 0.0
        query = ExecutionQuery(statuses=ENDED, since=Instant(since - LATE_S) if since else None, limit=PAGE)
        count = 0
        async for summary in summaries(self._app, query):
            try:
                count += await self._take_in(summary, into)
            except UnknownExecution:
                continue  # It was deleted a moment ago.
            await asyncio.sleep(0)  # Running executions in this process take precedence.
        # A running execution stands still if its process is gone, which changes no row of it.
        running = ExecutionQuery(statuses=frozenset({"running"}), limit=PAGE)
        for one in (structs.replace(query, statuses=STANDING), running):
            async for summary in summaries(self._app, one):
                if status_shown(summary.status, summary.worker) != "running":
                    with suppress(UnknownExecution):
                        await self._note_words(summary, into)
                    await asyncio.sleep(0)
        await into.entries.put(*CURSOR, now)
        return count

    async def rebuild(self) -> int:
        """Read all existing executions again and return their number."""
        await self._app.store.memory.forget(SEARCH_SCOPE, ALL)
        await self._app.store.entries.delete(*CURSOR)
        return await self.catch_up()

    async def usage(
        self,
        by: Collection[Dimension] = ("workflow",),
        *,
        since: str = "",
        until: str = "",
        of: Mapping[Dimension, str] | None = None,
        sees: UsageAudience | None = None,
    ) -> list[UsageRow]:
        """Return the usage, most expensive first. `since` and `until` are days (UTC), both included; `of` keeps only
        the rows with the given names."""
        for day in (since, until):
            check_day(day)
        stores = await self._caught_up()
        dimensions: list[Dimension] = [one for one in DIMENSIONS if one in by]
        query = UsageQuery(
            by=tuple(NAMES[dimension] for dimension in dimensions),
            since=since,
            until=until,
            of={NAMES[one]: value for one, value in (of or {}).items()},
        )
        rows = [_row(dimensions, about, taken) for about, taken in await self._sums(query, sees, stores)]
        return sorted(rows, key=lambda row: (-(row["costUsd"] or 0.0), -row["seconds"], str(row)))

    async def search(self, text: str, *, sees: Callable[[Summary], Awaitable[bool]], limit: int = 50) -> list[Summary]:
        """Return executions whose inputs, outputs or errors contain all these words: of the best matches, the newest
        first."""
        wanted = set(words_of(text))
        ranked: dict[str, Json] = {}
        for store in await self._caught_up():
            ranked |= await store.memory.search(SEARCH_SCOPE, ALL, text, limit=RANKED)
        summaries: list[Summary] = []
        for name, value in ranked.items():
            if isinstance(value, dict) and wanted <= set(str(value["words"]).split()):
                summary = await self._app.store.executions.find(ExecutionId(name))
                if summary is not None and await sees(summary):
                    summaries.append(summary)
        summaries.sort(key=lambda one: (one.started, one.execution), reverse=True)
        return summaries[:limit]

    async def _sums(
        self, query: UsageQuery, sees: UsageAudience | None, stores: Sequence[Store]
    ) -> list[tuple[About, UsageAmounts]]:
        """Add up usage. A caller with limited access gets only the revisions they may see, and of rows about single
        executions or users only the executions they may see."""
        if sees is None:
            return await _sums_of(stores, query)
        whose: tuple[UsageName, ...] = ("workflow", "revision")
        if query.of_executions:
            whose = (*whose, "execution")
        apart = structs.replace(query, by=(*whose, *query.by))
        visibility: dict[About, bool] = {}
        sums: dict[About, UsageAmounts] = {}
        for about, taken in await _sums_of(stores, apart):
            one, rest = about[: len(whose)], about[len(whose) :]
            if one not in visibility:
                visibility[one] = await _is_visible(sees, one)
            if visibility[one]:
                sums.setdefault(rest, UsageAmounts()).add(taken)
        return [*sums.items()]

    async def _take_in(self, summary: Summary, into: Store) -> bool:
        name = summary.execution
        entry = await self._app.store.memory.get(SEARCH_SCOPE, ALL, name)
        counted = entry.get("at") if isinstance(entry, dict) else None
        if counted == summary.updated or (counted is not None and into is not self._app.store):
            return False
        state = await self._app.runtime.load(name)
        account = await account_of(self._app.store, name)
        for taking in _takings(summary, account):
            await into.usage.put(taking)
        await into.memory.put(SEARCH_SCOPE, ALL, name, {"at": summary.updated, "words": self._words(state)})
        return True

    async def _note_words(self, summary: Summary, into: Store) -> None:
        """Index the words of an execution that stands still but has not ended. Its usage still grows, so it is not
        counted."""
        name = summary.execution
        entry = await self._app.store.memory.get(SEARCH_SCOPE, ALL, name)
        if not isinstance(entry, dict) or entry.get("stood") != summary.updated:
            state = await self._app.runtime.load(name)
            await into.memory.put(SEARCH_SCOPE, ALL, name, {"stood": summary.updated, "words": self._words(state)})

    def _words(self, state: ExecutionState) -> str:
        """Return the words to index; none for the redaction level `minimal`."""
        if observability_of(state.setup.options) == "minimal":
            return ""
        failure = None if state.outcome.failure is None else [state.outcome.failure.code, state.outcome.failure.message]
        redacted = self._redact(
            {"input": state.setup.input, "output": state.outcome.output, "error": [*failure] if failure else None}
        )
        return " ".join(words_of(" ".join(text for value in redacted.values() for text in texts(value)))[:WORDS_MAX])


async def _sums_of(stores: Sequence[Store], query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
    sums: dict[About, UsageAmounts] = {}
    for store in stores:
        for about, taken in await store.usage.sums(query):
            sums.setdefault(about, UsageAmounts()).add(taken)
    return [*sums.items()]


async def _is_visible(sees: UsageAudience, about: About) -> bool:
    """Return whether the caller may see a workflow's revision, and the execution if `about` names one."""
    workflow, revision, *execution = about
    if not await sees.workflow(str(workflow), int(revision)):
        return False
    return not execution or await sees.execution(str(execution[0]))


def _takings(summary: Summary, account: ExecutionUsage) -> list[UsageRecord]:
    return [
        UsageRecord(
            day=day,
            execution=summary.execution,
            workflow=summary.workflow,
            revision=summary.revision,
            owner=summary.owner,
            entries=tuple((place, _bounded(entry)) for place, entry in entries.items()),
        )
        for day, entries in account.days.items()
    ]


def _bounded(amounts: UsageAmounts) -> UsageAmounts:
    return UsageAmounts(*(min(amount, ENTRY_MAX) for amount in structs.astuple(amounts)))


def _row(by: Sequence[str], about: About, amounts: UsageAmounts) -> UsageRow:
    return {
        **cast("UsageDimensions", dict(zip(by, about, strict=True))),
        "steps": amounts.steps,
        "retries": amounts.retries,
        "failures": amounts.failures,
        "cached": amounts.cached,
        "seconds": round(amounts.micros / MICROS, 3),
        "modelCalls": amounts.model_calls,
        "toolCalls": amounts.tool_calls,
        "inputTokens": amounts.input_tokens,
        "outputTokens": amounts.output_tokens,
        "cacheReadTokens": amounts.cache_read_tokens,
        "costUsd": round(amounts.nanos / NANOS, 6) if amounts.priced_calls else None,
        "unpricedCalls": amounts.unpriced_calls,
        "scriptedCalls": amounts.scripted_calls,
    }


def check_day(day: str) -> None:
    """Raises `PeriodInvalid`."""
    try:
        if day and date.fromisoformat(day).isoformat() != day:
            raise ValueError(day)
    except ValueError:
        raise PeriodInvalid(f"{day[:40]!r} is not a date", hint="Write it as 2026-11-21.") from None


class UsageRollupJob:
    """Periodic job of the leader: counts ended executions in the background."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._looked = 0.0
        self._round = BackgroundRound()

    async def next_due(self) -> float | None:
        """Return when the next round is due; None: history is switched off."""
        return self._looked + LOOKS_S if self._app.settings.observability.history else None

    async def fire(self, now: float) -> None:
        """Start a round unless one is in progress. Raises the error that broke the last one."""
        if self._round.begin(UsageRollup(self._app).catch_up):
            self._looked = now

    async def close(self) -> None:
        """Stop; the next leader counts what is left."""
        await self._round.close()


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
        self.days: dict[str, dict[UsagePosition, UsageAmounts]] = {}
        self._begun: dict[Step, float] = {}
        self._ended: dict[str, tuple[str, UsagePosition]] = {}
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
            taken.add(amounts_of_call(reply.usage, scripted=scripted))

    def call(self, step: str) -> None:
        """Add a tool call."""
        if step in self._ended:
            self._at(*self._ended[step]).tool_calls += 1

    def _at(self, day: str, place: UsagePosition) -> UsageAmounts:
        return self.days.setdefault(day, {}).setdefault(place, UsageAmounts())

    def _begin(self, step: Step, at: float, *, runs: bool) -> None:
        self._ended[str(step)] = day_of(at), UsagePosition(step.node)
        if runs:
            self._begun[step] = at

    def _end(self, step: Step, at: float, amounts: UsageAmounts) -> None:
        day, place = self._ended[str(step)] = day_of(at), UsagePosition(step.node)
        since = self._begun.pop(step, None)
        amounts.micros = 0 if since is None else round((at - since) * MICROS)
        self._at(day, place).add(amounts)


def amounts_of_call(usage: Usage, *, scripted: bool) -> UsageAmounts:
    """Return the usage of one model call."""
    amounts = UsageAmounts(
        model_calls=1,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
    )
    if scripted:
        amounts.scripted_calls = 1
    elif usage.cost_usd is None:
        amounts.unpriced_calls = 1
    else:
        amounts.priced_calls, amounts.nanos = 1, round(usage.cost_usd * NANOS)
    return amounts


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
