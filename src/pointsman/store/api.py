"""A store: the journal and what is kept beside it, behind one address.

memory:                 nothing outlives the process; the cheapest
sqlite:///path          one file; four slashes for an absolute path
postgresql://host/name  a database; ?schema=name for a schema of its own
others                  packages that register the scheme under the entry points `pointsman.journals`
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Final, Protocol, TypeAlias, cast

from pointsman.ports import ChangingMemory, Journal, Row
from pointsman.store.addresses import masked
from pointsman.store.budget_usage import Spenders, SpendingQuery
from pointsman.store.errors import StoreUnknown
from pointsman.store.followers import Listener
from pointsman.store.leader import Leadership
from pointsman.store.records import (
    ConfigEntry,
    Conversation,
    Embedding,
    ExecutionQuery,
    GateEntry,
    Holding,
    InboxQuery,
    PastValue,
    RememberedValue,
    SavedWorkflow,
    SimilarValue,
    Summary,
    SweepResult,
    UnembeddedValue,
    WorkflowDraft,
    WorkflowEntry,
)
from pointsman.store.usage import About, UsageAmounts, UsageQuery, UsageRecord
from pointsman.values import ExecutionId, Json, WorkflowId

ENTRY_POINTS: Final = "pointsman.journals"


class StoreJournal(Journal, Protocol):
    """A journal that can commit an execution's summary together with the row that changes it."""

    async def append(self, execution: ExecutionId, row: Row, *, summary: Summary | None = None) -> None:
        """As `Journal.append`. Who stops waiting does not take the row back: it may be committed all the same."""
        ...

    async def extend(self, execution: ExecutionId, rows: Sequence[Row], *, summary: Summary | None = None) -> None:
        """As `append`, of rows that follow one another: all of them, or none. Calls keep their order, waited for or
        not: what was asked first is committed first."""
        ...


class Executions(Protocol):
    """The list of executions. Derived from the journal, kept for being searched."""

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        """Add or replace, outside of any row. Prefer `StoreJournal.append(…, summary=…)`.

        `seq`: the row that the summary is derived from. Nothing is written where the journal has later rows: another
        process went on, and its summary is newer.
        """
        ...

    async def find(self, execution: ExecutionId) -> Summary | None: ...

    async def list(self, query: ExecutionQuery = ...) -> list[Summary]: ...

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        """What executions spent, as the summaries last put say. `apart`: a group for each that differs."""
        ...

    async def inbox(self, query: InboxQuery = ...) -> list[GateEntry]:
        """The open gates of all executions that ask these people, as the summaries last put say."""
        ...


class Workflows(Protocol):
    """Saved workflows. A revision never changes; deleting hides a workflow but keeps what executions are pinned to."""

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        """A new revision; the latest one again if it has this very document and version. `after`: the revision it must
        be at, 0 where it must not be there; raises `RevisionMoved` where it is at another one, and writes nothing."""
        ...

    async def find(self, reference: str) -> SavedWorkflow | None:
        """`id` (latest), `id@3` (revision), `id@1.2.0` (latest revision of that version). Deleted: by revision only."""
        ...

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        """The latest revision of each workflow by id; or all revisions of one, newest first."""
        ...

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        """Hide it. False if there was none. Saving again brings it back under the next revision. `after` as for
        `save`."""
        ...


class MemoryTable(ChangingMemory, Protocol):
    """`Memory`, and how people look after it."""

    async def forget(self, scope: str, namespace: str, *, within: str = "") -> int:
        """Delete the keys of a namespace that begin with `within`, and their past; how many."""
        ...

    async def every(
        self, scope: str, namespace: str, *, within: str = "", after: str = "", limit: int = -1, at: float = 0.0
    ) -> list[RememberedValue]:
        """The keys behind `after` that begin with `within` and had not expired by `at`, in their order; -1: all."""
        ...

    async def history(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> list[PastValue]:
        """What a key remembers now, then what it remembered before, the latest first; none if nothing by `at`."""
        ...

    async def holdings(self, *, at: float = 0.0) -> list[Holding]:
        """Who remembers how much now, by scope and namespace."""
        ...

    async def purge(self, at: float, *, dry_run: bool = False) -> int:
        """Delete what had expired by `at`, and its past; how many values that were not past."""
        ...


class Vectors(Protocol):
    """What remembered values mean, as a model of embeddings places them. Derived: a value that changes or goes takes
    its vector along, and what is missing is made again. Asked for the first time, it makes its own tables."""

    async def missing(self, scope: str, namespace: str, model: str, *, limit: int, at: float) -> list[UnembeddedValue]:
        """Values of an owner that this model has not placed, by key; not those that had expired by `at`."""
        ...

    async def place(self, scope: str, namespace: str, model: str, placed: Sequence[Embedding]) -> None:
        """Keep the vectors of those that are still the same values. Raises `VectorsDiffer` where the owner has some of
        another length from this model; then nothing is kept."""
        ...

    async def nearest(
        self, scope: str, namespace: str, model: str, vector: Sequence[float], *, limit: int, within: str, at: float
    ) -> list[SimilarValue]:
        """The values of an owner that lie nearest, the nearest first. Exact. Raises `VectorsDiffer`."""
        ...

    async def clear(self) -> int:
        """Forget all vectors; how many. No value is forgotten."""
        ...


class Sessions(Protocol):
    """Conversations, turn by turn."""

    async def load(self, session: str) -> Conversation:
        """What was said so far; empty and open for a session nobody has heard of."""
        ...

    async def append(self, session: str, messages: tuple[Json, ...], *, after: int) -> None:
        """Add a turn behind message number `after`. Saying the same there again changes nothing (it is safe to redo
        after a crash); something else raises `SessionMoved`, a closed session `SessionClosed`."""
        ...

    async def close(self, session: str, *, closed: bool = True) -> None:
        """End the conversation, or reopen it."""
        ...

    async def forget(self, session: str) -> bool:
        """Delete what was said. False if nothing was."""
        ...


class EffectStore(Protocol):
    """What attempts have paid for so far: asked again after a crash, answered from here."""

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        """Remember the answer of effect `number` of an attempt (any text that names it). The first answer stays."""
        ...

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]: ...

    async def attempts(self, execution: ExecutionId) -> list[str]:
        """The attempts of which anything is remembered, in the order of their names."""
        ...


class ConfigStore(Protocol):
    """What people configure: schedules, webhooks and the like. Some thousands of them, each of some kilobytes."""

    async def put(self, kind: str, key: str, value: Json, *, after: int | None = None) -> int:
        """Add or replace; its new version. `after`: the version it must have now, 0 where it must not be there.
        Raises `EntryMoved` where it has another one; then nothing is written."""
        ...

    async def find(self, kind: str, key: str) -> ConfigEntry | None: ...

    async def list(self, kind: str) -> list[ConfigEntry]:
        """All of a kind, by key."""
        ...

    async def delete(self, kind: str, key: str, *, after: int | None = None) -> bool:
        """False if there was none. `after` as for `put`."""
        ...


class UsageSums(Protocol):
    """What work took and paid for, added up as it is kept. It outlives the executions."""

    async def put(self, taking: UsageRecord) -> None:
        """Store the usage of an execution on a day, in place of what was stored for them. The sums change in the same
        commit."""
        ...

    async def sums(self, query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
        """One for each combination of names. Costs what there is to tell apart: where neither executions nor their
        owners are asked for, it does not grow with executions."""
        ...


class Blobs(Protocol):
    """Bytes by the SHA-256 of their content: the same content is kept once."""

    async def put(self, content: bytes) -> str:
        """Keep it; its hash in hexadecimal."""
        ...

    async def get(self, digest: str) -> bytes | None: ...


class Removal(Protocol):
    """Deletes for good. Safe beside whoever reads and writes; nobody who writes waits long."""

    async def remove(self, execution: ExecutionId, *, at: int) -> bool:
        """Delete an execution whose last row is `at`: its journal, effects, summary, and what only it used. False if
        there was none. Raises `JournalMoved` where it went on meanwhile; who tries to append later is told the same.
        """
        ...

    async def sweep(self, *, dry_run: bool = False) -> SweepResult:
        """Delete blobs that nobody uses, except those put a moment ago; finish what a crash interrupted."""
        ...

    async def compact(self) -> int:
        """Give the room back to the system, as far as the store can. How many bytes."""
        ...


class Store(Protocol):
    """Everything that outlives a process, behind one address."""

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

    async def keep(self, holder: str, *, wait: bool = False) -> Leadership:
        """Become the keeper of the store (see `store.leader`); `holder` tells people who that is. Raises `StoreKept`
        where there is one; with `wait` stands by until it is gone, however it went."""
        ...

    def follow(self, execution: ExecutionId, told: Listener) -> Callable[[], None]:
        """Have `told` called on the event loop soon after the execution got rows, whoever wrote them (within about a
        second), and now and then without a reason. The returned function ends it. Read, then wait, then read again."""
        ...

    @property
    def shared(self) -> bool:
        """Other processes may write to it."""
        ...

    @property
    def read_only(self) -> bool:
        """It can only be read: every write raises `StoreReadOnly`."""
        ...

    async def is_writable(self) -> bool:
        """Return whether a write would be taken now: a store may become read-only while it is open."""
        ...

    async def ends(self, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        """The last rows of these, as far as others may have written some since this was asked before. Cheap where none
        did. What was told is not told again: one asks, for all."""
        ...

    async def verify(self) -> list[str]:
        """Every contradiction found in what is stored, one sentence each. Reads everything."""
        ...

    def warnings(self) -> list[str]:
        """What an operator should know about this installation of the store."""
        ...

    async def close(self) -> None:
        """Commit what is on its way and let go. A second time does nothing."""
        ...


Opener: TypeAlias = Callable[[str], Awaitable[Store]]
"""What an entry point names: opens the store at an address of its scheme."""


async def open_store(url: str) -> Store:
    """Open (and where needed create or migrate) the store at `url`. Raises an `OperatorError` that says what to do."""
    scheme, colon, _ = url.partition(":")
    if not colon or "=" in scheme:
        shown = masked(url)
        raise StoreUnknown(f"{shown!r} is not the address of a store", hint=f"For a file: sqlite:///{shown}")
    return await opener_for(scheme, url)(url)


def opener_for(scheme: str, url: str) -> Opener:
    if scheme == "memory":
        from pointsman.store.memory.store import open_memory  # Each store is loaded by those who use it.

        return open_memory
    if scheme == "sqlite":
        from pointsman.store.sqlite import open_sqlite  # As above.

        return open_sqlite
    if scheme in ("postgresql", "postgres"):
        return postgres_opener()
    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if scheme not in found:
        known = ", ".join(sorted({"memory:", "sqlite:", "postgresql:", *(f"{name}:" for name in found)}))
        raise StoreUnknown(f"no store is installed for {masked(url)!r}", hint=f"Known kinds: {known}")
    return cast("Opener", found[scheme].load())


def postgres_opener() -> Opener:
    """Its driver is an optional part of the installation."""
    if find_spec("psycopg") is None:
        raise StoreUnknown(
            "the driver of PostgreSQL is not installed", hint="Install it: pip install 'pointsman[postgres]'"
        )
    from pointsman.store.postgres import open_postgres  # Loaded by those who use it.

    return open_postgres
