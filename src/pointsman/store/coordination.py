"""Coordination of the processes that open one store: one leader, and listeners for rows of other processes.

    keep ─▶ a lock of the system (released when the process dies) ─▶ there is one leader
       └──▶ an epoch in the store, raised by each new leader      ─▶ the former leader writes nothing any more

    beat ─▶ the leader changes a number every 2 s ─▶ no change for 12 s: the standby takes over

The leader recovers executions, fires timers and starts schedules for all processes. The lock elects it. The beat shows
that its process still works: a stopped process holds its lock for ever. The epoch is the fence: every write of a leader
checks, in the same transaction, that the epoch is still its own. A process that opens the store without leading it (a
command line beside a server) is guarded by the row numbers alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from pointsman.errors import PointsmanError
from pointsman.store.errors import LeaderExists, LeaderSuperseded
from pointsman.values import ExecutionId

BEAT_S: Final = 2.0
"""How often a leader shows that it works."""
LEASE_S: Final = 12.0
"""How long the beat may stand still, by the clock of the standby. A long garbage collection, a slow disk or a busy
machine must not cost a leader its role."""


class Lease:
    """Watches the beat of a leader, which must change. Clocks of two machines are never compared."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._shown: object = None
        self._since = now()

    def is_over(self, position: object) -> bool:
        """Return whether the beat has not changed for too long."""
        if position != self._shown:
            self._shown, self._since = position, self._now()
        return self._now() - self._since >= LEASE_S


class Leadership:
    """The role of the leader, held until it is released, the store is closed, or another process takes over."""

    def __init__(self, holder: str, epoch: int, on_release: Callable[[], Awaitable[None]]) -> None:
        self.holder = holder
        self.epoch = epoch
        """Grows with every leader."""
        self.lost = asyncio.Event()
        """Set when another process has become the leader: this opening writes nothing any more."""
        self._on_release = on_release
        self._held = True

    async def release(self) -> None:
        """Give the role up, so that a standby takes over. A second call has no effect."""
        if self._held:
            self._held = False
            await self._on_release()


def leader_exists(holder: str, since: float) -> LeaderExists:
    """Return the error for a second leader."""
    began = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M:%S}"
    named = f"{holder!r}, since {began} UTC" if holder else "another process"
    return LeaderExists(
        f"the store already has a leader: {named}", hint="End that process, or wait as a standby to take over from it."
    )


def superseded(epoch: int) -> LeaderSuperseded:
    """Return the error for writes of a former leader."""
    return LeaderSuperseded(
        f"another process became the leader of the store after epoch {epoch}",
        hint="This process can no longer write: end it, or open the store again.",
    )


CLAIM_BEAT_S: Final = 3.0
"""How often a runtime that owns executions shows that it works."""


class Mail(NamedTuple):
    """A report in the mailbox of an execution that this runtime owns."""

    no: int
    execution: ExecutionId
    report: bytes


class ListEntry(NamedTuple):
    """What continues an execution without an owner, for the list of executions."""

    wakes: float | None
    """Unix seconds; None: no time does."""
    awaits: tuple[str, ...]
    """Names of events."""


class ReleasedClaim(NamedTuple):
    """A claim that is given up."""

    execution: ExecutionId
    token: int
    entry: ListEntry | None
    """Stored together with the release; None: the list is up to date."""


class MailOutcome(NamedTuple):
    """The outcome of a report, as its owner decided it."""

    seq: int
    """The row that it caused; 0: none."""
    refusal: bytes | None = None
    """The refusal of the owner, encoded; None: it was taken."""


DECIDED_MAIL: Final[ContextVar[list[int]]] = ContextVar("decided_mail")
"""The report that the current task decides, until a row takes it."""


@contextmanager
def next_row_decides(mail: int) -> Generator[None, None, None]:
    """Commit the outcome of a report together with the first row that the block appends."""
    undecided = [mail]
    before = DECIDED_MAIL.set(undecided)
    try:
        yield
    finally:
        undecided.clear()  # Tasks that the decision has started share the list.
        DECIDED_MAIL.reset(before)


class RuntimeFacts(Struct, frozen=True, kw_only=True):
    """What a runtime states of itself to the others of its store."""

    version: str = ""
    """The release of Pointsman."""
    role: str = "process"
    """`server`, `worker`, or another process such as a command."""
    queues: tuple[str, ...] = ()
    """The queues whose steps it performs; it drives no execution then."""
    capacity: int = 0
    """How many executions it drives, or steps it performs, at a time; 0: no limit."""
    engine: str = ""
    """The engine that dispatches executions, without options; empty: none."""


class RuntimeEntry(NamedTuple):
    """A live runtime of a store, and what it does."""

    name: str
    facts: RuntimeFacts
    started: float
    """Unix seconds."""
    beat_s: float
    """Seconds since its last beat."""
    executions: int
    """How many executions it owns."""
    steps: int
    """How many placed steps it performs."""


class ClaimCounts(Struct):
    """What happened to the claims of this process since it opened the store."""

    claimed: int = 0
    taken_over: int = 0
    """Of these: from a runtime that ended, hung or was cut off."""
    refused: int = 0
    """Another live runtime owned the execution."""
    lost: int = 0
    """Another runtime took the claim, because this one did not show that it works."""


class QueueEntry(NamedTuple):
    """A queue with its steps."""

    queue: str
    waiting: int
    """Steps that no live worker performs."""
    running: int
    oldest_s: float
    """How long the oldest waiting step has waited, in seconds; 0: none waits."""


class PlacedStep(NamedTuple):
    """A step that this runtime performs for the owner of its execution."""

    no: int
    execution: ExecutionId
    step: str
    attempt: int
    version: int
    """Grows whenever the owner places the step again."""


class OwnPlacedStep(NamedTuple):
    """A step of an execution that this runtime owns, in a queue."""

    execution: ExecutionId
    step: str
    attempt: int
    queue: str


class StepQueues(Protocol):
    """Steps that workers of queues perform. A row exists from `place` until its attempt has ended."""

    async def place(self, execution: ExecutionId, step: str, attempt: int, queue: str) -> bool:
        """Put an attempt into a queue, in place of an earlier one of its step. Idempotent. Return whether a live worker
        serves the queue."""
        ...

    async def withdraw(self, execution: ExecutionId, step: str) -> None:
        """Take a step out of its queue; the worker that performs it stops."""
        ...

    async def unserved(self) -> list[OwnPlacedStep]:
        """Return the steps of executions that this runtime owns whose queues no live worker serves."""
        ...

    async def take(self, queues: Sequence[str], *, most: int, but: Sequence[tuple[int, int]]) -> list[PlacedStep]:
        """Take at most `most` steps that no live worker performs. Starters and workflows get equal shares.

        `but`: numbers and versions of steps to leave out.
        """
        ...

    async def held(self) -> dict[int, bool]:
        """Return the numbers of the steps that this runtime has taken and others have not taken or withdrawn since, and
        whether their executions have not ended."""
        ...

    async def give_back(self, no: int) -> None:
        """Leave a step to another worker."""
        ...

    async def finish(self, step: PlacedStep) -> None:
        """Remove a step whose attempt has ended, unless another runtime performs it now."""
        ...

    async def queues(self) -> list[QueueEntry]:
        """Return the queues with steps, by name."""
        ...


class Claims(Protocol):
    """Ownership of executions in a store that several processes drive. A token proves a claim; it grows with each."""

    @property
    def steps(self) -> StepQueues: ...

    @property
    def counts(self) -> ClaimCounts: ...

    async def identity(self) -> str:
        """Return the name by which engines know this store: the same for all its processes, another one for each store.
        It shows no address."""
        ...

    @property
    def held(self) -> int:
        """Number of executions that this process owns."""
        ...

    async def register(self, name: str) -> None:
        """Add this runtime to the store, once. `name` identifies it to people."""
        ...

    async def announce(self, facts: RuntimeFacts) -> None:
        """State what this runtime is, from now on."""
        ...

    async def runtimes(self) -> list[RuntimeEntry]:
        """Return the live runtimes, the oldest first."""
        ...

    async def owned(self, limit: int) -> list[tuple[ExecutionId, str]]:
        """Return executions with the names of their live owners, the newest executions first."""
        ...

    def token(self, execution: ExecutionId) -> int:
        """Return the token that this process has; 0: none."""
        ...

    def begin(self, execution: ExecutionId) -> int:
        """Return the token under which an execution begins here: its first row makes the claim."""
        ...

    async def claim(self, execution: ExecutionId) -> int | None:
        """Become the owner and return the token; None: another live runtime owns it, or it does not exist."""
        ...

    def drop(self, execution: ExecutionId) -> None:
        """Write nothing more under the token of an execution in this process."""
        ...

    async def release(self, claims: Sequence[ReleasedClaim]) -> list[ReleasedClaim]:
        """Give up claims, given with their tokens; those that were lost meanwhile are ignored. Return those that cannot
        be given up yet, because the first row of the execution is being written."""
        ...

    async def renew(self) -> None:
        """Show that this runtime is alive."""
        ...

    async def retire(self, runtime: int | None = None) -> None:
        """End a runtime, by default this one: what it still owns can be claimed at once."""
        ...

    async def owner(self, execution: ExecutionId) -> tuple[int, str] | None:
        """Return number and name of the runtime that owns an execution; None: none does."""
        ...

    async def lost(self) -> list[ExecutionId]:
        """Return the executions whose claims another runtime has taken from this one."""
        ...

    async def orphans(self) -> list[ExecutionId]:
        """Return executions whose owner is not alive, or that have undecided mail and no owner: the oldest 200."""
        ...

    async def shares(self, executions: Sequence[ExecutionId]) -> dict[ExecutionId, str]:
        """Return starter and workflow of executions: each pair gets an equal share of the workers."""
        ...

    async def post(self, execution: ExecutionId, key: str, report: bytes) -> int:
        """Put a report into the mailbox of an execution, once for each key; return its number."""
        ...

    async def mail(self) -> list[Mail]:
        """Return undecided reports for the executions that this runtime owns, oldest first."""
        ...

    async def answer(self, mail: int, outcome: MailOutcome) -> None:
        """Store the outcome of a report and notify its sender."""
        ...

    async def outcomes(self, mail: Sequence[int]) -> dict[int, MailOutcome | None]:
        """Return the outcomes of those of these reports that are decided; None: its execution was deleted."""
        ...

    async def forget(self) -> None:
        """Delete reports that were decided more than a day ago, and runtimes that ended before that."""
        ...

    def stop_waiting(self) -> None:
        """Fail at once from now on if the store cannot be reached: this process ends, and others do what it leaves."""
        ...

    async def listen(self, notify: Callable[[], None]) -> None:
        """Call `notify` when mail or an outcome may have arrived, until cancelled. Notifications may get lost."""
        ...


Listener: TypeAlias = Callable[[], None]
"""Called on the event loop when an execution may have got rows; must not block and must not raise."""
Look: TypeAlias = Callable[[Sequence[ExecutionId]], Awaitable[Mapping[ExecutionId, int]]]
"""Returns the last seq of executions with rows; empty if nothing changed since the last call."""


class Followers:
    """Callbacks by execution."""

    def __init__(self) -> None:
        self._listeners: dict[ExecutionId, list[Listener]] = {}
        self._seen: dict[ExecutionId, int] = {}

    @property
    def any(self) -> bool:
        return bool(self._listeners)

    @property
    def executions(self) -> list[ExecutionId]:
        return [*self._listeners]

    def add(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function removes it."""
        self._listeners.setdefault(execution, []).append(listener)

        def leave() -> None:
            listeners = self._listeners.get(execution, [])
            if listener in listeners:
                listeners.remove(listener)
            if not listeners:
                self._listeners.pop(execution, None)
                self._seen.pop(execution, None)

        return leave

    def tell(self, executions: Iterable[ExecutionId]) -> None:
        for execution in executions:
            for listener in [*self._listeners.get(execution, ())]:
                listener()

    def saw(self, lasts: Mapping[ExecutionId, int]) -> None:
        """Call the listeners of executions whose last row changed since the last look."""
        changed = [
            execution
            for execution, last in lasts.items()
            if execution in self._listeners and self._seen.get(execution) != last
        ]
        self._seen.update((execution, lasts[execution]) for execution in changed)
        self.tell(changed)


class Polling:
    """Polls as long as there are listeners."""

    def __init__(self, look: Look, every_s: float) -> None:
        self._followers = Followers()
        self._look = look
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    def follow(self, execution: ExecutionId, listener: Listener) -> Callable[[], None]:
        leave = self._followers.add(execution, listener)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
        return leave

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while executions := self._followers.executions:
                # Readers get the errors of the store; the poll only tries again.
                with suppress(PointsmanError):
                    self._followers.saw(await self._look(executions))
                await asyncio.sleep(self._every_s)
        finally:
            self._task = None
