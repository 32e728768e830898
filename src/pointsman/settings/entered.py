"""Settings that an admin enters while the app runs, as the store has them.

    change ─▶ checked like the file ─▶ an entry of the store ─▶ `Settings.current` of every process, within a second

A setting of a file, a variable or an option has precedence. Only settings that are read where they are used can be
entered; the others are read once, when a process starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from pointsman.errors import OperatorError
from pointsman.ports import Clock
from pointsman.store.api import ConfigStore
from pointsman.values import Instant, Json

KIND: Final = "setting"
"""Kind of the entries, one for each entered setting; their keys are its names."""
KNOWN_FOR_S: Final = 1.0
ENTERABLE: Final = ("language", "variables", "retention", "allow_email_sending", "mail")
"""The settings that are read where they are used."""


class EnteredSetting(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored record of a setting."""

    value: Json
    """As the file states it; secrets in it are handles."""
    changed: Instant = Instant(0.0)
    by: str = ""


class EnteredSettings:
    """The entered settings of one store. They are read again at most once a second."""

    def __init__(self) -> None:
        self._entries: ConfigStore | None = None
        self._clock: Clock | None = None
        self._read_at = float("-inf")
        self.values: Mapping[str, Json] = {}
        """Name -> value. A new mapping whenever something has changed."""

    async def open(self, entries: ConfigStore, clock: Clock) -> None:
        """Read the entries of this store, now and from now on."""
        self._entries, self._clock = entries, clock
        with suppress(OperatorError):  # Store unavailable: read again, and reported, before an entry is used.
            await self.refresh()

    @property
    def is_fresh(self) -> bool:
        """Return whether the entries were read within the last second."""
        if self._clock is None:
            return True
        return self._read_at <= self._clock.now() < self._read_at + KNOWN_FOR_S

    async def refresh(self, *, at_once: bool = False) -> None:
        """Read the entries, unless they are fresh; `at_once`: in any case. Raises the errors of the store."""
        if self._entries is None or self._clock is None or (self.is_fresh and not at_once):
            return
        now = self._clock.now()
        values = {entry.key: _record(entry.value).value for entry in await self._entries.list(KIND)}
        self._read_at = now
        if values != self.values:
            self.values = values


def _record(value: Json) -> EnteredSetting:
    return msgspec.convert(value, EnteredSetting)
