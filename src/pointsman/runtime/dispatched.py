"""Ownership by dispatch: an engine such as Temporal decides which worker drives an execution, and when.

    front    row ─▶ release ─▶ placement.wake(execution, due) ─▶ engine
    worker   engine ─▶ drive(execution) ─▶ claim, open ─▶ … ─▶ it ended or only waits: release ─▶ next due time

A *front* (an API server, a command, a trigger) writes reports and drives nothing. A *worker* drives what the engine
dispatches to it, and the sub-workflows for which that waits. Both decide reports about an execution without an owner
under a short claim, and leave the commands to the worker to which the engine dispatches it.

An adapter of an engine has two parts:

- it implements `Engine.wake`: one small durable workflow (or virtual object) for each execution id, which knows only
  when to drive it;
- it implements `Engine.work`: a worker calls `drive` and returns the result to that workflow. `drive` may be called
  again for the same execution, in the same process or another one: the claim in the store decides.

Nothing is lost while the engine is away. A wake-up that cannot be sent is repeated, and the leader of the store sends
one for each execution that is due or has lost its owner (`resume`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from hashlib import blake2s
from typing import Final, Protocol, TypeAlias
from uuid import uuid4
from weakref import WeakValueDictionary

from pointsman.engine.reports import Report
from pointsman.errors import OperatorError, Outage, PointsmanError
from pointsman.ports import Clock
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.ownership import Claim, Mailbox, SharedOwnership
from pointsman.runtime.workers import is_gone
from pointsman.store.coordination import Claims, ListEntry, ReleasedClaim, RuntimeFacts, StepQueues
from pointsman.store.errors import JournalMoved, RowUnreadable, StoreUnreachable
from pointsman.values import ExecutionId, Seconds

LOG: Final = logging.getLogger("pointsman.runtime")
ELSEWHERE_S: Final = Seconds(10.0)
"""When the engine asks again for an execution that another live runtime owns."""
LOST_AGAIN_S: Final = Seconds(1.0)
"""When the engine asks again for an execution that this runtime lost while it opened it."""
REFUSED_S: Final = Seconds(60.0)
"""When the engine asks again for an execution that cannot be opened, such as one whose definition is missing."""
WOKEN_S: Final = 10.0
"""A repeated wake-up by the leader waits this long: the engine may have it in a queue."""
SENT_AGAIN_S: Final = 2.0
AT_ONCE: Final = 32
"""Wake-ups that are being sent at a time."""
CLOSED_S: Final = 2.0
"""How long a closing runtime tries to send its last wake-ups; the leader sends the others."""


class EngineUnreachable(Outage):
    """The engine that places executions cannot be reached. What was written is not lost: it continues afterwards."""

    code = "engine-unreachable"


class BadRuntimeAddress(OperatorError):
    """The setting `runtime` is not the address of an engine."""

    code = "bad-runtime-address"


class Placement(Protocol):
    """An engine that dispatches executions to workers."""

    async def wake(self, execution: ExecutionId, due: float, share: str) -> None:
        """Let a worker drive an execution at `due` (unix seconds), or at once if that is past. Idempotent.

        `share`: executions with the same one come from one starter and workflow. If workers are scarce, each share gets
        an equal part of them, where the engine can do that.

        Raises `EngineUnreachable`.
        """
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


Drive: TypeAlias = Callable[[ExecutionId], Awaitable[float | None]]
"""Drives an execution; returns when to drive it again (unix seconds), None: when it is woken."""


class Engine(Placement, Protocol):
    """An engine: sends wake-ups, and dispatches executions to this process."""

    async def work(self, drive: Drive, *, executions: int, stopping: asyncio.Event) -> None:
        """Call `drive` for what the engine dispatches, at most `executions` at a time, until `stopping` is set.

        Returns when the running calls have ended. Works again by itself after an outage of the engine.
        """
        ...


class DispatchedRuntime(Protocol):
    """The part of the runtime that a dispatched ownership uses."""

    @property
    def clock(self) -> Clock: ...

    async def decide(self, execution: ExecutionId, report: Report, mail: int) -> int:
        """Decide a report that another runtime sent; return its row, or 0."""
        ...

    def lost(self, execution: ExecutionId) -> None:
        """Stop all work of an execution that another runtime has claimed."""
        ...

    async def release_idle(self) -> None:
        """Release what rests; called about once a second."""
        ...

    def left(self, execution: ExecutionId) -> ListEntry | None:
        """Drop the driver of an execution about which this runtime only decided reports; return what continues it."""
        ...

    async def rested(self, execution: ExecutionId) -> None:
        """Return when an execution is not driven here any more; release it as soon as it only waits."""
        ...


def share_of(starter_and_workflow: str) -> str:
    """Return the share of an execution as the engine sees it: it shows no name."""
    return blake2s(starter_and_workflow.encode(), digest_size=8).hexdigest()


class ReportLock(asyncio.Lock):
    """Held while reports about one execution are decided under a short claim."""


class DispatchedOwnership:
    """Claims as in `SharedOwnership`, taken for what the engine dispatches to this process."""

    def __init__(self, claims: Claims, name: str, placement: Placement, runtime: DispatchedRuntime) -> None:
        self._claims = claims
        self._runtime = runtime
        self._placement = placement
        self._shared = SharedOwnership(
            claims,
            name,
            decide=runtime.decide,
            on_loss=self._on_lost,
            look=runtime.release_idle,
            is_gone=is_gone,
            released=self._on_released,
        )
        self._driven: set[ExecutionId] = set()
        self._dispatched: dict[ExecutionId, asyncio.Future[float | None]] = {}
        """Executions that the engine has dispatched here, until their release; the result: when to drive them again."""
        self._calls: dict[ExecutionId, asyncio.Task[float | None]] = {}
        """The work on dispatched executions, which calls of `drive` wait for."""
        self._reports: WeakValueDictionary[ExecutionId, ReportLock] = WeakValueDictionary()
        self._wakes: dict[ExecutionId, float] = {}
        """Wake-ups that the engine has not received yet."""
        self._wake = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._woken: dict[ExecutionId, float] = {}
        """When the leader woke executions last, in the order of time."""
        self._is_away = False
        """Whether the last wake-up failed, so that an outage of the engine is logged once."""
        self._is_outdated = False
        """Whether this release could not read an execution, which is logged once."""

    @property
    def mailbox(self) -> Mailbox | None:
        return self

    @property
    def steps(self) -> StepQueues | None:
        return self._shared.steps

    async def announce(self, facts: RuntimeFacts) -> None:
        await self._shared.announce(facts)

    async def report(self, execution: ExecutionId, report: Report) -> int:
        return await self._shared.report(execution, report, unowned=self._wake_now)

    def _wake_now(self, execution: ExecutionId) -> None:
        self._send_wake(execution, self._runtime.clock.now())

    async def claim(
        self, execution: ExecutionId, *, begins: bool = False, under: ExecutionId | None = None
    ) -> Claim | None:
        if execution in self._dispatched or under in self._driven:
            claim = await self._shared.claim(execution, begins=begins)
            if claim is not None:
                self._driven.add(execution)
            return claim
        return await self._shared.claim(execution, begins=True) if begins else self._shared.held(execution)

    def drives(self, execution: ExecutionId) -> bool:
        return execution in self._driven

    async def wake(self, execution: ExecutionId, report: Report, key: str = "") -> int:
        no = await self._shared.send(execution, report, key or uuid4().hex)
        await self._decide_mail(execution)
        return await self._shared.outcome(no, execution, meanwhile=self._decide_mail)

    async def _decide_mail(self, execution: ExecutionId) -> None:
        """Decide the reports about an execution that has no other owner; a worker carries out the commands."""
        async with self._reports.setdefault(execution, ReportLock()):
            claim = await self._shared.claim(execution)
            if claim is None:
                return
            try:
                await self._shared.read_mail(execution)
            finally:
                if execution not in self._driven:
                    claim.release(self._runtime.left(execution))

    async def send(self, execution: ExecutionId, report: Report, key: str) -> int:
        no = await self._shared.send(execution, report, key)
        if self._shared.held(execution) is None:
            self._wake_now(execution)
        return no

    async def resume(self, execution: ExecutionId) -> bool:
        now = time.monotonic()
        if execution in self._driven or now - self._woken.get(execution, -WOKEN_S) < WOKEN_S:
            return False
        self._woken.pop(execution, None)
        self._woken[execution] = now
        while now - self._woken[oldest := next(iter(self._woken))] >= WOKEN_S:
            del self._woken[oldest]
        self._wake_now(execution)
        return False

    async def granted(self) -> list[ExecutionId]:
        return await self._shared.granted()

    def held(self, execution: ExecutionId) -> Claim | None:
        return self._shared.held(execution)

    @property
    def in_doubt(self) -> bool:
        return self._shared.in_doubt

    async def confirmed(self) -> None:
        await self._shared.confirmed()

    @property
    def unsent(self) -> int:
        """Number of wake-ups that the engine has not received yet."""
        return len(self._wakes)

    async def drive(self, execution: ExecutionId, take_up: Callable[[ExecutionId], Awaitable[object]]) -> float | None:
        """Drive an execution until it has ended or only waits; return when to drive it again (unix seconds), or None.

        `take_up` opens it. Raises an `Outage` if the store cannot be used, and `RowUnreadable` if this release is too
        old for the execution: call it again later, here or elsewhere. Neither cancelling the call nor an outage stops
        the execution, which this process owns until it rests.
        """
        work = self._calls.get(execution)
        if work is None and not self._shared.in_doubt:
            work = self._calls[execution] = asyncio.get_running_loop().create_task(self._drive(execution, take_up))
            work.add_done_callback(partial(self._call_ended, execution))
        while work is not None and (left_s := self._shared.lease_s) > 0:
            await asyncio.wait({work}, timeout=left_s)
            if work.done():
                return work.result()
        raise StoreUnreachable("this worker has lost its store: other workers may claim what it owns")

    def _call_ended(self, execution: ExecutionId, work: asyncio.Task[float | None]) -> None:
        del self._calls[execution]
        if not work.cancelled():
            work.exception()  # The caller may have left.

    async def _drive(self, execution: ExecutionId, take_up: Callable[[ExecutionId], Awaitable[object]]) -> float | None:
        known = self._dispatched[execution] = asyncio.get_running_loop().create_future()
        try:
            async with self._reports.setdefault(execution, ReportLock()):
                await take_up(execution)
            if execution not in self._driven and not known.done():
                return self._runtime.clock.now() + ELSEWHERE_S
            await self._shared.read_mail(execution)
            await self._runtime.rested(execution)
        except Outage:
            raise
        except RowUnreadable as why:  # A newer release wrote it: one of its workers can drive it.
            if not self._is_outdated:
                LOG.warning("%s and others like it are left to other workers: [%s] %s", execution, why.code, why)
            self._is_outdated = True
            raise
        except (JournalMoved, DriverLost):  # Another runtime drives it, or this one stops.
            return self._runtime.clock.now() + LOST_AGAIN_S
        except PointsmanError as why:
            LOG.warning("%s cannot be driven: [%s] %s", execution, why.code, why)
            return None if why.code == "unknown-execution" else self._runtime.clock.now() + REFUSED_S
        finally:
            self._drop(execution)
        await self._shared.give_back()
        return await known

    def _drop(self, execution: ExecutionId) -> None:
        """End a dispatch. An execution that could not be opened is given up."""
        known = self._dispatched.pop(execution)
        if known.done():
            return
        claim = self._shared.held(execution)
        if claim is not None and execution not in self._driven:
            claim.release()
        known.set_result(self._runtime.clock.now() + ELSEWHERE_S)

    def _on_released(self, claim: ReleasedClaim) -> None:
        execution, due = claim.execution, None if claim.entry is None else claim.entry.wakes
        self._driven.discard(execution)
        dispatched = self._dispatched.get(execution)
        if dispatched is not None and not dispatched.done():
            dispatched.set_result(due)
        elif due is not None:
            self._send_wake(execution, due)

    def _on_lost(self, execution: ExecutionId) -> None:
        self._driven.discard(execution)
        dispatched = self._dispatched.get(execution)
        if dispatched is not None and not dispatched.done():
            dispatched.set_result(self._runtime.clock.now() + ELSEWHERE_S)
        self._runtime.lost(execution)

    def _send_wake(self, execution: ExecutionId, due: float) -> None:
        self._wakes[execution] = min(due, self._wakes.get(execution, due))
        self._wake.set()
        if self._sender is None:
            self._sender = asyncio.get_running_loop().create_task(self._send_wakes())

    async def _send_wakes(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._send_all()
            if self._wakes:
                self._wake.set()
                await asyncio.sleep(SENT_AGAIN_S)

    async def _send_all(self) -> None:
        """Send the wake-ups, once the store has recorded the releases before them."""
        wakes, self._wakes = self._wakes, {}
        limit = asyncio.Semaphore(AT_ONCE)
        failed: list[PointsmanError] = []

        async def one(execution: ExecutionId, due: float, share: str) -> None:
            async with limit:
                try:
                    await self._placement.wake(execution, due, share)
                except PointsmanError as why:
                    failed.append(why)
                    self._wakes[execution] = min(due, self._wakes.get(execution, due))

        try:
            await self._shared.give_back()
            shares = await self._claims.shares([*wakes])
        except PointsmanError as why:
            failed.append(why)
            self._wakes = {**wakes, **self._wakes}
        else:
            await asyncio.gather(
                *(one(execution, due, share_of(shares.get(execution, ""))) for execution, due in wakes.items())
            )
        if failed and not self._is_away:
            LOG.warning("%d wake-ups wait for the engine: [%s] %s", len(self._wakes), failed[0].code, failed[0])
        self._is_away = bool(failed)

    async def close(self) -> None:
        with suppress(TimeoutError, PointsmanError):
            async with asyncio.timeout(CLOSED_S):
                await self._shared.give_back()
                await self._send_all()
        tasks = [*self._calls.values(), *([self._sender] if self._sender is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._shared.close()
        await self._placement.close()
