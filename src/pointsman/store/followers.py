"""Listeners for new rows of executions that other processes may write, and the loop that polls for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from pointsman.errors import PointsmanError
from pointsman.values import ExecutionId

Listener: TypeAlias = Callable[[], None]
"""Called on the event loop when an execution may have got rows; must not block and must not raise."""
Look: TypeAlias = Callable[[Sequence[ExecutionId]], Awaitable[Mapping[ExecutionId, int]]]
"""Returns the last seq of executions with rows; empty if nothing changed since the last call."""


class Followers:
    """Callbacks by execution."""

    def __init__(self) -> None:
        self._told: dict[ExecutionId, list[Listener]] = {}
        self._seen: dict[ExecutionId, int] = {}

    @property
    def any(self) -> bool:
        return bool(self._told)

    @property
    def executions(self) -> list[ExecutionId]:
        return [*self._told]

    def add(self, execution: ExecutionId, told: Listener) -> Callable[[], None]:
        """Add a listener; the returned function removes it."""
        self._told.setdefault(execution, []).append(told)

        def leave() -> None:
            left = self._told.get(execution, [])
            if told in left:
                left.remove(told)
            if not left:
                self._told.pop(execution, None)
                self._seen.pop(execution, None)

        return leave

    def tell(self, executions: Iterable[ExecutionId]) -> None:
        for execution in executions:
            for told in [*self._told.get(execution, ())]:
                told()

    def saw(self, lasts: Mapping[ExecutionId, int]) -> None:
        """Call the listeners of executions whose last row changed since the last look."""
        changed = [one for one, last in lasts.items() if one in self._told and self._seen.get(one) != last]
        self._seen.update((one, lasts[one]) for one in changed)
        self.tell(changed)


class Polling:
    """Polls as long as there are listeners."""

    def __init__(self, look: Look, every_s: float) -> None:
        self._followers = Followers()
        self._look = look
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    def follow(self, execution: ExecutionId, told: Listener) -> Callable[[], None]:
        leave = self._followers.add(execution, told)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return leave

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while executions := self._followers.executions:
                # Readers get the errors of the store; the poll only tries again.
                with suppress(PointsmanError):
                    self._followers.saw(await self._look(executions))
                await asyncio.sleep(self._every_s)
        finally:
            self._task = None
