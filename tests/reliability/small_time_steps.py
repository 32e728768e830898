"""Virtual time in small steps: otherwise the clock would jump to the next deadline while a thread of a store works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

TICK_S: Final = 0.01


@asynccontextmanager
async def ticking() -> AsyncGenerator[None, None]:
    """Keep a timer pending at all times, so that virtual time advances no faster than real work."""

    async def tick() -> None:
        while True:  # noqa: ASYNC110 - its purpose is that time advances
            await asyncio.sleep(TICK_S)

    ticks = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticks.cancel()
