"""Deliveries: what came of the last calls of each webhook, for people who look why something did not start.

    signed by who knows the secret ─▶ written beside the webhook, with what it started
    refused                        ─▶ held by this process, written some seconds later: those of webhooks, once for all

A stranger's call writes nothing itself: it must not take longer where the path exists, nor keep the store busy. The
body is not kept; what was made of it is the input of the execution.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from pointsman.errors import OperatorError
from pointsman.store.errors import EntryMoved
from pointsman.triggers.declarations import WEBHOOK
from pointsman.values import ExecutionId

if TYPE_CHECKING:
    from pointsman.ports import Clock
    from pointsman.store.api import ConfigStore

KIND: Final = "deliveries"
"""Of the one entry of each webhook, under its path."""
KEPT: Final = 50
"""Of one webhook; the newest."""
REFUSED_KEPT: Final = 10
"""Of those, which strangers may fill."""
PATHS_MAX: Final = 1000
"""Of which a process holds refusals."""
TRIES: Final = 20
HELD_S: Final = 5.0
"""So long a refusal is held at most: what one crash may lose, and how late another process shows it."""

Outcome: TypeAlias = Literal["started", "published", "ignored", "failed", "refused"]


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a webhook."""

    id: str
    """As its sender calls it; empty: nobody knows."""
    at: float
    """Unix seconds."""
    bytes: int
    """Of its body."""
    outcome: Outcome
    """`ignored`: its `match` did not hold. `failed`: it was signed, and `code` says why nothing came of it."""
    signed: bool = False
    code: str = ""
    why: str = ""
    hint: str = ""
    """What to do about it."""
    execution: ExecutionId | None = None
    """What it started."""
    delivered: int = 0
    """How many executions took the event."""


class Deliveries:
    """The last calls of the webhooks of one installation."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock
        self._refused: dict[str, deque[Delivery]] = {}
        self._turn = asyncio.Lock()
        self._writes: asyncio.Task[None] | None = None

    def refused(self, path: str, one: Delivery) -> None:
        """Hold it for a while. As much work for a path that is no webhook's: those are never written."""
        held = self._refused.pop(path, None) or deque(maxlen=REFUSED_KEPT)
        held.append(one)
        self._refused[path] = held
        if len(self._refused) > PATHS_MAX:
            del self._refused[next(iter(self._refused))]
        if self._writes is None or self._writes.done():
            self._writes = asyncio.create_task(self._write_later())

    async def _write_later(self) -> None:
        await self._clock.sleep_until(self._clock.now() + HELD_S)
        with suppress(OperatorError):  # A store that fails is told of by all who need it for more.
            await self._write()

    async def _write(self) -> None:
        """What is held of webhooks; of other paths nothing."""
        async with self._turn:  # Who forgets a webhook meanwhile does so behind this.
            held = [*self._refused]
            webhooks = {one.key for one in await self._entries.list(WEBHOOK)} if held else set[str]()
            for path in held:
                if path in webhooks:
                    await self.note(path)
                else:
                    self._refused.pop(path, None)

    async def close(self) -> None:
        """Write what is held."""
        if self._writes is not None:
            self._writes.cancel()
            await asyncio.gather(self._writes, return_exceptions=True)
        with suppress(OperatorError):  # A store that cannot be written to keeps nobody from ending.
            await self._write()

    async def note(self, path: str, *taken: Delivery) -> list[Delivery]:
        """Write them, and what was refused meanwhile; all that are kept, the newest first."""
        new = [*taken, *self._refused.pop(path, ())]
        for _ in range(TRIES):
            entry = await self._entries.find(KIND, path)
            known = [] if entry is None else msgspec.convert(entry.value, list[Delivery])
            kept = _newest([*new, *known])
            if not new:
                return kept
            try:
                await self._entries.put(KIND, path, msgspec.to_builtins(kept), after=entry.version if entry else 0)
            except EntryMoved:
                continue  # Another call was faster: what it wrote stays.
            return kept
        return _newest(new)

    async def forget(self, path: str) -> None:
        """The webhook is gone."""
        async with self._turn:
            self._refused.pop(path, None)
            await self._entries.delete(KIND, path)


def _newest(found: list[Delivery]) -> list[Delivery]:
    """Strangers do not push out what was signed."""
    refused = sorted((one for one in found if one.outcome == "refused"), key=_when)[-REFUSED_KEPT:]
    taken = sorted((one for one in found if one.outcome != "refused"), key=_when)[-(KEPT - REFUSED_KEPT) :]
    return sorted([*refused, *taken], key=_when, reverse=True)


def _when(one: Delivery) -> float:
    return one.at
