"""Virtual time: an event loop on which waiting costs nothing. When nothing can happen now, the clock leaps ahead.

loop idle ─▶ a thread works?  yes: wait for it, in real time
                              no:  time := when the next timer fires
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, Final, TypeVar

from pointsman.errors import EngineBug

T = TypeVar("T")

BEGIN: Final = 1_767_225_600.0
"""2026-01-01T00:00:00Z: virtual time starts here, so that timestamps are always the same."""
RESOLUTION_S: Final = 1e-6
"""Resolution of unix seconds in a float."""
STUCK_S: Final = 30.0
"""Real seconds without progress, after which the loop counts as stuck."""


class VirtualTimeDeadlock(EngineBug):
    """Everything waits, and no timer, thread or connection is left that could end the wait."""

    code = "virtual-time-deadlock"


class VirtualClock:
    """The clock of a `VirtualLoop`: unix seconds that begin at `BEGIN`."""

    def now(self) -> float:
        return BEGIN + asyncio.get_running_loop().time()

    async def sleep_until(self, at: float) -> None:
        """Sleep in virtual time."""
        while (left := at - self.now()) > 0:  # noqa: ASYNC110 - it waits for a time, not for an event
            await asyncio.sleep(max(left, RESOLUTION_S))


class _Leaping(selectors.BaseSelector):
    """Selects what is ready now, and skips the waiting time."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        # The loop runs callbacks that are due before now, not at now; for large values its own tolerance is below float
        # resolution.
        self.now = math.nextafter(self.now, math.inf)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.threads:
            return self._real.select(None)
        if timeout is not None:
            self.now += timeout
            return []
        ready = self._real.select(STUCK_S)
        if not ready:
            raise VirtualTimeDeadlock("all tasks wait, and no timer is due: the test cannot continue")
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with its own time, which begins at 0."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Run in a thread. Virtual time stands still meanwhile, because the duration of the work is unknown."""
        future = super().run_in_executor(executor, func, *args)
        self.hold_time_until(future)
        return future

    def hold_time_until(self, future: asyncio.Future[Any]) -> None:
        """Let virtual time stand still until a thread has set a future. Tools that run in threads call it."""
        self._leaping.threads += 1
        future.add_done_callback(self._thread_ended)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - asyncio's
        """Shut down the threads in real time."""
        self._leaping.threads += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self._leaping.threads -= 1

    def _thread_ended(self, _: asyncio.Future[Any]) -> None:
        self._leaping.threads -= 1


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
