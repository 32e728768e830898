"""Pace: how many requests one caller may make. A bucket fills steadily, and each request takes one out of it."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar, Final

from pointsman.errors import CallerError
from pointsman.ports import Clock

CALLERS_MAX: Final = 10_000
"""Buckets kept: one that was not used for long is full again, and can be forgotten."""


class TooManyRequests(CallerError):
    """The caller asks more often than one may. Nothing was done."""

    code: ClassVar[str] = "too-many-requests"

    def __init__(self, message: str, *, hint: str = "", retry_after_s: float) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class Pace:
    """The buckets of all callers of one server."""

    def __init__(self, clock: Clock, *, per_s: float, burst: int) -> None:
        """`burst`: what a bucket holds."""
        self._clock = clock
        self._per_s = per_s
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """One request of a caller. Raises `TooManyRequests`."""
        now = self._clock.now()
        held, at = self._buckets.pop(name, (float(self._burst), now))
        held = min(self._burst, held + max(now - at, 0.0) * self._per_s)
        left = held - 1 if held >= 1 else held
        self._buckets[name] = (left, now)
        if len(self._buckets) > CALLERS_MAX:
            self._buckets.popitem(last=False)
        if held < 1:
            wait = (1 - held) / self._per_s
            raise TooManyRequests(
                f"{name!r} makes more than {self._per_s:g} requests per second",
                hint="Wait as long as `Retry-After` says.",
                retry_after_s=wait,
            )
