"""A row on its way into a store: its events as text, and what is known of them besides."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from pointsman.engine.events.steps import Event
from pointsman.ports import Row
from pointsman.store.blob_references import blobs_named
from pointsman.store.codec import Codec
from pointsman.store.compression import PACKED_BYTES_MAX, large_values


class EncodedRow(Struct, frozen=True, gc=False):
    """Everything a store needs to add the row."""

    seq: int
    at: float
    shape: int
    plain: bytes
    large: Sequence[bytes]
    """The large values inside, as they are written there, in order."""
    names: Sequence[bytes]
    """The hashes of blobs that it names."""


def encoded_row(row: Row, codec: Codec[Event]) -> EncodedRow:
    """Encode it. Raises `UnstorableValue`."""
    plain = codec.encode(row.events)
    large = large_values(row.events) if len(plain) > PACKED_BYTES_MAX else ()
    return EncodedRow(row.seq, row.at, codec.shape, plain, large, blobs_named(row.events))
