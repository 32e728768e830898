"""History of remembered values: the earlier values of a key and their writers, the same in every store.

    memory          user        ann  tone                 "long"                     the present value
                    past user   ann  tone ⏎ 0000000003    {by: exec-7}               its writer
                    past user   ann  tone ⏎ 0000000002    {by: ben, value: "short"}  the value before
                    past user   ann  notes ⏎ 0000000001   {by: exec-5, items: 4}     its first four items

The history lies beside the values, in scopes of its own that no node, tool or caller can name, and is written in the
same transaction: a few rows for each change. Rows without a value name the writer of the present value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from pointsman.ports import ChangeAuthor, MemoryChange
from pointsman.store.codec import decode_json
from pointsman.store.memory_changes import ChangeResult
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
    change: MemoryChange, current: CurrentValue | None, made: ChangeResult, last: HistoryRow | None
) -> HistoryUpdate:
    """Return the history rows for a value that is set or appended to. `last`: the row with the highest number.

    Writing the same value again adds no history, and the last writer becomes its writer.
    """
    assert change.by is not None, "changes without a writer have no history"
    number = 0 if last is None else last.number
    if current is None:
        # A new value, or one in place of an expired one, whose history is deleted with it.
        return HistoryUpdate((_now(change, number + 1),), number + 1)
    known = HistoryEntry() if last is None else _TRACES.decode(last.data)
    if last is None or last.changed != current.changed:
        # A change without history came between: the value of that row is lost, and its writer is unknown.
        number, known = number + 1, HistoryEntry()
    if made.data == current.data:
        return HistoryUpdate((_now(change, number),), 1)
    if change.operation == "append" and isinstance(made.value, list):
        was = HistoryEntry(by=known.by, items=len(made.value) - 1)
    else:
        was = HistoryEntry(by=known.by, value=Raw(current.data))
    before = HistoryRow(number, msgspec.json.encode(was), current.changed, current.expires)
    now = _now(change, number + 1)
    return HistoryUpdate((before, now) if change.quota.earlier else (now,), number + 1 - change.quota.earlier)


def _now(change: MemoryChange, number: int) -> HistoryRow:
    return HistoryRow(number, msgspec.json.encode(HistoryEntry(by=change.by)), change.at, change.expires)


def history_of_rows(current: CurrentValue, rows: Sequence[HistoryRow], *, at: float) -> list[PastValue]:
    """Return the values of a key, the present one first. `rows`: the highest number first."""
    value = decode_json(current.data)
    known = _TRACES.decode(rows[0].data) if rows and rows[0].changed == current.changed else HistoryEntry()
    number = 1 if not rows else rows[0].number + (rows[0].changed != current.changed)
    told = [PastValue(number, value, current.changed, current.expires, known.by)]
    following: Json | None = value
    for row in rows:
        if row.number == number:
            continue
        lives = row.expires is None or row.expires > at
        following = _value_of(row, following if row.number == number - 1 else None) if lives else None
        number = row.number
        if following is not None:
            told.append(PastValue(number, following, row.changed, row.expires, _TRACES.decode(row.data).by))
    return told


def _value_of(row: HistoryRow, following: Json | None) -> Json | None:
    """Return the value of a history row; None: it is lost."""
    trace = _TRACES.decode(row.data)
    if len(bytes(trace.value)):
        return decode_json(bytes(trace.value))
    if trace.items is not None and isinstance(following, list) and len(following) >= trace.items:
        return following[: trace.items]
    return None
