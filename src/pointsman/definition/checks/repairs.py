"""Safe repairs as JSON Patch. Paths are native pointers here; whoever shows them turns them into the author's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pointsman.definition.problems import JsonPatchOp, Suggestions, pointer_to
from pointsman.values import Json

Repair = tuple[JsonPatchOp, ...]


_DIGITS: Final = re.compile(r"\d+")
NAME_CHARS_MAX: Final = 100
"""Of a name that is compared."""


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
    """The name that was probably meant, of a few candidates. A check asks `Subject.nearest`, which has a budget."""
    return renamed(word, Suggestions().nearest(word, candidates))


def renamed(word: str, near: str | None) -> str | None:
    """The near name, if it was probably meant. `node-5` is not meant by `node-6`: numbers are not typing errors."""
    return None if near is None or _DIGITS.sub("", near) == _DIGITS.sub("", word[:NAME_CHARS_MAX]) else near


def question(near: str | None, otherwise: str) -> str:
    """The hint that goes with `Subject.nearest`."""
    return otherwise if near is None else f"Did you mean {near!r}?"


def meant(pointer: str, near: str | None) -> Repair | None:
    """Write the nearest name instead of the unknown one."""
    return None if near is None else replace(pointer, near)
