"""Turns of keys that several processes share: agreed where all of them can read it, one turn at a time.

    process A ─ a key is granted here ─▶ take ─┬─▶ `KeyLease`: wait so long, then call
    process B ─ …                              └─▶ not granted: the key was used, or rests, elsewhere; choose again

A process asks for a turn only when it would call now, so one that dies leaves at most one turn unused, and processes
take turns with one another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLease:
    """What came of asking for one."""

    granted: bool
    wait_s: float = 0.0
    """Until the call may be made."""
    ready_in_s: Mapping[int, float] = field(default_factory=dict[int, float])
    """Where it was not granted: in how many seconds each key may be used that may not be used now."""
    rests_s: Mapping[int, float] = field(default_factory=dict[int, float])
    """Where it was not granted: how long each key rests that a provider limited elsewhere."""


class Turns(Protocol):
    """Agrees with the other processes who calls next."""

    async def take(self, provider: str, key: int, *, interval_s: float, key_interval_s: float) -> KeyLease:
        """Ask to call a provider with a key, that many seconds after the call before and after the key's."""
        ...

    async def rest(self, provider: str, key: int, seconds: float) -> None:
        """Tell the others that a key was limited, and for how long."""
        ...
