"""The keeper of a store: the one opening that recovers, wakes and schedules for all who use the store.

    keep ─▶ a lock of the system (who dies lets go of it)     ─▶ there is one keeper
       └──▶ an epoch in the store, raised by each new keeper  ─▶ the one before writes nothing any more

    beat ─▶ the keeper changes a number every 2 s ─▶ it stood still for 20 s: who stands by takes over

The lock says who; the beat, that the process still works (a stopped one holds its lock for ever); the epoch makes it
true: every write of a keeper proves that the epoch is still its own, in the
transaction that writes. Whoever opens the store without keeping it (a command line beside a server) is guarded by the
numbers of the rows alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from pointsman.store.errors import LeaderExists, LeaderSuperseded

BEAT_S: Final = 2.0
"""How often a keeper shows that it works."""
LEASE_S: Final = 20.0
"""How long it may show nothing, by the clock of the process that stands by. A long garbage collection, a slow disk or a
busy machine must not cost a keeper its role."""


class Lease:
    """Watches the beat of a keeper: what it shows must change. No clocks of two machines are compared."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._shown: object = None
        self._since = now()

    def is_over(self, shown: object) -> bool:
        """Whether the keeper has shown the same for too long."""
        if shown != self._shown:
            self._shown, self._since = shown, self._now()
        return self._now() - self._since >= LEASE_S


class Leadership:
    """The role of the keeper, held until it is released, the store is closed, or somebody else took over."""

    def __init__(self, holder: str, epoch: int, let_go: Callable[[], Awaitable[None]]) -> None:
        self.holder = holder
        self.epoch = epoch
        """Grows with every keeper."""
        self.lost = asyncio.Event()
        """Set when another one has become the keeper: nothing is written through this opening any more."""
        self._let_go = let_go
        self._held = True

    async def release(self) -> None:
        """Step back: whoever stands by takes over. A second time does nothing."""
        if self._held:
            self._held = False
            await self._let_go()


def leader_exists(holder: str, since: float) -> LeaderExists:
    """The refusal of a second keeper."""
    named = f"{holder!r}, since {datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S} UTC" if holder else "another one"
    return LeaderExists(
        f"the store has a keeper already: {named}", hint="End that one, or stand by: who waits takes over from it."
    )


def superseded(epoch: int) -> LeaderSuperseded:
    """The refusal of whatever a former keeper writes."""
    return LeaderSuperseded(
        f"another process became the keeper of the store after epoch {epoch}",
        hint="Nothing more is written by this one: end it, or open the store again.",
    )
