"""Transfer of a whole store: everything in it at one moment, as rows that every kind of store can write.

    a store ── read: one moment, part by part ──▶ parts ── write: all of them, or none ──▶ an empty store

What a store derives (numbers of executions, search words, awaited events) is not copied but derived again. The
bytes of rows and contents are copied as they lie, so the hashes that chain them hold in the copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, LiteralString, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from pointsman.errors import OperatorError
from pointsman.store.errors import StoreFailed
from pointsman.store.records import USAGE_COLUMNS, Summary

Value: TypeAlias = str | bytes | int | float | None

COPIED: Final[Mapping[LiteralString, tuple[LiteralString, ...]]] = {
    "blobs": ("hash", "form", "data", "held_until"),
    "rows": ("execution", "seq", "at", "shape", "form", "data", "hash"),
    "blob_uses": ("execution", "hash"),
    "effects": ("execution", "attempt", "number", "form", "data"),
    "summaries": ("summary",),
    "answers": ("execution", "gate", "person", "at", "workflow", "data"),
    "workflows": (
        "id",
        "revision",
        "version",
        "name",
        "dialect",
        "created",
        "author",
        "digest",
        "text",
        "native",
    ),
    "deleted_workflows": ("id",),
    "memory": ("scope", "namespace", "key", "value", "changed", "expires"),
    "usage": USAGE_COLUMNS,
    "messages": ("session", "number", "message"),
    "closed_sessions": ("session",),
    "entries": ("kind", "key", "value", "version"),
    "last_version": ("version",),
}
"""The parts of a copy, in this order. Executions are named by their ids, a summary is JSON with its open gates."""
LEFT_OUT: Final[Mapping[str, str]] = {
    "executions": "their numbers are each store's own",
    "deleted_executions": "what is left of them is not copied",
    "awaited": "it is in the summaries",
    "gates": "they are in the summaries",
    "gate_people": "they are in the summaries",
    "memory_words": "they follow from what is remembered",
    "usage_sums": "they follow from the usage",
    "memory_vectors": "they are computed again",
    "leader": "no process leads the copy",
    "runtimes": "no process drives the copy",
    "placed_steps": "no worker performs steps of the copy",
    "mailbox": "a request waits for its answer, which the copy cannot give",
}
"""Tables that are not parts of a copy, and why."""
ROWS_AT_ONCE: Final = 500
"""Of a part: a row is at most some ten kilobytes, contents are larger."""
CONTENTS_AT_ONCE: Final = 8


class TransferPart(NamedTuple):
    """Some rows of one table, with the columns of `COPIED`."""

    table: LiteralString
    rows: Sequence[tuple[Value, ...]]


class StoreNotEmpty(OperatorError):
    """A copy needs an empty store, because it would mix with existing data."""

    code: ClassVar[str] = "store-not-empty"


class StoreCopyUnsupported(OperatorError):
    """This kind of store cannot be copied as a whole."""

    code: ClassVar[str] = "store-copy-unsupported"


class StoreTransfer(Protocol):
    """Reads and writes a whole store. Both verbs block: call them in a thread. Safe while the store is in use."""

    def read(self) -> Iterator[TransferPart]:
        """Yield everything, as it is at the moment of the first part, without blocking writers."""
        ...

    def write(self, parts: Iterable[TransferPart]) -> None:
        """Write all parts; on any error, none. Raises `StoreNotEmpty`."""
        ...


@runtime_checkable
class TransferableStore(Protocol):
    """A store that can be copied."""

    @property
    def copying(self) -> StoreTransfer: ...


def transfer_of(store: object, address: str) -> StoreTransfer:
    """Raise `StoreCopyUnsupported` if the store cannot be copied."""
    if not isinstance(store, TransferableStore):
        raise StoreCopyUnsupported(f"{address!r} cannot be copied as a whole", hint="Use a SQLite or PostgreSQL store.")
    return store.copying


def not_empty(what: str) -> StoreNotEmpty:
    return StoreNotEmpty(f"the store has {what} already", hint="Name an empty store.")


def summary_in(row: Sequence[Value]) -> Summary:
    """The summary of a row of that part."""
    (data,) = row
    assert isinstance(data, bytes), "a summary is bytes"
    try:
        return msgspec.json.decode(data, type=Summary)
    except msgspec.MsgspecError as why:
        raise StoreFailed(f"a summary cannot be read: {why}", hint="A newer version wrote it: upgrade.") from None


def summary_row(summary: Summary) -> tuple[Value, ...]:
    return (msgspec.json.encode(summary),)
