"""Rules of remembered values, the same in every store: changes, history, words and vectors.

    known value ─┐
    change ──────┴▶ the new value, and the answer        (once: kept as an effect of the execution)

    memory          user        ann  tone                 "long"                     the present value
                    past user   ann  tone ⏎ 0000000003    {by: exec-7}               its writer
                    past user   ann  tone ⏎ 0000000002    {by: ben, value: "short"}  the value before
                    past user   ann  notes ⏎ 0000000001   {by: exec-5, items: 4}     its first four items

The history lies beside the values, in scopes of its own that no node, tool or caller can name, and is written in the
same transaction: a few rows for each change. Rows without a value name the writer of the present value.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from pointsman.ports import ChangeAuthor, MemoryChange, Quota
from pointsman.store.codec import decode_json, encode_json
from pointsman.store.errors import MemoryFull, MemoryNotAList, VectorsDiffer
from pointsman.store.records import PastValue
from pointsman.values import Json

PAST: Final = "past "
"""Prefix of the scopes of the history."""
BREAK: Final = "\n"
"""Separator of key and number. Keys are printable, so no key contains it."""
BEHIND: Final = "\v"
"""The next character: the history of a key sorts between the two."""
DIGITS: Final = 10


class HistoryEntry(Struct, frozen=True, omit_defaults=True):
    """One change of a value, as it is stored."""

    by: ChangeAuthor | None = None
    """None: unknown."""
    value: Raw = Raw()
    """The earlier value; empty: it is still the present one."""
    items: int | None = None
    """Instead of the value: the number of items of the list before an append."""


class HistoryRow(NamedTuple):
    """A history entry with its number and times."""

    number: int
    """Number of the change, from 1 for each key."""
    data: bytes
    changed: float
    expires: float | None


class CurrentValue(NamedTuple):
    """The value of a key before a change."""

    data: bytes
    changed: float
    expires: float | None


class HistoryUpdate(NamedTuple):
    """The history rows that a change writes."""

    rows: tuple[HistoryRow, ...]
    first: int
    """Rows with a lower number exceed the quota and are deleted."""


_TRACES: Final = msgspec.json.Decoder(HistoryEntry)


def history_scope(scope: str) -> str:
    return f"{PAST}{scope}"


def is_history(scope: str) -> bool:
    return scope.startswith(PAST)


def history_key(key: str, number: int) -> str:
    return f"{key}{BREAK}{number:0{DIGITS}d}"


def number_of(stored: str) -> int:
    return int(stored[-DIGITS:])


def history_update(
    change: MemoryChange, current: CurrentValue | None, result: ChangeResult, last: HistoryRow | None
) -> HistoryUpdate:
    """Return the history rows for a value that is set or appended to. `last`: the row with the highest number.

    Writing the same value again adds no history, and the last writer becomes its writer.
    """
    assert change.by is not None, "changes without a writer have no history"
    number = 0 if last is None else last.number
    if current is None:
        # A new value, or one in place of an expired one, whose history is deleted with it.
        return HistoryUpdate((_now(change, number + 1),), number + 1)
    entry = HistoryEntry() if last is None else _TRACES.decode(last.data)
    if last is None or last.changed != current.changed:
        # A change without history came between: the value of that row is lost, and its writer is unknown.
        number, entry = number + 1, HistoryEntry()
    if result.data == current.data:
        return HistoryUpdate((_now(change, number),), 1)
    if change.operation == "append" and isinstance(result.value, list):
        was = HistoryEntry(by=entry.by, items=len(result.value) - 1)
    else:
        was = HistoryEntry(by=entry.by, value=Raw(current.data))
    before = HistoryRow(number, msgspec.json.encode(was), current.changed, current.expires)
    now = _now(change, number + 1)
    return HistoryUpdate((before, now) if change.quota.earlier else (now,), number + 1 - change.quota.earlier)


def _now(change: MemoryChange, number: int) -> HistoryRow:
    return HistoryRow(number, msgspec.json.encode(HistoryEntry(by=change.by)), change.at, change.expires)


def history_of_rows(current: CurrentValue, rows: Sequence[HistoryRow], *, at: float) -> list[PastValue]:
    """Return the values of a key, the present one first. `rows`: the highest number first."""
    value = decode_json(current.data)
    entry = _TRACES.decode(rows[0].data) if rows and rows[0].changed == current.changed else HistoryEntry()
    number = 1 if not rows else rows[0].number + (rows[0].changed != current.changed)
    values = [PastValue(number, value, current.changed, current.expires, entry.by)]
    following: Json | None = value
    for row in rows:
        if row.number == number:
            continue
        lives = row.expires is None or row.expires > at
        following = _value_of(row, following if row.number == number - 1 else None) if lives else None
        number = row.number
        if following is not None:
            values.append(PastValue(number, following, row.changed, row.expires, _TRACES.decode(row.data).by))
    return values


def _value_of(row: HistoryRow, following: Json | None) -> Json | None:
    """Return the value of a history row; None: it is lost."""
    trace = _TRACES.decode(row.data)
    if len(bytes(trace.value)):
        return decode_json(bytes(trace.value))
    if trace.items is not None and isinstance(following, list) and len(following) >= trace.items:
        return following[: trace.items]
    return None


def normalized(vector: Sequence[float]) -> array[float]:
    """The same direction, at length 1, in 32 bits a number; one without a direction stays as it is."""
    length = math.sqrt(sum(number * number for number in vector))
    return array("f", (number / length for number in vector) if length else vector)


def mark_of(data: bytes) -> bytes:
    """Return a digest that identifies an encoded value."""
    return hashlib.sha256(data).digest()


def check_length(model: str, lengths: Iterable[int], length: int) -> None:
    """Raise `VectorsDiffer` if vectors of another length are stored. Empty ones do not count."""
    other = next((size for size in lengths if size and length and size != length), None)
    if other is not None:
        raise VectorsDiffer(
            f"the embeddings of {model!r} have {length} numbers, the stored ones have {other}",
            hint="Compute them again: `pointsman memory reindex`.",
        )


_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, Kana, Han: written without spaces between words."""
WORDS: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def words_of(text: str) -> list[str]:
    """Return each word once, in order, without case and accents; in scripts without spaces each letter is a word.

    No word is an operator of a search language.
    """
    return [*dict.fromkeys(_found(text))]


def folded(text: str) -> str:
    """Return the words with spaces between them, repeated as often as in the text."""
    return " ".join(_found(text))


def _found(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter)) if not plain.isascii() else plain
    return WORDS.findall(unicodedata.normalize("NFKC", bare).casefold())


def texts(value: Json) -> Iterator[str]:
    """Yield every text and number in a value, and the names of its fields."""
    pending: list[Json] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif item is not None:
            yield str(item)


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


def change_result(change: MemoryChange, current: Json | None) -> ChangeResult:
    """Apply a change. Raises `MemoryNotAList`, and `MemoryFull` for a value above the size limit."""
    match change.operation:
        case "delete":
            return ChangeResult(None, b"", current is not None)
        case "append":
            if current is not None and not isinstance(current, list):
                raise not_a_list(change.key)
            value: Json = [*(current or []), change.value]
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
