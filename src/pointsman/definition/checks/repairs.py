"""Safe fixes as JSON Patch. Paths are native pointers here; the caller maps them to the author's document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pointsman.definition.problems import JsonPatchOp, Suggestions, pointer_to
from pointsman.values import Json

Repair = tuple[JsonPatchOp, ...]


_DIGITS: Final = re.compile(r"\d+")
NAME_CHARS_MAX: Final = 100
"""Maximum length of a name that is compared."""


def remove(*pointers: str) -> Repair:
    return tuple({"op": "remove", "path": pointer} for pointer in pointers)


def replace(pointer: str, value: Json) -> Repair:
    return ({"op": "replace", "path": pointer, "value": value},)


def add(pointer: str, value: Json) -> Repair:
    return ({"op": "add", "path": pointer, "value": value},)


def rename(pointer: str, key: str, near: str, value: Json) -> Repair:
    """Rename a key of the object at the pointer; `value` is its value."""
    return add(pointer + pointer_to(near), value) + remove(pointer + pointer_to(key))


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the suggestion for a name, of a few candidates. Checks call `Subject.nearest`, which has a budget."""
    return renamed(word, Suggestions().nearest(word, candidates))


def renamed(word: str, near: str | None) -> str | None:
    """Return the suggestion if it is probably correct: not `node-5`
    for `node-6`, because numbers are not typing errors."""
    return None if near is None or _DIGITS.sub("", near) == _DIGITS.sub("", word[:NAME_CHARS_MAX]) else near


def question(near: str | None, otherwise: str) -> str:
    """Return the hint for a result of `Subject.nearest`."""
    return otherwise if near is None else f"Did you mean {near!r}?"


def meant(pointer: str, near: str | None) -> Repair | None:
    """Replace the unknown name with the suggestion."""
    return None if near is None else replace(pointer, near)
