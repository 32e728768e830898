"""Timers of one execution, and deadlines of running attempts: each kind has one sleeper, none while nothing waits.

The sleeper of an execution only sleeps: it is cancelled whenever an earlier timer is set, and must not be running
anything then. All deadlines of the process share one timer, so that a step of microseconds costs almost nothing; a task
performs one attempt at a time, so the task identifies the attempt.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

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


Performer: TypeAlias = "asyncio.Task[Any]"


class Deadlines:
    """Cancels the task of an attempt whose deadline has passed. Times are those of the event loop, in seconds."""

    def __init__(self) -> None:
        self._due: dict[Performer, float] = {}
        self._expired: set[Performer] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def set(self, task: Performer, seconds: float) -> None:
        """Set the time limit of the attempt that `task` performs."""
        loop = task.get_loop()
        at = loop.time() + seconds
        self._due[task] = at
        if self._timer is None or at < self._timer_at:
            self._arm(loop, at)

    def drop(self, task: Performer) -> None:
        """Remove the deadline of a finished attempt. The timer stays: the next attempt is likely to need it."""
        self._due.pop(task, None)
        if self._expired:
            self._expired.discard(task)

    def expired(self, task: Performer) -> bool:
        """Return whether the task was cancelled because of its deadline."""
        return task in self._expired

    def stop(self) -> None:
        """Stop the timer; no attempt runs here any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self.stop()
        self._timer, self._timer_at = loop.call_at(at, self._ring, loop), at

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for task, at in self._due.items():
            if at <= now and task not in self._expired:
                self._expired.add(task)
                task.cancel()
        left = [at for task, at in self._due.items() if task not in self._expired]
        if left:
            self._arm(loop, min(left))
