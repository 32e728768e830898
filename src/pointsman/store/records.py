"""Records of a store beside the journal: summaries, inboxes, saved workflows, configuration, memory, conversations,
and usage of time, tokens and money."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, LiteralString, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from pointsman.ports import ChangeAuthor
from pointsman.values import ExecutionId, Instant, Json, JsonObject, WorkflowId

MICROS: Final = 1_000_000
"""Of a second."""
NANOS: Final = 1_000_000_000
"""Of a dollar."""


class UsagePosition(NamedTuple):
    """The subject of an entry. `model` and `key` are empty for the steps of the node."""

    node: str
    model: str = ""
    key: str = ""


class UsageAmounts(Struct):
    """The amounts of one entry."""

    steps: int = 0
    retries: int = 0
    failures: int = 0
    cached: int = 0
    micros: int = 0
    """Duration of the steps in microseconds."""
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    nanos: int = 0
    """Cost in billionths of a dollar."""
    priced_calls: int = 0
    """Calls of models whose price is known."""
    unpriced_calls: int = 0
    """Calls of models whose price is unknown."""
    scripted_calls: int = 0
    """Calls of the scripted model, which calls no provider and has no price."""

    def add(self, other: UsageAmounts) -> None:
        """Add the amounts of another one."""
        for name in AMOUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class UsageRecord(Struct, frozen=True, kw_only=True):
    """The usage of one execution on one day (UTC)."""

    day: str
    execution: ExecutionId
    workflow: str
    revision: int
    owner: str = ""
    """The user who started it; empty: unknown."""
    entries: tuple[tuple[UsagePosition, UsageAmounts], ...] = ()
    """Each place occurs once."""


UsageName: TypeAlias = Literal["day", "execution", "workflow", "revision", "owner", "node", "model", "key"]
"""A field by which amounts are grouped."""
About: TypeAlias = tuple[str | int, ...]
"""A value for each field of the query."""


class UsageQuery(Struct, frozen=True, kw_only=True):
    """Which amounts to add up, and how to group them."""

    by: tuple[UsageName, ...]
    since: str = ""
    """From this day to `until`, both included; empty: unbounded."""
    until: str = ""
    of: Mapping[UsageName, str] = {}
    """Only entries with these values."""

    @property
    def of_executions(self) -> bool:
        """Return whether the query needs executions or their owners, which the sums do not have."""
        return not OF_EXECUTIONS.isdisjoint({*self.by, *self.of})


OF_EXECUTIONS: Final[frozenset[UsageName]] = frozenset({"execution", "owner"})
ENTRY_MAX: Final = 1 << 50
"""The largest amount: stores add up integers of eight bytes, whatever a provider reports."""
AMOUNTS: Final = UsageAmounts.__struct_fields__

AMOUNT_COLUMNS: Final[LiteralString] = (
    "steps, retries, failures, cached, micros, model_calls, tool_calls, input_tokens, output_tokens, cache_read_tokens,"
    " nanos, priced_calls, unpriced_calls, scripted_calls"
)
"""`AMOUNTS` as a text for statements."""
USAGE_COLUMNS: Final[tuple[LiteralString, ...]] = (
    *("day", "execution", "workflow", "revision", "owner", "node", "model", "key", "place"),
    *AMOUNT_COLUMNS.split(", "),
)
"""The columns of `usage`; `place` is a digest: names may be too long for an index."""


def added_up(takings: Collection[UsageRecord], query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
    """Add up records in memory, for the store without tables."""
    sums: dict[About, UsageAmounts] = {}
    for taking in takings:
        if (query.since or taking.day) <= taking.day <= (query.until or taking.day):
            fields = {name: getattr(taking, name) for name in ("day", "execution", "workflow", "revision", "owner")}
            for place, amounts in taking.entries:
                about = fields | place._asdict()
                if all(str(about[name]) == value for name, value in query.of.items()):
                    sums.setdefault(tuple(about[name] for name in query.by), UsageAmounts()).add(amounts)
    return [*sums.items()]


Measure: TypeAlias = Literal["tokens", "modelCalls", "toolCalls", "costUsd"]

AMOUNT_MAX: Final = 1 << 53
"""Maximum of calls and tokens that stores can count."""


class BudgetUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Usage of an execution so far, with its sub-workflows, as budgets count it."""

    tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost_usd: float = 0.0
    """As far as prices are known."""


class SpendingQuery(Struct, frozen=True, kw_only=True):
    """The amounts that one budget is compared with: those of executions of the saved revisions of a workflow."""

    workflow: WorkflowId
    measure: Measure
    near: float
    """From this amount on an execution counts as near `most`."""
    most: float
    since: Instant | None = None
    """Of ended executions, only those that ended from this time on and before `until`."""
    until: Instant | None = None
    apart: bool = False
    """Group them by the fields that access depends on: revision, owner, session and parent."""


class Spenders(Struct, frozen=True, kw_only=True):
    """Some executions of one workflow: at least one."""

    executions: int
    near: int
    over: int
    """Number of executions that spent `most` or more."""
    highest: float
    dearest: ExecutionId
    """One execution that spent that much."""
    revision: int = 0
    owner: str = ""
    session: str | None = None
    parent: ExecutionId | None = None


def amount_of(usage: BudgetUsage, measure: Measure) -> float:
    """Return the amount that a budget measures."""
    match measure:
        case "tokens":
            return usage.tokens
        case "modelCalls":
            return usage.model_calls
        case "toolCalls":
            return usage.tool_calls
        case "costUsd":
            return usage.cost_usd


DIGITS_MAX: Final = 18
"""Digits of a revision number: the integers of stores hold no more."""
TRIAL: Final = "try-"
"""Prefix of the ids of partial runs."""
ANYONE: Final = "*"
"""Among the users of a gate: any user may answer it."""


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
    """People who voted or delegated: the gate does not wait for them."""
    item: str | None = None
    round: int | None = None
    messages: dict[str, str] = {}
    """The message by language, where there are several."""
    called: Json = None
    """The name of its node: a text, or texts by language."""
    digest: str = ""
    """A digest of the content that the gate shows."""
    scripted: bool = False
    """The scripted model answers in its execution: the content may be made up."""
    by_link: bool = False
    """Whether the signed link of a notification is enough to answer."""

    @property
    def asked(self) -> tuple[str, ...]:
        """The keys by which inboxes find the gate: the people it asks, and those it no longer asks."""
        return (*map(user_key, self.users), *map(group_key, self.groups), *map(without_key, self.without))


def user_key(user: str) -> str:
    return f"user:{user}"


def group_key(group: str) -> str:
    return f"group:{group}"


def without_key(user: str) -> str:
    return f"without:{user}"


class InboxQuery(Struct, frozen=True, kw_only=True):
    """Which open gates to list, oldest first. Without a user and groups: all of them."""

    user: str | None = None
    groups: tuple[str, ...] = ()
    workflow: WorkflowId | None = None
    after: tuple[float, ExecutionId, str] | None = None
    """`(opened, execution, gate)` of the last one of the page before."""
    limit: int = 50

    @property
    def asked(self) -> tuple[str, ...] | None:
        """The keys of which a gate must have one; None: any."""
        if self.user is None and not self.groups:
            return None
        users = (ANYONE,) if self.user is None else (ANYONE, self.user)
        return (*map(user_key, users), *map(group_key, self.groups))

    @property
    def without(self) -> str | None:
        """The key that a gate must not have."""
        return None if self.user is None else without_key(self.user)


class AnswerEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's answer to a gate, as the list of answers shows it. A later answer of the person replaces it."""

    execution: ExecutionId
    workflow: WorkflowId
    gate: str
    node: str
    message: str
    """What the gate asked."""
    by: str
    action: str
    at: Instant
    comment: str = ""
    closed: bool = False
    """Whether this answer closed the gate; False: it was one of several votes."""
    about: str = "node"
    item: str | None = None
    round: int | None = None
    messages: dict[str, str] = {}
    """The message by language, where there are several."""
    called: Json = None
    """The name of its node: a text, or texts by language."""

    @property
    def key(self) -> tuple[ExecutionId, str, str]:
        """What identifies the answer."""
        return self.execution, self.gate, self.by

    @property
    def place(self) -> tuple[Instant, ExecutionId, str, str]:
        """Its place in lists."""
        return self.at, *self.key


class AnswersQuery(Struct, frozen=True, kw_only=True):
    """Which answers to list, newest first. Absent fields do not filter."""

    by: str | None = None
    workflow: WorkflowId | None = None
    before: tuple[float, ExecutionId, str, str] | None = None
    """`AnswerEntry.place` of the last one of the page before."""
    limit: int = 50


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
    """When a worker must resume it although no step runs: its next timer, or at once."""
    awaits: tuple[str, ...] = ()
    """The names of the events it waits for, sorted."""
    needs: tuple[str, ...] = ()
    """The parts that a worker needs to perform the waiting steps, as in `Failure.needs`, sorted."""
    worker: str = ""
    """The process that wrote its last row; empty: unknown."""
    gates: tuple[GateEntry, ...] | None = None
    """All its open gates; None: unchanged. Lists may leave them out; inboxes return them."""
    answers: tuple[AnswerEntry, ...] = ()
    """Answers to its gates that are added to those in the store. Lists leave them out; `Executions.answers` returns
    them."""
    spent: BudgetUsage = BudgetUsage()
    scripted: bool = False
    """The scripted model answers in it."""

    def after(self, before: Summary | None) -> Summary:
        """Return this summary, which replaces `before`, with what it keeps: open gates that are unchanged, and
        answers."""
        if before is None or (self.gates is not None and not before.answers):
            return self
        gates = before.gates if self.gates is None else self.gates
        answers = {answer.key: answer for answer in (*before.answers, *self.answers)}
        return replace(self, gates=gates, answers=tuple(answers.values()))


class ExecutionQuery(Struct, frozen=True, kw_only=True):
    """Which executions to list, newest first by default. Absent fields do not filter."""

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
    """Only the last turn of each session, without child executions; executions without a session are left out."""
    before: tuple[float, ExecutionId] | None = None
    """`(started, execution)` of the last one of the page before."""
    oldest_first: bool = False
    trials: bool = True
    """Include partial runs, whose ids begin with `TRIAL`."""
    prefix: str = ""
    """Only those whose ids begin with this text."""
    limit: int = 50


class WorkflowDraft(Struct, frozen=True, kw_only=True):
    """A workflow to be saved: the author's document, and the definition read from it."""

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


def revision_named(text: str) -> int | None:
    """Return the `3` of `id@3`; None: it is a version, or not a number of a revision."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else None


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
    """False: it is disabled; lists hide it by default."""
    description: Json = None
    """A text, or texts by language; None: not given."""
    tags: tuple[str, ...] = ()
    names: dict[str, str] | None = None
    """By language, where the document has more than one."""


def names_in(native: Json) -> dict[str, str] | None:
    """Return the names of a workflow by language, from its document; None: it has one name for all."""
    return {tag: text for tag, text in native.items() if isinstance(text, str)} if isinstance(native, dict) else None


def tags_in(native: Json) -> tuple[str, ...]:
    """Return the tags of a workflow, from its document."""
    listed = native if isinstance(native, list) else [native]
    return tuple(tag for tag in listed if isinstance(tag, str))


class EffectRecord(NamedTuple):
    """The recorded answer of one effect, as `EffectStore.record` takes it."""

    attempt: str
    number: int
    value: Json


class ConfigEntry(Struct, frozen=True, kw_only=True):
    """A configuration entry: a schedule, a webhook. Small; found by kind and key."""

    kind: str
    key: str
    value: Json
    version: int
    """Grows with every change in the store: an entry that was deleted and created again has another version."""


class RememberedValue(Struct, frozen=True, kw_only=True):
    """One remembered value."""

    key: str
    value: Json
    changed: float
    """Unix seconds; 0: unknown."""
    expires: float | None = None


class PastValue(Struct, frozen=True):
    """A present or earlier value of a key, and its writer."""

    number: int
    """Number of the change, from 1 for each key; some may be missing."""
    value: Json
    changed: float
    """Unix seconds; 0: unknown."""
    expires: float | None = None
    by: ChangeAuthor | None = None
    """None: unknown."""


class UnembeddedValue(Struct, frozen=True):
    """A remembered value without an embedding vector."""

    key: str
    value: Json
    mark: bytes
    """A digest that identifies this value among the earlier and later ones of the key."""


class Embedding(Struct, frozen=True):
    """The embedding vector of a remembered value."""

    key: str
    mark: bytes
    vector: tuple[float, ...]
    """Empty: the model returns none for this value."""


class SimilarValue(Struct, frozen=True):
    """A remembered value that is similar to the query."""

    key: str
    value: Json
    similarity: float
    """The cosine: 1 is the same, 0 is unrelated."""


class Holding(Struct, frozen=True, kw_only=True):
    """How much one owner remembers, and the time of the last change."""

    scope: str
    namespace: str
    keys: int
    bytes: int
    """As JSON."""
    changed: float


class SweepResult(Struct, frozen=True, kw_only=True):
    """Unused blobs that were deleted (or would be, in a dry run)."""

    blobs: int = 0
    bytes: int = 0
    """As stored."""


class Conversation(Struct, frozen=True, kw_only=True):
    """The messages of a session, oldest first."""

    session: str
    messages: tuple[Json, ...]
    closed: bool = False
