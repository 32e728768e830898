"""Deadlines of tasks, and waits that cancellation does not interrupt.

All deadlines of one owner share one timer, so that a task of microseconds costs almost nothing. A task has one deadline
of an owner at a time, so the task identifies it. Times are those of the event loop, in seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Self, TypeAlias

LimitedTask: TypeAlias = "asyncio.Task[Any]"


class PausedDeadline:
    """The time that a paused task has left, and how many waits have paused it."""

    __slots__ = ("left_s", "times")

    def __init__(self, left_s: float) -> None:
        self.left_s = left_s
        self.times = 1


class Deadlines:
    """Cancels tasks whose deadline has passed."""

    def __init__(self) -> None:
        self._due: dict[LimitedTask, float] = {}
        self._paused: dict[LimitedTask, PausedDeadline] = {}
        self._expired: set[LimitedTask] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def set(self, task: LimitedTask, seconds: float) -> None:
        """Set the time limit of `task` from now on."""
        loop = task.get_loop()
        at = loop.time() + seconds
        self._due[task] = at
        if self._timer is None or at < self._timer_at or loop is not self._loop:
            self._arm(loop, at)

    def drop(self, task: LimitedTask) -> None:
        """Remove the deadline of a task that finished in time. The timer stays: the next task is likely to need it."""
        self._due.pop(task, None)
        if self._paused:
            self._paused.pop(task, None)
        if self._expired:
            self._expired.discard(task)

    @contextmanager
    def paused(self, task: LimitedTask | None) -> Generator[None, None, None]:
        """Stop the clock of a task while the block waits for something that is not its work. None: no task."""
        if task is None:
            yield
            return
        self._pause(task)
        try:
            yield
        finally:
            self._resume(task)

    def _pause(self, task: LimitedTask) -> None:
        at = self._due.pop(task, None)
        if at is not None:
            self._paused[task] = PausedDeadline(at - task.get_loop().time())
        elif (paused := self._paused.get(task)) is not None:
            paused.times += 1

    def _resume(self, task: LimitedTask) -> None:
        paused = self._paused.get(task)
        if paused is None:
            return
        paused.times -= 1
        if not paused.times:
            del self._paused[task]
            self.set(task, paused.left_s)

    def expired(self, task: LimitedTask) -> bool:
        """Return whether the task was cancelled because of its deadline."""
        return task in self._expired

    def limit(self, seconds: float | None) -> TimeLimit:
        """Return a block that raises `TimeoutError` if it takes longer; None: no limit. Same as `asyncio.timeout`."""
        return TimeLimit(self, seconds)

    def stop(self) -> None:
        """Stop the timer; no task has a deadline any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self.stop()
        self._loop, self._timer_at = loop, at
        self._timer = loop.call_at(at, self._expire, loop)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        for task, at in self._due.items():
            if at <= now and task not in self._expired:
                self._expired.add(task)
                task.cancel()
        left = [at for task, at in self._due.items() if task not in self._expired]
        if left:
            self._arm(loop, min(left))


class TimeLimit:
    """A block of the running task with a deadline."""

    __slots__ = ("_before", "_deadlines", "_seconds", "_task", "expired")

    def __init__(self, deadlines: Deadlines, seconds: float | None) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._task: LimitedTask | None = None
        self._before = 0
        self.expired = False
        """Whether the block took longer than it may."""

    def __enter__(self) -> Self:
        if self._seconds is not None:
            self._task = task = asyncio.current_task()
            assert task is not None, "a time limit needs a task"
            self._before = task.cancelling()
            self._deadlines.set(task, self._seconds)
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, _: object) -> None:
        task = self._task
        if task is None:
            return
        self.expired = self._deadlines.expired(task)
        self._deadlines.drop(task)
        if self.expired and task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from why


async def wait_uninterrupted(wait: Callable[[], Awaitable[object]]) -> None:
    """Wait for something that ends soon, such as a killed process, even if this task is cancelled meanwhile; then raise
    the cancellation.

    `wait` is called again after each cancellation. `asyncio.shield` is not sufficient: the end of an event loop also
    cancels the shielded task.
    """
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            await wait()
        except asyncio.CancelledError as why:
            cancelled = why
        else:
            break
    if cancelled is not None:
        raise cancelled
