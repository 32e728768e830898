"""Reads JSON from model output: valid JSON unchanged, otherwise without fences, surrounding text and trailing commas.

Unreadable text returns None: further guessing would invent data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec

from pointsman.json_meter import JsonUnreadable, decode_json
from pointsman.values import Json

TEXT_CHARS_MAX: Final = 200_000
"""Longer answers are not searched for JSON; they are read as a whole or not at all."""

_STARTS_MAX: Final = 8
"""Maximum number of positions in an answer where the search starts."""

_START: Final = re.compile(r"[\[{]")
_FENCED: Final = re.compile(r"\A\s*```[\w-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\s*\Z", re.DOTALL)
_FENCE_INSIDE: Final = re.compile(r"```[\w-]*[ \t]*\r?\n(.*?)```", re.DOTALL)


class ParsedJson(msgspec.Struct, frozen=True):
    """A parsed JSON value; wrapped, because `null` is a valid value."""

    value: Json


def read_json(text: str) -> ParsedJson | None:
    """Return the JSON value in a text, or None."""
    if (whole := read_whole(text)) is not None:
        return whole
    if len(text) > TEXT_CHARS_MAX:
        return None
    for piece in _pieces(text):
        if (read := _strict(piece) or _strict(without_trailing_commas(piece))) is not None:
            return read
    return None


def read_whole(text: str) -> ParsedJson | None:
    """Return the JSON value of a whole text, with or without a fence around it; repairs nothing."""
    if (read := _strict(text)) is not None:
        return read
    fenced = _FENCED.match(text)
    return _strict(fenced[1]) if fenced else None


def without_trailing_commas(text: str) -> str:
    """Return the text without commas before closing brackets, except inside strings."""
    dropped: list[int] = []
    comma_at: int | None = None
    for at, character in _outside_strings(text):
        if character == ",":
            comma_at = at
        elif character in "]}" and comma_at is not None:
            dropped.append(comma_at)
            comma_at = None
        elif not character.isspace():
            comma_at = None
    return "".join(text[before + 1 : after] for before, after in pairwise([-1, *dropped, len(text)]))


def _strict(text: str) -> ParsedJson | None:
    try:
        return ParsedJson(decode_json(text))
    except JsonUnreadable:
        return None


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts that may be the value, most likely first: the whole, fences, then balanced objects and lists."""
    yield text
    for fenced in _FENCE_INSIDE.finditer(text):
        yield fenced[1]
    at = 0
    for _ in range(_STARTS_MAX):
        match = _START.search(text, at)
        if match is None:
            return
        end = _balanced_end(text, match.start())
        if end is not None:
            yield text[match.start() : end]
        at = end if end is not None else match.end()


def _balanced_end(text: str, start: int) -> int | None:
    depth = 0
    for at, character in _outside_strings(text, start):
        if character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
            if depth == 0:
                return at + 1
    return None


def _outside_strings(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    """Yield every character outside JSON strings, and the opening quote of each string."""
    at = start
    while at < len(text):
        yield at, text[at]
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        at += 1
