"""The words by which remembered values are found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pointsman.values import Json

WORDS: Final = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """Each word once, in order. Nothing in it is an operator of anybody's search language."""
    return [*dict.fromkeys(WORDS.findall(text))]


def texts(value: Json) -> Iterator[str]:
    """Every text and number in a value, and the names of its fields."""
    pending: list[Json] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif item is not None:
            yield str(item)
