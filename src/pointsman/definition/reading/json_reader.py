"""Reader of JSON as people and models write it: comments, trailing commas, positions, duplicates, schema sketches.

It makes one pass over the text with its own stack, so that depth costs no recursion. It stops at the first thing that
it cannot read and proposes a repair.

`JsonPositions` finds the positions of the values in valid plain JSON, only for documents with problems. An object or
list is read again when a pointer first leads into it. The decoder of the standard library, which is written
in C, skips the values inside.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pointsman.definition.reading.results import (
    DEPTH_MAX,
    SKETCHES_MAX,
    Edit,
    Parts,
    ReadText,
    Unreadable,
    ValuePosition,
)
from pointsman.json_meter import DIGITS_MAX
from pointsman.values import Json, JsonObject

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_CHUNK: Final = re.compile(r'[^"\\\x00-\x1f]*')
_WORD: Final = re.compile(r"[A-Za-z_$][\w$.-]*")
_SINGLE: Final = re.compile(r"'([^'\"\\\r\n]*)'")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LITERALS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}
_FOREIGN: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_NOT_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")


@dataclass(slots=True)
class _OpenJson:
    """A list or object being read."""

    value: list[Json] | JsonObject
    place: ValuePosition
    key: str | int = 0
    """Key or index of the part being read."""
    key_offset: int = -1
    has_parts: bool = False


def read_exactly(text: str) -> ReadText:
    """Read JSON with comments and positions. Raises `Unreadable` at the first thing that cannot be read."""
    return _Scanner(text).read()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.reading = ReadText()
        self.stack: list[_OpenJson] = []
        self.value_end = 0
        """Offset after the last value that was read."""
        self.text_end = -1
        """Offset after the last text that was read: an unescaped
        quote inside a text would have ended it here, too early."""

    def read(self) -> ReadText:
        self._value()
        while self.stack:
            self._part()
        self._skip()
        if self.at < len(self.text):
            code = "several-documents" if self.text[self.at] in "{[" else "unreadable"
            raise self._wrong("there is text after the end of the document", code=code, hint="Keep one document.")
        return self.reading

    def _part(self) -> None:
        """Read one member of the innermost open list or object, or its end."""
        top = self.stack[-1]
        is_object = isinstance(top.value, dict)
        self._skip()
        self._skip_sketch()
        if self._takes("}" if is_object else "]"):
            self._close()
            return
        if top.has_parts:
            self._comma(top)
            if self._takes("}" if is_object else "]"):
                self.reading.is_plain = False
                self._close()
                return
        top.has_parts = True
        if is_object:
            self._key(top)
        self._value()

    def _comma(self, top: _OpenJson) -> None:
        if self._takes(","):
            self._skip()
            self._skip_sketch()
            return
        end, at = ("'}'" if isinstance(top.value, dict) else "']'"), self.value_end
        if self.at >= len(self.text):
            raise self._wrong(f"the text ends before {end}", hint="The document is cut off; get the rest of it.")
        if "\n" in self.text[at : self.at]:
            edit = Edit(at, at, ",", "insert a comma")
            raise self._wrong(f"a comma or {end} is missing", at=at, hint="Insert a comma here.", edit=edit)
        if self.text_end == at and not self.text.startswith('"', self.at):
            edit = Edit(at - 1, at, '\\"', "escape the quote inside the text")
            message = "a text ends here, but more of it seems to follow"
            raise self._wrong(message, at=at - 1, hint='Write \\" for a quote inside a text.', edit=edit)
        raise self._wrong(f"a comma or {end} is missing")

    def _key(self, top: _OpenJson) -> None:
        assert isinstance(top.value, dict)
        start = self.at
        if not self.text.startswith('"', start):
            raise self._no_key(start)
        key = self._string()
        if key in top.value:
            path = (*(opened.key for opened in self.stack[:-1]), key)
            self.reading.duplicates.append((path, top.place.parts[key].key_offset, start))
            self.reading.is_plain = False
        self._skip()
        if not self._takes(":"):
            raise self._wrong(f"a colon is missing behind the key {key[:60]!r}")
        self._skip()
        top.key, top.key_offset = key, start

    def _no_key(self, start: int) -> Unreadable:
        if match := _SINGLE.match(self.text, start):
            edit = Edit(start, match.end(), f'"{match[1]}"', "use double quotes")
            return self._wrong("a key is in single quotes", hint="JSON has double quotes only.", edit=edit)
        if match := _WORD.match(self.text, start):
            edit = Edit(start, match.end(), f'"{match[0]}"', "put the key in double quotes")
            return self._wrong(f"the key {match[0][:60]!r} has no quotes", hint="Put it in double quotes.", edit=edit)
        return self._wrong("a key in double quotes is missing")

    def _value(self) -> None:
        """Read a value, or open a list or object."""
        self._skip()
        start = self.at
        character = self.text[start : start + 1]
        if character in ("{", "["):
            self._open({} if character == "{" else [])
            return
        if character == '"':
            value: Json = self._string()
        elif self.text.startswith("...", start):
            value = None
            self._skip_sketch()
        else:
            value = self._scalar()
        self._attach(value, ValuePosition(start))
        self._ended()

    def _open(self, value: list[Json] | JsonObject) -> None:
        if len(self.stack) >= DEPTH_MAX:
            raise self._wrong(
                f"more than {DEPTH_MAX} levels are nested",
                code="too-deep",
                hint="Reduce the nesting, or use sub-workflows.",
            )
        place = ValuePosition(self.at, parts={})
        self._attach(value, place)
        self.stack.append(_OpenJson(value, place))
        self.at += 1

    def _attach(self, value: Json, place: ValuePosition) -> None:
        if not self.stack:
            self.reading.value, self.reading.root = value, place
            return
        top = self.stack[-1]
        if isinstance(top.value, dict):
            top.value[str(top.key)] = value
            place.key_offset = top.key_offset
        else:
            top.key = len(top.value)
            top.value.append(value)
        top.place.parts[top.key] = place

    def _close(self) -> None:
        self.stack.pop()
        self._ended()

    def _ended(self) -> None:
        self.value_end = self.at
        self._alternatives()

    def _alternatives(self) -> None:
        """Skip the alternatives of a schema sketch such as `"a" | "b"`; the value is the first one."""
        while True:
            back = self.at
            self._skip()
            if not self.text.startswith("|", self.at):
                self.at = back
                return
            self._sketch(self.stack)
            self.at += 1
            self._skip()
            if self.text.startswith('"', self.at):
                self._string()
            elif match := _WORD.match(self.text, self.at) or _NUMBER.match(self.text, self.at):
                self.at = match.end()
            else:
                return

    def _skip_sketch(self) -> None:
        while self.text.startswith("...", self.at):
            self._sketch(self.stack[:-1])
            self.at += 3
            self._skip()
            if self.text.startswith(",", self.at):
                self.at += 1
                self._skip()

    def _sketch(self, around: list[_OpenJson]) -> None:
        self.reading.is_plain = False
        if len(self.reading.sketches) < SKETCHES_MAX:
            self.reading.sketches.append((tuple(opened.key for opened in around), self.at))

    def _scalar(self) -> Json:
        start = self.at
        if match := _WORD.match(self.text, start):
            return self._word(match[0], start)
        if match := _NUMBER.match(self.text, start):
            return self._number(match, start)
        if match := _SINGLE.match(self.text, start):
            edit = Edit(start, match.end(), f'"{match[1]}"', "use double quotes")
            raise self._wrong("a text is in single quotes", hint="JSON has double quotes only.", edit=edit)
        if self.text.startswith("-Infinity", start):
            raise self._wrong(
                "-Infinity is not a JSON number", code="not-a-number", hint="Omit the key, or write null."
            )
        if start >= len(self.text):
            raise self._wrong(
                "the text ends where a value should be", hint="The document is cut off; get the rest of it."
            )
        raise self._wrong(f"{self.text[start]!r} cannot begin a value")

    def _word(self, word: str, start: int) -> Json:
        if word in _LITERALS:
            self.at = start + len(word)
            return _LITERALS[word]
        if word in _FOREIGN:
            edit = Edit(start, start + len(word), _FOREIGN[word], f"write {_FOREIGN[word]}")
            raise self._wrong(f"{word} is not JSON", hint=f"Write {_FOREIGN[word]}.", edit=edit)
        if word in _NOT_NUMBERS:
            raise self._wrong(f"{word} is not a JSON number", code="not-a-number", hint="Omit the key, or write null.")
        raise self._wrong(f"{word[:60]!r} is not a value", hint="Write texts in double quotes.")

    def _number(self, match: re.Match[str], start: int) -> Json:
        text = match[0]
        if len(text) > DIGITS_MAX:
            raise self._wrong(
                f"a number has more than {DIGITS_MAX} characters", code="number-too-large", hint="Write it as a text."
            )
        self.at = match.end()
        if self.text[self.at : self.at + 1].isalnum():
            raise self._wrong(
                f"{self.text[start : start + 60].split()[0]!r} is not a number",
                at=start,
                hint="Write texts in double quotes.",
            )
        if match[1] is None and match[2] is None:
            return int(text)
        number = float(text)
        if not math.isfinite(number):
            raise self._wrong(
                f"{text[:60]} is larger than any number can be",
                code="number-too-large",
                at=start,
                hint="Write it as a text.",
            )
        return number

    def _string(self) -> str:
        start = self.at
        self.at += 1
        chunks: list[str] = []
        while True:
            match = _CHUNK.match(self.text, self.at)
            assert match is not None
            chunks.append(match[0])
            self.at = match.end()
            character = self.text[self.at : self.at + 1]
            if character == '"':
                self.at += 1
                self.text_end = self.at
                return "".join(chunks)
            if character == "\\":
                chunks.append(self._escape())
            elif character:
                written = _CONTROLS.get(character, f"\\u{ord(character):04x}")
                edit = Edit(self.at, self.at + 1, written, "escape the control character")
                raise self._wrong(
                    "a text has a control character or a line break", hint=f"Write {written} instead.", edit=edit
                )
            else:
                raise self._wrong(
                    "a text does not end", at=start, hint='A closing " is missing, or the document is cut off.'
                )

    def _escape(self) -> str:
        start, letter = self.at, self.text[self.at + 1 : self.at + 2]
        if letter in _ESCAPES:
            self.at += 2
            return _ESCAPES[letter]
        digits = self.text[start + 2 : start + 6]
        if letter == "u" and len(digits) == 4 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            self.at += 6
            return self._character(int(digits, 16))
        edit = Edit(start, start + 1, "\\\\", "double the backslash") if letter else None
        raise self._wrong(f"\\{letter} is not an escape sequence", hint="Write \\\\ for a backslash.", edit=edit)

    def _character(self, code: int) -> str:
        """Combine two halves of a surrogate pair into one character; a lone half stays, and the caller reports it."""
        low = self.text[self.at + 2 : self.at + 6]
        if (
            0xD800 <= code < 0xDC00
            and re.fullmatch(r"[dD][c-fC-F][0-9a-fA-F]{2}", low)
            and self.text.startswith("\\u", self.at)
        ):
            self.at += 6
            return chr(0x10000 + ((code - 0xD800) << 10) + (int(low, 16) - 0xDC00))
        return chr(code)

    def _skip(self) -> None:
        while True:
            match = _SPACE.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            if not self.text.startswith("/", self.at):
                return
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                if self.text.startswith("/*", self.at):
                    raise self._wrong("a comment does not end", hint="A closing */ is missing.")
                return
            self.reading.is_plain = False
            if self.reading.comment is None:
                self.reading.comment = self.at
            self.at = comment.end()

    def _takes(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False

    def _wrong(
        self, message: str, *, code: str = "unreadable", at: int | None = None, hint: str = "", edit: Edit | None = None
    ) -> Unreadable:
        return Unreadable(code, message, self.at if at is None else at, hint=hint, edit=edit)


SKIPPED_DEPTH_MAX: Final = 8
"""Depth from which nested values are not skipped but read together with the object
or list around them: otherwise the text would be read once for each of its levels."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_GAP: Final = re.compile(r"[ \t\r\n]*[:,]?[ \t\r\n]*")
_decoded: Final[Callable[[str, int], tuple[Json, int]]] = json.JSONDecoder().raw_decode
"""Return the value at an offset, and the offset where it ends."""


class JsonPositions:
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
        match = _GAP.match(self._text, offset)
        assert match is not None
        return match.end()

    def read(self, offset: int) -> Parts:
        """Return the members or items of one object or list."""
        text = self._text
        parts: Parts = {}
        is_object = text[offset] == "{"
        at = self._behind_gap(offset + 1)
        while text[at] not in "}]":
            key: Json = len(parts)
            key_offset = -1
            if is_object:
                key, end = _decoded(text, at)
                key_offset, at = at, self._behind_gap(end)
            assert isinstance(key, str | int)
            parts[key] = ValuePosition(at, key_offset)
            at = self._behind_gap(_decoded(text, at)[1])
        return parts

    def _read_all(self, offset: int) -> Parts:
        """Return the members or items, and read everything inside them in the same pass."""
        above = here = ValuePosition(offset, parts={})
        index, key, key_offset = 0, None, -1  # as if the value stood in a list; an object has the index -1
        outer: list[tuple[ValuePosition, int]] = []
        for match in _TOKEN.finditer(self._text, offset):
            token, offset = match[0], match.start()
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
