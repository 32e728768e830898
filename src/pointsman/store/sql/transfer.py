"""Rules shared by both SQL stores when they are copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, LiteralString, cast

from pointsman.store.codec import decode_json
from pointsman.store.memory_history import is_history
from pointsman.store.memory_words import texts
from pointsman.store.sql.work import MemoryRow
from pointsman.store.transfer import Value

FILLED: Final[tuple[LiteralString, ...]] = (
    "executions",
    "blobs",
    "summaries",
    "effects",
    "workflows",
    "memory",
    "usage",
    "messages",
    "entries",
)
"""Tables that are empty in an empty store."""


def memory_row(row: Sequence[Value]) -> MemoryRow:
    """Return a remembered value of a copy with its searchable text; history rows have none."""
    scope, namespace, key = cast("tuple[str, str, str]", row[:3])
    data, changed, expires = cast("tuple[bytes, float, float | None]", row[3:])
    text = None if is_history(scope) else " ".join([key, *texts(decode_json(data))])
    return MemoryRow(scope, namespace, key, data, changed, expires, text)
