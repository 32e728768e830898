"""What a store keeps beside the journal: summaries to list, workflows to run, conversations to go on with."""

from __future__ import annotations

from msgspec import Struct

from pointsman.values import ExecutionId, Instant, Json, JsonObject, WorkflowId


class Summary(Struct, frozen=True, kw_only=True):
    """One execution as lists show it. Rebuilt from the journal at any time; true as of `updated`."""

    execution: ExecutionId
    workflow: WorkflowId
    revision: int
    """The saved revision it is pinned to; 0 for a document that was never saved."""
    status: str
    started: Instant
    updated: Instant
    parent: ExecutionId | None = None
    session: str | None = None
    owner: str = ""
    wakes: Instant | None = None
    """When somebody must go on with it although nothing works on it: its next timer, or at once."""
    awaits: tuple[str, ...] = ()
    """The names of the events it waits for, sorted."""


class ExecutionQuery(Struct, frozen=True, kw_only=True):
    """Which executions to list, newest first. What is absent does not narrow."""

    statuses: frozenset[str] = frozenset()
    workflow: WorkflowId | None = None
    parent: ExecutionId | None = None
    session: str | None = None
    owner: str | None = None
    due: Instant | None = None
    """Only those that wake at or before this time; then the one that wakes first comes first."""
    awaits: str | None = None
    """Only those that wait for the event of this name."""
    before: tuple[float, ExecutionId] | None = None
    """`(started, execution)` of the last one of the page before."""
    limit: int = 50


class WorkflowDraft(Struct, frozen=True, kw_only=True):
    """A workflow to be saved: the author's document as it is, and what it reads as."""

    id: WorkflowId
    name: str
    version: str
    """Semver; empty where the author gave none."""
    dialect: str
    text: str
    """The author's document, byte for byte."""
    native: JsonObject
    created: Instant
    author: str = ""


class SavedWorkflow(Struct, frozen=True, kw_only=True):
    """One revision. It never changes."""

    draft: WorkflowDraft
    revision: int
    """1, 2, … per workflow id."""
    digest: str
    """SHA-256 of the document, in hexadecimal."""


class WorkflowEntry(Struct, frozen=True, kw_only=True):
    """A saved revision without its documents, for lists."""

    id: WorkflowId
    revision: int
    name: str
    version: str
    dialect: str
    created: Instant
    author: str
    digest: str
    enabled: bool = True
    """False: it is switched off; lists hide it unless asked."""


class Entry(Struct, frozen=True, kw_only=True):
    """Something people configured: a schedule, a webhook. Small; found by kind and key."""

    kind: str
    key: str
    value: Json
    version: int
    """Grows with every change in the store: an entry that was deleted and made again has another one."""


class Swept(Struct, frozen=True, kw_only=True):
    """What nobody used any more, and was deleted (or could be)."""

    blobs: int = 0
    bytes: int = 0
    """As stored."""


class Conversation(Struct, frozen=True, kw_only=True):
    """What a session said so far, oldest first."""

    session: str
    messages: tuple[Json, ...]
    closed: bool = False
