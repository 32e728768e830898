"""The outbox: for each notice and each address that wants it, whether it was sent, and when it is tried again."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.store.errors import EntryMoved
from pointsman.triggers.notifications.notices import Notice
from pointsman.values import JsonObject

KIND: Final = "notice"
MARK: Final = "notices-mark"
"""Kind of the one entry that says up to when the outbox was filled."""
SINCE: Final = "since"


class NoSuchNotice(CallerError):
    """The outbox has no notice of this id."""

    code: ClassVar[str] = "no-such-notice"


class OutboxNotice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One notice to one address."""

    to: str
    """The name of the address in the settings."""
    body: JsonObject
    at: float
    """When it was put here."""
    state: Literal["pending", "sent", "dead"] = "pending"
    attempts: int = 0
    due: float = 0.0
    """When it is tried next."""
    error: str = ""
    """Why it was not taken the last time."""


class StoredNotice(NamedTuple):
    """A letter as it is in the store. `id` is also the id of its delivery."""

    id: str
    letter: OutboxNotice
    version: int


class Outbox:
    """Letters of one installation."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def put(self, notice: Notice, to: str, now: float) -> StoredNotice | None:
        """None: it is there already."""
        # It is signed as `webhook-id`: a header, in which a full stop would end the id.
        id = quote(f"{to}/{notice.id}").replace(".", "%2E")
        letter = OutboxNotice(to=to, body={"id": id, **notice.body}, at=now, due=now)
        try:
            return await self.change(StoredNotice(id, letter, 0), letter)
        except EntryMoved:
            return None

    async def change(self, kept: StoredNotice, letter: OutboxNotice) -> StoredNotice:
        """Raises `EntryMoved` where someone else changed it."""
        version = await self._app.store.entries.put(KIND, kept.id, msgspec.to_builtins(letter), after=kept.version)
        return StoredNotice(kept.id, letter, version)

    async def list(self) -> list[StoredNotice]:
        found = await self._app.store.entries.list(KIND)
        return [StoredNotice(entry.key, msgspec.convert(entry.value, OutboxNotice), entry.version) for entry in found]

    async def forget(self, before: float) -> None:
        """Drop what was sent, and was put here before: nobody will put it here again."""
        for kept in await self.list():
            if kept.letter.state == "sent" and kept.letter.at < before:
                await self._app.store.entries.delete(KIND, kept.id)

    async def try_again(self, id: str) -> StoredNotice:
        """Send one that was given up once more, from the first attempt on. Raises `NoSuchNotice`."""
        found = {kept.id: kept for kept in await self.list()}
        if id not in found:
            raise NoSuchNotice(f"there is no notice {id!r}", hint="`pointsman notifications list` shows them.")
        letter = replace(found[id].letter, state="pending", attempts=0, due=self._app.clock.now())
        return await self.change(found[id], letter)

    async def filled(self) -> float | None:
        """Up to when it was filled; None: never."""
        entry = await self._app.store.entries.find(MARK, SINCE)
        return float(entry.value) if entry is not None and isinstance(entry.value, int | float) else None

    async def note_filled(self, at: float) -> None:
        await self._app.store.entries.put(MARK, SINCE, at)
