"""Keys of model providers: their state and usage, which all processes of a store share.

    the pool of this process ─▶ free, pausing, busy, cooling, refused, spent; open calls
    the store                ─▶ usage of keys with a daily limit, leases, and rests of shared keys

One entry of the store per provider contains the time when the provider, and each of its keys, may be used next. A
process that takes a lease advances these times by a conditional write, which fails if another process was faster. The
clocks of the machines must agree about as precisely as the pacing requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.engine.reports import Usage
from pointsman.errors import sentences
from pointsman.models.failures import ModelUnusable
from pointsman.models.key_pool import DayLimit, Days, KeyLease, KeyPool, KeySpending, KeyState
from pointsman.models.provider import FROM_ENVIRONMENT, HANDLE, KINDS, Provider, ProviderSettings
from pointsman.operations.model_connections import connected_records
from pointsman.ports import Clock
from pointsman.store.api import Store
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ConfigEntry
from pointsman.workflows.models import provider_for

LIMITED: Final = "model-rate-limited"
BUDGET: Final = "model-key-budget-spent"


class KeySpendingView(TypedDict):
    """The usage of a key since midnight (UTC)."""

    calls: int
    tokens: int
    costUsd: float


class KeyLimitView(TypedDict):
    """The daily limit of a key (UTC); null: unlimited."""

    calls: int | None
    tokens: int | None
    costUsd: float | None


class ModelKeyView(TypedDict):
    """A key and its state in the process that answers. The value of the key is not included."""

    id: str
    """As usage names it."""
    name: str | None
    """The variable or handle it is read from, or `settings`; null: the provider takes no key."""
    condition: Literal["free", "pausing", "busy", "cooling", "refused", "spent"]
    """`pausing`: paced. `busy`: the maximum number of calls is open. `cooling`: rate-limited. `refused`: the provider
    rejects it, or its quota is used up. `spent`: its daily limit is reached."""
    until: float | None
    """When the condition ends, if known."""
    why: str | None
    """Error code of the failure that caused the condition."""
    open: int
    """Open calls of this process."""
    calls: int
    """Calls since this process started."""
    usedAt: float | None
    failed: str | None
    """Error code of the last failed call."""
    failedAt: float | None
    today: KeySpendingView
    """With a daily limit, the usage of all processes; else of this process."""
    mostToday: KeyLimitView | None


class ProviderKeysView(TypedDict):
    """A provider, the pacing of its calls, and its keys."""

    name: str
    missing: str | None
    """Why the provider cannot be called; null: it can."""
    strategy: Literal["fixed", "rotation"]
    interval: float
    """Minimum seconds between two calls."""
    keyInterval: float
    """Minimum seconds between two calls with one key."""
    concurrency: int | None
    """Maximum number of open calls of one key."""
    callsMax: int | None
    """Maximum number of calls of one key in one process."""
    shared: bool
    """Pacing and rests are shared with other processes."""
    waiting: int
    """Calls of this process that wait for a key."""
    keys: list[ModelKeyView]


class ModelKeys(TypedDict):
    """The keys of all model providers."""

    providers: list[ProviderKeysView]
    at: float
    """Time of the server."""
    beginsAnew: float
    """When the next day (UTC) begins."""
    shared: bool
    """Other processes may use the store; each counts its own open calls."""


async def model_keys(app: AppContext) -> ModelKeys:
    """Return every provider that may be called, with its keys. Values of keys are not included, nor
    any part of them."""
    days = app.services.models.days
    pools = app.services.models.pools()
    settings = app.settings
    connected = {name: one.settings for name, one in connected_records(app).items()}
    by_key = {name: ProviderSettings(kind=name) for name in settings.providers_by_key()}
    configured = connected | by_key | settings.providers
    unlisted = {name: ProviderSettings(kind=name) for name in pools.keys() & KINDS.keys()}
    providers = [
        await _provider(app, name, value, pools.get(name), days) for name, value in (unlisted | configured).items()
    ]
    providers += [
        await _unknown(app, name, pool, days) for name, pool in pools.items() if name not in unlisted | configured
    ]
    return {"providers": providers, "at": app.clock.now(), "beginsAnew": days.anew_at(), "shared": app.store.shared}


async def _provider(
    app: AppContext, name: str, settings: ProviderSettings, pool: KeyPool | None, days: Days
) -> ProviderKeysView:
    provider, missing = provider_for(app.settings, name, settings), None
    try:
        provider = provider.resolved(name)
    except ModelUnusable as why:
        missing = sentences(str(why), why.hint)
    pool = pool or KeyPool(name, keys=len(provider.keys), pacing=provider.pacing)
    rests = await StoredKeyLeases(app.store, app.clock).rests(name) if settings.shared else {}
    names = _names(settings, provider)
    keys: list[ModelKeyView] = []
    for state in pool.look() if missing is None else ():
        paid = await days.paid_for(name, state.number, provider.day)
        key = names[state.number]
        keys.append(_key(app, name, key, state, paid, provider.day, days.anew_at(), rests.get(state.number)))
    return _provider_view(name, settings, pool, keys, missing)


async def _unknown(app: AppContext, name: str, pool: KeyPool, days: Days) -> ProviderKeysView:
    """Return a provider that was called but is not configured here: its own client reads the credentials."""
    keys: list[ModelKeyView] = []
    for state in pool.look():
        paid = await days.paid_for(name, state.number, None)
        keys.append(_key(app, name, None, state, paid, None, 0.0, None))
    return _provider_view(name, ProviderSettings(), pool, keys, None)


def _provider_view(
    name: str, settings: ProviderSettings, pool: KeyPool, keys: list[ModelKeyView], missing: str | None
) -> ProviderKeysView:
    return {
        "name": name,
        "missing": missing,
        "strategy": settings.strategy,
        "interval": settings.interval.seconds,
        "keyInterval": settings.key_interval.seconds,
        "concurrency": settings.concurrency,
        "callsMax": settings.calls_max,
        "shared": settings.shared,
        "waiting": pool.waiting,
        "keys": keys,
    }


def _names(settings: ProviderSettings, provider: Provider) -> list[str | None]:
    """Return the display name of each key: the variable or handle it is read from, or `settings`; None if it has no
    name."""
    if settings.keys:
        return [key if key.startswith((FROM_ENVIRONMENT, HANDLE)) else "settings" for key in settings.keys]
    variable = provider.key_variable() if provider.keys else None
    return [None if variable is None else f"{FROM_ENVIRONMENT}{variable}"]


def _key(
    app: AppContext,
    provider: str,
    name: str | None,
    state: KeyState,
    paid: KeySpending,
    limit: DayLimit | None,
    anew_at: float,
    rests_until: float | None,
) -> ModelKeyView:
    now = app.clock.now()
    condition, why = state.condition, state.why
    until = None if state.for_s is None else now + state.for_s
    if limit is not None and limit.reached(paid):
        condition, why, until = "spent", BUDGET, anew_at
    elif rests_until is not None and condition in ("free", "pausing", "busy", "cooling"):
        condition, why, until = "cooling", LIMITED, max(rests_until, until or 0.0)
    return {
        "id": f"{provider}/{state.number}",
        "name": name,
        "condition": condition,
        "until": until,
        "why": why or None,
        "open": state.open,
        "calls": state.calls,
        "usedAt": None if state.used_ago_s is None else now - state.used_ago_s,
        "failed": state.failed or None,
        "failedAt": None if state.failed_ago_s is None else now - state.failed_ago_s,
        "today": {"calls": paid.calls, "tokens": paid.tokens, "costUsd": round(paid.usd, 6)},
        "mostToday": None if limit is None else {"calls": limit.calls, "tokens": limit.tokens, "costUsd": limit.usd},
    }


LEASES: Final = "key-turns"
AHEAD_S: Final = 60.0
"""Maximum distance of a lease in the future, in addition to the interval: processes hold one lease each. A later time
was written by a clock that runs ahead."""


class ProviderState(Struct, frozen=True, omit_defaults=True):
    """Pacing state of a provider. Times are unix seconds; the dictionaries' keys are numbers of API keys, as text."""

    next: float = 0.0
    """When the provider may be called again, with any key."""
    keys: Mapping[str, float] = field(default_factory=dict[str, float])
    """When each key may be used again."""
    rests: Mapping[str, float] = field(default_factory=dict[str, float])
    """Until when each rate-limited key rests."""

    def as_of(self, now: float, *, ahead_s: float) -> ProviderState:
        """Return the state without expired times and those that only a clock that runs ahead can have written."""
        keys = {name: at for name, at in self.keys.items() if now < at <= now + ahead_s}
        rests = {name: at for name, at in self.rests.items() if now < at}
        return ProviderState(self.next if self.next <= now + ahead_s else now, keys, rests)


class StoredKeyLeases:
    """Key leases that are kept in the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._entries = store.entries
        self._clock = clock

    async def take(self, provider: str, key: int, *, interval_s: float, key_interval_s: float) -> KeyLease:
        """Take a lease. Retries if another process took one meanwhile."""
        name = str(key)
        while True:
            standing, version = await self._stored_state(provider)
            now = self._clock.now()
            current = standing.as_of(now, ahead_s=AHEAD_S + max(interval_s, key_interval_s))
            at = max(now, current.next)
            if max(current.keys.get(name, now), current.rests.get(name, now)) > at:
                return _not_yet(current, now)
            taken = replace(current, next=at + interval_s, keys={**current.keys, name: at + key_interval_s})
            if await self._store_state(provider, taken, version):
                return KeyLease(granted=True, wait_s=at - now)

    async def rest(self, provider: str, key: int, seconds: float) -> None:
        """Let a key rest. A longer rest that is already stored is not shortened."""
        while True:
            standing, version = await self._stored_state(provider)
            now, name = self._clock.now(), str(key)
            until = now + seconds
            if standing.rests.get(name, now) >= until:
                return
            if await self._store_state(provider, replace(standing, rests={**standing.rests, name: until}), version):
                return

    async def rests(self, provider: str) -> dict[int, float]:
        """Return until when each rate-limited key rests, whichever process was limited; unix seconds."""
        standing, _ = await self._stored_state(provider)
        now = self._clock.now()
        return {int(name): at for name, at in standing.rests.items() if at > now}

    async def _stored_state(self, provider: str) -> tuple[ProviderState, int]:
        entry = await self._entries.find(LEASES, provider)
        return (ProviderState(), 0) if entry is None else (msgspec.convert(entry.value, ProviderState), entry.version)

    async def _store_state(self, provider: str, standing: ProviderState, version: int) -> bool:
        """Write the state. Return False if another process was faster."""
        try:
            await self._entries.put(LEASES, provider, msgspec.to_builtins(standing), after=version)
        except EntryMoved:
            return False
        return True


def _not_yet(standing: ProviderState, now: float) -> KeyLease:
    return KeyLease(
        granted=False,
        ready_in_s={int(name): at - now for name, at in standing.keys.items()},
        rests_s={int(name): at - now for name, at in standing.rests.items()},
    )


SPENDING: Final = "key-spending"


class StoredKeySpending:
    """Usage per key and day. There is one entry per key, which the next day replaces, so that the
    store does not grow."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def spent(self, provider: str, key: int, day: int) -> KeySpending:
        return _of(await self._store.entries.find(SPENDING, _name(provider, key)), day)

    async def add(self, provider: str, key: int, day: int, usage: Usage) -> None:
        """Add usage. Retries if another process added meanwhile."""
        while True:
            entry = await self._store.entries.find(SPENDING, _name(provider, key))
            total = _of(entry, day).with_(usage)
            try:
                await self._store.entries.put(
                    SPENDING,
                    _name(provider, key),
                    {"day": day, "spent": msgspec.to_builtins(total)},
                    after=0 if entry is None else entry.version,
                )
            except EntryMoved:
                continue
            return


def _name(provider: str, key: int) -> str:
    return f"{provider}/{key}"


def _of(entry: ConfigEntry | None, day: int) -> KeySpending:
    value = None if entry is None else entry.value
    if not isinstance(value, dict) or value.get("day") != day:
        return KeySpending()
    return msgspec.convert(value.get("spent"), KeySpending)
