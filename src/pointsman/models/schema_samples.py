"""Sample values for JSON Schemas: the answer of a model without a script when a schema is required.

Deterministic: takes the first choice, `true` for booleans and the highest allowed number, so that gates open and loops
end. Constraints beyond types and bounds (patterns, `not`, `if`) may be violated; the answer is then refused like that
of any model.
"""

from __future__ import annotations

from typing import Final

from pointsman.values import Json, JsonObject

_DEPTH_MAX: Final = 16
"""Depth from which optional members of a recursive schema are left out."""

_FORMATS: Final = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "someone@example.org",
    "uri": "https://example.org",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: JsonObject, text: str) -> Json:
    """Return a value for the schema; free strings contain `text`."""
    return _Sampler(schema, text).value(schema, 0)


class _Sampler:
    def __init__(self, root: JsonObject, text: str) -> None:
        self._root = root
        self._text = text

    def value(self, schema: Json, depth: int) -> Json:
        if not isinstance(schema, dict):
            return self._text
        for said in ("const", "default"):
            if said in schema:
                return schema[said]
        for listed in ("enum", "examples"):
            if isinstance(options := schema.get(listed), list) and options:
                return options[0]
        if "$ref" in schema:
            return self.value(self._resolved(schema), depth + 1) if depth < _DEPTH_MAX else None
        for choice in ("anyOf", "oneOf"):
            if isinstance(options := schema.get(choice), list) and options:
                return self.value({**_without(schema, choice), **_object(options[0])}, depth + 1)
        if isinstance(parts := schema.get("allOf"), list) and parts:
            return self.value(_merged([_without(schema, "allOf"), *map(self._resolved, parts)]), depth + 1)
        return self._typed(schema, depth)

    def _typed(self, schema: JsonObject, depth: int) -> Json:
        match _type_of(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._list(schema, depth)
            case "boolean":
                return True
            case "integer":
                return int(_number(schema))
            case "number":
                return _number(schema)
            case "null":
                return None
            case _:
                return self._string(schema)

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        properties = _object(schema.get("properties"))
        required = schema.get("required")
        needed = [key for key in required if isinstance(key, str)] if isinstance(required, list) else []
        keys = [key for key in properties if depth < _DEPTH_MAX or key in needed]
        keys += [key for key in needed if key not in properties]
        return {key: self.value(properties.get(key), depth + 1) for key in keys}

    def _list(self, schema: JsonObject, depth: int) -> list[Json]:
        prefix = schema.get("prefixItems")
        made = [self.value(item, depth + 1) for item in prefix] if isinstance(prefix, list) else []
        least = schema.get("minItems")
        missing = max((least if isinstance(least, int) else 0) - len(made), 0)
        return made + [self.value(schema.get("items"), depth + 1) for _ in range(missing)]

    def _string(self, schema: JsonObject) -> str:
        if (known := _FORMATS.get(str(schema.get("format")))) is not None:
            return known
        least, most = schema.get("minLength"), schema.get("maxLength")
        text = self._text.ljust(least, ".") if isinstance(least, int) else self._text
        return text[:most] if isinstance(most, int) else text

    def _resolved(self, schema: Json) -> JsonObject:
        """Return the schema with its reference replaced by the referenced schema."""
        found = _object(schema)
        reference = found.get("$ref")
        if not isinstance(reference, str):
            return found
        return _merged([_object(self._at(reference)), _without(found, "$ref")])

    def _at(self, reference: str) -> Json:
        at: Json = self._root
        for part in reference.lstrip("#").split("/")[1:]:
            at = at.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(at, dict) else None
        return at


def _type_of(schema: JsonObject) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _number(schema: JsonObject) -> int | float:
    most, least = schema.get("maximum"), schema.get("minimum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")
    size = step if isinstance(step, int | float) and step > 0 else 1
    if isinstance(most, int | float):
        return most // size * size if "multipleOf" in schema or schema.get("type") == "integer" else most
    if isinstance(below, int | float):
        return (below - size) // size * size if schema.get("type") == "integer" else below - size
    if isinstance(least, int | float):
        return -(-least // size) * size
    if isinstance(above, int | float):
        return (above // size + 1) * size
    return size


def _merged(schemas: list[JsonObject]) -> JsonObject:
    merged: JsonObject = {}
    for schema in schemas:
        for key, value in schema.items():
            before = merged.get(key)
            if isinstance(before, dict) and isinstance(value, dict):
                merged[key] = {**before, **value}
            elif isinstance(before, list) and isinstance(value, list) and key == "required":
                merged[key] = [*before, *value]
            else:
                merged[key] = value
    return merged


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _without(schema: JsonObject, key: str) -> JsonObject:
    return {name: value for name, value in schema.items() if name != key}
