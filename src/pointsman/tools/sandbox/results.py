"""Results of code as JSON, measured while they are read, because a small structure can be a large text:

a = [0] * 10
for _ in range(20): a = [a] * 10        # a few hundred bytes in memory, 10²⁰ numbers as text
"""

from __future__ import annotations

import math
from typing import ClassVar, Final, cast

from pointsman.errors import AuthorError
from pointsman.json_meter import DIGITS_MAX
from pointsman.values import Json, JsonObject

DEPTH_MAX: Final = 100
TOO_LONG: Final = 10**DIGITS_MAX
"""The smallest integer with too many digits."""


class ResultUnusable(AuthorError):
    """Raised when the result of code is not JSON, or is too large."""

    code: ClassVar[str] = "code-result"


class ResultMeter:
    """Reads one result and limits its approximate size as JSON text."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._left = bytes_max

    def read(self, value: object, depth: int = 0) -> Json:
        """Return the value as JSON; tuples become lists. Raises `ResultUnusable`."""
        if depth > DEPTH_MAX:
            raise ResultUnusable(f"the result is nested deeper than {DEPTH_MAX} levels", hint="Return less of it.")
        self._count(1)
        match value:
            case None | bool():
                return value
            case str():
                self._count(len(value))
                return value
            case float() if math.isfinite(value):
                return value
            case int() if -TOO_LONG < value < TOO_LONG:
                self._count(value.bit_length() // 4)
                return value
            case list() | tuple():
                return [self.read(one, depth + 1) for one in cast("list[object]", value)]
            case dict():
                return self._object(cast("dict[object, object]", value), depth)
            case _:
                hint = "Make texts, numbers, lists, and objects with texts as keys of it."
                raise ResultUnusable(f"the result has {_told(value)}, which is no JSON", hint=hint)

    def _object(self, value: dict[object, object], depth: int) -> JsonObject:
        found: JsonObject = {}
        for key, one in value.items():
            if not isinstance(key, str):
                raise ResultUnusable(f"the result has the key {key!r:.50}", hint="Keys are texts: str(key).")
            self._count(len(key))
            found[key] = self.read(one, depth + 1)
        return found

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ResultUnusable(
                f"the result has more than {self._bytes_max} bytes",
                hint="Return less of it, or allow more: `result` under [sandbox] in the settings.",
            )


def _told(value: object) -> str:
    match value:
        case float():
            return f"the number {value}"
        case int():
            return f"a number with more than {DIGITS_MAX} digits"
        case _:
            name = type(value).__name__
            return "an instance of a class" if name.startswith("Monty") else f"a {name}"
