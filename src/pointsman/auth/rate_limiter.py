"""Rate limiter: a token bucket per caller, and a limit of concurrent streams per caller."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import ClassVar, Final

from pointsman.errors import CallerError
from pointsman.ports import Clock

CALLERS_MAX: Final = 10_000
"""Buckets in memory. Beyond this the least recently used one is dropped: it is probably full again."""

SEAT_RETRY_S: Final = 5.0
"""The end of a stream cannot be predicted."""


class TooManyRequests(CallerError):
    """The caller exceeded a rate or a number of concurrent streams. Nothing was done."""

    code: ClassVar[str] = "too-many-requests"

    def __init__(self, message: str, *, hint: str = "", retry_after_s: float) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class RateLimiter:
    """Token buckets of all callers, for one kind of action."""

    def __init__(self, clock: Clock, *, per_s: float, burst: int, says: str) -> None:
        """`burst` is the capacity of a bucket. `says` describes the excess, as in "makes more than 3 requests per
        second"."""
        self._clock = clock
        self._per_s = per_s
        self._burst = burst
        self._says = says
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Take a token. Raises `TooManyRequests`."""
        held, now = self._held(name)
        self._buckets.pop(name, None)
        self._buckets[name] = (held - 1 if held >= 1 else held, now)
        if len(self._buckets) > CALLERS_MAX:
            self._buckets.popitem(last=False)
        self._must_hold_one(name, held)

    def check(self, name: str) -> None:
        """Check that a token is left, without taking it. Raises `TooManyRequests`."""
        self._must_hold_one(name, self._held(name)[0])

    def _held(self, name: str) -> tuple[float, float]:
        """Return the number of tokens in a bucket, and the current time."""
        now = self._clock.now()
        held, at = self._buckets.get(name, (float(self._burst), now))
        return min(self._burst, held + max(now - at, 0.0) * self._per_s), now

    def _must_hold_one(self, name: str, held: float) -> None:
        if held < 1:
            raise TooManyRequests(
                f"{name!r} {self._says}",
                hint="Wait as long as `Retry-After` says.",
                retry_after_s=(1 - held) / self._per_s,
            )


class StreamQuota:
    """Limit of concurrent streams per caller."""

    def __init__(self, each_max: int) -> None:
        self._each_max = each_max
        self._taken: Counter[str] = Counter()

    def take(self, name: str) -> Callable[[], None]:
        """Count one more stream. Return a function to call once when it is closed. Raises `TooManyRequests`."""
        if self._taken[name] >= self._each_max:
            raise TooManyRequests(
                f"{name!r} has {self._each_max} streams open",
                hint="Close some, or try again: `access.streams` says how many one caller may have.",
                retry_after_s=SEAT_RETRY_S,
            )
        self._taken[name] += 1

        def leave() -> None:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]

        return leave
