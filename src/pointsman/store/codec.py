"""Rows as bytes, and back, exactly or with a typed error; and the hash chain of an execution's rows. Builds only the
closed set of events it has.

    row ── encode ──▶ {"events": […], "cause": {…}} ── pack (see `compression`) ──▶ stored

A row without a cause is the list of its events. A stored event is never rewritten: each row stores the number of the
shape in which it was written, and `UPCASTERS[n]` brings one raw event from shape n to shape n + 1 when it is read.
Releases only append upcasters.

A store records which execution uses a blob, so that unused blobs can be deleted. It knows the contents of large rows
itself; references inside events (definitions, scripts) are found here.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, Generic, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Struct

from pointsman.engine.causes import Cause
from pointsman.engine.events.steps import Event
from pointsman.json_meter import LEVELS_MAX, is_deeper
from pointsman.ports import Row
from pointsman.store.compression import PACKED_BYTES_MAX, VERIFY, large_values
from pointsman.store.errors import JournalMoved, RowUnreadable, StoreDamaged, UnstorableValue
from pointsman.store.records import Summary
from pointsman.values import ExecutionId, Json, JsonObject

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


UPCASTERS: Final[tuple[Upcaster, ...]] = ()


_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FIELDS: Final = ("definition", "options")


def blobs_named(events: Sequence[object]) -> Sequence[bytes]:
    """Return the digests under `definition` and anywhere in `options` of events. On the hot path of every row."""
    for event in events:
        if _names_any(type(event)):
            return [digest for event in events if _names_any(type(event)) for digest in _digests_in(event)]
    return ()


def _digests_in(event: object) -> Iterator[bytes]:
    pending: list[object] = [getattr(event, name, None) for name in _FIELDS]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(cast("dict[str, object]", item).values())
        elif isinstance(item, list):
            pending.extend(cast("list[object]", item))
        elif isinstance(item, str) and _DIGEST.fullmatch(item):
            yield bytes.fromhex(item)


@lru_cache
def _names_any(kind: type) -> bool:
    return "definition" in getattr(kind, "__struct_fields__", ())


E = TypeVar("E")
Place: TypeAlias = "tuple[Place, object] | None"
"""Position of a value: the position of its container, and its key there. Shared, so depth costs nothing."""
Upcaster: TypeAlias = Callable[[JsonObject], JsonObject]

SPARE_LEVELS: Final = 200
"""Extra levels of nesting within which stored values must be readable: the reader's stack may be deeper."""
UPGRADE: Final = "A newer version of Pointsman wrote it: upgrade this one."


_encode = msgspec.json.Encoder().encode


class RowContent(Struct, Generic[E], frozen=True, omit_defaults=True, gc=False):
    """The stored part of a row: its events and its cause."""

    events: tuple[E, ...]
    cause: Cause | None = None


_raw_rows: Final = msgspec.json.Decoder(list[JsonObject] | RowContent[JsonObject])


class Codec(Generic[E]):
    """Encodes rows with events of one closed set of structs. `union` is that set; `lifts` bring old shapes up to it."""

    def __init__(self, union: object, lifts: Sequence[Upcaster] = ()) -> None:
        # A union of classes has no static type: the cast states the decoded type.
        self._events = cast("type[tuple[E, ...]]", tuple[union, ...])
        self._type = cast("type[RowContent[E]]", RowContent[union])
        self._events_decoder = msgspec.json.Decoder(self._events)
        self._decoder = msgspec.json.Decoder(self._type)
        self._upcasters = tuple(lifts)

    @property
    def shape(self) -> int:
        """The present shape number, which `encode` writes."""
        return len(self._upcasters)

    def encode(self, events: tuple[E, ...], cause: Cause | None = None) -> bytes:
        """Encode a row. Raises `UnstorableValue` for values that would not be decoded unchanged."""
        if cause is None:
            return encode_exactly(events, self._events_decoder.decode)
        return encode_exactly(RowContent(events, cause), self._decoder.decode)

    def decode(self, data: bytes, shape: int) -> RowContent[E]:
        """Decode a row. Raises `RowUnreadable` for anything outside the closed set."""
        try:
            if shape != len(self._upcasters):
                return self._lifted(data, shape)
            if data.startswith(b"["):
                return RowContent(self._events_decoder.decode(data))
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError) as why:
            raise RowUnreadable(
                f"a row of shape {shape} cannot be read: {why}", hint="Run `pointsman verify`."
            ) from why

    def _lifted(self, data: bytes, shape: int) -> RowContent[E]:
        if shape > len(self._upcasters):
            raise RowUnreadable(f"a row has the future shape {shape}", hint=UPGRADE)
        rows: list[JsonObject] | RowContent[JsonObject] = _raw_rows.decode(data)
        row = RowContent(tuple(rows)) if isinstance(rows, list) else rows
        raws: Sequence[JsonObject] = row.events
        for upcaster in self._upcasters[shape:]:
            raws = [upcaster(raw) for raw in raws]
        return RowContent(msgspec.convert(raws, self._events), row.cause)


def encode_json(value: Json) -> bytes:
    """Encode a JSON value exactly. Raises `UnstorableValue`."""
    return encode_exactly(value, _ANY.decode)


def decode_json(data: bytes) -> Json:
    """Decode a stored value. Raises `StoreDamaged`: a damaged column may not even be bytes."""
    try:
        return _ANY.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as why:
        raise StoreDamaged(f"a stored value cannot be read: {why}", hint=VERIFY) from why


_ANY: Final[msgspec.json.Decoder[Json]] = msgspec.json.Decoder()


def encode_exactly(value: object, decode: Callable[[bytes], object]) -> bytes:
    """Encode a value; if the bytes indicate a possible loss, check that they decode to the same value."""
    try:
        data = _encode(value)
    except (UnicodeEncodeError, ValueError, RecursionError, TypeError, OverflowError) as why:
        raise unstorable(value, f"{type(why).__name__}: {why}") from why
    # The encoder silently writes NaN and infinity as null; nesting costs the reader stack.
    if b"null" in data or (len(data) > SPARE_LEVELS and data.count(b"[") + data.count(b"{") > SPARE_LEVELS):
        prove(value, data, decode)
    return data


def prove(value: object, data: bytes, decode: Callable[[bytes], object]) -> None:
    """Raise `UnstorableValue` unless the bytes can be read and, if they contain null, mean the same value."""
    if data.count(b"[") + data.count(b"{") > LEVELS_MAX and is_deeper(data, LEVELS_MAX):
        raise unstorable(value, f"it is nested more than {LEVELS_MAX} levels deep")
    try:
        msgspec.json.decode(b"".join((b"[" * SPARE_LEVELS, data, b"]" * SPARE_LEVELS)), type=msgspec.Raw)
        if b"null" not in data:
            return  # Only nesting was in doubt: a large value is not decoded for that.
        same = decode(data) == value
    except (msgspec.MsgspecError, RecursionError) as why:
        raise unstorable(value, f"{type(why).__name__}: {why}") from why
    # Tuples are decoded as lists if the type does not require tuples: such a difference is not a loss.
    if not same and first_loss(value) is not None:
        raise unstorable(value, "decoding it gives another value")


def unstorable(value: object, reason: str) -> UnstorableValue:
    return UnstorableValue(
        f"a value cannot be stored: {first_loss(value) or reason}",
        hint="Numbers must be finite and have less than 4300 digits, texts be valid Unicode, and values nest at most "
        f"{LEVELS_MAX} levels.",
    )


def check_summary(summary: Summary) -> None:
    """Raise `UnstorableValue` for a text with NUL, which PostgreSQL cannot store, or with half a character."""
    try:
        if NUL_IN_JSON not in msgspec.json.encode(summary):
            return
    except UnicodeEncodeError as why:
        raise unstorable(summary, str(why)) from why
    for name, value in children(summary):
        if contains_nul(value):
            raise UnstorableValue(
                f"{name!r} of the execution {summary.execution!r} contains the character NUL",
                hint="Remove the character U+0000 from it: lists of executions cannot store it.",
            )


NUL_IN_JSON: Final = b"\\u0000"
"""NUL as msgspec writes it; also the last characters of an escaped backslash before `u0000`."""


def contains_nul(value: object) -> bool:
    """Return whether a text in the value, or a key of it, contains NUL."""
    return "\0" in value if isinstance(value, str) else any(contains_nul(child) for _, child in children(value))


def first_loss(value: object) -> str | None:
    """Return a JSON pointer to the first value that JSON cannot represent, and that value; None if there is none."""
    pending: list[tuple[Place, object]] = [(None, value)]
    while pending:
        place, item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return f"{item!r} at {pointer_to(place)!r}"
        if isinstance(item, str) and not item.isascii() and any("\ud800" <= c <= "\udfff" for c in item):
            return f"half a character (a lone surrogate) at {pointer_to(place)!r}"
        pending.extend(((place, key), child) for key, child in children(item))
    return None


def pointer_to(place: Place) -> str:
    keys: list[str] = []
    while place is not None:
        place, key = place
        keys.append(str(key))
    return "/" + "/".join(reversed(keys))


def children(item: object) -> list[tuple[object, object]]:
    if isinstance(item, dict):
        pairs = cast("dict[object, object]", item)
        return [*zip(pairs, pairs, strict=True), *pairs.items()]
    if isinstance(item, list | tuple):
        return list(enumerate(cast("list[object]", item)))
    if isinstance(item, msgspec.Struct):
        return [(name, getattr(item, name)) for name in item.__struct_fields__]
    return []
