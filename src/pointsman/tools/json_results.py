"""Checks of tool results that are not JSON: find the first invalid value and its type."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Final, cast
from uuid import UUID

from pointsman.engine.failures import Failure
from pointsman.tools.failures import ToolFailed

KEYS: Final = (str, int, float, Decimal, Enum, UUID, date, time)
"""Types allowed for keys; they are written as strings."""
DEPTH_MAX: Final = 50
PLACES_MAX: Final = 10_000
"""Maximum number of values to examine."""


def not_json(name: str, result: object, why: Exception) -> Failure:
    """Return the failure of a tool whose result cannot be written as JSON."""
    found = _first(result)
    if found is None:
        return Failure(code="tool-failed", message=f"the tool {name!r} answered what is not JSON: {why}")
    path, value = found
    if isinstance(value, list | tuple | Mapping | AbstractSet):
        message = (
            f"the tool {name!r} answered what is not JSON: it is nested more than {DEPTH_MAX} deep, or holds itself"
        )
        return Failure(code="tool-failed", message=message)
    what = repr(value) if isinstance(value, float) else f"a value of type {_type_of(value)}"
    message = f"the tool {name!r} answered what is not JSON: {path} is {what}"
    hint = "Return texts, numbers, lists, objects with text keys, dataclasses or pydantic models."
    return Failure(code="tool-failed", message=message, hint=hint, details={"path": path, "type": _type_of(value)})


def must_have_json_keys(name: str, result: object) -> None:
    """Raise `ToolFailed` for objects with keys that JSON does not allow, or with keys that are equal in JSON."""
    waiting: list[tuple[object, int]] = [(result, 0)]
    while waiting:
        value, depth = waiting.pop()
        inside = _values(value) if depth < DEPTH_MAX else ()
        if isinstance(value, Mapping):
            _check_keys(name, cast("Mapping[object, object]", value))
        waiting += [(one, depth + 1) for one in inside if not isinstance(one, str | int | float | None)]


def _check_keys(name: str, found: Mapping[object, object]) -> None:
    from pydantic_core import to_jsonable_python

    if all(isinstance(key, str) for key in found):
        return
    known: dict[str, object] = {}
    for key in found:
        if not isinstance(key, KEYS):
            raise _bad_key(name, f"an object has a key of type {_type_of(key)}")
        (written,) = cast("dict[str, None]", to_jsonable_python({key: None}))
        if written in known:
            raise _bad_key(name, f"an object has the keys {known[written]!r} and {key!r}, which are one key in JSON")
        known[written] = key


def _bad_key(name: str, why: str) -> ToolFailed:
    message = f"the tool {name!r} answered what is not JSON: {why}"
    return ToolFailed(Failure(code="tool-failed", message=message, hint="Let the keys of objects be texts."))


def _values(value: object) -> Iterable[object]:
    """Return the values inside a value."""
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    if isinstance(value, list | tuple):
        return cast("Iterable[object]", value)
    inside = _inside("", value)
    return () if inside is None else (one for _, one in inside)


def _type_of(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _first(result: object) -> tuple[str, object] | None:
    """Return the first value that is neither JSON nor a container, and its path."""
    waiting: list[tuple[str, object, int]] = [("result", result, 0)]
    for _ in range(PLACES_MAX):
        if not waiting:
            return None
        path, value, depth = waiting.pop()
        inside = _inside(path, value) if depth < DEPTH_MAX else None
        if inside is None:
            if not _is_json(value):
                return path, value
        else:
            waiting += [(place, one, depth + 1) for place, one in reversed([*inside])]
    return None


def _inside(path: str, value: object) -> Iterator[tuple[str, object]] | None:
    """Return the values inside a value with their paths; None: it is not a container."""
    if isinstance(value, Mapping):
        known = cast("Mapping[object, object]", value)
        return ((f"{path}.{key}", one) for key, one in known.items())
    if isinstance(value, list | tuple | AbstractSet):
        return ((f"{path}[{number}]", one) for number, one in enumerate(cast("list[object]", value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ((f"{path}.{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value))
    fields = getattr(type(value), "model_fields", None)
    if isinstance(fields, dict):
        return ((f"{path}.{name}", getattr(value, name)) for name in cast("dict[str, object]", fields))
    return None


def _is_json(value: object) -> bool:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    if isinstance(value, float):
        return math.isfinite(value)
    try:
        to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, RecursionError):
        return False
    return True
