"""Paging of lists that are in memory as a whole, by a sort key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from pointsman.values import JsonObject


class Page(NamedTuple):
    """A page of a list, and the `after` of the next page, or None."""

    entries: list[JsonObject]
    next: str | None


async def page_by(
    name: str | Callable[[JsonObject], str],
    entries: Iterable[JsonObject],
    *,
    after: str | None = None,
    limit: int,
    sees: Callable[[JsonObject], Awaitable[bool]] | None = None,
    backwards: bool = False,
) -> Page:
    """Return the next page after `after`, sorted by the member or function `name`, or `backwards`, limited to entries
    that `sees` admits. It has `limit` entries, or fewer at the end. The sort keys must not change between pages."""
    place: Callable[[JsonObject], str] = (lambda one: str(one[name])) if isinstance(name, str) else name
    found: list[JsonObject] = []
    for entry in sorted(entries, key=place, reverse=backwards):
        read = after is not None and (place(entry) >= after if backwards else place(entry) <= after)
        if read or (sees is not None and not await sees(entry)):
            continue
        if len(found) == limit:
            return Page(found, place(found[-1]))
        found.append(entry)
    return Page(found, None)


def revision_place(entry: JsonObject) -> str:
    """Return the sort key of a revision of one thing."""
    return f"{entry['revision']:015d}"
