"""Limits of callers: requests per second, login attempts of one address, and open streams.

credential ─▶ valid before? ─▶ yes: checked, even if other clients of its address are blocked
                           └▶ no: too many failures of this address? ─▶ refused, else checked
stream opens ─▶ seat: counted for its caller, closed when the caller's credential is revoked
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar, Final

from pointsman.auth.callers import Caller
from pointsman.auth.keys import digest_of
from pointsman.errors import CallerError, OperatorError
from pointsman.ports import Clock

EVERY_S: Final = 2.0


class OpenStream:
    """One open stream of a caller."""

    def __init__(self, caller: Caller, leave: Callable[[OpenStream], None]) -> None:
        self.caller = caller
        self.revoked = asyncio.Event()
        """Set when the caller's credential is not valid any more: the stream ends."""
        self._leave = leave

    def leave(self) -> None:
        """Record that the stream has ended."""
        self._leave(self)


class Presence:
    """Open streams of one server."""

    def __init__(self, still: Callable[[Caller], Awaitable[bool]], *, every_s: float = EVERY_S) -> None:
        """`still` returns whether the credential of a caller is still valid."""
        self._still = still
        self.every_s = every_s
        self._open_streams: dict[OpenStream, Callable[[], None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def enter(self, caller: Caller, left: Callable[[], None]) -> OpenStream:
        """Add a stream. `left` is called once, when it has ended."""
        stream = OpenStream(caller, self._close)
        self._open_streams[stream] = left
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return stream

    def _close(self, stream: OpenStream) -> None:
        left = self._open_streams.pop(stream, None)
        if left is not None:
            left()
        if not self._open_streams:
            self.close()

    def close(self) -> None:
        """Stop checking credentials."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self.every_s)
            by_proof: defaultdict[tuple[str, str, str], list[OpenStream]] = defaultdict(list)
            for open_stream in self._open_streams:
                by_proof[open_stream.caller.entrance, open_stream.caller.name, open_stream.caller.proof].append(
                    open_stream
                )
            for seats in by_proof.values():
                with suppress(OperatorError):  # The store is unavailable: no stream ends because of that.
                    if not await self._still(seats[0].caller):
                        for open_stream in seats:
                            open_stream.revoked.set()


KNOWN_MAX: Final = 10_000


class LoginThrottle:
    """Login throttle of one server."""

    def __init__(self, clock: Clock, *, wrong_per_minute: int) -> None:
        self._attempts = RateLimiter(
            clock,
            per_s=wrong_per_minute / 60,
            burst=wrong_per_minute,
            says=f"sends more than {wrong_per_minute} wrong keys per minute",
        )
        self._known: OrderedDict[str, None] = OrderedDict()

    def may_try(self, address: str, shown: str) -> None:
        """Check that a credential may be tried. Raises `TooManyRequests`."""
        if digest_of(shown) not in self._known:
            self._attempts.check(address)

    def opened(self, shown: str) -> None:
        """Record that a credential was valid."""
        self._known[digest_of(shown)] = None
        self._known.move_to_end(digest_of(shown))
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def failed(self, address: str, shown: str) -> None:
        """Record that a credential was invalid. Raises `TooManyRequests` if concurrent attempts from the address used
        up the limit."""
        self._known.pop(digest_of(shown), None)
        self._attempts.take(address)


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
        self._description = says
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Take a token. Raises `TooManyRequests`."""
        tokens, now = self._tokens_in(name)
        self._buckets.pop(name, None)
        self._buckets[name] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._buckets) > CALLERS_MAX:
            self._buckets.popitem(last=False)
        self._must_hold_one(name, tokens)

    def check(self, name: str) -> None:
        """Check that a token is left, without taking it. Raises `TooManyRequests`."""
        self._must_hold_one(name, self._tokens_in(name)[0])

    def _tokens_in(self, name: str) -> tuple[float, float]:
        """Return the number of tokens in a bucket, and the current time."""
        now = self._clock.now()
        tokens, at = self._buckets.get(name, (float(self._burst), now))
        return min(self._burst, tokens + max(now - at, 0.0) * self._per_s), now

    def _must_hold_one(self, name: str, tokens: float) -> None:
        if tokens < 1:
            raise TooManyRequests(
                f"{name!r} {self._description}",
                hint="Wait for the seconds in `Retry-After`.",
                retry_after_s=(1 - tokens) / self._per_s,
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
                hint="Close a stream, or try again later: `access.streams` limits the streams of one caller.",
                retry_after_s=SEAT_RETRY_S,
            )
        self._taken[name] += 1

        def leave() -> None:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]

        return leave
