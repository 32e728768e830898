"""What a change makes of a remembered value: the same in every store.

known value ─┐
change ──────┴▶ what is remembered from now on, and the answer        (once: kept as an effect of the execution)
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pointsman.ports import Change, Quota
from pointsman.store.codec import encode_json
from pointsman.store.errors import MemoryFull, MemoryNotAList
from pointsman.values import Json

NUMBER: Final = 1
"""Of the effect under which the answer to a change is kept."""
UNBOUNDED: Final = Quota(2**62, 2**62)
"""For what the engine itself remembers."""


class ChangeResult(NamedTuple):
    """What came of a change."""

    value: Json | None
    """None: nothing is remembered any more."""
    data: bytes
    """The value, encoded."""
    answer: Json


def change_result(change: Change, known: Json | None) -> ChangeResult:
    """Raises `MemoryNotAList`, `MemoryFull` for a value larger than one may be."""
    match change.operation:
        case "delete":
            return ChangeResult(None, b"", known is not None)
        case "append":
            if known is not None and not isinstance(known, list):
                raise not_a_list(change.key)
            value: Json = [*(known or []), change.value]
        case "set":
            value = change.value
    if value is None:
        return ChangeResult(None, b"", None)
    data = encode_json(value)
    if len(data) > change.quota.value_bytes:
        raise MemoryFull(
            f"what {change.key!r} should remember has {len(data)} bytes; one value has at most"
            f" {change.quota.value_bytes}",
            hint="Remember less under one key, or raise `memory.value_bytes_max` in the settings.",
        )
    return ChangeResult(value, data, value)


def not_a_list(key: str) -> MemoryNotAList:
    return MemoryNotAList(f"what is remembered under {key!r} is no list", hint="Use another key, or set it.")


def check_room(change: Change, keys: int) -> None:
    """Raises `MemoryFull` where one key more is too many."""
    if keys >= change.quota.keys:
        raise MemoryFull(
            f"{change.namespace!r} remembers {keys} keys in the scope {change.scope!r}, as many as it may",
            hint="Delete some, let them expire (`ttl`), or raise `memory.keys_max` in the settings.",
        )
