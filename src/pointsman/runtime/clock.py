"""Clock of the system."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Unix time; sleeping yields to the event loop."""

    def now(self) -> float:
        return time.time()

    async def sleep_until(self, at: float) -> None:
        """Sleep in short sections, because clocks are adjusted and machines suspend."""
        while (left := at - time.time()) > 0:  # noqa: ASYNC110 - it waits for a time, not for an event
            await asyncio.sleep(min(left, 60.0))
