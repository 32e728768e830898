"""Stored form of bytes: plain, compressed, or by reference. Large values are stored once, by the hash of their content.

    row ── plain (≤ 2 KB) │ zstd (≤ 64 KB) │ pieces: text · #hash · text · #hash · …  │ a blob as a whole

A row is the text of its events. Large values are cut out of a large text and stored by their hashes; joined again,
the text is the same. So no value needs a marker for references, and a document that passes through ten steps is stored
once.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from io import BytesIO
from typing import Final, cast

import msgspec
from msgspec import Struct

from pointsman.store.errors import RowUnreadable, StoreDamaged, StoreFailed

INLINE_BYTES_MAX: Final = 2 * 1024
PACKED_BYTES_MAX: Final = 64 * 1024
VALUE_BYTES_MIN: Final = 64 * 1024
"""Values from this size on are stored separately."""
SMALL: Final = frozenset({type(None), bool, int, float})
"""Types of values that are never large."""
WHOLE: Final = frozenset({str, list, dict})
"""The types of large values."""
CHARACTER_BYTES_MAX: Final = 6
"""Maximum encoded size of one character of a text: `\\u0000`."""
VERIFY: Final = "Run `pointsman verify`: it lists what is damaged."

_encode = msgspec.json.Encoder().encode
_pieces: Final = msgspec.msgpack.Decoder(list[bytes])
NO_BLOBS: Final[Mapping[bytes, bytes]] = {}


class Form(IntEnum):
    """The stored form of bytes. The numbers are stored: never change one."""

    PLAIN = 0
    ZSTD = 1
    BLOB = 2
    """The hash of the whole content."""
    PIECES = 3
    """Text, hash, text, hash, …, text, as compressed MessagePack."""
    GONE = 9
    """No content: this row was deleted, and its place stays taken."""


class Packed(Struct, frozen=True, gc=False):
    """Bytes ready to be stored, and what must be stored beside them: content by its hash."""

    form: Form
    data: bytes
    blobs: Mapping[bytes, bytes] = NO_BLOBS


def pack(plain: bytes, large: Sequence[bytes] = ()) -> Packed:
    """Pack bytes: small ones plain, larger ones compressed if that helps, the largest by the hashes of their contents.

    `large`: the large values inside, encoded, in their order (see `large_values`).
    """
    if len(plain) <= INLINE_BYTES_MAX:
        return Packed(Form.PLAIN, plain)
    if len(plain) <= PACKED_BYTES_MAX:
        squeezed = compress(plain)
        return Packed(Form.ZSTD, squeezed) if len(squeezed) < len(plain) else Packed(Form.PLAIN, plain)
    if large:
        return _in_pieces(plain, large)
    digest = content_hash(plain)
    return Packed(Form.BLOB, digest, {digest: plain})


def _in_pieces(plain: bytes, large: Sequence[bytes]) -> Packed:
    pieces: list[bytes] = []
    blobs: dict[bytes, bytes] = {}

    def keep(content: bytes) -> bytes:
        digest = content_hash(content)
        blobs[digest] = content
        return digest

    offset = 0
    for value in large:
        at = plain.find(value, offset)
        if at < 0:
            continue  # Left in the text: cutting must never change the row.
        _text(pieces, plain[offset:at], keep)
        pieces.append(keep(value))
        offset = at + len(value)
    _text(pieces, plain[offset:], keep)
    return Packed(Form.PIECES, compress(msgspec.msgpack.encode(pieces)), blobs)


def _text(pieces: list[bytes], text: bytes, keep: Callable[[bytes], bytes]) -> None:
    """Text between large values: many small values together can also be large."""
    pieces += [b"", keep(text), b""] if len(text) > PACKED_BYTES_MAX else [text]


def unpack(form: int, data: bytes, blob: Callable[[bytes], bytes]) -> bytes:
    """Return the plain bytes. `blob` finds content by its hash."""
    match form:
        case Form.PLAIN:
            return data
        case Form.ZSTD:
            return decompress(data)
        case Form.BLOB:
            return blob(data)
        case Form.PIECES:
            joined = BytesIO()
            for number, piece in enumerate(read_pieces(data)):
                joined.write(blob(piece) if number % 2 else piece)
            return joined.getvalue()
        case _:
            raise RowUnreadable(
                f"a row is stored in the unknown form {form!r}", hint="A newer version wrote it: upgrade."
            )


def blobs_behind(form: int, data: bytes) -> Sequence[bytes]:
    """Return the hashes of the contents that stored bytes refer to."""
    if form == Form.BLOB:
        return (data,)
    return read_pieces(data)[1::2] if form == Form.PIECES else ()


def needed(form: int, data: bytes) -> Sequence[bytes] | None:
    """Return the blobs behind stored bytes; None if the bytes are damaged, which the check of their chain reports."""
    try:
        return blobs_behind(form, data)
    except StoreFailed:
        return None


def read_pieces(data: bytes) -> list[bytes]:
    try:
        return _pieces.decode(decompress(data))
    except msgspec.MsgspecError as why:
        raise StoreDamaged(f"a row in pieces cannot be read: {why}", hint=VERIFY) from why


def content_hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


class Compressor(threading.local):
    """Compressor of one thread: creating one costs half as much as using it."""

    def __init__(self) -> None:
        import zstandard  # Most processes never store anything large.

        self.together = zstandard.ZstdCompressor(level=3).compress
        self.apart = zstandard.ZstdDecompressor().decompress


@cache
def _compressor() -> Compressor:
    return Compressor()


def compress(plain: bytes) -> bytes:
    return _compressor().together(plain)


def decompress(squeezed: bytes) -> bytes:
    import zstandard  # As above.

    try:
        return _compressor().apart(squeezed)
    except zstandard.ZstdError as why:
        raise StoreDamaged(f"compressed data cannot be unpacked: {why}", hint=VERIFY) from why


def squeezed(content: bytes) -> tuple[Form, bytes]:
    """Return the stored form of a blob: compressed if that helps."""
    smaller = compress(content)
    return (Form.ZSTD, smaller) if len(smaller) < len(content) else (Form.PLAIN, content)


def large_values(events: Sequence[object]) -> list[bytes]:
    """Return the large values inside, encoded, in the order of the text. Of nested ones the innermost, because it stays
    the same while it is wrapped, passed on and wrapped again. O(size) for each large container; holds the text of one
    container at a time beside the result.
    """
    chunks: list[bytes] = []
    pending = [*reversed(events)]
    while pending:
        item = pending.pop()
        if inner := [child for child in _inside(item) if type(child) not in SMALL and _is_large(child)]:
            pending.extend(reversed(inner))
        elif type(item) in WHOLE and _is_large(item):
            chunks.append(_encode(item))
    return chunks


def _is_large(item: object) -> bool:
    return len(_encode(item)) >= VALUE_BYTES_MIN


def _inside(item: object) -> Iterable[object]:
    """Return the parts of a value, without texts that are short: there may be very many."""
    if isinstance(item, dict):
        parts: Iterable[object] = cast("dict[str, object]", item).values()
    elif isinstance(item, list | tuple):
        parts = cast("list[object]", item)
    elif isinstance(item, msgspec.Struct):
        parts = [getattr(item, name) for name in item.__struct_fields__]
    else:
        return ()
    return [part for part in parts if type(part) is not str or len(part) * CHARACTER_BYTES_MAX >= VALUE_BYTES_MIN]


HOLD_S: Final = 600.0
"""How long a blob stays after it was put, until an execution uses it."""
