"""What a store keeps beside the journal: summaries to list, workflows to run, conversations to go on with."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pointsman.ports import Writer
from pointsman.store.budget_usage import Spent
from pointsman.values import ExecutionId, Instant, Json, JsonObject, WorkflowId

DIGITS_MAX: Final = 18
"""Of the number of a revision: stores count no further."""
TRIAL: Final = "try-"
"""How the ids of executions begin in which somebody only tries a part of a workflow."""
ANYONE: Final = "*"
"""Among the users of a gate: it may be answered by anyone."""


class GateEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An open gate as inboxes show it."""

    execution: ExecutionId
    workflow: WorkflowId
    gate: str
    node: str
    message: str
    opened: Instant
    about: str = "node"
    deadline: Instant | None = None
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """People who voted, or passed their right on: it does not wait for them."""
    item: str | None = None
    round: int | None = None
    messages: dict[str, str] = {}
    """The message by language, where there are several."""
    called: Json = None
    """How people know its node: a text, or one by language."""
    digest: str = ""
    """Names what the gate shows."""
    scripted: bool = False
    """The scripted model answers in its execution: what it shows may be made up."""

    @property
    def asked(self) -> tuple[str, ...]:
        """Whom it asks, and whom not any more, as inboxes look for them."""
        return (*map(user_key, self.users), *map(group_key, self.groups), *map(without_key, self.without))


def user_key(user: str) -> str:
    return f"user:{user}"


def group_key(group: str) -> str:
    return f"group:{group}"


def without_key(user: str) -> str:
    return f"without:{user}"


class InboxQuery(Struct, frozen=True, kw_only=True):
    """Which open gates to list, oldest first. Nobody in particular: all of them."""

    user: str | None = None
    groups: tuple[str, ...] = ()
    workflow: WorkflowId | None = None
    after: tuple[float, ExecutionId, str] | None = None
    """`(opened, execution, gate)` of the last one of the page before."""
    limit: int = 50

    @property
    def asked(self) -> tuple[str, ...] | None:
        """Whom a gate must ask to be listed; None: whomever."""
        if self.user is None and not self.groups:
            return None
        users = (ANYONE,) if self.user is None else (ANYONE, self.user)
        return (*map(user_key, users), *map(group_key, self.groups))

    @property
    def without(self) -> str | None:
        """Who must not have answered it yet."""
        return None if self.user is None else without_key(self.user)


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
    needs: tuple[str, ...] = ()
    """What workers must have to perform the steps that wait for one, as in `Failure.needs`, sorted."""
    worker: str = ""
    """The process that wrote the row behind this (see `runtime.worker_names`); empty: nobody knows."""
    gates: tuple[GateEntry, ...] | None = None
    """All its open gates; None: those it had. Only inboxes are asked for them, lists may leave them out."""
    spent: Spent = Spent()
    scripted: bool = False
    """The scripted model answers in it."""


class ExecutionQuery(Struct, frozen=True, kw_only=True):
    """Which executions to list, newest first unless they are wanted otherwise. What is absent does not narrow."""

    statuses: frozenset[str] = frozenset()
    workflow: WorkflowId | None = None
    parent: ExecutionId | None = None
    session: str | None = None
    owner: str | None = None
    due: Instant | None = None
    """Only those that wake at or before this time; then the one that wakes first comes first."""
    awaits: str | None = None
    """Only those that wait for the event of this name."""
    since: Instant | None = None
    """Only those that changed at or after this time."""
    last_of_session: bool = False
    """Of each session only the last turn that somebody began; what belongs to no session not at all."""
    before: tuple[float, ExecutionId] | None = None
    """`(started, execution)` of the last one of the page before."""
    oldest_first: bool = False
    trials: bool = True
    """Those too in which somebody tried a part of a workflow: whose ids begin with `TRIAL`."""
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


def revision_named(wanted: str) -> int | None:
    """`3` of `id@3`; None: it is a version, or no number that a revision could have."""
    return int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) <= DIGITS_MAX else None


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
    description: Json = None
    """A text, or one by language; None: nothing is said."""
    tags: tuple[str, ...] = ()
    names: dict[str, str] | None = None
    """By language, where the document has more than one."""


def names_in(native: Json) -> dict[str, str] | None:
    """What a workflow is called by language, as its document has it; None: it has one name for all."""
    return {tag: text for tag, text in native.items() if isinstance(text, str)} if isinstance(native, dict) else None


def tags_in(native: Json) -> tuple[str, ...]:
    """The tags of a workflow, as its document has them."""
    listed = native if isinstance(native, list) else [native]
    return tuple(tag for tag in listed if isinstance(tag, str))


class ConfigEntry(Struct, frozen=True, kw_only=True):
    """Something people configured: a schedule, a webhook. Small; found by kind and key."""

    kind: str
    key: str
    value: Json
    version: int
    """Grows with every change in the store: an entry that was deleted and made again has another one."""


class RememberedValue(Struct, frozen=True, kw_only=True):
    """One remembered value."""

    key: str
    value: Json
    changed: float
    """Unix seconds; 0: nobody knows."""
    expires: float | None = None


class PastValue(Struct, frozen=True):
    """A value that a key has or had, and who wrote it."""

    number: int
    """Of the change, from 1 for each key; some may be missing."""
    value: Json
    changed: float
    """Unix seconds; 0: nobody knows."""
    expires: float | None = None
    by: Writer | None = None
    """None: nobody knows."""


class UnembeddedValue(Struct, frozen=True):
    """A remembered value of which nobody has said yet what it means."""

    key: str
    value: Json
    mark: bytes
    """Tells this very value from the one before and after it."""


class Embedding(Struct, frozen=True):
    """Where a value lies among others by what it means."""

    key: str
    mark: bytes
    vector: tuple[float, ...]
    """Empty: it cannot be said of this one."""


class SimilarValue(Struct, frozen=True):
    """A remembered value that means something like what was asked for."""

    key: str
    value: Json
    similarity: float
    """The cosine: 1 is the same, 0 has nothing to do with it."""


class Holding(Struct, frozen=True, kw_only=True):
    """How much one owner remembers, and since when nothing changed there."""

    scope: str
    namespace: str
    keys: int
    bytes: int
    """As JSON."""
    changed: float


class SweepResult(Struct, frozen=True, kw_only=True):
    """What nobody used any more, and was deleted (or could be)."""

    blobs: int = 0
    bytes: int = 0
    """As stored."""


class Conversation(Struct, frozen=True, kw_only=True):
    """What a session said so far, oldest first."""

    session: str
    messages: tuple[Json, ...]
    closed: bool = False
