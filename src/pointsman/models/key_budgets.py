"""Daily budgets of keys: counts usage per key and day, in this process or in a shared store.

    key ─▶ budget of today used up? ─ yes ─▶ the key rests; its calls go to the next key
              └─ no ─▶ the call ─▶ add its usage

Days are in UTC. A started call is always finished, so that concurrent calls may exceed the budget a little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import Struct

from pointsman.engine.failures import Failure
from pointsman.engine.reports import Usage

DAY_S: Final = 86_400
BUDGET_SPENT: Final = "model-key-budget-spent"


class KeySpending(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Usage of one key on one day."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def with_(self, usage: Usage) -> KeySpending:
        tokens = usage.input_tokens + usage.output_tokens
        return KeySpending(calls=self.calls + 1, tokens=self.tokens + tokens, usd=self.usd + (usage.cost_usd or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class DayLimit:
    """Daily budget of one key. None is unlimited."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None

    def reached(self, spent: KeySpending) -> str:
        """Return what is used up, as text; empty: nothing."""
        if self.calls is not None and spent.calls >= self.calls:
            return f"{spent.calls} of {self.calls} calls"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"{spent.tokens} of {self.tokens} tokens"
        if self.usd is not None and spent.usd >= self.usd:
            return f"${spent.usd:.4f} of ${self.usd:g}"
        return ""


class Spending(Protocol):
    """Store of the usage of keys, shared by all processes. Identifies keys by number only."""

    async def spent(self, provider: str, key: int, day: int) -> KeySpending:
        """Return the usage of a key. `day`: days since 1970-01-01, UTC."""
        ...

    async def add(self, provider: str, key: int, day: int, usage: Usage) -> None: ...


class SpendingHere:
    """Usage of keys in this process; keeps only the last day of each key."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[int, KeySpending]] = {}

    async def spent(self, provider: str, key: int, day: int) -> KeySpending:
        kept, spent = self._known.get((provider, key), (day, KeySpending()))
        return spent if kept == day else KeySpending()

    async def add(self, provider: str, key: int, day: int, usage: Usage) -> None:
        self._known[provider, key] = day, (await self.spent(provider, key, day)).with_(usage)


def today() -> int:
    return int(time.time()) // DAY_S


class Days:
    """Budgets and usage of keys today. A key without a limit is counted in this process only."""

    def __init__(self, spending: Spending | None = None, today: Callable[[], int] = today) -> None:
        """`spending` stores the usage; None: in this process only."""
        self._here = SpendingHere()
        self._spending: Spending = spending or self._here
        self._today = today

    async def refusal(self, provider: str, key: int, limit: DayLimit | None) -> Failure | None:
        """Return why a key must not be used again today; None: it may."""
        what = "" if limit is None else limit.reached(await self._spending.spent(provider, key, self._today()))
        return spent_today(provider, key, what) if what else None

    async def paid(self, provider: str, key: int, limit: DayLimit | None, usage: Usage) -> None:
        """Add the usage of a call."""
        counted = self._here if limit is None else self._spending
        await counted.add(provider, key, self._today(), usage)

    async def paid_for(self, provider: str, key: int, limit: DayLimit | None) -> KeySpending:
        """Return today's usage of a key: in all processes if it has a limit, else in this one."""
        counted = self._here if limit is None else self._spending
        return await counted.spent(provider, key, self._today())

    def anew_at(self) -> float:
        """Return the start of the next day, in Unix seconds."""
        return (self._today() + 1.0) * DAY_S


def spent_today(provider: str, key: int, what: str) -> Failure:
    """Return the failure of a key whose daily budget is used up."""
    message = f"key {key} of {provider!r} has used its budget of today (UTC): {what}"
    hint = f"Raise `day` under [providers.{provider}], add keys, or continue tomorrow: `pointsman retry`."
    return Failure(code=BUDGET_SPENT, message=message, hint=hint)
