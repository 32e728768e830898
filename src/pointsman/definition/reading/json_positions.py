"""Positions of the values in valid plain JSON. They are computed only for documents with problems.

An object or list is read again when a pointer first leads into it. The decoder of the standard library, which is
written in C, skips the values inside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from pointsman.definition.reading.results import Parts, ValuePosition
from pointsman.values import Json

SKIPPED_DEPTH_MAX: Final = 8
"""Depth from which nested values are not skipped but read together with the object
or list around them: otherwise the text would be read once for each of its levels."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_GAP: Final = re.compile(r"[ \t\r\n]*[:,]?[ \t\r\n]*")
_decoded: Final[Callable[[str, int], tuple[Json, int]]] = json.JSONDecoder().raw_decode
"""Return the value at an offset, and the offset where it ends."""


class JsonPlaces:
    """Positions in one text, which must be valid JSON without comments."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.root = ValuePosition(self._behind_gap(0))

    def parts(self, place: ValuePosition, depth: int) -> Parts:
        """Return the members or items of a value; empty for a
        scalar. `depth` counts the objects and lists around it."""
        if not place.parts and self._text[place.offset] in "{[":
            place.parts = self.read(place.offset) if depth < SKIPPED_DEPTH_MAX else self._read_all(place.offset)
        return place.parts

    def _behind_gap(self, offset: int) -> int:
        """Return the end of the white space at an offset, including one comma or colon in it."""
        found = _GAP.match(self._text, offset)
        assert found is not None
        return found.end()

    def read(self, offset: int) -> Parts:
        """Return the members or items of one object or list."""
        text = self._text
        found: Parts = {}
        is_object = text[offset] == "{"
        at = self._behind_gap(offset + 1)
        while text[at] not in "}]":
            key: Json = len(found)
            key_offset = -1
            if is_object:
                key, end = _decoded(text, at)
                key_offset, at = at, self._behind_gap(end)
            assert isinstance(key, str | int)
            found[key] = ValuePosition(at, key_offset)
            at = self._behind_gap(_decoded(text, at)[1])
        return found

    def _read_all(self, offset: int) -> Parts:
        """Return the members or items, and read everything inside them in the same pass."""
        above = here = ValuePosition(offset, parts={})
        index, key, key_offset = 0, None, -1  # as if the value stood in a list; an object has the index -1
        outer: list[tuple[ValuePosition, int]] = []
        for found in _TOKEN.finditer(self._text, offset):
            token, offset = found[0], found.start()
            first = token[0]
            if first == ":":
                continue
            if first == ",":
                index += index >= 0
            elif first in "}]":
                here, index = outer.pop()
                if not outer:
                    break
            elif index < 0 and key is None:
                key, key_offset = json.loads(token) if "\\" in token else token[1:-1], offset
            else:
                place = ValuePosition(offset, key_offset)
                here.parts[index if key is None else key] = place
                key, key_offset = None, -1
                if first in "{[":
                    place.parts = {}
                    outer.append((here, index))
                    here, index = place, -1 if first == "{" else 0
        return above.parts[0].parts
