"""History: what executions cost, added up, and the words by which they are found again. Taken in when they end.

    what ended since the last look ─▶ its account  ─▶ usage   by day, workflow, node, model, key, user, execution
                                   └▶ its words    ─▶ search  in inputs, outputs, errors; not of `minimal` ones

It lies in the store beside the memory tiers, under scopes that no memory node can name. Everything can be made again
from the journals, as long as they are there; what was spent stays in the tables after an execution is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from pointsman.app.bulletins import observability_of
from pointsman.app.observing.accounts import ALL, FOUND, SCRIPTED, USAGE, Account, Place, Taken, account_of, summed
from pointsman.app.observing.counting import count_spent
from pointsman.app.observing.redacting import Redactor, redactor_for
from pointsman.app.storage.deletion import summaries
from pointsman.engine.state import ENDED, ExecutionState
from pointsman.errors import CallerError
from pointsman.journal.records import ExecutionQuery, Summary
from pointsman.journal.words import texts, words_of
from pointsman.values import ExecutionId, Instant, Json, JsonObject

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman

CURSOR: Final = ("history", "cursor")
LATE_S: Final = 60.0
"""How much later than its time a row may come."""
LOOKS_S: Final = 30.0
"""How often the keeper looks for what has ended."""
WORDS_MAX: Final = 5_000
"""By so many words one execution is found."""
RANKED: Final = 500
"""So many of the best are looked at in one search."""
PAGE: Final = 500
NAMING: Final = frozenset({"user", "execution"})
"""Who asks for these is told of single executions."""

Dimension: TypeAlias = Literal["day", "workflow", "node", "model", "key", "user", "execution"]
DIMENSIONS: Final[tuple[Dimension, ...]] = get_args(Dimension)
Sees: TypeAlias = Callable[[str, int], Awaitable[bool]]
"""Whether somebody may know what a revision of a workflow cost."""
SeesOne: TypeAlias = Callable[[str], Awaitable[bool]]
"""Whether somebody may know of an execution, and of who began it."""


class PeriodInvalid(CallerError):
    """What should be a day is none."""

    code: ClassVar[str] = "period-invalid"


class Kept(msgspec.Struct, omit_defaults=True, array_like=True):
    """What is kept of one execution and day."""

    workflow: str
    revision: int
    entries: list[tuple[Place, Taken]]
    owner: str = ""
    """Who began it; empty: nobody by name, or it was taken in by an earlier release."""


class Told(NamedTuple):
    """Who is told what, where it is not everything for everybody."""

    workflow: Sees
    execution: SeesOne
    listed: Callable[[Summary], Awaitable[bool]]
    """Whether somebody may know of an execution of which only this is known: whose it is, and what it runs on."""


class History:
    """The history of one installation."""

    def __init__(self, app: Pointsman) -> None:
        self._app = app
        self._redact: Redactor = redactor_for(app.settings)

    async def catch_up(self) -> int:
        """Take in what has ended since this was done last; how many executions. Safe to do twice, or by two at once."""
        entries, now = self._app.store.entries, self._app.clock.now()
        cursor = await entries.find(*CURSOR)
        since = float(cursor.value) if cursor is not None and isinstance(cursor.value, int | float) else 0.0
        query = ExecutionQuery(statuses=ENDED, since=Instant(since - LATE_S) if since else None, limit=PAGE)
        count = 0
        async for summary in summaries(self._app, query):
            count += await self._take_in(summary)
            await asyncio.sleep(0)  # Whoever runs executions here comes first.
        await entries.put(*CURSOR, now)
        return count

    async def rebuild(self) -> int:
        """Take in everything again that is still there; how many executions."""
        await self._app.store.memory.forget(FOUND, ALL)
        await self._app.store.entries.delete(*CURSOR)
        return await self.catch_up()

    async def usage(
        self,
        by: Collection[Dimension] = ("workflow",),
        *,
        since: str = "",
        until: str = "",
        of: Mapping[Dimension, str] | None = None,
        sees: Told | None = None,
    ) -> list[JsonObject]:
        """What was taken and paid for, the dearest first. `since` and `until` are days (of UTC), both included; `of`
        leaves out what has another name there."""
        for day in (since, until):
            check_day(day)
        await self.catch_up()
        named: list[Dimension] = [one for one in DIMENSIONS if one in by]
        found = summed([one async for one in self._entries(named, since, until, of or {}, sees)])
        rows = [_row(named, about, taken) for about, taken in found.items()]
        return sorted(rows, key=lambda row: (-_number(row["costUsd"]), -_number(row["seconds"]), str(row)))

    async def search(self, text: str, *, sees: Callable[[Summary], Awaitable[bool]], limit: int = 50) -> list[Summary]:
        """Executions whose inputs, outputs or errors have all these words; of the best ones the newest first."""
        await self.catch_up()
        wanted = set(words_of(text))
        ranked = await self._app.store.memory.search(FOUND, ALL, text, limit=RANKED)
        found: list[Summary] = []
        for name, value in ranked:
            if isinstance(value, dict) and wanted <= set(str(value["words"]).split()):
                summary = await self._app.store.executions.find(ExecutionId(name))
                if summary is not None and await sees(summary):
                    found.append(summary)
        found.sort(key=lambda one: (one.started, one.execution), reverse=True)
        return found[:limit]

    async def _entries(
        self, by: Sequence[Dimension], since: str, until: str, of: Mapping[Dimension, str], sees: Told | None
    ) -> AsyncIterator[tuple[tuple[str, ...], Taken]]:
        async for execution, kept in self._kept(since, until, sees, names=bool(NAMING & {*by, *of})):
            for place, taken in kept.entries:
                about = place._asdict() | {"workflow": kept.workflow, "user": kept.owner, "execution": execution}
                if all(about[name] == wanted for name, wanted in of.items()):
                    yield tuple(str(about[name]) for name in by), _lifted(place, taken)

    async def _kept(self, since: str, until: str, sees: Told | None, *, names: bool) -> AsyncIterator[tuple[str, Kept]]:
        """What is kept, day by day. `names`: single executions are told of."""
        seen: dict[tuple[str, int], bool] = {}
        after = since
        while page := await self._app.store.memory.every(USAGE, ALL, after=after, limit=PAGE):
            for one in page:
                after = one.key
                if until and one.key.partition("/")[0] > until:
                    return
                kept = msgspec.convert(one.value, Kept)
                whose = kept.workflow, kept.revision
                execution = one.key.partition("/")[2]
                if sees is not None and whose not in seen:
                    seen[whose] = await sees.workflow(*whose)
                if sees is None or (seen[whose] and (not names or await sees.execution(execution))):
                    yield execution, kept

    async def _take_in(self, summary: Summary) -> bool:
        memory, name = self._app.store.memory, summary.execution
        known = await memory.get(FOUND, ALL, name)
        if isinstance(known, dict) and known.get("at") == summary.updated:
            return False
        state = await self._app.runtime.load(name)
        account = await account_of(self._app.store, name)
        for day, kept in _by_day(summary, account).items():
            await memory.put(USAGE, ALL, f"{day}/{name}", msgspec.to_builtins(kept))
        await memory.put(FOUND, ALL, name, {"at": summary.updated, "words": self._words(state)})
        return True

    def _words(self, state: ExecutionState) -> str:
        """None of one that tells only the least of itself."""
        if observability_of(state.options) == "minimal":
            return ""
        failure = None if state.failure is None else [state.failure.code, state.failure.message]
        told = self._redact({"input": state.input, "output": state.output, "error": [*failure] if failure else None})
        return " ".join(words_of(" ".join(text for value in told.values() for text in texts(value)))[:WORDS_MAX])


def _by_day(summary: Summary, account: Account) -> dict[str, Kept]:
    found: dict[str, Kept] = {}
    for place, taken in account.entries.items():
        kept = found.setdefault(place.day, Kept(summary.workflow, summary.revision, [], summary.owner))
        kept.entries.append((place, taken))
    return found


def _lifted(place: Place, taken: Taken) -> Taken:
    """As it is counted today: earlier releases took calls of the scripted model for some without a known price."""
    if place.model == SCRIPTED and taken.unpriced_calls:
        return msgspec.structs.replace(taken, scripted_calls=taken.unpriced_calls, unpriced_calls=0)
    return taken


def _row(by: Sequence[str], about: tuple[str, ...], taken: Taken) -> JsonObject:
    return {
        **dict(zip(by, about, strict=True)),
        "steps": taken.steps,
        "retries": taken.retries,
        "failures": taken.failures,
        "cached": taken.cached,
        "seconds": round(taken.seconds, 3),
        "modelCalls": taken.model_calls,
        "toolCalls": taken.tool_calls,
        "inputTokens": taken.input_tokens,
        "outputTokens": taken.output_tokens,
        "cacheReadTokens": taken.cache_read_tokens,
        "costUsd": None if taken.cost_usd is None else round(taken.cost_usd, 6),
        "unpricedCalls": taken.unpriced_calls,
        "scriptedCalls": taken.scripted_calls,
    }


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def check_day(day: str) -> None:
    """Raises `PeriodInvalid`."""
    try:
        if day and date.fromisoformat(day).isoformat() != day:
            raise ValueError(day)
    except ValueError:
        raise PeriodInvalid(f"{day[:40]!r} is no day", hint="Say it as 2026-11-21.") from None


class Chronicler:
    """A chore of the keeper: takes in what ended, beside what it does."""

    def __init__(self, app: Pointsman) -> None:
        self._app = app
        self._looked = 0.0
        self._round: asyncio.Task[None] | None = None

    async def next_due(self) -> float | None:
        """None: no history is kept."""
        return self._looked + LOOKS_S if self._app.settings.observability.history else None

    async def fire(self, now: float) -> None:
        """Begin a round, unless one is under way. Raises what broke the last one."""
        if self._round is not None:
            if not self._round.done():
                return
            ended, self._round = self._round, None
            ended.result()
        self._looked = now
        self._round = asyncio.create_task(self._look())

    async def _look(self) -> None:
        await History(self._app).catch_up()
        await count_spent(self._app)

    async def close(self) -> None:
        """Stop: what is left is taken in by the next one."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)
