"""Key pool of one provider: schedules its keys, first come, first served.

take(index) ─▶ queue of that key ─┬─ the provider paused long enough since its last call    (`interval_s`)
                   queue of any key   ├─ so did the key                                         (`key_interval_s`)
                                      ├─ the key has room for another concurrent call           (`concurrency`)
                                      └─ the key is not resting ─▶ the key's number ─▶ give_back(key)

A key rests after a rate limit or a refusal by the provider. A key that rests for longer than `PATIENCE_S` is skipped:
its calls go to the next key. If none is left, they fail at once, and the failure names the time to wait. A single timer
wakes the next waiter. A pool belongs to one event loop and uses its clock. If other processes use the same keys, each
call is agreed with them first.

Key leases coordinate calls of processes that share keys, one call at a time, through a shared store:

    process A ─ a key is granted here ─▶ take ─┬─▶ `KeyLease`: wait some seconds, then call
    process B ─ …                              └─▶ not granted: the key was used, or rests, elsewhere; choose again

A process requests a lease only when it could call now. A process that dies therefore wastes at most one lease, and
processes alternate.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from random import uniform
from typing import ClassVar, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from pointsman.engine.failures import Failure
from pointsman.engine.reports import Usage
from pointsman.models.failures import ModelFailed
from pointsman.ports import Clock
from pointsman.values import JsonObject

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
        spent_on, spent = self._known.get((provider, key), (day, KeySpending()))
        return spent if spent_on == day else KeySpending()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLease:
    """Answer to a request for a lease."""

    granted: bool
    wait_s: float = 0.0
    """Seconds to wait before the call."""
    ready_in_s: Mapping[int, float] = field(default_factory=dict[int, float])
    """If not granted: seconds until each presently unavailable key may be used."""
    rests_s: Mapping[int, float] = field(default_factory=dict[int, float])
    """If not granted: seconds that each key rests which was rate-limited in another process."""


class KeyLeases(Protocol):
    """Coordinates calls with other processes."""

    async def take(self, provider: str, key: int, *, interval_s: float, key_interval_s: float) -> KeyLease:
        """Request a call; intervals are the minimum seconds since the provider's and the key's last call."""
        ...

    async def rest(self, provider: str, key: int, seconds: float) -> None:
        """Report to other processes that a key was rate-limited, and for how long."""
        ...


PATIENCE_S: Final = 30.0
"""Longest wait for a resting key. Longer waits are left to retries of the step, which survive a restart."""
SPREAD_S: Final = 0.05
"""Maximum random delay between processes that wait for the same key, so that none of them is always last."""
REFUSED_S: Final = 600.0
"""How long a key rests after the provider refused it. It is then tried again, as its access may have been restored."""


class KeysExhausted(ModelFailed):
    """Raised when no key of a provider can be used within `PATIENCE_S`."""

    code: ClassVar[str] = "model-keys-exhausted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """Limits of a provider's calls. Zero and None mean unlimited."""

    interval_s: float = 0.0
    """Seconds between two calls of the provider, with any key."""
    key_interval_s: float = 0.0
    """Seconds between two calls with the same key."""
    concurrency: int | None = None
    """Maximum number of concurrent calls per key."""
    calls_max: int | None = None
    """Maximum number of calls per key while this process lives."""
    rest_s_max: float = 3600.0
    """Upper limit of the rest that the provider requests for a key."""
    rotates: bool = False
    """Whether calls use the keys in turn and ignore `keyIndex`."""


@dataclass(slots=True)
class _Key:
    last: float = -math.inf
    """Time of its last use."""
    calls: int = 0
    open: int = 0
    ready_at: float = -math.inf
    """Until then, another process uses the key."""
    rests_until: float = -math.inf
    why: Failure | None = None
    """The failure that made it rest."""
    failed: str = ""
    """Code of its last failed call."""
    failed_at: float = -math.inf


@dataclass(slots=True, eq=False)
class _Waiter:
    ticket: int
    granted: asyncio.Future[int] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


Condition: TypeAlias = Literal["free", "pausing", "busy", "cooling", "refused", "spent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """State of one key in this process."""

    number: int
    condition: Condition
    """Free; paused, or at its concurrency limit; rate-limited, refused, or out of budget."""
    for_s: float | None
    """Seconds until the condition ends; None: unknown."""
    why: str
    """Code of the failure that made it rest."""
    open: int
    calls: int
    """Calls since this process first used the provider."""
    used_ago_s: float | None
    failed: str
    """Code of its last failed call."""
    failed_ago_s: float | None


class LoopClock:
    """Clock of the running event loop, in seconds; changes of the system time do not affect it."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep_until(self, at: float) -> None:
        await asyncio.sleep(at - self.now())


class KeyPool:
    """Schedules the keys of a provider by number. Does not hold the keys themselves, so it cannot leak them."""

    def __init__(
        self,
        name: str,
        *,
        keys: int,
        pacing: Pacing | None = None,
        clock: Clock | None = None,
        leases: KeyLeases | None = None,
    ) -> None:
        """`name`: the provider, for messages and `leases`. A provider without keys has one nameless key."""
        self._name = name
        self._leases = leases
        self._clock = clock or LoopClock()
        self._pacing = pacing or Pacing()
        self._keys = [_Key() for _ in range(max(keys, 1))]
        self._queues: dict[int | None, deque[_Waiter]] = {}
        self._tickets = count()
        self._last = -math.inf
        self._handing = False
        """A key was granted and its call has not started; the start of that call determines the next grant."""
        self._timer: asyncio.Task[None] | None = None
        self._wakes_at = math.inf

    @property
    def rotates(self) -> bool:
        return self._pacing.rotates

    async def take(self, index: int | None = None) -> int:
        """Wait for a key and return its number, to be given back. `index`: the requested key.

        Raises `KeysExhausted` if no key can be used within `PATIENCE_S`.
        """
        waiter = _Waiter(next(self._tickets))
        while True:
            key = await self._granted(waiter, index)
            if self._leases is None or await self._agreed(self._leases, key):
                break
            # Keep the ticket, and with it the place in the queue.
            waiter = _Waiter(waiter.ticket)
        self._handing = False
        self._last = self._keys[key].last = self._clock.now()
        self._serve()
        return key

    async def _granted(self, waiter: _Waiter, index: int | None) -> int:
        queue = self._queues.setdefault(self._wanted(index), deque())
        if queue and queue[0].ticket > waiter.ticket:
            queue.appendleft(waiter)  # It was first, but another process took the turn.
        else:
            queue.append(waiter)
        self._serve()
        try:
            return await waiter.granted
        except asyncio.CancelledError:
            if waiter.granted.done() and not waiter.granted.cancelled() and waiter.granted.exception() is None:
                self._return(waiter.granted.result())  # Granted at the moment of cancellation.
            self._serve()
            raise

    async def _agreed(self, leases: KeyLeases, key: int) -> bool:
        """Return whether the other processes grant the turn, after any wait. Meanwhile no key is granted here."""
        pacing = self._pacing
        try:
            turn = await leases.take(
                self._name, key, interval_s=pacing.interval_s, key_interval_s=pacing.key_interval_s
            )
            if turn.wait_s > 0:
                await self._clock.sleep_until(self._clock.now() + turn.wait_s)
        except BaseException:
            self._return(key)
            self._serve()
            raise
        if not turn.granted:
            self._learn(turn)
            self._return(key)
            return False
        # With the same random delay as elsewhere: the last user of a key must not always be the first to ask again.
        self._keys[key].ready_at = self._clock.now() + pacing.key_interval_s + self._spread()
        return True

    def _spread(self) -> float:
        return uniform(0, min(SPREAD_S, self._pacing.key_interval_s / 10))

    def _learn(self, turn: KeyLease) -> None:
        """Apply the key states that other processes reported."""
        now = self._clock.now()
        for key, seconds in turn.ready_in_s.items():
            if key < len(self._keys):
                self._keys[key].ready_at = now + seconds + self._spread()
        for key, seconds in turn.rests_s.items():
            if key < len(self._keys):
                self.rest(key, seconds, _limited_elsewhere(key, self._name))

    def give_back(self, key: int) -> None:
        """Return a key after its call."""
        self._keys[key].open -= 1
        self._serve()

    def rest(self, key: int, seconds: float, why: Failure) -> None:
        """Let a key rest for some seconds. Does not shorten a longer rest."""
        one = self._keys[key]
        until = self._clock.now() + min(seconds, self._pacing.rest_s_max)
        if until > one.rests_until:
            one.rests_until, one.why = until, why
        self._serve()

    def failed(self, key: int, failure: Failure) -> None:
        """Record a failed call of a key, whether or not it affects other calls."""
        self._keys[key].failed, self._keys[key].failed_at = failure.code, self._clock.now()

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a key."""
        return sum(not one.granted.done() for queue in self._queues.values() for one in queue)

    def look(self) -> list[KeyState]:
        """Return the present state of each key."""
        now = self._clock.now()
        return [self._state(number, now) for number in range(len(self._keys))]

    def _state(self, number: int, now: float) -> KeyState:
        one = self._keys[number]
        condition, until = self._condition(number, now)
        return KeyState(
            number=number,
            condition=condition,
            for_s=until - now if math.isfinite(until) else None,
            why="" if one.why is None or one.rests_until <= now else one.why.code,
            open=one.open,
            calls=one.calls,
            used_ago_s=now - one.last if math.isfinite(one.last) else None,
            failed=one.failed,
            failed_ago_s=now - one.failed_at if one.failed else None,
        )

    def _condition(self, number: int, now: float) -> tuple[Condition, float]:
        one, pacing = self._keys[number], self._pacing
        if pacing.calls_max is not None and one.calls >= pacing.calls_max:
            return "spent", math.inf
        if one.rests_until > now and one.why is not None:
            return CONDITIONS.get(one.why.code, "refused"), one.rests_until
        ready = self._ready_at(number)
        if ready > now:
            return ("pausing", ready) if math.isfinite(ready) else ("busy", math.inf)
        return "free", math.inf

    async def tell(self, key: int) -> None:
        """Report to the other processes how long a key rests."""
        if self._leases is not None:
            await self._leases.rest(self._name, key, self._keys[key].rests_until - self._clock.now())

    def is_usable(self, key: int) -> bool:
        """Return whether a key can be used within `PATIENCE_S`."""
        one = self._keys[key]
        spent = self._pacing.calls_max is not None and one.calls >= self._pacing.calls_max
        return not spent and one.rests_until - self._clock.now() <= PATIENCE_S

    def usable(self) -> Iterator[int]:
        """Return the keys that can be used within `PATIENCE_S`."""
        return (key for key in range(len(self._keys)) if self.is_usable(key))

    def next_key(self, index: int | None) -> int | None:
        """Return the key that a call would get now; None: none is usable."""
        choice = self._choice(self._wanted(index), self._clock.now())
        return None if choice is None else choice[1]

    async def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            await asyncio.gather(self._timer, return_exceptions=True)

    def _wanted(self, index: int | None) -> int | None:
        return None if index is None or self._pacing.rotates else index % len(self._keys)

    def _serve(self) -> None:
        """Grant a key to the first waiter that can have one, or set the timer for the next possible grant."""
        if self._handing:
            return
        now = self._clock.now()
        first: tuple[int, int | None, int] | None = None
        wake = math.inf
        for wanted in [*self._queues]:
            queue = self._queues[wanted]
            while queue and queue[0].granted.done():
                queue.popleft()
            if not queue:
                del self._queues[wanted]
            elif (choice := self._choice(wanted, now)) is None:
                self._fail(self._queues.pop(wanted))
            elif choice[0] > now:
                wake = min(wake, choice[0])
            elif first is None or queue[0].ticket < first[0]:
                first = (queue[0].ticket, wanted, choice[1])
        if first is not None:
            self._grant(self._queues[first[1]].popleft(), first[2])
        elif wake < math.inf:
            self._look_again_at(wake)

    def _choice(self, preferred: int | None, now: float) -> tuple[float, int] | None:
        """Return when a key is ready and which, preferring the requested one, then the next; None: none is usable."""
        usable = [*self.usable()]
        if not usable:
            return None
        if preferred is not None:
            key = preferred if preferred in usable else min(usable, key=lambda key: (key - preferred) % len(self._keys))
            return self._ready_at(key), key
        # Of the keys that are ready first, take the one unused for longest.
        at, _, key = min((max(self._ready_at(key), now), self._keys[key].last, key) for key in usable)
        return at, key

    def _ready_at(self, key: int) -> float:
        one, pacing = self._keys[key], self._pacing
        if pacing.concurrency is not None and one.open >= pacing.concurrency:
            return math.inf  # `give_back` serves the queue again.
        return max(self._last + pacing.interval_s, one.last + pacing.key_interval_s, one.ready_at, one.rests_until)

    def _grant(self, waiter: _Waiter, key: int) -> None:
        self._keys[key].open += 1
        self._keys[key].calls += 1
        self._handing = True
        waiter.granted.set_result(key)

    def _return(self, key: int) -> None:
        self._keys[key].open -= 1
        self._keys[key].calls -= 1
        self._handing = False

    def _fail(self, waiting: deque[_Waiter]) -> None:
        failure = self._exhausted()
        for waiter in waiting:
            if not waiter.granted.done():
                waiter.granted.set_exception(KeysExhausted(failure))

    def _exhausted(self) -> Failure:
        now = self._clock.now()
        reasons = "; ".join(f"key {number}: {self._why(key, now)}" for number, key in enumerate(self._keys))
        message = f"no key of {self._name!r} is available now: {reasons}"
        resting = [key for key in self._keys if key.rests_until > now and key.why is not None]
        limited = [key for key in resting if key.why is not None and key.why.retryable]
        if limited:
            wait = min(key.rests_until for key in limited) - now
            return Failure(code="model-rate-limited", message=message, retryable=True, retry_after_s=math.ceil(wait))
        if resting:
            first = resting[0].why
            assert first is not None
            details: JsonObject | None = first.details
            return Failure(code=first.code, message=message, hint=first.hint or _REPAIR, details=details)
        hint = "Raise `calls_max` of the provider in the settings, or add keys."
        return Failure(code="model-key-budget-spent", message=message, hint=hint)

    def _why(self, key: _Key, now: float) -> str:
        if key.why is not None and key.rests_until > now:
            return f"{key.why.code}, rests for {math.ceil(key.rests_until - now)} s"
        return f"has made {key.calls} calls, which is its maximum"

    def _look_again_at(self, at: float) -> None:
        if self._timer is not None:
            if at == self._wakes_at:
                return
            self._timer.cancel()
        self._wakes_at = at
        self._timer = asyncio.create_task(self._wait(at))

    async def _wait(self, at: float) -> None:
        await self._clock.sleep_until(at)
        self._timer = None
        self._serve()


def _limited_elsewhere(key: int, name: str) -> Failure:
    message = f"key {key} of {name!r} was rate-limited in another process"
    return Failure(code="model-rate-limited", message=message, retryable=True)


CONDITIONS: Final[dict[str, Condition]] = {"model-rate-limited": "cooling", "model-key-budget-spent": "spent"}
"""Failure that made a key rest -> condition; for any other failure: refused."""
_REPAIR: Final = "Set keys that the provider accepts: `keys` in the settings, or its environment variable."
