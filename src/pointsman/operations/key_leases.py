"""Key leases in the store: all processes that share it keep the pacing of provider keys together.

One entry per provider contains the time when the provider, and each of its keys, may be used next. A process that takes
a lease advances these times by a conditional write, which fails if another process was faster. The clocks of the
machines must agree about as precisely as the pacing requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from pointsman.models.key_leases import KeyLease
from pointsman.ports import Clock
from pointsman.store.api import Store
from pointsman.store.errors import EntryMoved

KIND: Final = "key-turns"
AHEAD_S: Final = 60.0
"""Maximum distance of a lease in the future, in addition to the interval: processes hold one lease each. A later time
was written by a clock that runs ahead."""


class ProviderState(Struct, frozen=True, omit_defaults=True):
    """Pacing state of a provider. Times are unix seconds; the dictionaries' keys are numbers of API keys, as text."""

    next: float = 0.0
    """When the provider may be called again, with any key."""
    keys: Mapping[str, float] = field(default_factory=dict[str, float])
    """When each key may be used again."""
    rests: Mapping[str, float] = field(default_factory=dict[str, float])
    """Until when each rate-limited key rests."""

    def as_of(self, now: float, *, ahead_s: float) -> ProviderState:
        """Return the state without expired times and those that only a clock that runs ahead can have written."""
        keys = {name: at for name, at in self.keys.items() if now < at <= now + ahead_s}
        rests = {name: at for name, at in self.rests.items() if now < at}
        return ProviderState(self.next if self.next <= now + ahead_s else now, keys, rests)


class KeptTurns:
    """Key leases that are kept in the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._entries = store.entries
        self._clock = clock

    async def take(self, provider: str, key: int, *, interval_s: float, key_interval_s: float) -> KeyLease:
        """Take a lease. Retries if another process took one meanwhile."""
        name = str(key)
        while True:
            standing, version = await self._standing(provider)
            now = self._clock.now()
            kept = standing.as_of(now, ahead_s=AHEAD_S + max(interval_s, key_interval_s))
            at = max(now, kept.next)
            if max(kept.keys.get(name, now), kept.rests.get(name, now)) > at:
                return _not_yet(kept, now)
            taken = replace(kept, next=at + interval_s, keys={**kept.keys, name: at + key_interval_s})
            if await self._put(provider, taken, version):
                return KeyLease(granted=True, wait_s=at - now)

    async def rest(self, provider: str, key: int, seconds: float) -> None:
        """Let a key rest. A longer rest that is already stored is not shortened."""
        while True:
            standing, version = await self._standing(provider)
            now, name = self._clock.now(), str(key)
            until = now + seconds
            if standing.rests.get(name, now) >= until:
                return
            if await self._put(provider, replace(standing, rests={**standing.rests, name: until}), version):
                return

    async def rests(self, provider: str) -> dict[int, float]:
        """Return until when each rate-limited key rests, whichever process was limited; unix seconds."""
        standing, _ = await self._standing(provider)
        now = self._clock.now()
        return {int(name): at for name, at in standing.rests.items() if at > now}

    async def _standing(self, provider: str) -> tuple[ProviderState, int]:
        entry = await self._entries.find(KIND, provider)
        return (ProviderState(), 0) if entry is None else (msgspec.convert(entry.value, ProviderState), entry.version)

    async def _put(self, provider: str, standing: ProviderState, version: int) -> bool:
        """Write the state. Return False if another process was faster."""
        try:
            await self._entries.put(KIND, provider, msgspec.to_builtins(standing), after=version)
        except EntryMoved:
            return False
        return True


def _not_yet(standing: ProviderState, now: float) -> KeyLease:
    return KeyLease(
        granted=False,
        ready_in_s={int(name): at - now for name, at in standing.keys.items()},
        rests_s={int(name): at - now for name, at in standing.rests.items()},
    )
