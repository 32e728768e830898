"""A journal row encoded for a store: its events as text, its large values, the blobs it refers to."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from pointsman.engine.events.steps import Event
from pointsman.ports import Row
from pointsman.store.blob_references import blobs_named
from pointsman.store.codec import Codec
from pointsman.store.compression import PACKED_BYTES_MAX, large_values


class EncodedRow(Struct, frozen=True, gc=False):
    """A row, ready to be packed and chained."""

    seq: int
    at: float
    shape: int
    plain: bytes
    large: Sequence[bytes]
    """The large values inside, as they are written there, in order."""
    names: Sequence[bytes]
    """The hashes of blobs that its events refer to."""


def encoded_row(row: Row, codec: Codec[Event]) -> EncodedRow:
    """Encode a row. Raises `UnstorableValue`."""
    plain = codec.encode(row.events, row.cause)
    large = large_values((*row.events, row.cause)) if len(plain) > PACKED_BYTES_MAX else ()
    return EncodedRow(row.seq, row.at, codec.shape, plain, large, blobs_named(row.events))
