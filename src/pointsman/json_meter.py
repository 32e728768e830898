"""Meter for JSON from outside (bodies, answers of models, results of tools): checks its cost before it is decoded.

It measures the levels, the values, and the digits of the longest number:
    JSON ─▶ slices ─▶ strings removed ─▶ only brackets, commas left ─▶ +1, -1 ─▶ the highest sum
                                      └▶ digits in a row            └▶ their number

It takes some nanoseconds per byte and thirty per bracket, and the memory of one slice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from json import detect_encoding
from typing import Final, cast

import msgspec

from pointsman.values import Json, JsonObject

LESS: Final = "Nest it less, and send large data as a file or as text."
"""Hint for texts that exceed a limit."""
DEPTH_MAX: Final = 200
"""The maximum depth of a workflow in YAML."""
LEVELS_MAX: Final = 500
"""The maximum nesting of a value in an execution. The limits of decoders depend on the version of Python."""
VALUES_MAX: Final = 250_000
"""Per body. Reading, checking, recording and writing one value takes about 3 µs, during which the server is blocked."""
DIGITS_MAX: Final = 100
"""Per number. The time to decode a number grows with the square of its digits; 4 000 digits took 2 ms."""
SHORT_BYTES: Final = min(DEPTH_MAX, VALUES_MAX, DIGITS_MAX)
"""A text of so many bytes cannot exceed a limit."""
SLICE_BYTES: Final = 262_144
_OPENING: Final = (b"[", b"{")
_SEPARATING: Final = (*_OPENING, b",")
_LONG: Final = b"1" * (DIGITS_MAX + 1)
_DIGITS: Final = bytes(0x22 if one == 0x22 else 0x31 if one in b"0123456789" else 0x30 for one in range(256))
"""Translation table: digits become ones; quotes stay."""
_NO_SIGNS: Final = bytes(set(range(256)) - set(b'"[]{},'))
_SIGNS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class JsonUnreadable(ValueError):
    """A text is not JSON, or has more than the limits allow."""


class TooMuchJson(JsonUnreadable):
    """A text has more than the limits allow. The message continues "the text …"."""


class DuplicateKey(JsonUnreadable):
    """An object has a key twice, so that one of the values would be lost silently."""


class JsonMeter:
    """Meter of a text. Invalid JSON is left to the decoder."""

    def __init__(self, body: bytes, values_max: int = VALUES_MAX, depth_max: int = DEPTH_MAX) -> None:
        self._values_max = values_max
        self._depth_max = depth_max
        encoding = detect_encoding(body)
        self._body = body if encoding.startswith("utf-8") else body.decode(encoding, "replace").encode()
        self.depth = 0
        self.values = 0
        self.is_number_long = False

    @property
    def excess(self) -> str:
        """The exceeded limit, as in "the body {excess}"; empty if none is."""
        if self.depth > self._depth_max:
            return f"is nested more than {self._depth_max} levels deep"
        if self.values > self._values_max:
            return f"has more than {self._values_max} values"
        return f"has a number of more than {DIGITS_MAX} digits" if self.is_number_long else ""

    def slices(self) -> Iterator[None]:
        """Measure the text, one slice per iteration."""
        at, level, in_text = 0, 0, False
        while at < len(self._body) and not self.excess:
            end = at + SLICE_BYTES
            while self._body[end - 1 : end] == b"\\":  # Never split an escape.
                end += 1
            unescaped = self._body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"")
            digits = unescaped.translate(_DIGITS)
            if _LONG in digits:
                self.is_number_long = any(_LONG in part for part in digits.split(b'"')[in_text::2])
            parts = unescaped.translate(None, _NO_SIGNS).split(b'"')
            outside = b"".join(parts[in_text::2])
            in_text ^= len(parts) % 2 == 0
            self.values += sum(outside.count(one) for one in _SEPARATING)
            steps = memoryview(outside.replace(b",", b"").translate(_SIGNS)).cast("b")
            sums = [*accumulate(steps, initial=level)]
            self.depth, level = max(self.depth, *sums), sums[-1]
            at = end
            yield


def decode_json(text: bytes | str) -> Json:
    """Return the value of a JSON text from outside. Raises `JsonUnreadable`, `TooMuchJson`."""
    try:
        data = text.encode() if isinstance(text, str) else text
        if excess := excess_of(data):
            raise TooMuchJson(excess)
        return cast("Json", msgspec.json.decode(data))
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as why:
        raise JsonUnreadable(str(why)) from None


def decode_sent_json(text: bytes | str) -> Json:
    """Return the value of a JSON text that a caller sent. Raises like `decode_json`, and `DuplicateKey`."""
    value = decode_json(text)
    json.loads(text, object_pairs_hook=unique_object)
    return value


def unique_object(pairs: list[tuple[str, Json]]) -> JsonObject:
    """Return the object of these pairs. Raises `DuplicateKey`."""
    made = dict(pairs)
    if len(made) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise DuplicateKey(f"the key {twice[:100]!r} is there twice in one object")
    return made


def excess_of(body: bytes) -> str:
    """Return the limit that a text exceeds, as in "the body {excess}"; empty if none."""
    if len(body) <= SHORT_BYTES:
        return ""
    meter = JsonMeter(body)
    for _ in meter.slices():
        pass
    return meter.excess


def is_deeper(data: bytes, levels: int) -> bool:
    """Return whether valid JSON is nested more than so many levels deep."""
    meter = JsonMeter(data, values_max=len(data), depth_max=levels)
    for _ in meter.slices():
        meter.is_number_long = False  # A long number would end the measurement.
    return meter.depth > levels
