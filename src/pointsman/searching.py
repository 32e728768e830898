"""Word search in lists that are in memory as a whole."""

from __future__ import annotations

from pointsman.values import Json


def says(words: str, *said: Json) -> bool:
    """Return whether each of the words occurs in the texts of `said`, ignoring case; true without words."""
    wanted = words.casefold().split()
    if not wanted:
        return True
    text = "\n".join(text for one in said for text in _texts(one)).casefold()
    return all(word in text for word in wanted)


def _texts(value: Json) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [text for one in value for text in _texts(one)]
        case dict():
            return [text for one in value.values() for text in _texts(one)]
        case _:
            return []
