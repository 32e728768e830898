"""What a key remembered before, and who wrote it: the same in every store.

    memory          user        ann  tone                 "long"                     what is remembered now
                    past user   ann  tone ⏎ 0000000003    {by: exec-7}               who wrote that
                    past user   ann  tone ⏎ 0000000002    {by: ben, value: "short"}  what it was before
                    past user   ann  notes ⏎ 0000000001   {by: exec-5, items: 4}     the first four of the list after it

The past lies beside the values, in scopes of its own that no node, tool or caller can name, and is written with them in
one transaction: a few rows for each change, however long it is. Rows without a value tell who wrote what is there now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from pointsman.ports import Change, Writer
from pointsman.store.codec import decode_json
from pointsman.store.memory_changes import ChangeResult
from pointsman.store.records import PastValue
from pointsman.values import Json

PAST: Final = "past "
"""What the scopes of the past begin with."""
BREAK: Final = "\n"
"""Between key and number. No key has one: names are printable."""
BEHIND: Final = "\v"
"""The sign after it: everything of a key lies between the two."""
DIGITS: Final = 10


class HistoryEntry(Struct, frozen=True, omit_defaults=True):
    """One change of a value, as it is stored."""

    by: Writer | None = None
    """None: nobody knows."""
    value: Raw = Raw()
    """What it was, once it is something else; empty: nothing is said."""
    items: int | None = None
    """Instead of the value: so many of the list that was appended to."""


class HistoryRow(NamedTuple):
    """A trace in its place."""

    number: int
    """Of the change, from 1 for each key."""
    data: bytes
    changed: float
    expires: float | None


class CurrentValue(NamedTuple):
    """What is remembered under a key before it changes."""

    data: bytes
    changed: float
    expires: float | None


class HistoryUpdate(NamedTuple):
    """What a change writes beside the value."""

    rows: tuple[HistoryRow, ...]
    first: int
    """What has a lower number is too long ago, and is forgotten."""


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
    change: Change, current: CurrentValue | None, made: ChangeResult, last: HistoryRow | None
) -> HistoryUpdate:
    """What is written beside a value that is set or appended to. `last`: the row with the highest number.

    Writing again what is there makes no past: the last who wrote it did.
    """
    assert change.by is not None, "changes by nobody leave no trace"
    number = 0 if last is None else last.number
    if current is None:
        # It is a new value, also where one has expired under the key: that one's past goes with it.
        return HistoryUpdate((_now(change, number + 1),), number + 1)
    known = HistoryEntry() if last is None else _TRACES.decode(last.data)
    if last is None or last.changed != current.changed:
        # Somebody wrote without leaving a trace: what the row tells of is lost, and nobody knows who did.
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


def _now(change: Change, number: int) -> HistoryRow:
    return HistoryRow(number, msgspec.json.encode(HistoryEntry(by=change.by)), change.at, change.expires)


def history_of_rows(current: CurrentValue, rows: Sequence[HistoryRow], *, at: float) -> list[PastValue]:
    """What a key has remembered, what it remembers now first. `rows`: the highest number first."""
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
    """None: it cannot be said any more."""
    trace = _TRACES.decode(row.data)
    if len(bytes(trace.value)):
        return decode_json(bytes(trace.value))
    if trace.items is not None and isinstance(following, list) and len(following) >= trace.items:
        return following[: trace.items]
    return None
