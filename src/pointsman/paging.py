"""Search and paging of lists that are in memory as a whole: filter by words, sort by a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, cast

Entry = TypeVar("Entry", bound=Mapping[str, Any])


class Page(NamedTuple, Generic[Entry]):
    """A page of a list, and the `after` of the next page, or None."""

    entries: list[Entry]
    next: str | None


async def page_by(
    name: str | Callable[[Entry], str],
    entries: Iterable[Entry],
    *,
    after: str | None = None,
    limit: int,
    sees: Callable[[Entry], Awaitable[bool]] | None = None,
    backwards: bool = False,
) -> Page[Entry]:
    """Return the next page after `after`, sorted by the member or function `name`, or `backwards`, limited to entries
    that `sees` admits. It has `limit` entries, or fewer at the end. The sort keys must not change between pages."""
    place: Callable[[Entry], str] = (lambda one: str(one[name])) if isinstance(name, str) else name
    page: list[Entry] = []
    for entry in sorted(entries, key=place, reverse=backwards):
        read = after is not None and (place(entry) >= after if backwards else place(entry) <= after)
        if read or (sees is not None and not await sees(entry)):
            continue
        if len(page) == limit:
            return Page(page, place(page[-1]))
        page.append(entry)
    return Page(page, None)


def revision_place(entry: Mapping[str, Any]) -> str:
    """Return the sort key of a revision of one thing."""
    return f"{entry['revision']:015d}"


def has_words(words: str, *values: object) -> bool:
    """Return whether each of the words occurs in the texts of `values`, ignoring case; true without words."""
    wanted = words.casefold().split()
    if not wanted:
        return True
    text = "\n".join(text for value in values for text in _texts(value)).casefold()
    return all(word in text for word in wanted)


def _texts(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [text for element in cast("Iterable[object]", value) for text in _texts(element)]
        case dict():
            return [text for member in cast("dict[str, object]", value).values() for text in _texts(member)]
        case _:
            return []
