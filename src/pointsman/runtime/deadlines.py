"""Deadlines of running attempts: one timer for all of them, so that a step of microseconds costs almost nothing.

A task performs one attempt at a time, so the task identifies the attempt.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

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
