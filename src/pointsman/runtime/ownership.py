"""Ownership of executions: which runtime drives an execution, and reports that other runtimes send to it.

    claim ─▶ Claim: this runtime drives it, until it is released or lost      None: another one does ─▶ Mailbox

`LocalOwnership`        the store has one driving process: every claim is given, and there is no mailbox
`SharedOwnership`       several processes drive one store: claims with tokens, a beat, and a mailbox for each execution
`DispatchedOwnership`   an engine decides which worker drives an execution (`runtime/dispatched.py`), with the same
                        claims and mailbox

    sender: report ─▶ mailbox ─▶ owner decides it ─▶ row, or refusal ─▶ sender
              └─ once a second: is the owner gone? the sender claims the execution and decides the report itself

Every implementation passes `tests/runtime/test_ownerships.py`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol, TypeAlias
from uuid import uuid4

import msgspec
from msgspec import Struct

from pointsman.engine.reports import Report
from pointsman.errors import EngineBug, Outage, PointsmanError
from pointsman.runtime.commits import DriverLost
from pointsman.store.coordination import (
    CLAIM_BEAT_S,
    LEASE_S,
    Claims,
    ListEntry,
    Mail,
    MailOutcome,
    ReleasedClaim,
    RuntimeFacts,
    StepQueues,
)
from pointsman.store.errors import JournalMoved
from pointsman.values import ExecutionId

LOG: Final = logging.getLogger("pointsman.runtime")
LOOK_S: Final = 1.0
"""How often a runtime reads its mail and outcomes if no notification arrives."""
LATE_S: Final = 2 * CLAIM_BEAT_S
"""After a pause of this length between two beats, claims may have been lost."""
DOUBT_S: Final = 9.0
"""After this time without a beat no further step begins: at 12 s other runtimes may claim its executions."""
FORGET_S: Final = 3600.0


def since_boot() -> float:
    """Return seconds that also count while the machine sleeps."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)  # `time.monotonic` stands still there during sleep.
    return time.monotonic()


class Claim:
    """The right to drive one execution. Each row of the driver proves its token."""

    def __init__(
        self, execution: ExecutionId, token: int = 0, let_go: Callable[[ReleasedClaim], None] = lambda claim: None
    ) -> None:
        self.execution = execution
        self.token = token
        self._let_go = let_go

    def release(self, entry: ListEntry | None = None) -> None:
        """Give the execution up. `entry`: what continues it; None: the list states it already."""
        self._let_go(ReleasedClaim(self.execution, self.token, entry))


class Mailbox(Protocol):
    """Sends reports to the owners of executions that this runtime does not own."""

    async def wake(self, execution: ExecutionId, report: Report, key: str = "") -> int:
        """Let the owner decide a report; return the row that it caused, 0 for none. Raises the owner's refusal.

        `key`: the same report with the same key is decided once.
        """
        ...

    async def send(self, execution: ExecutionId, report: Report, key: str) -> int:
        """Leave a report to the present or next owner; return the number of the mail, see `wake`."""
        ...


class Ownership(Protocol):
    """Decides which runtime drives an execution."""

    @property
    def steps(self) -> StepQueues | None:
        """The queues of placed steps; None: this process is alone with its store and performs every step itself."""
        ...

    async def announce(self, facts: RuntimeFacts) -> None:
        """Join the runtimes of the store, and state what this one is."""
        ...

    async def report(self, execution: ExecutionId, report: Report) -> int:
        """Let the present or next owner decide a report about a step that this runtime performs for it; return the row
        that it caused, 0 for none. Never claims the execution. Raises the owner's refusal."""
        ...

    @property
    def mailbox(self) -> Mailbox | None:
        """The way to other owners; None: this runtime gets every claim."""
        ...

    async def claim(
        self, execution: ExecutionId, *, begins: bool = False, under: ExecutionId | None = None
    ) -> Claim | None:
        """Return the claim of this runtime; None: another live runtime owns the execution, or will.

        `begins`: the execution begins here. `under`: the execution that waits for it, which is driven here.
        """
        ...

    def drives(self, execution: ExecutionId) -> bool:
        """Return whether this runtime carries out the commands of an execution that it has claimed.

        False: it decides reports only, and another runtime continues the execution after the release.
        """
        ...

    async def resume(self, execution: ExecutionId) -> bool:
        """Let an execution continue that is due or has lost its owner. True: here, the caller opens it; False: in its
        owner, or in the runtime to which it is dispatched. May be repeated.
        """
        ...

    async def granted(self) -> list[ExecutionId]:
        """Return executions that lost their owner and should continue."""
        ...

    def held(self, execution: ExecutionId) -> Claim | None:
        """Return the claim that this runtime has now."""
        ...

    @property
    def in_doubt(self) -> bool:
        """Whether claims may have been lost unnoticed: no step begins before `confirmed` returns."""
        ...

    async def confirmed(self) -> None:
        """Return when the lost claims are known. Drivers that lost theirs are stopped before."""
        ...

    async def close(self) -> None:
        """Give everything up."""
        ...


class LocalOwnership:
    """Every claim is given: the row numbers of the journal separate this process from others."""

    in_doubt = False
    mailbox: Mailbox | None = None
    steps: StepQueues | None = None

    async def announce(self, facts: RuntimeFacts) -> None:
        """Do nothing: no other runtime reads it."""

    async def report(self, execution: ExecutionId, report: Report) -> int:
        raise EngineBug(f"a step of {execution!r} was placed in a store of one process")

    async def claim(
        self, execution: ExecutionId, *, begins: bool = False, under: ExecutionId | None = None
    ) -> Claim | None:
        return Claim(execution)

    def drives(self, execution: ExecutionId) -> bool:
        return True

    async def resume(self, execution: ExecutionId) -> bool:
        return True

    async def granted(self) -> list[ExecutionId]:
        return []

    def held(self, execution: ExecutionId) -> Claim | None:
        return None

    async def confirmed(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


class OwnerRefusal(Struct, frozen=True):
    """A refusal of the owner, as the sender raises it."""

    code: str
    message: str
    hint: str = ""


Decide: TypeAlias = Callable[[ExecutionId, Report, int], Awaitable[int]]
"""Decides a report about an execution that this runtime owns, which is the mail with this number; returns the row that
it caused, 0 for none."""
REPORTS: Final = msgspec.json.Decoder(Report)


class SharedOwnership:
    """Claims in the store. One task renews the beat, gives claims back, and reads mail and outcomes."""

    def __init__(
        self,
        claims: Claims,
        name: str,
        *,
        decide: Decide,
        on_loss: Callable[[ExecutionId], None],
        look: Callable[[], Awaitable[None]],
        is_gone: Callable[[str], bool],
        released: Callable[[ReleasedClaim], None] = lambda claim: None,
    ) -> None:
        """Call `on_loss` when another runtime has taken a claim, and `look` about once a second, to release what rests.
        `is_gone`: whether the runtime with a name is known to have ended. `released` is called for each claim that is
        given up, before the store records it (`give_back`)."""
        self._released = released
        self._lost = on_loss
        self._is_gone = is_gone
        self._claims = claims
        self._name = name
        self._decide = decide
        self._look = look
        self._held: dict[ExecutionId, Claim] = {}
        self._releasing: dict[ExecutionId, ReleasedClaim] = {}
        self._waiting: dict[int, asyncio.Future[MailOutcome | None]] = {}
        self._deciding: dict[ExecutionId, asyncio.Task[None]] = {}
        self._taken: set[int] = set()
        """Mail that is being decided."""
        self._woken = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []
        self._forgot_at = time.monotonic()
        self._renewed_at = since_boot()
        """When the last beat began that the store has accepted."""
        self._renewed = asyncio.Event()

    @property
    def mailbox(self) -> Mailbox | None:
        return self

    @property
    def steps(self) -> StepQueues | None:
        return self._claims.steps

    async def announce(self, facts: RuntimeFacts) -> None:
        await self._claims.announce(facts)
        await self._open()

    async def report(
        self,
        execution: ExecutionId,
        report: Report,
        *,
        unowned: Callable[[ExecutionId], None] = lambda execution: None,
    ) -> int:
        """`unowned` is called at first and once a second if no runtime owns the execution."""

        async def look(execution: ExecutionId) -> None:
            if await self._claims.owner(execution) is None:
                unowned(execution)

        no = await self.send(execution, report, uuid4().hex)
        await look(execution)
        return await self.outcome(no, execution, meanwhile=look)

    async def claim(
        self, execution: ExecutionId, *, begins: bool = False, under: ExecutionId | None = None
    ) -> Claim | None:
        holding = self._held.get(execution)
        if holding is not None:
            return holding
        await self._open()
        released = self._releasing.pop(execution, None)
        token = self._claims.token(execution) if released is not None else 0
        if released is None or token != released.token:  # It was released, or another process had begun it.
            granted = self._claims.begin(execution) if begins else await self._granted_by_store(execution)
            if granted is None:
                return None
            token = granted
        claim = self._held.setdefault(execution, Claim(execution, token, self._release))
        claim.token = token  # Two tasks may have claimed it at once: the later token counts.
        return claim

    async def _granted_by_store(self, execution: ExecutionId) -> int | None:
        """Claim an execution, also from a process of this machine that is known to have ended."""
        claim = await self._claims.claim(execution)
        owner = None if claim is not None else await self._claims.owner(execution)
        if owner is None or not self._is_gone(owner[1]):
            return claim
        await self._claims.retire(owner[0])
        return await self._claims.claim(execution)

    async def send(self, execution: ExecutionId, report: Report, key: str) -> int:
        await self._open()
        return await self._claims.post(execution, key, msgspec.json.encode(report))

    async def wake(self, execution: ExecutionId, report: Report, key: str = "") -> int:
        no = await self.send(execution, report, key or uuid4().hex)
        return await self.outcome(no, execution, meanwhile=self._take_over)

    async def _take_over(self, execution: ExecutionId) -> None:
        if await self.claim(execution) is not None:
            self._woken.set()

    async def outcome(
        self, mail: int, execution: ExecutionId, *, meanwhile: Callable[[ExecutionId], Awaitable[None]]
    ) -> int:
        """Return the row that a report caused, 0 for none. `meanwhile` is called once a second: the owner may be gone.

        Raises the owner's refusal.
        """
        future = self._waiting[mail] = asyncio.get_running_loop().create_future()
        self._woken.set()  # It may be decided already.
        try:
            while True:
                await asyncio.wait({future}, timeout=LOOK_S)
                if future.done():
                    return _seq_of(future.result(), execution)
                await meanwhile(execution)
                self._woken.set()
        finally:
            del self._waiting[mail]

    def drives(self, execution: ExecutionId) -> bool:
        return True

    async def resume(self, execution: ExecutionId) -> bool:
        claim = await self.claim(execution)
        self._woken.set()  # Reports may wait for an owner.
        return claim is not None

    async def granted(self) -> list[ExecutionId]:
        return await self._claims.orphans()

    def held(self, execution: ExecutionId) -> Claim | None:
        return self._held.get(execution)

    @property
    def in_doubt(self) -> bool:
        return since_boot() - self._renewed_at > DOUBT_S

    async def confirmed(self) -> None:
        while self.in_doubt:
            await self._renewed.wait()

    @property
    def lease_s(self) -> float:
        """Seconds until other runtimes may claim what this one owns, unless it renews its beat."""
        return LEASE_S - (since_boot() - self._renewed_at)

    async def close(self) -> None:
        tasks = [*self.tasks, *self._deciding.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
            with suppress(PointsmanError):  # Without the store the beat ends the claims.
                await self.give_back()
                await self._claims.retire()

    def _release(self, released: ReleasedClaim) -> None:
        holding = self._held.get(released.execution)
        if holding is not None and holding.token == released.token:
            del self._held[released.execution]
            self._releasing[released.execution] = released
            self._released(released)
            self._woken.set()

    async def _open(self) -> None:
        if not self.tasks:
            self._renewed_at = since_boot()
            await self._claims.register(self._name)
            if not self.tasks:
                loop = asyncio.get_running_loop()
                self.tasks = [
                    loop.create_task(self._run()),
                    loop.create_task(self._beats()),
                    loop.create_task(self._claims.listen(self._woken.set)),
                ]

    async def _beats(self) -> None:
        while True:
            await asyncio.sleep(CLAIM_BEAT_S)
            with suppress(PointsmanError):  # The claims end by themselves if this continues.
                await self._beat()

    async def _beat(self) -> None:
        """Renew the beat. After a long pause, find the claims that others took."""
        began = since_boot()
        await self._claims.renew()
        if began - self._renewed_at > LATE_S:
            for execution in await self._claims.lost():
                self._lose(execution)
        self._renewed_at = began
        renewed, self._renewed = self._renewed, asyncio.Event()
        renewed.set()

    def _lose(self, execution: ExecutionId) -> None:
        self._claims.drop(execution)
        self._releasing.pop(execution, None)
        if self._held.pop(execution, None) is not None:
            self._lost(execution)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._turn()
            except Outage:
                await asyncio.sleep(LOOK_S)
            except PointsmanError as why:
                LOG.warning("the mail of this runtime cannot be read: [%s] %s", why.code, why)
                await asyncio.sleep(LOOK_S)
            with suppress(TimeoutError):  # `wait_for` of Python 3.11 ignores a cancellation that comes with the event.
                async with asyncio.timeout(LOOK_S):
                    await self._woken.wait()

    async def _turn(self) -> None:
        if self._held:  # Before anything is released: a report may let it continue.
            for mail in await self._claims.mail():
                self._take(mail)
        await self._look()
        await self.give_back()
        if self._waiting:
            for no, outcome in (await self._claims.outcomes([*self._waiting])).items():
                if (future := self._waiting.get(no)) is not None and not future.done():
                    future.set_result(outcome)
        if time.monotonic() - self._forgot_at > FORGET_S:
            self._forgot_at = time.monotonic()
            await self._claims.forget()

    async def give_back(self) -> None:
        """Return when the store has recorded the claims that were given up. An execution whose first row is being
        written, because the caller of its start left, is given up later."""
        releasing, self._releasing = self._releasing, {}
        if not releasing:
            return
        remaining = [*releasing.values()]
        try:
            remaining = await self._claims.release(remaining)
        finally:
            left = {claim.execution: claim for claim in remaining if claim.execution not in self._held}
            self._releasing = {**left, **self._releasing}

    async def read_mail(self, execution: ExecutionId) -> None:
        """Return when the reports are decided that wait for an execution which this runtime owns."""
        for mail in await self._claims.mail():
            self._take(mail)
        while (deciding := self._deciding.get(execution)) is not None:
            await asyncio.wait({deciding})

    def _take(self, mail: Mail) -> None:
        """Decide a report behind the earlier ones of its execution."""
        if mail.no in self._taken:
            return
        self._taken.add(mail.no)
        before = self._deciding.get(mail.execution)
        task = asyncio.get_running_loop().create_task(self._answer(mail, before))
        self._deciding[mail.execution] = task

        def over(task: asyncio.Task[None]) -> None:
            self._taken.discard(mail.no)
            if self._deciding.get(mail.execution) is task:
                del self._deciding[mail.execution]
            if not task.cancelled() and (why := task.exception()) is not None:
                LOG.warning("a report for %s is decided later: %s", mail.execution, why)

        task.add_done_callback(over)

    async def _answer(self, mail: Mail, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        try:
            outcome = MailOutcome(await self._decide(mail.execution, REPORTS.decode(mail.report), mail.no))
        except (Outage, JournalMoved, DriverLost):
            return  # The next owner decides it, which may be this runtime.
        except PointsmanError as why:
            refusal = OwnerRefusal(why.code, str(why), why.hint)
            outcome = MailOutcome(0, msgspec.json.encode(refusal))
        await self._claims.answer(mail.no, outcome)


def _seq_of(outcome: MailOutcome | None, execution: ExecutionId) -> int:
    """Return the row that a report caused. Raises the owner's refusal."""
    if outcome is None:
        raise error_of(OwnerRefusal("unknown-execution", f"{execution!r} was deleted"))
    if outcome.refusal is None:
        return outcome.seq
    raise error_of(msgspec.json.decode(outcome.refusal, type=OwnerRefusal))


def error_of(refusal: OwnerRefusal) -> PointsmanError:
    """Return the error with the code of a refusal, of the class that has it if this class needs nothing else."""
    roots, waiting = PointsmanError, [PointsmanError]
    while waiting:
        kind = waiting.pop()
        if kind.__dict__.get("code") == refusal.code:
            roots = kind
        waiting += kind.__subclasses__()
    plain = next(base for base in roots.__mro__ if base.__init__ is PointsmanError.__init__)
    error = plain(refusal.message, hint=refusal.hint)
    vars(error)["code"] = refusal.code
    return error
