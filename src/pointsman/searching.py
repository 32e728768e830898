"""Word search in lists that are in memory as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast


def says(words: str, *said: object) -> bool:
    """Return whether each of the words occurs in the texts of `said`, ignoring case; true without words."""
    wanted = words.casefold().split()
    if not wanted:
        return True
    text = "\n".join(text for one in said for text in _texts(one)).casefold()
    return all(word in text for word in wanted)


def _texts(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [text for one in cast("Iterable[object]", value) for text in _texts(one)]
        case dict():
            return [text for one in cast("dict[str, object]", value).values() for text in _texts(one)]
        case _:
            return []
