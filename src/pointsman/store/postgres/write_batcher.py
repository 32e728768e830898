"""Write batcher: requests that arrive while one group is on its way become the next group.

    put ─┐
    put ─┼─▶ waiting ─▶ carry(group) ─ one round trip ─▶ each is settled
    put ─┘

A lone request is sent at once; under load a round trip and a commit are shared by the requests that arrive during the
one before it. When a group fails, possibly because of one request, the requests are carried one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from pointsman.errors import OperatorError


class BatchedRequest:
    """A request and the future of its caller. Cancelling the future does not take the request back."""

    __slots__ = ("future", "settled")

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.settled = False

    def done(self) -> None:
        self.settled = True
        if not self.future.done():
            self.future.set_result(None)

    def refuse(self, why: Exception) -> None:
        self.settled = True
        if not self.future.done():
            self.future.set_exception(why)


R = TypeVar("R", bound=BatchedRequest)


class WriteBatcher(Generic[R]):
    """One task that carries groups one after the other, in the order of the requests."""

    def __init__(self, carry: Callable[[Sequence[R]], Awaitable[None]], *, together_max: int) -> None:
        """`carry` settles the requests of a group, or raises and has written nothing of those it left open."""
        self._carry = carry
        self._together_max = together_max
        self._waiting: list[R] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, request: R) -> asyncio.Future[None]:
        self._waiting.append(request)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return request.future

    async def close(self) -> None:
        """Return when everything that was put is settled."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._waiting:
            group = self._waiting[: self._together_max]
            del self._waiting[: self._together_max]
            try:
                await self._carry(group)
            except Exception as why:
                await self._one_by_one(group, why)
        self._task = None

    async def _one_by_one(self, group: Sequence[R], why: Exception) -> None:
        # Errors of the store concern every request; errors of one request only that one.
        alone = len(group) == 1 or isinstance(why, OperatorError)
        for request in group:
            if request.settled:
                continue
            if alone:
                request.refuse(why)
                continue
            try:
                await self._carry([request])
            except Exception as its_own:
                request.refuse(its_own)
