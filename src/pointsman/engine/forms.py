"""Forms: check data against a JSON Schema and refuse keys that the schema does not name.

JSON Schema allows unnamed keys, so a misspelt key would be lost silently. Here an object may hold an unnamed key only
where its schema allows that explicitly: by `additionalProperties`, `unevaluatedProperties` or a matching
`patternProperties`, or by naming no key at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from pointsman.definition.json_schema import JsonSchema
from pointsman.definition.problems import did_you_mean
from pointsman.engine.data import dotted
from pointsman.errors import CallerError
from pointsman.expressions.failures import Spot
from pointsman.expressions.patterns import BadPattern, compile_pattern
from pointsman.values import Json, JsonObject, Path

IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
CONDITIONAL: Final = ("if", "then", "else")
OPENS: Final = ("additionalProperties", "unevaluatedProperties", "$dynamicRef", "$recursiveRef")
"""Keywords that decide about unnamed keys, or refer to a schema that may do so."""
STEPS_MAX: Final = 1_000_000
"""Limit of subschema visits for one part of the data; it takes less than a second."""


class AnswerInvalid(CallerError):
    """The data of an answer do not fit the gate. Nothing was written, and the gate stays open."""

    code = "answer-invalid"


class FormMismatch(Struct, frozen=True):
    """A position in data that does not fit the schema."""

    place: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class FormRules(NamedTuple):
    """The rules of the schemas of one value for its keys and items."""

    parts: list[JsonObject]
    """All schemas that may apply to the value."""
    names: frozenset[str]
    is_open: bool
    """Whether the object may hold keys that no schema names."""


def misfits(schema: JsonObject, data: Json, *, at: Path = ()) -> Iterator[FormMismatch]:
    """Yield each position that does not fit the schema, then each key that the schema does not name.

    `at`: the path of the data itself.
    """
    for misfit in JsonSchema(schema).misfits(data):
        yield FormMismatch(dotted((*at, *misfit.path)), misfit.message)
    yield from _unnamed(schema, data, at)


def _unnamed(schema: JsonObject, data: Json, at: Path) -> Iterator[FormMismatch]:
    """Yield each key in the data that the schema does not name."""
    steps, known = 0, dict[tuple[int, ...], FormRules]()
    pending: list[tuple[list[Json], Json, Path]] = [([schema], data, at)]
    while pending:
        schemas, value, path = pending.pop()
        if not isinstance(value, dict | list):
            continue
        same = tuple(map(id, schemas))
        rules = known.get(same) or known.setdefault(same, _rules(schemas, schema))
        steps += len(rules.parts) * len(value)
        if steps > STEPS_MAX:
            yield FormMismatch(dotted(at), "the data are too large to be compared with this form", "Send less data.")
            return
        if isinstance(value, list):
            pending += [(_of_item(rules.parts, n), item, (*path, n)) for n, item in enumerate(value)]
            continue
        for key, item in value.items():
            below = [found for part in rules.parts for found in _of_key(part, key)]
            if not below and not rules.is_open:
                hint = f"{did_you_mean(key, rules.names)} Known: {', '.join(sorted(rules.names))}.".strip()
                yield FormMismatch(dotted((*path, key)), f"the form has no key {key!r}", hint)
            pending.append((below, item, (*path, key)))


def _rules(schemas: Sequence[Json], root: JsonObject) -> FormRules:
    found: list[JsonObject] = []
    seen: set[int] = set()
    is_open = False
    pending = [*schemas]
    while pending:
        part = pending.pop()
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        found.append(part)
        is_open = is_open or any(key in part for key in OPENS)
        for key in IN_PLACE:
            listed = part.get(key)
            pending += listed if isinstance(listed, list) else []
        pending += [part[key] for key in CONDITIONAL if key in part]
        pending += _object(part.get("dependentSchemas")).values()
        if "$ref" in part:
            target = _referred(root, part["$ref"])
            is_open = is_open or target is None
            pending.append(target)
    names = frozenset(name for part in found for name in _object(part.get("properties")))
    return FormRules(found, names, is_open or not names)


def _referred(root: JsonObject, reference: Json) -> Json:
    """Return the schema at a local reference; None for any other reference."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    here: Json = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        here = here.get(key) if isinstance(here, dict) else None
    return here


def _of_key(part: JsonObject, key: str) -> Iterator[Json]:
    """Yield the subschemas of one schema for the value at a key."""
    properties = _object(part.get("properties"))
    if key in properties:
        yield properties[key]
    for pattern, below in _object(part.get("patternProperties")).items():
        if _matches(pattern, key):
            yield below
    more = part.get("additionalProperties")
    if isinstance(more, dict):
        yield more


def _matches(pattern: str, key: str) -> bool:
    """Return whether a key matches. A pattern that RE2 does not support may match anything."""
    try:
        return compile_pattern(pattern, Spot(pattern, 0, len(pattern))).search(key) is not None
    except BadPattern:
        return True


def _of_item(parts: Sequence[JsonObject], at: int) -> list[Json]:
    """Return the subschemas for one item of a list."""
    found: list[Json] = []
    for part in parts:
        first = part.get("prefixItems", part.get("items"))
        if isinstance(first, list) and at < len(first):
            found.append(first[at])
        else:
            found += [part[key] for key in ("items", "additionalItems", "unevaluatedItems") if key in part]
    return found


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
