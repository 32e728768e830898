"""Result of reading a text of any format: the value, the positions of its parts, and its irregularities."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Final, NoReturn, TypeAlias

from pointsman.json_meter import DIGITS_MAX
from pointsman.values import Json, JsonObject

DEPTH_MAX: Final = 200
SKETCHES_MAX: Final = 20
"""Maximum number of reports about a sketch of a schema: more would not help the author."""


Parts: TypeAlias = "dict[str | int, ValuePosition]"

NO_PARTS: Final[Parts] = {}
"""Shared by all values without members or items. Must not be changed."""


@dataclass(slots=True)
class ValuePosition:
    """Offsets of a value and its key, and the positions of its parts."""

    offset: int
    key_offset: int = -1
    """Offset of the member's key; -1 for items of lists."""
    parts: Parts = field(default_factory=lambda: NO_PARTS)


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of `text[start:end]` that makes the text readable without changing its meaning."""

    start: int
    end: int
    new: str
    says: str
    """The repair in words, as advice."""


class Unreadable(Exception):
    """The text cannot be read from this offset on. Stays inside `definition`: readers turn it into a problem."""

    def __init__(self, code: str, message: str, offset: int, *, hint: str = "", edit: Edit | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.offset, self.hint, self.edit = code, message, offset, hint, edit


@dataclass(slots=True)
class ReadText:
    """The value of a text, its irregularities, and the positions of its parts."""

    value: Json = None
    root: ValuePosition = field(default_factory=lambda: ValuePosition(0))
    duplicates: list[tuple[tuple[str | int, ...], int, int]] = field(
        default_factory=list["tuple[tuple[str | int, ...], int, int]"]
    )
    """(path of the key, offset of the first, offset of the second)."""
    sketches: list[tuple[tuple[str | int, ...], int]] = field(default_factory=list["tuple[tuple[str | int, ...], int]"])
    """(path, offset) of each `...`, with the path of the value around it, and of each `|` between values."""
    is_plain: bool = True
    """False if the text contains something that plain JSON does not have."""
    comment: int | None = None
    """Offset of the first comment in JSON."""


class _NotPlain(ValueError):
    """Something that only the exact reader can describe."""


def standard(text: str) -> Json:
    """Read plain JSON fast. Raises ValueError if the exact reader
    is needed: bad text, duplicate keys, excessive depth."""
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_finite, parse_int=_whole
        )
    except RecursionError as why:
        raise _NotPlain from why
    if text.count("[") + text.count("{") > DEPTH_MAX and _depth(value) > DEPTH_MAX:
        raise _NotPlain
    return value


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _NotPlain
    return made


def _refuse(_name: str) -> NoReturn:
    raise _NotPlain


def _whole(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise _NotPlain
    return int(text)


def _finite(text: str) -> float:
    if len(text) > DIGITS_MAX:
        raise _NotPlain
    number = float(text)
    if not math.isfinite(number):
        raise _NotPlain
    return number


def _depth(value: Json) -> int:
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ())
            if isinstance(inner, dict | list)
        ]
    return depth
