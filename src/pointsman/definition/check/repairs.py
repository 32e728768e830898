"""Safe repairs as JSON Patch. Paths are native pointers here; whoever shows them turns them into the author's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pointsman.definition.problems import JsonPatchOp, did_you_mean
from pointsman.values import Json

Repair = tuple[JsonPatchOp, ...]

_DIGITS: Final = re.compile(r"\d+")


def remove(*pointers: str) -> Repair:
    return tuple({"op": "remove", "path": pointer} for pointer in pointers)


def replace(pointer: str, value: Json) -> Repair:
    return ({"op": "replace", "path": pointer, "value": value},)


def add(pointer: str, value: Json) -> Repair:
    return ({"op": "add", "path": pointer, "value": value},)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The name that was probably meant. `node-5` is not meant by `node-6`: names that count are no typing errors."""
    sentence = did_you_mean(word, candidates)
    if not sentence:
        return None
    near = sentence[len("Did you mean '") : -len("'?")]
    return None if _DIGITS.sub("", near) == _DIGITS.sub("", word) else near


def question(near: str | None, otherwise: str) -> str:
    """The hint that goes with `nearest`."""
    return otherwise if near is None else f"Did you mean {near!r}?"


def meant(pointer: str, near: str | None) -> Repair | None:
    """Write the nearest name instead of the unknown one."""
    return None if near is None else replace(pointer, near)
