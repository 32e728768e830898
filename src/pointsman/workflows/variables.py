"""Variables: `${NAME}` in a definition, replaced on loading by values that the operator granted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pointsman.definition.problems import pointer_to
from pointsman.values import Json

NAME: Final = re.compile(r"\$\{([A-Z][A-Z0-9_]{0,99})\}")

FORMULAS: Final = frozenset(
    {"expression", "while", "until", "items", "over", "when", "match", "skipWhen", "input", "show", "source"}
)
"""Keys whose texts are expressions; variables in them are not replaced."""
MAPPINGS: Final = frozenset({"inputs", "outputs", "set", "output", "bind"})
"""Keys whose members are expressions."""


def variables_in(value: Json, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield (pointer, name) of every variable."""
    if isinstance(value, str):
        for match in NAME.finditer(value):
            yield at, match[1]
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from variables_in(element, at + pointer_to(number))
    elif isinstance(value, dict):
        for key, member in value.items():
            if not _is_formula(key, member):
                yield from variables_in(member, at + pointer_to(key))


def substituted(value: Json, granted: Mapping[str, str]) -> Json:
    """Replace every granted variable in a value, in one pass: variables in a replacement are not replaced."""
    if isinstance(value, str):
        return NAME.sub(lambda match: granted.get(match[1], match[0]), value)
    if isinstance(value, list):
        return [substituted(element, granted) for element in value]
    if isinstance(value, dict):
        return {
            key: member if _is_formula(key, member) else substituted(member, granted) for key, member in value.items()
        }
    return value


def _is_formula(key: str, value: Json) -> bool:
    return (key in FORMULAS and isinstance(value, str)) or key in MAPPINGS
