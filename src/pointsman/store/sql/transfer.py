"""Copies and verification of both SQL stores: everything is read at one moment, through one blocking connection."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, LiteralString, NamedTuple, Protocol, cast

import msgspec
from msgspec.structs import replace

from pointsman.store.codec import decode_json, first_hash, row_hash
from pointsman.store.compression import Form, content_hash, needed
from pointsman.store.errors import StoreFailed
from pointsman.store.records import GateEntry
from pointsman.store.remembered_values import is_history, texts
from pointsman.store.sql.executions import COLUMNS_READ, DIFFERENT, summary_of
from pointsman.store.sql.work import MemoryRow, plain_content
from pointsman.store.transfer import (
    CONTENTS_AT_ONCE,
    COPIED,
    ROWS_AT_ONCE,
    TransferPart,
    Value,
    not_empty,
    summary_row,
)
from pointsman.values import ExecutionId

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
LIVING: Final = "(SELECT no, id FROM executions WHERE substr(id, 1, 9) <> '/deleted/')"
PACKED: Final = "form IN (%s, %s)"
PACKED_FORMS: Final = (int(Form.BLOB), int(Form.PIECES))
_entry: Final = msgspec.json.Decoder(GateEntry)
_entries: Final = msgspec.json.Decoder(list[str])


class TransferStatements(NamedTuple):
    """The differences between the stores when everything is read."""

    rows: LiteralString
    """The rows of executions that are not deleted: id, seq, at, shape, form, data, hash."""
    by_execution: LiteralString
    """Orders them by execution and seq."""
    to_copy: LiteralString
    """Orders them as a copy reads them fastest."""
    strays: LiteralString
    """How many rows belong to no execution."""
    blob_uses: LiteralString
    """Uses of blobs by executions that are not deleted: id, hash."""
    gates: LiteralString
    """The open gates of a summary: a JSON array of texts, each a `GateEntry`; NULL: none."""
    last_version: LiteralString
    """The highest version that was given to an entry."""


class Snapshot(Protocol):
    """Reads from a connection that sees one moment."""

    def __call__(
        self, statement: LiteralString, values: Sequence[object] = (), *, at_once: int = ROWS_AT_ONCE
    ) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield the rows in groups of at most `at_once`."""
        ...


def read_parts(read: Snapshot, statements: TransferStatements) -> Iterator[TransferPart]:
    """Yield everything that a copy has."""
    special: dict[str, LiteralString] = {
        "rows": f"{statements.rows} {statements.to_copy}",
        "blob_uses": statements.blob_uses,
        "summaries": f"SELECT {COLUMNS_READ}, {statements.gates} FROM summaries",
        "last_version": statements.last_version,
    }
    for table, columns in COPIED.items():
        statement = special.get(table) or f"SELECT {', '.join(columns)} FROM {table}"
        for rows in read(statement, at_once=CONTENTS_AT_ONCE if table == "blobs" else ROWS_AT_ONCE):
            yield TransferPart(table, [*map(copied_summary, rows)] if table == "summaries" else rows)


def copied_summary(row: tuple[Any, ...]) -> tuple[Value, ...]:
    """Return a summary with its open gates as a row of a copy."""
    *columns, gates = row
    entries = tuple(map(_entry.decode, _entries.decode(gates or "[]")))
    return summary_row(replace(summary_of(tuple(columns)), gates=entries or None))


def check_empty(read: Snapshot) -> None:
    """Raise `StoreNotEmpty` for a store that has something."""
    for table in FILLED:
        if any(read(f"SELECT 1 FROM {table} LIMIT 1")):
            raise not_empty(table)


def memory_row(row: Sequence[Value]) -> MemoryRow:
    """Return a remembered value of a copy with its searchable text; history rows have none."""
    scope, namespace, key = cast("tuple[str, str, str]", row[:3])
    data, changed, expires = cast("tuple[bytes, float, float | None]", row[3:])
    text = None if is_history(scope) else " ".join([key, *texts(decode_json(data))])
    return MemoryRow(scope, namespace, key, data, changed, expires, text)


def find_damage(read: Snapshot, statements: TransferStatements) -> Iterator[str]:
    """Yield every contradiction: in chains of rows, contents, uses of contents, and sums of usage. Reads everything."""
    check = ChainCheck()
    for row in each(read(f"{statements.rows} {statements.by_execution}")):
        yield from check.breaks(*row)
    for (strays,) in each(read(statements.strays)):
        if strays:
            yield f"{strays} rows belong to no execution"
    yield from find_false_blobs(read)
    yield from find_unused_needs(read, statements)
    if wrong := sum(count for statement in DIFFERENT for (count,) in each(read(statement))):
        yield f"{wrong} sums of usage differ from its entries"


def each(groups: Iterator[Sequence[tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    return chain.from_iterable(groups)


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
            yield f"execution {execution!r}: row {seq} was changed after it was written"
        self._previous, self._expected = stored, seq + 1


def is_written(previous: bytes, seq: int, row: tuple[float, int, int, bytes], stored: bytes) -> bool:
    """Return whether a row has the hash stored. Checks types, because SQLite columns hold any type after a flipped
    bit.
    """
    try:
        return row_hash(previous, seq, *row) == stored
    except (struct.error, TypeError):
        return False


def find_false_blobs(read: Snapshot) -> Iterator[str]:
    """Yield the tables whose contents are missing, and the contents that do not match their hashes."""
    digests = frozenset(digest for (digest,) in each(read("SELECT hash FROM blobs")))
    packed: tuple[LiteralString, LiteralString] = ("rows", "effects")
    for table in packed:
        rows = each(read(f"SELECT form, data FROM {table} WHERE {PACKED}", PACKED_FORMS))
        count = sum(not digests.issuperset(needs) for row in rows if (needs := needed(*row)) is not None)
        if count:
            yield f"the blobs of {count} {table} are missing"
    for row in each(read("SELECT hash, form, data FROM blobs ORDER BY hash", at_once=CONTENTS_AT_ONCE)):
        yield from false_blob(*row)


def false_blob(digest: bytes, form: int, data: bytes) -> Iterator[str]:
    """Yield an error for a content that does not match its hash."""
    try:
        true = content_hash(plain_content(digest, form, data)) == digest
    except StoreFailed as why:
        yield f"blob {digest.hex()} cannot be unpacked: {why}"
        return
    if not true:
        yield f"blob {digest.hex()} was changed after it was written"


def find_unused_needs(read: Snapshot, statements: TransferStatements) -> Iterator[str]:
    """Yield the rows that need contents which are not recorded as used: they would be deleted as unused."""
    used: dict[str, set[bytes]] = {}
    for execution, digest in each(read(statements.blob_uses)):
        used.setdefault(execution, set()).add(digest)
    for execution, seq, _, _, form, data, _ in each(read(f"{statements.rows} WHERE r.{PACKED}", PACKED_FORMS)):
        if not set(needed(form, data) or ()) <= used.get(execution, set()):
            yield f"execution {execution!r}: row {seq} needs contents that it is not recorded to use"
