"""Login throttle: limits how fast one address may try invalid credentials.

    credential ─▶ valid before? ─▶ yes: checked, whatever other clients of this address do
                                └▶ no: an attempt left? ─▶ checked ─▶ invalid: one attempt less

Behind a proxy all clients may share one address: a credential that was valid before is not blocked by failed attempts
of others.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pointsman.auth.keys import digest_of
from pointsman.auth.rate_limiter import RateLimiter
from pointsman.ports import Clock

KNOWN_MAX: Final = 10_000


class LoginThrottle:
    """Login throttle of one server."""

    def __init__(self, clock: Clock, *, wrong_per_minute: int) -> None:
        self._pace = RateLimiter(
            clock,
            per_s=wrong_per_minute / 60,
            burst=wrong_per_minute,
            says=f"shows more than {wrong_per_minute} wrong keys per minute",
        )
        self._known: OrderedDict[str, None] = OrderedDict()

    def may_try(self, address: str, shown: str) -> None:
        """Check that a credential may be tried. Raises `TooManyRequests`."""
        if digest_of(shown) not in self._known:
            self._pace.check(address)

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
        self._pace.take(address)
