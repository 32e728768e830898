"""A store inside the process: plain objects, no encoding, no waiting. For tests, demonstrations, and speed.

Nothing is copied: rows are frozen, and JSON values are treated as immutable.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

from pointsman.engine.state import ENDED
from pointsman.ports import Row
from pointsman.store.codec import blobs_named, check_summary, decode_json, encode_json, moved
from pointsman.store.compression import HOLD_S
from pointsman.store.coordination import Followers, Leadership, Listener, leader_exists
from pointsman.store.errors import EntryMoved, JournalMoved, RevisionMoved, SessionClosed, SessionMoved
from pointsman.store.memory.memories import MemoryMemories, MemoryVectors
from pointsman.store.records import (
    TRIAL,
    About,
    AnswerEntry,
    AnswersQuery,
    ConfigEntry,
    Conversation,
    EffectRecord,
    ExecutionQuery,
    GateEntry,
    InboxQuery,
    SavedWorkflow,
    Spenders,
    SpendingQuery,
    Summary,
    SweepResult,
    UsageAmounts,
    UsageQuery,
    UsageRecord,
    WorkflowDraft,
    WorkflowEntry,
    added_up,
    amount_of,
    names_in,
    revision_named,
    tags_in,
)
from pointsman.values import ExecutionId, Json, WorkflowId


def keep_summary(summaries: dict[ExecutionId, Summary], summary: Summary) -> None:
    """Keep a summary, with what it keeps of the previous one."""
    summaries[summary.execution] = summary.after(summaries.get(summary.execution))


class MemoryExecutions:
    """Summaries in a dict, filtered by a scan."""

    def __init__(self, summaries: dict[ExecutionId, Summary], last: Callable[[ExecutionId], Awaitable[int]]) -> None:
        """`last` returns the number of the last row of an execution."""
        self._summaries = summaries
        self._last = last

    async def put(self, summary: Summary, *, seq: int | None = None) -> None:
        check_summary(summary)
        if seq is None or await self._last(summary.execution) <= seq:
            keep_summary(self._summaries, summary)

    async def find(self, execution: ExecutionId) -> Summary | None:
        return self._summaries.get(execution)

    async def spending(self, query: SpendingQuery) -> list[Spenders]:
        return spenders_among(self._summaries.values(), query)

    async def inbox(self, query: InboxQuery = InboxQuery()) -> list[GateEntry]:  # noqa: B008 - frozen
        open_ = (entry for summary in self._summaries.values() for entry in summary.gates or ())
        entries = [entry for entry in open_ if waits_for(entry, query)]
        entries.sort(key=lambda entry: (entry.opened, entry.execution, entry.gate))
        return entries[: query.limit]

    async def answers(self, query: AnswersQuery = AnswersQuery()) -> list[AnswerEntry]:  # noqa: B008 - frozen
        given = (answer for summary in self._summaries.values() for answer in summary.answers)
        entries = [
            answer
            for answer in given
            if query.by in (None, answer.by)
            and query.workflow in (None, answer.workflow)
            and (query.before is None or answer.place < query.before)
        ]
        entries.sort(key=lambda answer: answer.place, reverse=True)
        return entries[: query.limit]

    async def list(self, query: ExecutionQuery = ExecutionQuery()) -> list[Summary]:  # noqa: B008 - frozen
        summaries = [summary for summary in self._summaries.values() if fits(summary, query)]
        if query.last_of_session:
            last = last_turns(self._summaries.values())
            summaries = [
                summary for summary in summaries if summary.session in last and last[summary.session] is summary
            ]
        if query.due is None:
            newest_first = not query.oldest_first
            summaries.sort(key=lambda summary: (summary.started, summary.execution), reverse=newest_first)
        else:
            summaries.sort(key=lambda summary: (summary.wakes or 0.0, summary.execution))
        return summaries[: query.limit]


def waits_for(entry: GateEntry, query: InboxQuery) -> bool:
    return (
        (query.asked is None or bool({*query.asked} & {*entry.asked}))
        and (query.without is None or query.without not in entry.asked)
        and query.workflow in (None, entry.workflow)
        and (query.after is None or (entry.opened, entry.execution, entry.gate) > query.after)
    )


def spenders_among(summaries: Iterable[Summary], query: SpendingQuery) -> list[Spenders]:
    """Add up usage in the same way as the SQL stores."""
    groups: defaultdict[tuple[int, str, str | None, ExecutionId | None], list[Summary]] = defaultdict(list)
    for summary in summaries:
        late = query.since is not None and summary.updated < query.since
        early = query.until is not None and summary.updated >= query.until
        if (
            summary.workflow == query.workflow
            and summary.revision
            and not (summary.status in ENDED and (late or early))
        ):
            group = (summary.revision, summary.owner, summary.session, summary.parent)
            groups[group if query.apart else (0, "", None, None)].append(summary)
    spenders: list[Spenders] = []
    for (revision, owner, session, parent), some in groups.items():
        amounts = [amount_of(one.spent, query.measure) for one in some]
        spenders.append(
            Spenders(
                executions=len(some),
                near=sum(query.near <= amount < query.most for amount in amounts),
                over=sum(amount >= query.most for amount in amounts if amount > 0),
                highest=max(amounts),
                dearest=some[amounts.index(max(amounts))].execution,
                revision=revision,
                owner=owner,
                session=session,
                parent=parent,
            )
        )
    return spenders


def last_turns(summaries: Iterable[Summary]) -> dict[str, Summary]:
    """Return the last turn of each session, without child executions."""
    last: dict[str, Summary] = {}
    for summary in summaries:
        if summary.session is not None and summary.parent is None:
            before = last.get(summary.session)
            if before is None or (summary.started, summary.execution) > (before.started, before.execution):
                last[summary.session] = summary
    return last


def fits(summary: Summary, query: ExecutionQuery) -> bool:
    return (
        (not query.statuses or summary.status in query.statuses)
        and query.workflow in (None, summary.workflow)
        and query.parent in (None, summary.parent)
        and query.session in (None, summary.session)
        and query.owner in (None, summary.owner)
        and (query.due is None or (summary.wakes is not None and summary.wakes <= query.due))
        and (query.awaits is None or query.awaits in summary.awaits)
        and (query.trials or not summary.execution.startswith(TRIAL))
        and summary.execution.startswith(query.prefix)
        and (query.since is None or summary.updated >= query.since)
        and (query.before is None or _is_behind(summary, query.before, oldest_first=query.oldest_first))
    )


def _is_behind(summary: Summary, last: tuple[float, ExecutionId], *, oldest_first: bool) -> bool:
    place = (summary.started, summary.execution)
    return place > last if oldest_first else place < last


class MemoryJournal:
    """Rows in lists. An append compares the numbers and extends a list."""

    def __init__(self, summaries: dict[ExecutionId, Summary], effects: MemoryEffects | None = None) -> None:
        self._rows: dict[ExecutionId, list[Row]] = {}
        self._summaries = summaries
        self._effects = effects or MemoryEffects()
        self.followers = Followers()

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        if summary is not None:
            check_summary(summary)
        known = self._rows.get(execution)
        if known is None:
            known = []
        end = len(known)
        if rows[0].seq != end + 1 or rows[-1].seq != end + len(rows):
            raise JournalMoved(f"execution {execution!r} is at row {end}; row {rows[0].seq} does not follow")
        written = [(effect.attempt, effect.number, encode_json(effect.value)) for effect in effects]
        if not known:
            self._rows[execution] = known
        known += rows
        for attempt, number, answer in written:
            self._effects.keep(execution, attempt, number, answer)
        if self.followers.any:
            self.followers.tell((execution,))
        if summary is not None:
            keep_summary(self._summaries, summary)

    async def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        rows = self._rows.get(execution, [])
        position = after
        while position < len(rows):
            yield rows[position]
            position += 1

    async def last(self, execution: ExecutionId) -> int:
        return len(self._rows.get(execution, ()))

    def remove(self, execution: ExecutionId) -> bool:
        return self._rows.pop(execution, None) is not None

    def blobs_named(self) -> set[bytes]:
        """Return the blobs that the remaining executions refer to."""
        return {digest for rows in self._rows.values() for row in rows for digest in blobs_named(row.events)}


class MemoryWorkflows:
    """Revisions in lists; deleted workflows by id."""

    def __init__(self) -> None:
        self._revisions: defaultdict[WorkflowId, list[SavedWorkflow]] = defaultdict(list)
        self._deleted: set[WorkflowId] = set()

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        revisions = self._revisions[draft.id]
        digest = hashlib.sha256(draft.text.encode()).hexdigest()
        latest = revisions[-1] if revisions and draft.id not in self._deleted else None
        now = 0 if latest is None else latest.revision
        if after is not None and after != now:
            raise RevisionMoved.of(draft.id, now)
        if latest and (latest.digest, latest.draft.version) == (digest, draft.version):
            return latest
        saved = SavedWorkflow(draft=draft, revision=len(revisions) + 1, digest=digest)
        revisions.append(saved)
        self._deleted.discard(draft.id)
        return saved

    async def find(self, reference: str) -> SavedWorkflow | None:
        name, _, version = reference.partition("@")
        revisions = self._revisions.get(WorkflowId(name), [])
        if (revision := revision_named(version)) is not None:
            return next((saved for saved in revisions if saved.revision == revision), None)
        if name in self._deleted:
            return None
        return next((saved for saved in reversed(revisions) if version in ("", saved.draft.version)), None)

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        if workflow is not None:
            return [entry_of(saved) for saved in reversed(self._revisions.get(workflow, []))]
        names = sorted(name for name, revisions in self._revisions.items() if revisions and name not in self._deleted)
        return [entry_of(self._revisions[name][-1]) for name in names]

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        now = 0 if workflow in self._deleted else len(self._revisions.get(workflow, ()))
        if after is not None and after != now:
            raise RevisionMoved.of(workflow, now)
        if not now:
            return False
        self._deleted.add(workflow)
        return True


def entry_of(saved: SavedWorkflow) -> WorkflowEntry:
    draft = saved.draft
    return WorkflowEntry(
        id=draft.id,
        revision=saved.revision,
        name=draft.name,
        version=draft.version,
        dialect=draft.dialect,
        created=draft.created,
        author=draft.author,
        digest=saved.digest,
        enabled=draft.native.get("enabled") is not False,
        description=draft.native.get("description"),
        tags=tags_in(draft.native.get("tags")),
        names=names_in(draft.native.get("name")),
    )


class MemorySessions:
    """Conversations in lists."""

    def __init__(self) -> None:
        self._messages: defaultdict[str, list[Json]] = defaultdict(list)
        self._closed: set[str] = set()

    async def load(self, session: str) -> Conversation:
        messages = tuple(self._messages.get(session, ()))
        return Conversation(session=session, messages=messages, closed=session in self._closed)

    async def append(self, session: str, messages: tuple[Json, ...], *, after: int) -> None:
        known = self._messages.get(session, [])
        if tuple(known[after : after + len(messages)]) == messages and len(known) >= after + len(messages):
            return
        if session in self._closed:
            raise SessionClosed(f"session {session!r} is closed", hint="Reopen it, or start another one.")
        if len(known) != after:
            raise SessionMoved(f"session {session!r} has {len(known)} messages, not {after}")
        self._messages[session] = [*known, *messages]

    async def close(self, session: str, *, closed: bool = True) -> None:
        if closed:
            self._closed.add(session)
        else:
            self._closed.discard(session)

    async def forget(self, session: str) -> bool:
        self._closed.discard(session)
        return self._messages.pop(session, None) is not None


class MemoryEffects:
    """Answers by execution and attempt, encoded: Python's garbage collector does not search bytes, and there is an
    answer for each step that ever ran."""

    def __init__(self) -> None:
        self._values: dict[ExecutionId, dict[str, dict[int, bytes]]] = {}

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        self.keep(execution, attempt, number, encode_json(value))

    def keep(self, execution: ExecutionId, attempt: str, number: int, answer: bytes) -> None:
        """Store the answer of an effect, unless it has one."""
        attempts = self._values.get(execution)
        if attempts is None:
            attempts = self._values[execution] = {}
        effects = attempts.get(attempt)
        if effects is None:
            attempts[attempt] = {number: answer}
        else:
            effects.setdefault(number, answer)

    async def recorded(self, execution: ExecutionId, attempt: str) -> dict[int, Json]:
        effects = self._values.get(execution, {}).get(attempt, {})
        return {number: decode_json(answer) for number, answer in effects.items()}

    async def attempts(self, execution: ExecutionId) -> list[str]:
        return sorted(self._values.get(execution, ()))

    def remove(self, execution: ExecutionId) -> None:
        self._values.pop(execution, None)


class MemoryConfigStore:
    """Entries by kind and key, under versions of one counter."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], ConfigEntry] = {}
        self._version = 0

    async def put(self, kind: str, key: str, value: Json, *, after: int | None = None) -> int:
        self._expect(kind, key, after)
        self._version += 1
        self._entries[kind, key] = ConfigEntry(kind=kind, key=key, value=value, version=self._version)
        return self._version

    async def find(self, kind: str, key: str) -> ConfigEntry | None:
        return self._entries.get((kind, key))

    async def list(self, kind: str) -> list[ConfigEntry]:
        return [entry for (of, _), entry in sorted(self._entries.items()) if of == kind]

    async def delete(self, kind: str, key: str, *, after: int | None = None) -> bool:
        self._expect(kind, key, after)
        return self._entries.pop((kind, key), None) is not None

    def _expect(self, kind: str, key: str, after: int | None) -> None:
        entry = self._entries.get((kind, key))
        if after is not None and after != (0 if entry is None else entry.version):
            raise EntryMoved(f"{kind} {key!r} was changed meanwhile", hint="Read it again.")


class MemoryBlobs:
    """Bytes by their hash."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}
        self._held_until: dict[str, float] = {}

    async def put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self._contents[digest] = content
        self._held_until[digest] = time.time() + HOLD_S
        return digest

    async def get(self, digest: str) -> bytes | None:
        return self._contents.get(digest)

    def sweep(self, used: set[bytes], *, dry_run: bool) -> SweepResult:
        """Delete the blobs that are neither used nor held."""
        now = time.time()
        unused = [d for d, until in self._held_until.items() if until < now and bytes.fromhex(d) not in used]
        swept = SweepResult(blobs=len(unused), bytes=sum(len(self._contents[digest]) for digest in unused))
        for digest in [] if dry_run else unused:
            del self._contents[digest], self._held_until[digest]
        return swept


class MemoryRemoval:
    """Removes from the dicts of the others."""

    def __init__(
        self, journal: MemoryJournal, effects: MemoryEffects, summaries: dict[ExecutionId, Summary], blobs: MemoryBlobs
    ) -> None:
        self._journal = journal
        self._effects = effects
        self._summaries = summaries
        self._blobs = blobs

    async def remove(self, execution: ExecutionId, *, at: int) -> bool:
        last = await self._journal.last(execution)
        if last != at:
            raise moved(execution, at + 1, last)
        listed = self._summaries.pop(execution, None) is not None
        self._effects.remove(execution)
        return self._journal.remove(execution) or listed

    async def sweep(self, *, dry_run: bool = False) -> SweepResult:
        return self._blobs.sweep(self._journal.blobs_named(), dry_run=dry_run)

    async def compact(self) -> int:
        return 0


class MemoryLeader:
    """One leader at a time; no other process can take over."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._epoch, self._holder, self._since = 0, "", 0.0

    async def lead(self, holder: str, *, wait: bool) -> Leadership:
        if self._turn.locked() and not wait:
            raise leader_exists(self._holder, self._since)
        await self._turn.acquire()
        self._epoch, self._holder, self._since = self._epoch + 1, holder, time.time()
        return Leadership(holder, self._epoch, self._released)

    async def _released(self) -> None:
        self._turn.release()


class MemoryUsage:
    """Usage records by day and execution."""

    def __init__(self) -> None:
        self._takings: dict[tuple[str, str], UsageRecord] = {}

    async def put(self, taking: UsageRecord) -> None:
        whose = taking.day, taking.execution
        self._takings.pop(whose, None)
        if taking.entries:
            self._takings[whose] = taking

    async def sums(self, query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
        return added_up(self._takings.values(), query)


class MemoryStore:
    """All tables in this process; they end with it."""

    def __init__(self) -> None:
        summaries: dict[ExecutionId, Summary] = {}
        self.effects = MemoryEffects()
        self.journal = MemoryJournal(summaries, self.effects)
        self.executions = MemoryExecutions(summaries, self.journal.last)
        self.workflows = MemoryWorkflows()
        self.memory = MemoryMemories(self.effects)
        self.vectors = MemoryVectors(self.memory)
        self.sessions = MemorySessions()
        self.entries = MemoryConfigStore()
        self.usage = MemoryUsage()
        self.blobs = MemoryBlobs()
        self.removal = MemoryRemoval(self.journal, self.effects, summaries, self.blobs)
        self._leader = MemoryLeader()

    def follow(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]:
        return self.journal.followers.add(execution, listener)

    async def lead(self, holder: str, *, wait: bool = False) -> Leadership:
        return await self._leader.lead(holder, wait=wait)

    @property
    def claims(self) -> None:
        return None

    @property
    def shared(self) -> bool:
        return False

    @property
    def read_only(self) -> bool:
        return False

    async def is_writable(self) -> bool:
        return True

    async def ends(self, executions: Sequence[ExecutionId]) -> Mapping[ExecutionId, int]:
        return {}

    async def verify(self) -> list[str]:
        return []

    def warnings(self) -> list[str]:
        return ["memory: nothing outlives this process"]

    async def close(self) -> None:
        return None


async def open_memory(url: str) -> MemoryStore:
    """Return a new, empty store; `url` is `memory:`."""
    return MemoryStore()
