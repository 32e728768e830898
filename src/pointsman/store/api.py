"""The contract of a store: journals and every other table, behind one address.

memory:                 the data ends with the process
sqlite:///path          one file; four slashes for an absolute path
postgresql://host/name  a database; ?schema=name for a schema of its own
others                  packages that register the scheme under the entry points `pointsman.journals`
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Final, Protocol, TypeAlias, cast

from pointsman.extras import need
from pointsman.ports import ChangingMemory, Journal, Row
from pointsman.store.coordination import Claims, Leadership, Listener
from pointsman.store.errors import StoreUnknown, masked_address
from pointsman.store.records import (
    About,
    AnswerEntry,
    AnswersQuery,
    ConfigEntry,
    Conversation,
    EffectRecord,
    Embedding,
    ExecutionQuery,
    GateEntry,
    Holding,
    InboxQuery,
    PastValue,
    RememberedValue,
    SavedWorkflow,
    SimilarValue,
    Spenders,
    SpendingQuery,
    Summary,
    SweepResult,
    UnembeddedValue,
    UsageAmounts,
    UsageQuery,
    UsageRecord,
    WorkflowDraft,
    WorkflowEntry,
)
from pointsman.tool_output import load_plugin, package_errors
from pointsman.values import ExecutionId, Json, WorkflowId

ENTRY_POINTS: Final = "pointsman.journals"


class StoreJournal(Journal, Protocol):
    """A journal that commits the summary of an execution, and answers of effects, together with rows."""

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        """As `Journal.append`. Cancelling the call does not take the rows back: they may still be committed. Calls are
        committed in the order in which they were made, whether they are awaited or not.

        `effects` are stored as by `EffectStore.record`, in the same transaction: if a row is refused, none is. A
        summary with the character NUL in a text is refused with its rows (`UnstorableValue`).
        """
        ...


class Executions(Protocol):
    """The list of executions: derived from the journals, and searchable."""

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        """Add or replace a summary without a row. Prefer `StoreJournal.append(…, summary=…)`.

        `seq`: the row that the summary is derived from. If the journal has later rows, nothing is written: another
        process appended them, and its summary is newer. Raises `UnstorableValue` for the character NUL in a text.
        """
        ...

    async def find(self, execution: ExecutionId) -> Summary | None: ...

    async def list(self, query: ExecutionQuery = ...) -> list[Summary]: ...

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        """Add up what executions spent, from their summaries. `apart`: one group for each combination."""
        ...

    async def inbox(self, query: InboxQuery = ...) -> list[GateEntry]:
        """Return the open gates of all executions that ask these people, from the summaries."""
        ...

    async def answers(self, query: AnswersQuery = ...) -> list[AnswerEntry]:
        """Return what people answered, newest first. Each answer came with the summary of the row that has it
        (`Summary.answers`), and stays until the execution is deleted."""
        ...


class Workflows(Protocol):
    """Saved workflows. A revision never changes; deleting hides a workflow but keeps what executions are pinned to."""

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        """Add a revision, or return the latest one if it has the same document and version. `after`: the revision
        that must be the latest, 0 if the workflow must not exist; otherwise raises `RevisionMoved` and writes nothing.
        """
        ...

    async def find(self, reference: str) -> SavedWorkflow | None:
        """Find `id` (latest), `id@3` (revision) or `id@1.2.0` (latest revision of that version). Deleted workflows are
        found by revision only."""
        ...

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        """Return the latest revision of each workflow by id, or all revisions of one workflow, newest first."""
        ...

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        """Hide a workflow; False if there was none. Saving it again restores it under the next revision. `after` as
        for `save`."""
        ...


class MemoryTable(ChangingMemory, Protocol):
    """`Memory`, and the verbs with which people manage it."""

    async def forget(self, scope: str, namespace: str, *, within: str = "") -> int:
        """Delete the keys of a namespace that begin with `within`, and their history; return how many keys."""
        ...

    async def every(
        self, scope: str, namespace: str, *, within: str = "", after: str = "", limit: int = -1, at: float = 0.0
    ) -> list[RememberedValue]:
        """Return the keys after `after` that begin with `within` and have not expired by `at`, sorted. -1: all."""
        ...

    async def history(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> list[PastValue]:
        """Return the value of a key and its earlier values, the latest first; empty if it has no value at `at`."""
        ...

    async def holdings(self, *, at: float = 0.0) -> list[Holding]:
        """Return how much each owner remembers, by scope and namespace."""
        ...

    async def purge(self, at: float, *, dry_run: bool = False) -> int:
        """Delete the values that expired by `at`, and their history; return how many values."""
        ...


class Vectors(Protocol):
    """Embedding vectors of remembered values. Derived: a vector is deleted when its value changes or is deleted, and
    missing ones are computed again."""

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[UnembeddedValue]:
        """Return the values of an owner without a vector of this model, by key, except those expired by `at`."""
        ...

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Embedding]) -> None:
        """Store the vectors of values that have not changed meanwhile. Raises `VectorsDiffer` if the owner has vectors
        of another length from this model; then nothing is stored."""
        ...

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[SimilarValue]:
        """Return the most similar values of an owner, by exact comparison. Raises `VectorsDiffer`."""
        ...

    async def clear(self) -> int:
        """Delete all vectors and return how many. Values stay."""
        ...


class Sessions(Protocol):
    """Conversations, turn by turn."""

    async def load(self, session: str) -> Conversation:
        """Return the messages so far; an unknown session is empty and open."""
        ...

    async def append(self, session: str, messages: tuple[Json, ...], *, after: int) -> None:
        """Add a turn after message number `after`. Repeating the same call has no effect, so it is safe after a crash;
        other messages there raise `SessionMoved`, a closed session `SessionClosed`."""
        ...

    async def close(self, session: str, *, closed: bool = True) -> None:
        """End the conversation, or reopen it."""
        ...

    async def forget(self, session: str) -> bool:
        """Delete the messages; False if there were none."""
        ...


class EffectStore(Protocol):
    """Recorded answers of paid calls: an attempt that is repeated after a crash gets them from here."""

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        """Store the answer of effect `number` of an attempt (any text that names it). The first answer stays."""
        ...

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]: ...

    async def attempts(self, execution: ExecutionId) -> list[str]:
        """Return the attempts with recorded answers, sorted by name."""
        ...


class ConfigStore(Protocol):
    """Configuration: schedules, webhooks and the like. Some thousands of entries, each of some kilobytes."""

    async def put(self, kind: str, key: str, value: Json, *, after: int | None = None) -> int:
        """Add or replace an entry and return its new version. `after`: the version that it must have now, 0 if it must
        not exist; otherwise raises `EntryMoved` and writes nothing."""
        ...

    async def find(self, kind: str, key: str) -> ConfigEntry | None: ...

    async def list(self, kind: str) -> list[ConfigEntry]:
        """Return all entries of a kind, by key."""
        ...

    async def delete(self, kind: str, key: str, *, after: int | None = None) -> bool:
        """Delete an entry; False if there was none. `after` as for `put`."""
        ...


class UsageSums(Protocol):
    """Usage of time, tokens and money, added up as it is stored. It stays when executions are deleted."""

    async def put(self, taking: UsageRecord) -> None:
        """Store the usage of an execution on a day, in place of what was stored for them. The sums change in the same
        commit."""
        ...

    async def sums(self, query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
        """Return one sum for each combination of names. Without executions and owners among them, the cost does not
        grow with the number of executions."""
        ...


class Blobs(Protocol):
    """Bytes by the SHA-256 of their content: the same content is stored once."""

    async def put(self, content: bytes) -> str:
        """Store a content and return its hash in hexadecimal."""
        ...

    async def get(self, digest: str) -> bytes | None: ...


class Removal(Protocol):
    """Permanent deletion. Safe while other callers read and write; writers wait only briefly."""

    async def remove(self, execution: ExecutionId, *, at: int) -> bool:
        """Delete an execution whose last row is `at`: its journal, effects, summary, and blobs that only it used. False
        if there was none. Raises `JournalMoved` if it has later rows; so does every later append to it."""
        ...

    async def sweep(self, *, dry_run: bool = False) -> SweepResult:
        """Delete unused blobs, except those put a moment ago; finish deletions that a crash interrupted."""
        ...

    async def compact(self) -> int:
        """Return free space to the system, as far as the store can; return how many bytes."""
        ...


class Store(Protocol):
    """Everything that a store holds."""

    @property
    def journal(self) -> StoreJournal: ...
    @property
    def executions(self) -> Executions: ...
    @property
    def workflows(self) -> Workflows: ...
    @property
    def memory(self) -> MemoryTable: ...
    @property
    def vectors(self) -> Vectors: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def effects(self) -> EffectStore: ...
    @property
    def entries(self) -> ConfigStore: ...
    @property
    def usage(self) -> UsageSums: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def removal(self) -> Removal: ...

    @property
    def claims(self) -> Claims | None:
        """The ownership of executions by several processes; None: row numbers alone separate drivers."""
        ...

    async def lead(self, holder: str, *, wait: bool = False) -> Leadership:
        """Become the leader of the store (see `store.leader`); `holder` identifies this process to people.

        Raises `LeaderExists` if there is a leader; with `wait`, stands by until it is gone, for whatever reason.
        """
        ...

    def follow(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]:
        """Call `listener` on the event loop soon (about a second) after the execution got rows from any process, and
        sometimes without a reason.

        The returned function ends it. Read, then wait, then read again.
        """
        ...

    @property
    def shared(self) -> bool:
        """Return whether other processes may write to it."""
        ...

    @property
    def read_only(self) -> bool:
        """Return whether every write raises `StoreReadOnly`."""
        ...

    async def is_writable(self) -> bool:
        """Return whether a write would succeed now: a store may become read-only while it is open."""
        ...

    async def ends(self, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        """Return the last rows of these executions, as far as other processes may have written some since the last
        call. Cheap if they have not. One caller asks for the whole process: a change is returned once."""
        ...

    async def verify(self) -> list[str]:
        """Return every contradiction in the stored data, one sentence each. Reads everything."""
        ...

    def warnings(self) -> list[str]:
        """Return warnings for the operator about the database behind the store."""
        ...

    async def close(self) -> None:
        """Commit pending writes and release the store. A second call has no effect."""
        ...


Opener: TypeAlias = Callable[[str], Awaitable[Store]]
"""The object of an entry point: opens the store at an address of its scheme."""


async def open_store(url: str) -> Store:
    """Open the store at `url`; create or migrate it if needed. Raises an `OperatorError` with the next step."""
    scheme, colon, _ = url.partition(":")
    if not colon or "=" in scheme:
        address = masked_address(url)
        raise StoreUnknown(f"{address!r} is not the address of a store", hint=f"For a file: sqlite:///{address}")
    return await opener_for(scheme, url)(url)


def opener_for(scheme: str, url: str) -> Opener:
    if scheme == "memory":
        from pointsman.store.memory import open_memory  # A store is loaded at its first use.

        return open_memory
    if scheme == "sqlite":
        from pointsman.store.sqlite import open_sqlite  # As above.

        return open_sqlite
    if scheme in ("postgresql", "postgres"):
        return postgres_opener()
    points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if scheme not in points:
        schemes = ", ".join(sorted({"memory:", "sqlite:", "postgresql:", *(f"{name}:" for name in points)}))
        raise StoreUnknown(f"no store is installed for {masked_address(url)!r}", hint=f"Known kinds: {schemes}")
    opener = cast("Opener", load_plugin(points[scheme]))

    async def opened(url: str) -> Store:
        with package_errors(points[scheme], "cannot open the store"):
            return await opener(url)

    return opened


def postgres_opener() -> Opener:
    """Return the opener of PostgreSQL. Raises `ExtraMissing`."""
    need("postgres", "A store on PostgreSQL")
    from pointsman.store.postgres import open_postgres  # As above.

    return open_postgres
