"""What each key has paid for today, and how much it may: kept by whoever keeps it, counted here.

    key ─▶ paid for enough today? ─ yes ─▶ it rests; its calls go to the next key
              └─ no ─▶ the call ─▶ add what it cost

Days are those of UTC. A call that has begun is finished: what is open at once may go a little beyond.
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
    """What one key paid for on one day."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def with_(self, usage: Usage) -> KeySpending:
        tokens = usage.input_tokens + usage.output_tokens
        return KeySpending(calls=self.calls + 1, tokens=self.tokens + tokens, usd=self.usd + (usage.cost_usd or 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class DayLimit:
    """What one key may pay for on one day. None is unlimited."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None

    def reached(self, spent: KeySpending) -> str:
        """What is used up, in words; empty: nothing is."""
        if self.calls is not None and spent.calls >= self.calls:
            return f"{spent.calls} of {self.calls} calls"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"{spent.tokens} of {self.tokens} tokens"
        if self.usd is not None and spent.usd >= self.usd:
            return f"${spent.usd:.4f} of ${self.usd:g}"
        return ""


class Spending(Protocol):
    """Remembers what keys paid for, for every process of an installation. Keys are known by their numbers alone."""

    async def spent(self, provider: str, key: int, day: int) -> KeySpending:
        """`day`: days since 1970, UTC."""
        ...

    async def add(self, provider: str, key: int, day: int, usage: Usage) -> None: ...


class SpendingHere:
    """Remembers for this process alone; of each key the last day on which it paid."""

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
    """What keys may pay for today, and have paid for. A key without a limit is counted for this process alone."""

    def __init__(self, spending: Spending | None = None, today: Callable[[], int] = today) -> None:
        """Without `spending`: for this process alone."""
        self._here = SpendingHere()
        self._spending: Spending = spending or self._here
        self._today = today

    async def refusal(self, provider: str, key: int, limit: DayLimit | None) -> Failure | None:
        """Why a key pays for no further call today; None: it does."""
        what = "" if limit is None else limit.reached(await self._spending.spent(provider, key, self._today()))
        return spent_today(provider, key, what) if what else None

    async def paid(self, provider: str, key: int, limit: DayLimit | None, usage: Usage) -> None:
        """A call was made with it."""
        counted = self._here if limit is None else self._spending
        await counted.add(provider, key, self._today(), usage)

    async def paid_for(self, provider: str, key: int, limit: DayLimit | None) -> KeySpending:
        """What it paid for today: in all processes where it has a limit, else in this one."""
        counted = self._here if limit is None else self._spending
        return await counted.spent(provider, key, self._today())

    def anew_at(self) -> float:
        """When the next day begins, in unix seconds."""
        return (self._today() + 1.0) * DAY_S


def spent_today(provider: str, key: int, what: str) -> Failure:
    """Why a key pays for no more."""
    message = f"key {key} of {provider!r} has paid for {what} that it may pay for today (UTC)"
    hint = f"Raise `day` under [providers.{provider}], add keys, or go on tomorrow: `pointsman retry`."
    return Failure(code=BUDGET_SPENT, message=message, hint=hint)
