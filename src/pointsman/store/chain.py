"""Hash chains: the rows of one execution, in every store that outlives a process.

    hash(row) = SHA-256(hash of the row before it, seq, at, shape, form, data)      hash(row 0) = SHA-256(execution id)

A row changed, moved, or taken out of the middle breaks every hash behind it.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from msgspec import Struct

from pointsman.store.errors import JournalMoved
from pointsman.values import ExecutionId

HEADS_MAX: Final = 50_000
"""Executions whose last row is cached; the others are looked up."""
HEADER: Final = struct.Struct(">QdIB")


class Head(Struct, frozen=True, gc=False):
    """The end of one journal."""

    seq: int
    hash: bytes
    no: int = 0
    """The store's own number of the execution, if it has one; 0: it has no row yet."""


class Heads(dict[ExecutionId, Head]):
    """The ends of recently written journals. The oldest entry is dropped first."""

    def keep(self, execution: ExecutionId, head: Head) -> None:
        if len(self) >= HEADS_MAX and execution not in self:
            del self[next(iter(self))]
        self[execution] = head


def row_hash(previous: bytes, seq: int, at: float, shape: int, form: int, data: bytes) -> bytes:
    digest = hashlib.sha256(previous)
    digest.update(HEADER.pack(seq, at, shape, form))
    digest.update(data)
    return digest.digest()


def first_hash(execution: ExecutionId) -> bytes:
    return hashlib.sha256(execution.encode()).digest()


def moved(execution: ExecutionId, seq: int, last: int | None) -> JournalMoved:
    """Return the error for a row that does not follow row `last`; None: the last row is not known."""
    where = "at a later row" if last is None else f"at row {last}"
    return JournalMoved(
        f"execution {execution!r} is {where}; row {seq} does not follow",
        hint="Read the rows it has now and decide again.",
    )
