"""Usage of keys, kept in the store, so that all processes that share it count together."""

from __future__ import annotations

from typing import Final

import msgspec

from pointsman.engine.reports import Usage
from pointsman.models.key_budgets import KeySpending
from pointsman.store.api import Store
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ConfigEntry

KIND: Final = "key-spending"


class KeptSpending:
    """Usage per key and day. There is one entry per key, which the next day replaces, so that the
    store does not grow."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def spent(self, provider: str, key: int, day: int) -> KeySpending:
        return _of(await self._store.entries.find(KIND, _name(provider, key)), day)

    async def add(self, provider: str, key: int, day: int, usage: Usage) -> None:
        """Add usage. Retries if another process added meanwhile."""
        while True:
            entry = await self._store.entries.find(KIND, _name(provider, key))
            total = _of(entry, day).with_(usage)
            try:
                await self._store.entries.put(
                    KIND,
                    _name(provider, key),
                    {"day": day, "spent": msgspec.to_builtins(total)},
                    after=0 if entry is None else entry.version,
                )
            except EntryMoved:
                continue
            return


def _name(provider: str, key: int) -> str:
    return f"{provider}/{key}"


def _of(entry: ConfigEntry | None, day: int) -> KeySpending:
    value = None if entry is None else entry.value
    if not isinstance(value, dict) or value.get("day") != day:
        return KeySpending()
    return msgspec.convert(value.get("spent"), KeySpending)
