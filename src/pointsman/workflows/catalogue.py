"""Search in the workflow catalogue: filter by words and tags, and sort."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal, TypeAlias

from pointsman.searching import says
from pointsman.values import JsonObject
from pointsman.workflows.revisions import place_of_workflow

Sort: TypeAlias = Literal["id", "name", "saved"]
NAME_CHARS: Final = 300
"""Characters of a name that determine its order; a bound for the length of list cursors."""


def _by_name(entry: JsonObject) -> str:
    return f"{str(entry['name']).casefold()[:NAME_CHARS]}\t{entry['id']}"


def _by_saving(entry: JsonObject) -> str:
    at = entry["createdAt"]
    return f"{at if isinstance(at, (int, float)) else 0.0:020.6f} {entry['id']}"


PLACES: Final[dict[Sort, Callable[[JsonObject], str]]] = {
    "id": place_of_workflow,
    "name": _by_name,
    "saved": _by_saving,
}
"""Sort key -> position of an entry in the list. Each position ends with the id, so that entries with equal keys have
distinct positions and no page omits one."""


def fitting(
    entries: Iterable[JsonObject], *, words: str = "", tags: Collection[str] = (), ids: Collection[str] | None = None
) -> list[JsonObject]:
    """Return the entries that contain all `words` in id, name, description or tags and have all `tags`. `ids` limits
    the result to these workflows."""
    return [
        entry
        for entry in entries
        if (ids is None or entry["id"] in ids)
        and set(tags) <= _tags_of(entry)
        and says(words, entry["id"], entry["name"], entry["names"], entry["description"], entry["tags"])
    ]


def _tags_of(entry: JsonObject) -> set[str]:
    tags = entry["tags"]
    return {str(tag) for tag in tags} if isinstance(tags, list) else set()
