"""Presence: the open streams of each caller, closed when the caller's credential is revoked.

    a stream opens ─▶ a seat ─┐
                              ├─▶ every two seconds: is the caller's credential still valid? ─▶ no: its streams end
    a key is revoked ─────────┘

A request authenticates its caller once, but a stream may last for days. So the credential is checked again, once for
all streams that it opened. This also finds keys and logins that another process revoked.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from pointsman.auth.callers import Caller
from pointsman.errors import OperatorError

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
        self._seats: dict[OpenStream, Callable[[], None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def enter(self, caller: Caller, left: Callable[[], None]) -> OpenStream:
        """Add a stream. `left` is called once, when it has ended."""
        seat = OpenStream(caller, self._part)
        self._seats[seat] = left
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return seat

    def _part(self, seat: OpenStream) -> None:
        left = self._seats.pop(seat, None)
        if left is not None:
            left()
        if not self._seats:
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
            for seat in self._seats:
                by_proof[seat.caller.entrance, seat.caller.name, seat.caller.proof].append(seat)
            for seats in by_proof.values():
                with suppress(OperatorError):  # The store is unavailable: no stream ends because of that.
                    if not await self._still(seats[0].caller):
                        for seat in seats:
                            seat.revoked.set()
