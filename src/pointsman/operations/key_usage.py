"""Key usage: the keys of each model provider by name, their present state, and their usage of today.

the pool of this process ─▶ free, pausing, busy, cooling, refused, spent; open calls
the store                ─▶ usage of keys with a daily limit, and rests of shared keys
"""

from __future__ import annotations

from typing import Final

from pointsman.context import AppContext
from pointsman.errors import sentences
from pointsman.models.failures import ModelUnusable
from pointsman.models.key_budgets import DayLimit, Days, KeySpending
from pointsman.models.key_pool import KeyPool, KeyState
from pointsman.models.provider import FROM_ENVIRONMENT, HANDLE, Provider, ProviderSettings
from pointsman.models.provider_kinds import KINDS
from pointsman.operations.key_leases import KeptTurns
from pointsman.values import Json, JsonObject
from pointsman.workflows.model_setup import provider_for

LIMITED: Final = "model-rate-limited"
BUDGET: Final = "model-key-budget-spent"


async def payers(app: AppContext) -> JsonObject:
    """Return every provider that may be called, with its keys. Values of keys are not included, nor
    any part of them."""
    days = app.services.models.days
    pools = app.services.models.pools()
    settings = app.settings
    named = {name: ProviderSettings(kind=name) for name in settings.providers_by_key()} | settings.providers
    asked = {name: ProviderSettings(kind=name) for name in pools.keys() & KINDS.keys()}
    told: list[Json] = [await _provider(app, name, one, pools.get(name), days) for name, one in (asked | named).items()]
    told += [await _unknown(app, name, pool, days) for name, pool in pools.items() if name not in asked | named]
    return {"providers": told, "at": app.clock.now(), "beginsAnew": days.anew_at(), "shared": app.store.shared}


async def _provider(app: AppContext, name: str, one: ProviderSettings, pool: KeyPool | None, days: Days) -> JsonObject:
    provider, missing = provider_for(app.settings, name, one), None
    try:
        provider = provider.resolved(name)
    except ModelUnusable as why:
        missing = sentences(str(why), why.hint)
    pool = pool or KeyPool(name, keys=len(provider.keys), pacing=provider.pacing)
    rests = await KeptTurns(app.store, app.clock).rests(name) if one.shared else {}
    names = _names(one, provider)
    keys: list[Json] = []
    for state in pool.look() if missing is None else ():
        paid = await days.paid_for(name, state.number, provider.day)
        standing = _standing(app, state, paid, provider.day, days.anew_at(), rests.get(state.number))
        keys.append({"id": f"{name}/{state.number}", "name": names[state.number], **standing})
    return _told(name, one, pool, keys, missing)


async def _unknown(app: AppContext, name: str, pool: KeyPool, days: Days) -> JsonObject:
    """Return a provider that was called but is not configured here: its own client reads the credentials."""
    keys: list[Json] = []
    for state in pool.look():
        paid = await days.paid_for(name, state.number, None)
        keys.append({"id": f"{name}/{state.number}", "name": None, **_standing(app, state, paid, None, 0.0, None)})
    return _told(name, ProviderSettings(), pool, keys, None)


def _told(name: str, one: ProviderSettings, pool: KeyPool, keys: list[Json], missing: str | None) -> JsonObject:
    return {
        "name": name,
        "missing": missing,
        "strategy": one.strategy,
        "interval": one.interval.seconds,
        "keyInterval": one.key_interval.seconds,
        "concurrency": one.concurrency,
        "callsMax": one.calls_max,
        "shared": one.shared,
        "waiting": pool.waiting,
        "keys": keys,
    }


def _names(one: ProviderSettings, provider: Provider) -> list[str | None]:
    """Return the display name of each key: the variable or handle it is read from, or `settings`; None if it has no
    name."""
    if one.keys:
        return [key if key.startswith((FROM_ENVIRONMENT, HANDLE)) else "settings" for key in one.keys]
    variable = provider.key_variable() if provider.keys else None
    return [None if variable is None else f"{FROM_ENVIRONMENT}{variable}"]


def _standing(
    app: AppContext,
    state: KeyState,
    paid: KeySpending,
    limit: DayLimit | None,
    anew_at: float,
    rests_until: float | None,
) -> JsonObject:
    now = app.clock.now()
    condition, why = state.condition, state.why
    until = None if state.for_s is None else now + state.for_s
    if limit is not None and limit.reached(paid):
        condition, why, until = "spent", BUDGET, anew_at
    elif rests_until is not None and condition in ("free", "pausing", "busy", "cooling"):
        condition, why, until = "cooling", LIMITED, max(rests_until, until or 0.0)
    return {
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
