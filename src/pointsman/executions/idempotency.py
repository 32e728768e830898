"""Idempotency keys: a repeated request gets the first response instead of being carried out again.

    begin ─▶ an entry in the store ─▶ the work ─▶ its response in the entry
      └─ the entry exists: its response; none yet: the first request is in progress, or a crash interrupted it

Starts and answers do not need this: their keys are in the journal. This is for requests without a journal.
"""

from __future__ import annotations

from hashlib import sha256
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from pointsman.errors import CallerError
from pointsman.executions.starting import KeyReused
from pointsman.ports import Clock
from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved
from pointsman.values import Json, JsonObject

KIND: Final = "once"
KEPT_S: Final = 86_400.0
"""For at least this many seconds a response is kept; `gc` deletes it later."""
ANSWER_BYTES_MAX: Final = 256_000


class KeyInUse(CallerError):
    """The first request with this key has no response yet: it is in progress or was interrupted. Nothing was done
    now."""

    code: ClassVar[str] = "key-in-use"


class StoredReply(Struct, frozen=True, omit_defaults=True):
    """The stored response to a request with a key."""

    asked: str
    """The digest of the request."""
    at: float
    status: int = 0
    """0: there is no response yet."""
    answer: Json = None
    headers: dict[str, str] = {}
    """Headers of the response."""


class IdempotencyKeys:
    """The idempotency keys of one store."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock

    async def begin(self, name: str, asked: bytes) -> StoredReply | None:
        """Reserve a key for this request, or return its stored response; None: it is the first. Raises `KeyReused`,
        `KeyInUse`."""
        kept = StoredReply(sha256(asked).hexdigest(), self._clock.now())
        try:
            await self._entries.put(KIND, name, _plain(kept), after=0)
        except EntryMoved:
            return await self._known(name, kept.asked)
        return None

    async def done(self, name: str, asked: bytes, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Store the response. If it is larger than `ANSWER_BYTES_MAX`, it is not stored, and a repeated request gets
        `KeyInUse`."""
        if len(body) <= ANSWER_BYTES_MAX:
            answer = msgspec.json.decode(body) if body else None
            kept = StoredReply(sha256(asked).hexdigest(), self._clock.now(), status, answer, headers)
            await self._entries.put(KIND, name, _plain(kept))

    async def undone(self, name: str) -> None:
        """Release the key: the request was refused and nothing was done."""
        await self._entries.delete(KIND, name)

    async def purge(self, *, dry_run: bool = False) -> int:
        """Delete responses older than `KEPT_S` and return their number."""
        since = self._clock.now() - KEPT_S
        old = [entry.key for entry in await self._entries.list(KIND) if _read(entry.value).at < since]
        for key in () if dry_run else old:
            await self._entries.delete(KIND, key)
        return len(old)

    async def _known(self, name: str, asked: str) -> StoredReply:
        entry = await self._entries.find(KIND, name)
        kept = None if entry is None else _read(entry.value)
        if kept is not None and kept.asked != asked:
            raise KeyReused("something else was asked for under this key", hint="Use a new key for a new request.")
        if kept is None or not kept.status:
            raise KeyInUse(
                "what was asked for under this key has no answer yet",
                hint="Ask again in a moment. Where a server ended meanwhile, look what became of it.",
            )
        return kept


def name_of(who: str, what: str, key: str) -> str:
    """Return the entry's name, separate for each caller and each operation."""
    return sha256(f"{who}\0{what}\0{key}".encode()).hexdigest()


def _plain(kept: StoredReply) -> JsonObject:
    return msgspec.to_builtins(kept)


def _read(value: Json) -> StoredReply:
    return msgspec.convert(value, StoredReply, strict=False)
