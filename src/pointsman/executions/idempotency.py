"""Once: a request that is sent again under its key is not done again, but answered as it was the first time.

    begin ─▶ an entry in the store ─▶ the work ─▶ its answer in the entry
      └─ the entry is there: its answer; none yet: the first one is being done, or a crash cut it off

Starts and answers need none of this: their keys are in the journal. This is for what has no place there.
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
"""So long an answer is kept at least; `gc` forgets it then."""
ANSWER_BYTES_MAX: Final = 256_000


class KeyInUse(CallerError):
    """What was asked for under this key has no answer yet: it is being done, or was cut off. Nothing was done now."""

    code: ClassVar[str] = "key-in-use"


class StoredReply(Struct, frozen=True, omit_defaults=True):
    """What was answered under a key."""

    asked: str
    """The digest of what was asked."""
    at: float
    status: int = 0
    """0: there is no answer yet."""
    answer: Json = None
    headers: dict[str, str] = {}
    """Those that belong to the answer."""


class IdempotencyKeys:
    """The keys of one store."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock

    async def begin(self, name: str, asked: bytes) -> StoredReply | None:
        """Take a key for what is asked now; None: it is the first time. Raises `KeyReused`, `KeyInUse`."""
        kept = StoredReply(sha256(asked).hexdigest(), self._clock.now())
        try:
            await self._entries.put(KIND, name, _plain(kept), after=0)
        except EntryMoved:
            return await self._known(name, kept.asked)
        return None

    async def done(self, name: str, asked: bytes, status: int, body: bytes, headers: dict[str, str]) -> None:
        """Keep what was answered. One that is too large is told as in use when it is asked for again."""
        if len(body) <= ANSWER_BYTES_MAX:
            answer = msgspec.json.decode(body) if body else None
            kept = StoredReply(sha256(asked).hexdigest(), self._clock.now(), status, answer, headers)
            await self._entries.put(KIND, name, _plain(kept))

    async def undone(self, name: str) -> None:
        """It was refused, nothing was done: the key is free again."""
        await self._entries.delete(KIND, name)

    async def purge(self, *, dry_run: bool = False) -> int:
        """Forget what was answered long ago; how many."""
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
    """Keys of two callers, and of two operations, are two keys."""
    return sha256(f"{who}\0{what}\0{key}".encode()).hexdigest()


def _plain(kept: StoredReply) -> JsonObject:
    return msgspec.to_builtins(kept)


def _read(value: Json) -> StoredReply:
    return msgspec.convert(value, StoredReply, strict=False)
