"""Nulls in OpenAPI examples: FastAPI drops every null, which would make the examples invalid for their schemas.

The nulls are therefore replaced by a mark until the document is complete.
"""

from __future__ import annotations

from typing import Final

from pointsman.values import Json

MARK: Final = "\0"
"""Text that occurs in no example."""


def marked(example: Json) -> Json:
    """Replace each null by the mark."""
    return _replaced(example, None, MARK)


def unmarked(document: Json) -> Json:
    """Replace each mark by null."""
    return _replaced(document, MARK, None)


def _replaced(value: Json, old: Json, new: Json) -> Json:
    match value:
        case dict():
            return {name: _replaced(one, old, new) for name, one in value.items()}
        case list():
            return [_replaced(one, old, new) for one in value]
        case None | str():
            return new if value == old else value
        case _:
            return value
