"""Compares what came with what was expected, and says where they part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pointsman.values import Json

SHOWN_MAX = 300


def differences(expected: Json, found: Json, at: str) -> Iterator[str]:
    """Where `found` is not what is expected: of objects the named members count, everything else exactly."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                yield f"{at}.{key}: expected {shown(value)}, is absent"
            else:
                yield from differences(value, found[key], f"{at}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (wanted, came) in enumerate(zip(expected, found, strict=True)):
            yield from differences(wanted, came, f"{at}[{number}]")
    elif not same(expected, found):
        yield f"{at}: expected {shown(expected)}, was {shown(found)}"


def same(one: Json, other: Json) -> bool:
    """Equal as JSON: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def fits(expected: Json, found: Json) -> bool:
    return not any(differences(expected, found, ""))


def missing_in_order(expected: Sequence[Json], found: Sequence[Json]) -> Json | None:
    """The first of `expected` that does not come, after those before it, in `found`."""
    rest = iter(found)
    for wanted in expected:
        if not any(fits(wanted, came) for came in rest):
            return wanted
    return None


def shown(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
