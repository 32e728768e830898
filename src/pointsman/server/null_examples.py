"""Nulls in examples: FastAPI leaves every null out of the document that it makes, and what is left is no example of its
shape. So they are marked until the document is made.
"""

from __future__ import annotations

from typing import Final

from pointsman.values import Json

MARK: Final = "\0"
"""No example says this."""


def marked(example: Json) -> Json:
    """With a mark in the place of each null."""
    return _replaced(example, None, MARK)


def unmarked(document: Json) -> Json:
    """With its nulls again."""
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
