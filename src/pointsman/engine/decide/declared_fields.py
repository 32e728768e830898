"""Check data against the JSON Schemas of declared fields: values that people write, not those that steps write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.plan import DeclaredField
from pointsman.values import Json, JsonObject, Path


def misfit(declared: Sequence[DeclaredField], data: JsonObject, paths: Sequence[Path]) -> tuple[Path, str] | None:
    """Return the first path at, above or below one of the paths whose value does not fit its declared schema, and
    why.
    """
    for path, message in undeclared(declared, data):
        if any(all(one == other for one, other in zip(path, touched, strict=False)) for touched in paths):
            return path, message
    return None


def undeclared(declared: Sequence[DeclaredField], data: JsonObject) -> Iterator[tuple[Path, str]]:
    """Yield each path whose value does not fit its schema, and why."""
    for field in declared:
        schema = JsonSchema(field.schema)
        for path, value in _values(data, field.pattern):
            for misfit in schema.misfits(value):
                yield (*path, *misfit.path), misfit.message


def _values(data: JsonObject, pattern: Sequence[str]) -> Iterator[tuple[Path, Json]]:
    """Yield the values at a pattern (`*` is any key), with their paths."""
    found: list[tuple[Path, Json]] = [((), data)]
    for key in pattern:
        found = [((*path, name), value) for path, held in found for name, value in _held(held, key)]
    yield from found


def _held(value: Json, key: str) -> list[tuple[str, Json]]:
    if not isinstance(value, dict):
        return []
    return [*value.items()] if key == "*" else [(key, value[key])] if key in value else []
