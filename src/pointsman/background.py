"""Background work: best-effort work whose failures are logged and retried, and rounds of periodic jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, Final

from pointsman.errors import Outage, PointsmanError

LOG: Final = logging.getLogger("pointsman.app")


@contextmanager
def retried(what: str) -> Generator[None]:
    """Log an error of the block without raising it; `what` names the work. Outages are not logged:
    writers report them."""
    try:
        yield
    except Outage:
        pass
    except PointsmanError as why:
        LOG.warning("%s cannot be done now, and is tried again: [%s] %s", what, why.code, why)


class BackgroundRound:
    """The rounds of a periodic job: at most one at a time, each in a task of its own."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None

    def begin(self, work: Callable[[], Coroutine[Any, Any, object]]) -> bool:
        """Start a round; return False if one is running. Raises the error of the last round."""
        if self._task is not None:
            if not self._task.done():
                return False
            ended, self._task = self._task, None
            ended.result()
        self._task = asyncio.create_task(work())
        return True

    async def close(self) -> None:
        """Cancel the round."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
