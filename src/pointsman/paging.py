"""Pages of lists that are at hand as a whole: in the order of a name, and where the next page begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from pointsman.values import JsonObject


class Page(NamedTuple):
    """Some of a list, and the `after` of the next page; None: there are no more."""

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
    """Those behind `after` that somebody sees, in the order of the member `name` or of what is worked out of an entry,
    or `backwards`: `limit` of them, unless there are no more. Places must not change while somebody reads on."""
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
    """What orders the revisions of one thing."""
    return f"{entry['revision']:015d}"
