"""Search in the workflow catalogue: filter by words and tags, and sort."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal, TypeAlias, TypeVar

from pointsman.searching import says
from pointsman.workflows.revisions import WorkflowEntryView, place_of_workflow

Entry = TypeVar("Entry", bound=WorkflowEntryView)
Sort: TypeAlias = Literal["id", "name", "saved"]
NAME_CHARS: Final = 300
"""Characters of a name that determine its order; a bound for the length of list cursors."""


def _by_name(entry: WorkflowEntryView) -> str:
    return f"{entry['name'].casefold()[:NAME_CHARS]}\t{entry['id']}"


def _by_saving(entry: WorkflowEntryView) -> str:
    return f"{entry['createdAt'] or 0.0:020.6f} {entry['id']}"


PLACES: Final[dict[Sort, Callable[[WorkflowEntryView], str]]] = {
    "id": place_of_workflow,
    "name": _by_name,
    "saved": _by_saving,
}
"""Sort key -> position of an entry in the list. Each position ends with the id, so that entries with equal keys have
distinct positions and no page omits one."""


def fitting(
    entries: Iterable[Entry], *, words: str = "", tags: Collection[str] = (), ids: Collection[str] | None = None
) -> list[Entry]:
    """Return the entries that contain all `words` in id, name, description or tags and have all `tags`. `ids` limits
    the result to these workflows."""
    return [
        entry
        for entry in entries
        if (ids is None or entry["id"] in ids)
        and set(tags) <= set(entry["tags"])
        and says(words, entry["id"], entry["name"], entry["names"], entry["description"], entry["tags"])
    ]
