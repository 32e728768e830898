"""The catalogue: workflows found by words and tags, in the order somebody wants them, with what became of them last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal, TypeAlias

from pointsman.searching import says
from pointsman.values import JsonObject
from pointsman.workflows.revisions import place_of_workflow

Sort: TypeAlias = Literal["id", "name", "saved"]
NAME_CHARS: Final = 300
"""So many letters of a name order it: a place in a list stays short."""


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
"""What orders a list. Ids tell apart what is equal, so that no page leaves one out."""


def fitting(
    entries: Iterable[JsonObject], *, words: str = "", tags: Collection[str] = (), ids: Collection[str] | None = None
) -> list[JsonObject]:
    """Those with all these words in id, name, description or tags, and with all these tags; `ids`: only these."""
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
