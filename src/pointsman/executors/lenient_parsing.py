"""Lenient parsing: accepts answers of models that are right but written a little differently.

    {type: number, minimum: 0, maximum: 100, x-lenient: true}     "85", "85 %", "85/100", "17/20" ▶ 85     130 ▶ 100
    {enum: [low, medium, high], x-lenient: true}                  " HIGH" ▶ "high"

Applies only where the schema asks for it. A value that cannot be converted stays as it is, and the schema refuses it.
"""

from __future__ import annotations

import re
from typing import Final, cast

from pointsman.values import Json, JsonObject

LENIENT: Final = "x-lenient"

_NUMBER: Final = re.compile(r"\s*([-+]?\d+(?:[.,]\d+)?)\s*(?:(%)|/\s*(\d+(?:[.,]\d+)?))?\s*")


def is_lenient(schema: Json) -> bool:
    """Return whether any part of a schema asks for leniency."""
    match schema:
        case dict():
            return schema.get(LENIENT) is True or any(is_lenient(part) for part in schema.values())
        case list():
            return any(is_lenient(part) for part in schema)
        case _:
            return False


def without_leniency(schema: Json) -> Json:
    """Return the schema for providers, which refuse unknown keywords."""
    match schema:
        case dict():
            return {key: without_leniency(part) for key, part in schema.items() if key != LENIENT}
        case list():
            return [without_leniency(part) for part in schema]
        case _:
            return schema


def taken(value: Json, schema: Json) -> Json:
    """Return the value converted as the schema asks, also inside objects and lists."""
    if not isinstance(schema, dict):
        return value
    if schema.get(LENIENT) is True:
        return _meant(value, schema)
    match value:
        case dict():
            fields = schema.get("properties")
            known = fields if isinstance(fields, dict) else {}
            return {key: taken(part, known.get(key)) for key, part in value.items()}
        case list():
            return [taken(part, schema.get("items")) for part in value]
        case _:
            return value


def _meant(value: Json, schema: JsonObject) -> Json:
    choices = schema.get("enum")
    if isinstance(choices, list):
        return _choice(value, choices)
    if schema.get("type") in ("number", "integer"):
        return _number(value, schema)
    return value


def _choice(value: Json, choices: list[Json]) -> Json:
    """Return the only choice that is equal except for case and surrounding space."""
    if value in choices or not isinstance(value, str):
        return value
    alike = [one for one in choices if isinstance(one, str) and one.casefold() == value.strip().casefold()]
    return alike[0] if len(alike) == 1 else value


def _number(value: Json, schema: JsonObject) -> Json:
    least, most = _bound(schema, "minimum"), _bound(schema, "maximum")
    number = _read(value, most) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        return value
    if least is not None:
        number = max(number, least)
    if most is not None:
        number = min(number, most)
    return round(number) if schema.get("type") == "integer" else number


def _read(text: str, most: float | None) -> float | None:
    """Parse a number; a fraction or percentage becomes the same share of the maximum."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number, percent, whole = (cast("str | None", part) for part in found.groups())
    assert number is not None
    value = _plain(number)
    of = 100.0 if percent else None if whole is None else _plain(whole)
    if not of or most is None:
        return value if whole is None else None
    return _whole(value * most / of)


def _plain(text: str) -> float:
    return _whole(float(text.replace(",", ".")))


def _whole(number: float) -> float:
    """Drop a zero fraction: 85, not 85.0."""
    return int(number) if number == int(number) else number


def _bound(schema: JsonObject, key: str) -> float | None:
    found = schema.get(key)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None
