"""Marks: what tells a thing that the store keeps from what it was or will be; so that who changes it, changes what they
have read.

    read ─▶ its mark      change, `after` the mark ─▶ done, or `RevisionMoved`: somebody else changed it meanwhile

The mark is of what is kept, not of how often it was changed: what says the same again has the same one. That nobody
changes it between the look and the write, the store sees to.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from pointsman.store.api import ConfigStore
from pointsman.store.errors import EntryMoved, RevisionMoved
from pointsman.values import Json


def mark_of(kept: Json) -> str:
    """Of what is kept; of nothing, where it is None."""
    return sha256(msgspec.json.encode(kept, order="deterministic")).hexdigest()[:16]


NOTHING: Final = mark_of(None)
"""The mark of what is not there."""


async def mark_at(entries: ConfigStore, kind: str, key: str) -> str:
    """Of what is kept there now."""
    entry = await entries.find(kind, key)
    return NOTHING if entry is None else mark_of(entry.value)


async def put_after(entries: ConfigStore, kind: str, key: str, value: Json, *, after: str | None, what: str) -> None:
    """Keep it; with `after` only in place of what has that mark. Raises `RevisionMoved`; `what` as in "the title"."""
    version = await _version(entries, kind, key, after, what)
    try:
        await entries.put(kind, key, value, after=version)
    except EntryMoved:
        raise moved(what) from None


async def delete_after(entries: ConfigStore, kind: str, key: str, *, after: str | None, what: str) -> bool:
    """Delete it; False: there was none. As `put_after`."""
    version = await _version(entries, kind, key, after, what)
    try:
        return await entries.delete(kind, key, after=version)
    except EntryMoved:
        raise moved(what) from None


def moved(what: str) -> RevisionMoved:
    """What is said to whoever read something else."""
    return RevisionMoved(f"{what} was changed since it was read", hint="Read it again, and change that.")


async def _version(entries: ConfigStore, kind: str, key: str, after: str | None, what: str) -> int | None:
    if after is None:
        return None
    entry = await entries.find(kind, key)
    if entry is not None and after == NOTHING:
        raise RevisionMoved(f"{what} is there already", hint="Read it, and change that.")
    if after != (NOTHING if entry is None else mark_of(entry.value)):
        raise moved(what)
    return 0 if entry is None else entry.version
