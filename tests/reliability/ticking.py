"""Virtual time in small steps: while a thread of a store works, the clock would leap to the next deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

TICK_S: Final = 0.01


@asynccontextmanager
async def ticking() -> AsyncGenerator[None, None]:
    """There is always something to happen in a moment, so time goes on no faster than what really happens."""

    async def tick() -> None:
        while True:  # noqa: ASYNC110 - it waits for nothing: that time goes on is the point
            await asyncio.sleep(TICK_S)

    ticks = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticks.cancel()
