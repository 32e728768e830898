"""Deadlines of running attempts: one timer for all, so that a step that takes microseconds pays next to nothing."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

from pointsman.engine.steps import Step

Due: TypeAlias = "tuple[float, asyncio.Task[Any]]"
"""When, and who is cancelled then. A plain tuple: one is made for every step."""


class Deadlines:
    """Cancels the task of an attempt whose time is up. Times are those of the event loop, in seconds."""

    def __init__(self) -> None:
        self._due: dict[Step, Due] = {}
        self._expired: set[Step] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def set(self, step: Step, task: asyncio.Task[Any], seconds: float) -> None:
        """The attempt of `step` that `task` performs has so many seconds."""
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        self._due[step] = at, task
        if self._timer is None or at < self._timer_at:
            self._arm(loop, at)

    def drop(self, step: Step) -> None:
        """The attempt is over. The timer stays: the next attempt is likely to need it."""
        self._due.pop(step, None)

    def expired(self, step: Step) -> bool:
        """Whether it was cancelled for its time; says so once."""
        if step in self._expired:
            self._expired.discard(step)
            return True
        return False

    def _arm(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = loop.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        for step, (at, task) in self._due.items():
            if at <= now and step not in self._expired:
                self._expired.add(step)
                task.cancel()
        left = [at for step, (at, _) in self._due.items() if step not in self._expired]
        if left:
            self._arm(loop, min(left))
