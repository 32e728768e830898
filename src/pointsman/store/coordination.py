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

    def is_over(self, shown: object) -> bool:
        """Return whether the beat has not changed for too long."""
        if shown != self._shown:
            self._shown, self._since = shown, self._now()
        return self._now() - self._since >= LEASE_S


class Leadership:
    """The role of the leader, held until it is released, the store is closed, or another process takes over."""

    def __init__(self, holder: str, epoch: int, let_go: Callable[[], Awaitable[None]]) -> None:
        self.holder = holder
        self.epoch = epoch
        """Grows with every leader."""
        self.lost = asyncio.Event()
        """Set when another process has become the leader: this opening writes nothing any more."""
        self._let_go = let_go
        self._held = True

    async def release(self) -> None:
        """Give the role up, so that a standby takes over. A second call has no effect."""
        if self._held:
            self._held = False
            await self._let_go()


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


class Claims(Protocol):
    """Ownership of executions in a store that several processes drive. A token proves a claim; it grows with each."""

    async def register(self, name: str) -> None:
        """Add this runtime to the store, once. `name` identifies it to people."""
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

    async def release(self, claims: Sequence[ReleasedClaim]) -> None:
        """Give up claims, given with their tokens; those that were lost meanwhile are ignored."""
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

    async def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` when mail or an outcome may have arrived, until cancelled. Notifications may get lost."""
        ...


Listener: TypeAlias = Callable[[], None]
"""Called on the event loop when an execution may have got rows; must not block and must not raise."""
Look: TypeAlias = Callable[[Sequence[ExecutionId]], Awaitable[Mapping[ExecutionId, int]]]
"""Returns the last seq of executions with rows; empty if nothing changed since the last call."""


class Followers:
    """Callbacks by execution."""

    def __init__(self) -> None:
        self._told: dict[ExecutionId, list[Listener]] = {}
        self._seen: dict[ExecutionId, int] = {}

    @property
    def any(self) -> bool:
        return bool(self._told)

    @property
    def executions(self) -> list[ExecutionId]:
        return [*self._told]

    def add(self, execution: ExecutionId, told: Listener) -> Callable[[], None]:
        """Add a listener; the returned function removes it."""
        self._told.setdefault(execution, []).append(told)

        def leave() -> None:
            left = self._told.get(execution, [])
            if told in left:
                left.remove(told)
            if not left:
                self._told.pop(execution, None)
                self._seen.pop(execution, None)

        return leave

    def tell(self, executions: Iterable[ExecutionId]) -> None:
        for execution in executions:
            for told in [*self._told.get(execution, ())]:
                told()

    def saw(self, lasts: Mapping[ExecutionId, int]) -> None:
        """Call the listeners of executions whose last row changed since the last look."""
        changed = [one for one, last in lasts.items() if one in self._told and self._seen.get(one) != last]
        self._seen.update((one, lasts[one]) for one in changed)
        self.tell(changed)


class Polling:
    """Polls as long as there are listeners."""

    def __init__(self, look: Look, every_s: float) -> None:
        self._followers = Followers()
        self._look = look
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None

    def follow(self, execution: ExecutionId, told: Listener) -> Callable[[], None]:
        leave = self._followers.add(execution, told)
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
