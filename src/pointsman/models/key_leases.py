"""Key leases: coordinate calls of processes that share keys, one call at a time, through a shared store.

    process A ─ a key is granted here ─▶ take ─┬─▶ `KeyLease`: wait some seconds, then call
    process B ─ …                              └─▶ not granted: the key was used, or rests, elsewhere; choose again

A process requests a lease only when it could call now. A process that dies therefore wastes at most one lease, and
processes alternate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLease:
    """Answer to a request for a lease."""

    granted: bool
    wait_s: float = 0.0
    """Seconds to wait before the call."""
    ready_in_s: Mapping[int, float] = field(default_factory=dict[int, float])
    """If not granted: seconds until each presently unavailable key may be used."""
    rests_s: Mapping[int, float] = field(default_factory=dict[int, float])
    """If not granted: seconds that each key rests which was rate-limited in another process."""


class Turns(Protocol):
    """Coordinates calls with other processes."""

    async def take(self, provider: str, key: int, *, interval_s: float, key_interval_s: float) -> KeyLease:
        """Request a call; intervals are the minimum seconds since the provider's and the key's last call."""
        ...

    async def rest(self, provider: str, key: int, seconds: float) -> None:
        """Report to other processes that a key was rate-limited, and for how long."""
        ...
