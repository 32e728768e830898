"""Applies a change to a remembered value, in the same way in every store.

known value ─┐
change ──────┴▶ what is remembered from now on, and the answer        (once: kept as an effect of the execution)
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pointsman.ports import MemoryChange, Quota
from pointsman.store.codec import encode_json
from pointsman.store.errors import MemoryFull, MemoryNotAList
from pointsman.values import Json

NUMBER: Final = 1
"""Number of the effect that stores the answer to a change."""
UNBOUNDED: Final = Quota(2**62, 2**62)
"""Quota for values that the engine itself stores."""


class ChangeResult(NamedTuple):
    """The result of a change."""

    value: Json | None
    """None: the key has no value any more."""
    data: bytes
    """The encoded value."""
    answer: Json


def change_result(change: MemoryChange, known: Json | None) -> ChangeResult:
    """Apply a change. Raises `MemoryNotAList`, and `MemoryFull` for a value above the size limit."""
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
            f"the value for {change.key!r} has {len(data)} bytes; one value has at most {change.quota.value_bytes}",
            hint="Store less under one key, or raise `memory.value_bytes_max` in the settings.",
        )
    return ChangeResult(value, data, value)


def not_a_list(key: str) -> MemoryNotAList:
    return MemoryNotAList(f"the value of {key!r} is not a list", hint="Use another key, or set the value.")


def check_room(change: MemoryChange, keys: int) -> None:
    """Raise `MemoryFull` if one more key exceeds the quota."""
    if keys >= change.quota.keys:
        raise MemoryFull(
            f"{change.namespace!r} has {keys} keys in the scope {change.scope!r}, which is its quota",
            hint="Delete some, let them expire (`ttl`), or raise `memory.keys_max` in the settings.",
        )
