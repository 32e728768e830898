"""Timers of one execution: one sleeper, none while no timer is set.

The sleeper only sleeps: it is cancelled whenever an earlier timer is set, and must not be running anything then.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import TypeAlias

from pointsman.ports import Clock

OnTimer: TypeAlias = Callable[[str], None]
"""Called with the name of a fired timer. Starts the consequences and does not block."""


class Timers:
    """Fires names at their times. A name that was dropped or set again fires only at its last time."""

    def __init__(self, clock: Clock, ring: OnTimer) -> None:
        self._clock = clock
        self._ring = ring
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._sleeper: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._at)

    def are_due(self, now: float) -> bool:
        """Return whether a timer is due at `now` (unix seconds)."""
        return bool(self._heap) and self._heap[0][0] <= now and any(at <= now for at in self._at.values())

    def set(self, name: str, at: float) -> None:
        """Fire `name` at or after `at` (unix seconds)."""
        self._at[name] = at
        heapq.heappush(self._heap, (at, name))
        if self._sleeper is None or self._heap[0][1] == name:
            self._sleep()

    def drop(self, name: str) -> None:
        """Drop a timer."""
        self._at.pop(name, None)
        if not self._at:
            self.stop()

    def stop(self) -> None:
        """Drop all timers."""
        self._at.clear()
        self._heap.clear()
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper = None

    def _sleep(self) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()
        self._sleeper = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while self._heap:
            at, name = self._heap[0]
            if self._at.get(name) != at:
                heapq.heappop(self._heap)
                continue
            await self._clock.sleep_until(at)
            heapq.heappop(self._heap)
            if self._at.get(name) == at:
                del self._at[name]
                self._ring(name)
        self._sleeper = None
