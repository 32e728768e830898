"""Strangers: who shows keys that open nothing. Each address has a bucket of tries, so nobody guesses fast.

    shown ─▶ it has opened before? ─▶ yes: looked at, whatever others do from this address
                                  └▶ no: is there a try left? ─▶ looked at ─▶ wrong: one try less

Behind a proxy all may come from one address: who was let in before is not held up by what others try there.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pointsman.auth.keys import digest_of
from pointsman.auth.rate_limiter import Pace
from pointsman.ports import Clock

KNOWN_MAX: Final = 10_000


class Strangers:
    """Of one server."""

    def __init__(self, clock: Clock, *, wrong_per_minute: int) -> None:
        self._pace = Pace(
            clock,
            per_s=wrong_per_minute / 60,
            burst=wrong_per_minute,
            says=f"shows more than {wrong_per_minute} wrong keys per minute",
        )
        self._known: OrderedDict[str, None] = OrderedDict()

    def may_try(self, address: str, shown: str) -> None:
        """Before it is looked at. Raises `TooManyRequests`."""
        if digest_of(shown) not in self._known:
            self._pace.check(address)

    def opened(self, shown: str) -> None:
        """It let somebody in."""
        self._known[digest_of(shown)] = None
        self._known.move_to_end(digest_of(shown))
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    def failed(self, address: str, shown: str) -> None:
        """It let nobody in. Raises `TooManyRequests` where others from there were faster."""
        self._known.pop(digest_of(shown), None)
        self._pace.take(address)
