"""Workflows that can be used in a chat: conversational ones, and those whose only required input is a text."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

from typing_extensions import TypedDict

from pointsman.auth.policy import sees_entry
from pointsman.auth.subjects import InputInvalid, is_conversational
from pointsman.context import AppContext, Part
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import write_text
from pointsman.errors import AuthorError
from pointsman.executions.inputs import text_field
from pointsman.paging import Page, page_by
from pointsman.values import Json, JsonObject
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.revisions import PLACES, WorkflowEntryView, fitting, list_workflows

if TYPE_CHECKING:
    from pointsman.auth.callers import Caller
    from pointsman.definition.model.workflow import WorkflowDefinition


KNOWN_MAX: Final = 10_000

SPOKEN: Final = Part[dict[str, JsonObject | None]]("spoken workflows", lambda _: {})
"""Chat properties of a definition by `id@revision`, which never changes; None: not usable in a chat."""


class SpeakerView(TypedDict):
    """A workflow that one can chat with. It also has the members of an entry of the list of workflows."""

    id: str
    name: str | dict[str, str]
    description: str | dict[str, str] | None
    conversational: bool
    """Whether it remembers the earlier turns."""
    field: str
    """The field of its input that receives a message."""
    files: list[str]
    """Fields of its input that receive files."""


class SpeakerPage(TypedDict):
    """Workflows that one can chat with."""

    workflows: list[SpeakerView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


async def speakers(app: AppContext, caller: Caller) -> list[SpeakerView]:
    """Return the saved workflows that the caller can chat with, as in lists, with their chat properties."""
    return (await speakers_page(app, caller, limit=None)).entries


async def speakers_page(
    app: AppContext,
    caller: Caller,
    *,
    words: str = "",
    ids: Collection[str] | None = None,
    after: str | None = None,
    limit: int | None,
) -> Page[SpeakerView]:
    """Return a page of those with all these words, by name; `ids`: only these. Reads no more definitions than the page
    needs."""

    async def can_be_talked_to(entry: WorkflowEntryView) -> bool:
        return await sees_entry(app, caller, entry) and await _how(app, entry) is not None

    entries = fitting(await list_workflows(app), words=words, ids=ids)
    page = await page_by(
        PLACES["name"], entries, after=after, limit=len(entries) if limit is None else limit, sees=can_be_talked_to
    )
    found = [{**entry, **(await _how(app, entry) or {})} for entry in page.entries]
    return Page(cast("list[SpeakerView]", found), page.next)


async def _how(app: AppContext, entry: WorkflowEntryView) -> JsonObject | None:
    known = app[SPOKEN]
    revision = f"{entry['id']}@{entry['revision']}"
    if revision not in known:
        how: JsonObject | None = None
        with suppress(AuthorError, InputInvalid):
            how = _spoken_to((await app[LIBRARY].saved(revision))[0])
        if len(known) >= KNOWN_MAX:
            known.clear()
        known[revision] = how
    return known[revision]


def _spoken_to(definition: WorkflowDefinition) -> JsonObject:
    """Return the chat properties of a definition. Raises `InputInvalid` if a text alone is not enough."""
    field = text_field(definition, definition.input_schema)
    files: list[Json] = [*_file_fields(definition, field)]
    return {
        "name": definition.id if definition.name is None else write_text(definition.name),
        "description": None if definition.description is None else write_text(definition.description),
        "conversational": is_conversational(definition),
        "field": field,
        "files": files,
    }


def _file_fields(definition: WorkflowDefinition, field: str) -> list[str]:
    """Return the input fields that agents receive as files."""
    named = [
        str(path).partition(".")[0]
        for node in definition.nodes
        if isinstance(node.config, AgentConfig)
        for path in node.config.input_files or ()
    ]
    known = (definition.input_schema or {}).get("properties")
    return [name for name in dict.fromkeys(named) if name != field and (not isinstance(known, dict) or name in known)]
