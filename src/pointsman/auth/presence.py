"""Presence: who has a stream open, and whether they may still be here.

    a stream opens ─▶ a seat ─┐
                              ├─▶ every two seconds: does what let them in still open? ─▶ no: their streams end
    a key is revoked ─────────┘

A request is asked once who makes it; a stream may last for days. So what opened it is looked at again, once for all
streams that it opened, whoever took it away: a key or a login may have been ended by another process.
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


class Seat:
    """One stream that a caller has open."""

    def __init__(self, caller: Caller, leave: Callable[[Seat], None]) -> None:
        self.caller = caller
        self.revoked = asyncio.Event()
        """What let them in opens nothing any more: the stream ends."""
        self._leave = leave

    def leave(self) -> None:
        """The stream has ended."""
        self._leave(self)


class Presence:
    """The open streams of one server."""

    def __init__(self, still: Callable[[Caller], Awaitable[bool]], *, every_s: float = EVERY_S) -> None:
        """`still`: whether somebody would be let in now by what they showed."""
        self._still = still
        self.every_s = every_s
        self._seats: dict[Seat, Callable[[], None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def enter(self, caller: Caller, left: Callable[[], None]) -> Seat:
        """One more. `left` is called, once, when it has ended."""
        seat = Seat(caller, self._part)
        self._seats[seat] = left
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return seat

    def _part(self, seat: Seat) -> None:
        left = self._seats.pop(seat, None)
        if left is not None:
            left()
        if not self._seats:
            self.close()

    def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self.every_s)
            by_proof: defaultdict[tuple[str, str, str], list[Seat]] = defaultdict(list)
            for seat in self._seats:
                by_proof[seat.caller.entrance, seat.caller.name, seat.caller.proof].append(seat)
            for seats in by_proof.values():
                with suppress(OperatorError):  # The store is away: nobody is shut out for that.
                    if not await self._still(seats[0].caller):
                        for seat in seats:
                            seat.revoked.set()
