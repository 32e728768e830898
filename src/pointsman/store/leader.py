"""The leader of a store: the one opening that recovers executions, fires timers and starts schedules for all.

    keep ─▶ a lock of the system (released when the process dies) ─▶ there is one leader
       └──▶ an epoch in the store, raised by each new leader      ─▶ the former leader writes nothing any more

    beat ─▶ the leader changes a number every 2 s ─▶ no change for 20 s: the standby takes over

The lock elects the leader. The beat shows that its process still works: a stopped process holds its lock for ever. The
epoch is the fence: every write of a leader checks, in the same transaction, that the epoch is still its own. A process
that opens the store without leading it (a command line beside a server) is guarded by the row numbers alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

from pointsman.store.errors import LeaderExists, LeaderSuperseded

BEAT_S: Final = 2.0
"""How often a leader shows that it works."""
LEASE_S: Final = 20.0
"""How long the beat may stand still, by the clock of the standby. A long garbage collection, a slow disk or a busy
machine must not cost a leader its role."""


class Lease:
    """Watches the beat of a leader, which must change. Clocks of two machines are never compared."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._shown: object = None
        self._since = now()

    def is_over(self, shown: object) -> bool:
        """Return whether the beat has not changed for too long."""
        if shown != self._shown:
            self._shown, self._since = shown, self._now()
        return self._now() - self._since >= LEASE_S


class Leadership:
    """The role of the leader, held until it is released, the store is closed, or another process takes over."""

    def __init__(self, holder: str, epoch: int, let_go: Callable[[], Awaitable[None]]) -> None:
        self.holder = holder
        self.epoch = epoch
        """Grows with every leader."""
        self.lost = asyncio.Event()
        """Set when another process has become the leader: this opening writes nothing any more."""
        self._let_go = let_go
        self._held = True

    async def release(self) -> None:
        """Give the role up, so that a standby takes over. A second call has no effect."""
        if self._held:
            self._held = False
            await self._let_go()


def leader_exists(holder: str, since: float) -> LeaderExists:
    """Return the error for a second leader."""
    began = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S}"
    named = f"{holder!r}, since {began} UTC" if holder else "another process"
    return LeaderExists(
        f"the store has a leader already: {named}", hint="End that process, or wait as a standby to take over from it."
    )


def superseded(epoch: int) -> LeaderSuperseded:
    """Return the error for writes of a former leader."""
    return LeaderSuperseded(
        f"another process became the leader of the store after epoch {epoch}",
        hint="This process writes nothing any more: end it, or open the store again.",
    )
