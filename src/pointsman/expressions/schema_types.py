"""Facts from JSON Schema about a path: its possible types, whether it may be missing, its keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pointsman.expressions.operators import type_name, whole
from pointsman.values import Json, JsonObject

ALL_TYPES: Final = frozenset({"null", "boolean", "number", "string", "array", "object"})
REFERENCES_MAX: Final = 16
_NOT_READ: Final = ("$ref", "anyOf", "oneOf", "allOf", "if", "not")
"""Keywords that are not interpreted: a schema with one of them may describe any value."""


@dataclass(frozen=True, slots=True)
class ValueShape:
    """Facts about a value before it exists."""

    types: frozenset[str] = ALL_TYPES
    schema: JsonObject | None = None
    """Schema of the value, with its references resolved; None if nothing is known."""
    may_miss: bool = False
    constants: tuple[Json, ...] = ()
    """All values it can have, if the schema lists them."""


ANYTHING: Final = ValueShape()


class UnknownKey(Exception):
    """A closed object does not have this key. `known` are the keys it has."""

    def __init__(self, known: tuple[str, ...]) -> None:
        super().__init__()
        self.known = known


def of_type(*types: str) -> ValueShape:
    """Return the shape of a value of one of these types."""
    return ValueShape(frozenset(types))


def of_value(value: Json) -> ValueShape:
    """Return the shape of a known value."""
    return ValueShape(frozenset({type_name(value)}), constants=(value,))


class Schemas:
    """Schemas of the roots that a formula can read (`state`,
    `input`, `result` …); a root without one may be any value."""

    def __init__(self, roots: dict[str, JsonObject]) -> None:
        self.roots = roots
        self._shapes = {name: shape_of(schema, schema) for name, schema in roots.items()}

    def root(self, name: str) -> ValueShape:
        return self._shapes.get(name, ANYTHING)

    def below(self, shape: ValueShape, key: str | int | None, root: str) -> ValueShape:
        """Return the shape under a key; None stands for any key.
        Raises `UnknownKey` if a closed object does not have it."""
        schema = shape.schema
        if schema is None:
            return ANYTHING
        document = self.roots.get(root, schema)
        if isinstance(key, int) or key is None:
            items = schema.get("items")
            found = shape_of(items, document) if isinstance(items, dict) else ANYTHING
            return ValueShape(found.types, found.schema, may_miss=True, constants=found.constants)
        return self.field(shape, schema, key, document)

    def field(self, shape: ValueShape, schema: JsonObject, key: str, document: JsonObject) -> ValueShape:
        """Return the shape of a named field."""
        declared = schema.get("properties")
        properties = declared if isinstance(declared, dict) else {}
        required = schema.get("required")
        if key in properties:
            part = properties[key]
            found = shape_of(part, document) if isinstance(part, dict) else ANYTHING
            miss = shape.may_miss or not (isinstance(required, list) and key in required)
            return ValueShape(found.types, found.schema, miss, found.constants)
        rest = schema.get("additionalProperties")
        if rest is False and "patternProperties" not in schema and "object" in shape.types:
            raise UnknownKey(tuple(properties))
        found = shape_of(rest, document) if isinstance(rest, dict) else ANYTHING
        return ValueShape(found.types, found.schema, found.schema is not None, found.constants)


def shape_of(schema: JsonObject, document: JsonObject) -> ValueShape:
    """Return the shape that a schema describes. Schemas with
    keywords that are not interpreted may describe any value."""
    for _ in range(REFERENCES_MAX):
        reference = schema.get("$ref")
        if reference is None:
            break
        found = referred(reference, document)
        if found is None:
            return ANYTHING
        schema = found
    for word in _NOT_READ:
        if word in schema:
            return ANYTHING
    constants = schema.get("enum")
    values = tuple(constants) if isinstance(constants, list) else (schema["const"],) if "const" in schema else ()
    return ValueShape(types_of(schema, values), schema, constants=values)


def types_of(schema: JsonObject, constants: tuple[Json, ...]) -> frozenset[str]:
    """Return the types that a schema allows."""
    declared = schema.get("type")
    if declared is None and not constants:
        return ALL_TYPES
    listed = declared if isinstance(declared, list) else [declared] if declared is not None else []
    names = {"number" if name == "integer" else name for name in listed if isinstance(name, str)}
    if names:
        return frozenset(names) & ALL_TYPES
    return frozenset(map(type_name, constants)) or ALL_TYPES


def referred(reference: Json, document: JsonObject) -> JsonObject | None:
    """Return the part of the document to which `#/a/b` points; other references are not followed."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Json = document
    for step in filter(None, reference[1:].split("/")):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def fixed_index(value: Json) -> str | int | None:
    """Return a literal as a key."""
    if isinstance(value, str):
        return value
    return int(value) if whole(value) else None
