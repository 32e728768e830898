"""Safe repairs as JSON Patch. Paths are native pointers here; whoever shows them turns them into the author's."""

from __future__ import annotations

from pointsman.definition.problems import JsonPatchOp
from pointsman.values import Json

Repair = tuple[JsonPatchOp, ...]


def remove(*pointers: str) -> Repair:
    return tuple({"op": "remove", "path": pointer} for pointer in pointers)


def replace(pointer: str, value: Json) -> Repair:
    return ({"op": "replace", "path": pointer, "value": value},)


def add(pointer: str, value: Json) -> Repair:
    return ({"op": "add", "path": pointer, "value": value},)


def question(near: str | None, otherwise: str) -> str:
    """The hint that goes with `Subject.nearest`."""
    return otherwise if near is None else f"Did you mean {near!r}?"


def meant(pointer: str, near: str | None) -> Repair | None:
    """Write the nearest name instead of the unknown one."""
    return None if near is None else replace(pointer, near)
