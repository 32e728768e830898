"""Deliveries: outcomes of the latest calls of each webhook, so that people can find out why a call started nothing.

    correctly signed ─▶ written at once to the entry of the webhook, with the execution it started
    refused          ─▶ buffered in this process, written within 5 s, and only for existing webhooks

A refused call writes nothing itself: otherwise its duration would reveal whether the path exists, and strangers could
keep the store busy. Bodies are not stored; a body becomes the input of the execution.
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
"""Kind of the single entry of each webhook; its key is the path."""
KEPT: Final = 50
"""Deliveries kept per webhook; the newest."""
REFUSED_KEPT: Final = 10
"""How many of them may be refusals, which strangers can cause."""
PATHS_MAX: Final = 1000
"""Paths for which a process buffers refusals."""
TRIES: Final = 20
HELD_S: Final = 5.0
"""Maximum time for which a refusal is buffered: a crash loses at most so much, and another process shows it so late."""

Outcome: TypeAlias = Literal["started", "published", "ignored", "failed", "refused"]


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a webhook."""

    id: str
    """The sender's id of the call; empty if it is not known."""
    at: float
    """Unix seconds."""
    bytes: int
    """Size of its body."""
    outcome: Outcome
    """`ignored`: its `match` did not hold. `failed`: it was signed, but starting or publishing failed with `code`."""
    signed: bool = False
    code: str = ""
    why: str = ""
    hint: str = ""
    """What to do about it."""
    execution: ExecutionId | None = None
    """The execution it started."""
    delivered: int = 0
    """How many executions accepted the event."""


class Deliveries:
    """Latest calls of the webhooks of one app."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock
        self._refused: dict[str, deque[Delivery]] = {}
        self._turn = asyncio.Lock()
        self._writes: asyncio.Task[None] | None = None

    def refused(self, path: str, one: Delivery) -> None:
        """Buffer a refusal. It costs the same for a path without a webhook, whose refusals are never written."""
        held = self._refused.pop(path, None) or deque(maxlen=REFUSED_KEPT)
        held.append(one)
        self._refused[path] = held
        if len(self._refused) > PATHS_MAX:
            del self._refused[next(iter(self._refused))]
        if self._writes is None or self._writes.done():
            self._writes = asyncio.create_task(self._write_later())

    async def _write_later(self) -> None:
        await self._clock.sleep_until(self._clock.now() + HELD_S)
        with suppress(OperatorError):  # Other users of the store report its failure.
            await self._write()

    async def _write(self) -> None:
        """Write the buffered refusals of existing webhooks; drop those of other paths."""
        async with self._turn:  # Otherwise a webhook deleted meanwhile would get an entry again.
            held = [*self._refused]
            webhooks = {one.key for one in await self._entries.list(WEBHOOK)} if held else set[str]()
            for path in held:
                if path in webhooks:
                    await self.note(path)
                else:
                    self._refused.pop(path, None)

    async def close(self) -> None:
        """Write the buffered refusals."""
        if self._writes is not None:
            self._writes.cancel()
            await asyncio.gather(self._writes, return_exceptions=True)
        with suppress(OperatorError):  # A store that cannot be written must not prevent shutdown.
            await self._write()

    async def note(self, path: str, *taken: Delivery) -> list[Delivery]:
        """Write deliveries and buffered refusals of a webhook. Return all that are kept, the newest first."""
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
                continue  # Another call was faster: its entry is kept.
            return kept
        return _newest(new)

    async def forget(self, path: str) -> None:
        """Delete the deliveries of a deleted webhook."""
        async with self._turn:
            self._refused.pop(path, None)
            await self._entries.delete(KIND, path)


def _newest(found: list[Delivery]) -> list[Delivery]:
    """Return the newest deliveries. Refused calls cannot displace signed ones."""
    refused = sorted((one for one in found if one.outcome == "refused"), key=_when)[-REFUSED_KEPT:]
    taken = sorted((one for one in found if one.outcome != "refused"), key=_when)[-(KEPT - REFUSED_KEPT) :]
    return sorted([*refused, *taken], key=_when, reverse=True)


def _when(one: Delivery) -> float:
    return one.at
