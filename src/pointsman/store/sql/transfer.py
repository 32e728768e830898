"""Copies and verification of both SQL stores: the shared rules."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, LiteralString, cast

from pointsman.store.chain import first_hash, row_hash
from pointsman.store.codec import decode_json
from pointsman.store.compression import content_hash, needed
from pointsman.store.errors import StoreFailed
from pointsman.store.remembered_values import is_history, texts
from pointsman.store.sql.work import MemoryRow, plain_content
from pointsman.store.transfer import Value
from pointsman.values import ExecutionId


class ChainCheck:
    """Follows the chains of rows that come ordered by execution and seq."""

    def __init__(self) -> None:
        self._execution, self._previous, self._expected = "", b"", 1

    def breaks(
        self, execution: str, seq: int, at: float, shape: int, form: int, data: bytes, stored: bytes
    ) -> Iterator[str]:
        """Yield the damage of the next row. After a break the chain continues, so that each damaged row is reported
        once.
        """
        if execution != self._execution:
            self._execution, self._previous, self._expected = execution, first_hash(ExecutionId(execution)), 1
        if seq != self._expected:
            yield f"execution {execution!r}: row {self._expected} is missing"
        elif not is_written(self._previous, seq, (at, shape, form, data), stored):
            yield f"execution {execution!r}: row {seq} is not what was written"
        self._previous, self._expected = stored, seq + 1


def is_written(previous: bytes, seq: int, row: tuple[float, int, int, bytes], stored: bytes) -> bool:
    """Return whether a row has the hash stored. Checks types, because SQLite columns hold any type after a flipped
    bit.
    """
    try:
        return row_hash(previous, seq, *row) == stored
    except (struct.error, TypeError):
        return False


def lost_blobs(table: str, packed: Iterable[tuple[int, bytes]], known: frozenset[bytes]) -> Iterator[str]:
    """Yield the rows of a table whose contents are missing."""
    lost = sum(not known.issuperset(needs) for form, data in packed if (needs := needed(form, data)) is not None)
    if lost:
        yield f"the blobs of {lost} {table} are missing"


def false_blob(digest: bytes, form: int, data: bytes) -> Iterator[str]:
    """Yield an error for a content that does not match its hash."""
    try:
        true = content_hash(plain_content(digest, form, data)) == digest
    except StoreFailed as why:
        yield f"blob {digest.hex()} cannot be unpacked: {why}"
        return
    if not true:
        yield f"blob {digest.hex()} is not what was written"


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
