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
from pointsman.definition.model.base import Text
from pointsman.errors import AuthorError
from pointsman.executions.inputs import text_field
from pointsman.paging import Page, page_by
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.revisions import (
    PLACES,
    RevisionFacts,
    WorkflowEntryView,
    fitting,
    list_workflows,
    shown_revisions,
)

if TYPE_CHECKING:
    from pointsman.auth.callers import Caller
    from pointsman.definition.model.workflow import WorkflowDefinition


KNOWN_MAX: Final = 10_000

SPOKEN: Final = Part[dict[str, "ChatProperties | None"]]("spoken workflows", lambda _: {})
"""Chat properties of a definition by `id@revision`, which never changes; None: not usable in a chat."""


class ChatProperties(TypedDict):
    """How people can chat with a workflow."""

    name: str | dict[str, str]
    """A text, or one by language."""
    description: str | dict[str, str] | None
    """A text, or one by language; null: there is none."""
    conversational: bool
    """Whether it remembers the earlier turns."""
    field: str
    """The field of its input that receives a message."""
    files: list[str]
    """Fields of its input that receive files."""


class ChatWorkflowView(RevisionFacts, ChatProperties):
    """A workflow that people can chat with."""


class ChatWorkflowPage(TypedDict):
    """Workflows that people can chat with."""

    workflows: list[ChatWorkflowView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


async def chat_workflows(app: AppContext, caller: Caller) -> list[ChatWorkflowView]:
    """Return the saved workflows that the caller can chat with, as in lists, with their chat properties."""
    return (await chat_workflows_page(app, caller, limit=None)).entries


async def chat_workflows_page(
    app: AppContext,
    caller: Caller,
    *,
    words: str = "",
    ids: Collection[str] | None = None,
    after: str | None = None,
    limit: int | None,
) -> Page[ChatWorkflowView]:
    """Return a page of those with all these words, by name; `ids`: only these. Reads no more definitions than the page
    needs."""

    async def can_be_talked_to(entry: WorkflowEntryView) -> bool:
        is_seen = await sees_entry(app, caller, entry["id"], shown_revisions(entry))
        return is_seen and await _chat_properties(app, entry) is not None

    entries = fitting(await list_workflows(app), words=words, ids=ids)
    page = await page_by(
        PLACES["name"], entries, after=after, limit=len(entries) if limit is None else limit, sees=can_be_talked_to
    )
    workflows: list[ChatWorkflowView] = []
    for entry in page.entries:
        properties = await _chat_properties(app, entry)
        assert properties is not None  # `can_be_talked_to` checked it.
        workflows.append(cast("ChatWorkflowView", {**entry, **properties}))  # pyright keeps the replaced `description`.
    return Page(workflows, page.next)


async def _chat_properties(app: AppContext, entry: WorkflowEntryView) -> ChatProperties | None:
    cached = app[SPOKEN]
    revision = f"{entry['id']}@{(entry['published'] or entry)['revision']}"
    if revision not in cached:
        properties: ChatProperties | None = None
        with suppress(AuthorError, InputInvalid):
            properties = _spoken_to((await app[LIBRARY].saved(revision))[0])
        if len(cached) >= KNOWN_MAX:
            cached.clear()
        cached[revision] = properties
    return cached[revision]


def _spoken_to(definition: WorkflowDefinition) -> ChatProperties:
    """Return the chat properties of a definition. Raises `InputInvalid` if a text alone is not enough."""
    field = text_field(definition, definition.input_schema)
    return {
        "name": definition.id if definition.name is None else _localized(definition.name),
        "description": None if definition.description is None else _localized(definition.description),
        "conversational": is_conversational(definition),
        "field": field,
        "files": _file_fields(definition, field),
    }


def _localized(text: Text) -> str | dict[str, str]:
    return text.value if isinstance(text.value, str) else dict(text.value)


def _file_fields(definition: WorkflowDefinition, field: str) -> list[str]:
    """Return the input fields that agents receive as files."""
    names = [
        str(path).partition(".")[0]
        for node in definition.nodes
        if isinstance(node.config, AgentConfig)
        for path in node.config.input_files or ()
    ]
    properties = (definition.input_schema or {}).get("properties")
    return [
        name
        for name in dict.fromkeys(names)
        if name != field and (not isinstance(properties, dict) or name in properties)
    ]
