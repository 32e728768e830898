"""Work that goes on when whoever asked for it is gone: it is paid for, and is asked for again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Behind:
    """That of one server, or one execution."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """What it comes to. To cancel this ends the wait, not the work."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """What still goes on is given up."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
