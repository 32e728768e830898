"""The two equalities of edge conditions: by type for values, by text for branch labels."""

from __future__ import annotations

import json

from pointsman.values import Json


def equals(value: Json, literal: Json) -> bool:
    """Return deep equality with types: `1` equals `1.0`; `true` equals neither `1` nor `"true"`."""
    if isinstance(value, list):
        if not isinstance(literal, list) or len(value) != len(literal):
            return False
        return all(equals(a, b) for a, b in zip(value, literal, strict=True))
    if isinstance(value, dict):
        if not isinstance(literal, dict) or value.keys() != literal.keys():
            return False
        return all(equals(part, literal[key]) for key, part in value.items())
    if isinstance(value, bool) or isinstance(literal, bool):
        return value is literal
    return value == literal


def label_of(value: Json) -> str | None:
    """Return a branch label as text: `true` is "true", `2` is "2". Null, lists and objects are not labels."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value)


def same_label(left: Json, right: Json) -> bool:
    """Return whether two values name the same branch. Null names no branch."""
    label = label_of(left)
    return label is not None and label == label_of(right)
