"""The local runtime: every execution in this process, on its event loop, in front of one store.

    start ─▶ driver ─▶ … ─▶ ended or waiting ─▶ passivated (a waiting execution is only rows in the store)
    open  ─▶ fold the journal ─▶ driver ─▶ issue the outstanding commands again

One driver per execution and process. Child executions have ids derived from the parent's step, so a parent that
resumes after a crash finds the child it had started.

`drain` lets running attempts finish before the process ends:

    drain starts ─▶ running attempts finish, their results are committed ─┐
                    new attempts are held, no executor performs them ─────┴─▶ drained ─▶ the runtime closes

A held attempt is requested and unanswered: the next owner of the execution performs it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NoReturn, TypeAlias
from weakref import WeakValueDictionary

from msgspec.structs import replace

from pointsman.deadlines import Deadlines
from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute, HoldChild, OutboxMessage, StartChild, StopChild
from pointsman.engine.decide.dispatch import deciding
from pointsman.engine.fold.dispatch import begin_decision, fold
from pointsman.engine.plan import Plan
from pointsman.engine.reports import (
    CancelRequested,
    EventReceived,
    ForkRequested,
    MigrationRequested,
    PauseRequested,
    Report,
    Start,
)
from pointsman.engine.state import ENDED, ExecutionState
from pointsman.engine.steps import Step
from pointsman.errors import AuthorError, CallerError, EngineBug, OperatorError, Outage, PointsmanError
from pointsman.ports import Clock, ExecutionPort, Executor, Memory, Row
from pointsman.runtime.children import ChildExecutions, child_id, children_of, rests
from pointsman.runtime.commits import DriverLost, storable
from pointsman.runtime.dependencies import ExecutorsFor, Feed, Plans
from pointsman.runtime.dispatched import DispatchedOwnership, Placement
from pointsman.runtime.driver import QUEUE, Driver, in_turns
from pointsman.runtime.follower import Follower
from pointsman.runtime.ownership import LocalOwnership, Ownership, SharedOwnership
from pointsman.runtime.passivation import has_work
from pointsman.runtime.summary import without_nul
from pointsman.runtime.workers import ForeignWriters, close_worker, is_gone, open_worker
from pointsman.store.api import EffectStore, Store, StoreJournal
from pointsman.store.coordination import ListEntry, next_row_decides
from pointsman.store.errors import JournalMoved
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Instant, Json, Seconds

LOG: Final = logging.getLogger("pointsman.runtime")
COPIED_AT_ONCE: Final = 256
"""Maximum rows of a copied execution that are being stored at a time."""

PAGE: Final = 200
OPEN: Final = frozenset({"running", "waiting"})
"""Statuses in which a step may wait for a worker."""
MOVED_MAX: Final = 5
REST_S: Final = Seconds(5.0)
"""An execution whose next timer is this near is not released."""
RESTS_S_MIN: Final = 0.02
RESTS_S_MAX: Final = 1.0
"""How often a worker checks whether an execution only waits that does no work itself."""
LEFT_S_MAX: Final = Seconds(30.0)
"""How long the store may take to write the first row of an execution whose caller left."""
OFFER_AGAIN_S: Final = Seconds(60.0)
DRAINED_AGAIN_S: Final = Seconds(1.0)
"""When steps that wait for a worker are offered to another one by a process that stops, and has not looked."""
PLACE_AGAIN_S: Final = Seconds(600.0)
"""When steps that wait for a worker of a queue are placed again. Workers find them before, in the queue."""
UNSERVED_S: Final = Seconds(3.0)
"""How often it is checked whether the queues of placed steps have workers."""


class UnknownExecution(CallerError):
    """This store has no execution with that id."""

    code = "unknown-execution"


def unknown_execution(execution: str) -> UnknownExecution:
    """Return the error for an execution that does not exist or that the caller may not see: both get the same
    message.
    """
    return UnknownExecution(f"there is no execution {execution!r} here", hint="`pointsman list` lists the executions.")


EventSink: TypeAlias = Callable[[str, Json, str, ExecutionId], Awaitable[None]]
"""Receives every emitted event (name, data, key, execution) after it was delivered. Repeated after a crash, with the
same key.
"""
IsWaitingFor: TypeAlias = Callable[[ExecutionId], Awaitable[bool]]
"""Returns whether an execution may receive an event."""
OnEnded: TypeAlias = Callable[[ExecutionState], Awaitable[None]]
"""Called for every execution that ends, once its last row is durable."""


class DriverOpening:
    """The lock under which one task creates the driver of an execution, and the number of tasks that need it."""

    __slots__ = ("held", "wanted")

    def __init__(self) -> None:
        self.held = asyncio.Lock()
        self.wanted = 0


def again_s(driver: Driver) -> Seconds:
    """Return when the steps of an execution that wait for workers are offered again."""
    state = driver.state
    is_queued = all(state.steps[step].needs.startswith(f"{QUEUE}:") for step in state.steps_without_worker)
    return PLACE_AGAIN_S if is_queued else OFFER_AGAIN_S


def folded(execution: str, rows: Iterable[Row]) -> ExecutionState:
    """Return the state folded from rows."""
    state = ExecutionState(execution)
    for row in rows:
        begin_decision(state, row.seq, row.at)
        for event in row.events:
            fold(state, event)
    return state


class LocalRuntime:
    """Runs executions in this process."""

    def __init__(
        self,
        store: Store,
        plans: Plans,
        executors: ExecutorsFor,
        clock: Clock,
        feed: Feed,
        *,
        on_ended: OnEnded | None = None,
        emitted: EventSink | None = None,
        placement: Placement | None = None,
    ) -> None:
        """`placement`: the engine that decides which worker drives an execution; None: this runtime drives what it
        starts."""
        self.store = store
        self.journal: StoreJournal = store.journal
        self.plans = plans
        self.executors = executors
        self.clock = clock
        self.feed = feed
        self._ended = on_ended
        self._emitted = emitted
        self.audience_of: Callable[[ExecutionId], Awaitable[IsWaitingFor]] | None = None
        """Finds the executions that may receive an emitted event; absent: all."""
        self.can_go_on: Callable[[Plan, ExecutionState], Awaitable[None]] | None = None
        """Raises if an execution that would continue needs a model that cannot be called; absent: never."""
        self.on_taken_up: Callable[[float], None] | None = None
        """Receives how long an execution had waited, in seconds, when this process continues it."""
        self.drivers: dict[ExecutionId, Driver] = {}
        self._last_drivers: WeakValueDictionary[ExecutionId, Driver] = WeakValueDictionary()
        """The newest driver of each execution while it is referenced: callers may hold an older one."""
        self.deadlines = Deadlines()
        self.children = ChildExecutions(self)
        self._reached: set[ExecutionId] = set()
        """Executions with a driver here whose outstanding commands were not issued again: other processes may drive
        them.
        """
        self._neighbours = ForeignWriters(store, self.drivers, clock, take_work=self.take_work)
        self.worker = open_worker()
        self.ownership = self._open_ownership(placement)
        self.followers: WeakValueDictionary[ExecutionId, Follower] = WeakValueDictionary()
        """Executions that other runtimes own, as this one reads them."""
        self.is_leading = False
        """Whether this process is the leader: it continues every execution that it opens."""
        self.stands_by = False
        """Whether this process becomes the leader when no other one is: it releases what only waits."""
        self._making: dict[ExecutionId, DriverOpening] = {}
        self._looked_for_workers = 0.0
        self._left: set[asyncio.Task[None]] = set()
        """Wait for the first rows of executions whose callers left while the store wrote them."""

    def _open_ownership(self, placement: Placement | None) -> Ownership:
        if self.store.claims is None:
            return LocalOwnership()
        if placement is not None:
            return DispatchedOwnership(self.store.claims, self.worker, placement, self)
        return SharedOwnership(
            self.store.claims,
            self.worker,
            decide=self.decide,
            on_loss=self.lost,
            look=self.release_idle,
            is_gone=is_gone,
        )

    @property
    def effects(self) -> EffectStore:
        return self.store.effects

    @property
    def memory(self) -> Memory:
        return self.store.memory

    async def start(
        self,
        execution: ExecutionId,
        plan: Plan,
        report: Start,
        *,
        begun_here: bool = True,
        under: ExecutionId | None = None,
    ) -> Driver:
        """Start an execution. Returns when the start is durable. Raises `JournalMoved` if the id exists.

        `begun_here`: this process started the outermost parent of the execution. `under`: the execution that waits for
        it, which is driven here.
        """
        if execution in self.drivers:
            raise JournalMoved(f"execution {execution!r} already exists here")
        await self.ownership.claim(execution, begins=True, under=under)
        driver = self._drive(Driver(execution, plan, ExecutionState(execution), self, begun_here=begun_here))
        return await self._begun(driver, report)

    async def adopt(self, execution: ExecutionId, plan: Plan, rows: Sequence[Row], report: ForkRequested) -> Driver:
        """Start with a copy of rows. Lists show the execution once its own first row is durable."""
        await self.ownership.claim(execution, begins=True)
        for first in range(0, len(rows), COPIED_AT_ONCE):
            await asyncio.gather(*(self.journal.append(execution, row) for row in rows[first : first + COPIED_AT_ONCE]))
        driver = self._drive(Driver(execution, plan, folded(execution, rows), self))
        driver.passivation.unlisted()
        driver_report = await self._begun(driver, report)
        driver_report.offer()
        return driver_report

    async def _begun(self, driver: Driver, report: Report) -> Driver:
        """Return the driver when its first row is durable."""
        try:
            await driver.deliver(report)
        except BaseException as why:
            if not driver.is_deciding:  # A caller that stops waiting does not stop a decision.
                self.drivers.pop(driver.execution, None)
                self._release(driver.execution)
                if isinstance(why, asyncio.CancelledError) and self.store.claims is None:  # else it is due (`failed`)
                    waiting = asyncio.get_running_loop().create_task(self._continue_left(driver))
                    self._left.add(waiting)
                    waiting.add_done_callback(self._left.discard)
            raise
        if not driver.performs:
            self._release(driver.execution, self._left_entry(driver))
            return self._follow(driver.execution, driver.plan, driver.state)
        self._last_drivers[driver.execution] = driver
        return driver

    async def _continue_left(self, begun: Driver) -> None:
        """Continue an execution whose caller left while the store wrote its first row, once the row is stored."""
        execution, pause, until = begun.execution, RESTS_S_MIN, self.clock.now() + LEFT_S_MAX
        while self.clock.now() < until:
            try:
                if (await self.load(execution)).setup.started_at == begun.state.setup.started_at:
                    await self.open(execution)
                return
            except UnknownExecution:
                await self.clock.sleep_until(self.clock.now() + pause)
                pause = min(2 * pause, RESTS_S_MAX)
            except PointsmanError as why:
                LOG.warning("%s, whose start was cancelled, is left to the leader: [%s] %s", execution, why.code, why)
                return

    async def open(self, execution: ExecutionId, *, recover: bool = True) -> Driver:
        """Return the driver of an execution: the present one, or a new one from its journal. Raises `UnknownExecution`.

        Without `recover`, outstanding commands are not issued again: for callers that only deliver a report.
        """
        if self.drives(execution):
            return self.drivers[execution]
        async with self.alone(execution):
            return await self.opened(execution, recover=recover)

    async def opened(self, execution: ExecutionId, *, recover: bool, under: ExecutionId | None = None) -> Driver:
        driver = self.drivers.get(execution)
        if driver is None or driver.failure is not None:
            if await self.ownership.claim(execution, under=under) is None:
                return await self._followed(execution)
            self.followers.pop(execution, None)
            try:
                made = await self._made(execution)
            except BaseException:
                self._release(execution)  # Another process may be able to open it, such as one of a newer release.
                raise
            driver = self._drive(made)
            self._succeed(driver)
            self._reached.add(execution)
        if recover and driver.performs and execution in self._reached:
            self._reached.discard(execution)
            delay_s = driver.passivation.delay_s(driver.state, self.clock.now())
            if self.on_taken_up is not None and delay_s is not None:
                self.on_taken_up(delay_s)
            if (
                driver.state.counters.running_steps and driver.state.status == "running"
            ):  # it continues here although no row records that yet
                await self.store.executions.put(
                    driver.passivation.summary(execution, driver.state), seq=driver.state.seq
                )
            driver.recover()
        return driver

    def _succeed(self, driver: Driver) -> None:
        """Let the handles of former drivers of the execution use this one."""
        former = self._last_drivers.get(driver.execution)
        if former is not None and former is not driver:
            former.successor, driver.successor = driver, None
            former.notify()
        self._last_drivers[driver.execution] = driver

    async def _followed(self, execution: ExecutionId) -> Follower:
        """Return the follower of an execution that another runtime owns, with its present state."""
        follower = self.followers.get(execution)
        if follower is None:
            state = await self.load(execution)
            follower = self._follow(
                execution, await self.plans.pinned(state.setup.definition, state.setup.options), state
            )
        else:
            await follower.catch_up()
        await self._follow_below(follower)  # Its owner may have begun a sub-workflow since its last row.
        return follower

    def _follow(self, execution: ExecutionId, plan: Plan, state: ExecutionState) -> Follower:
        mailbox = self.ownership.mailbox
        if mailbox is None:
            raise EngineBug(f"execution {execution!r} has another owner, but this runtime cannot send it reports")
        follower = self.followers[execution] = Follower(
            execution, plan, state, self, mailbox=mailbox, store=self.store, changed=self._on_rows, take_over=self.open
        )
        self.drivers.pop(execution, None)
        self._succeed(follower)
        return follower

    async def _follow_below(self, follower: Follower) -> None:
        """Read the sub-workflows that a followed execution waits for."""
        names = [name for at in follower.state.steps.values() for name in children_of(follower.execution, at)]
        below = {name: follower.below[name] for name in names if name in follower.below}
        for name in names:
            if name not in below and self.at_hand(name) is None and await self.journal.last(name):
                async with self.alone(name):
                    below[name] = self.at_hand(name) or await self._followed(name)
        follower.below = below

    async def _on_rows(self, follower: Follower) -> None:
        """Notify those that wait for the lineage of an execution that another runtime drives."""
        await self._follow_below(follower)
        self.children.moved_elsewhere(follower)

    def at_hand(self, execution: ExecutionId) -> Driver | None:
        """Return the driver or the follower of an execution in this runtime."""
        return self.drivers.get(execution) or self.followers.get(execution)

    async def decide(self, execution: ExecutionId, report: Report, mail: int) -> int:
        """Decide a report that another runtime sent about an execution that this one owns; return its row, or 0.

        The row stores the outcome of the report, which has the number `mail`.
        """
        known = self.drivers.get(execution)
        recover = not isinstance(report, PauseRequested | CancelRequested) or (known is not None and known.recovered)
        driver = await self.open(execution, recover=recover)
        if isinstance(driver, Follower):
            raise JournalMoved(f"execution {execution!r} has another owner")
        plan = driver.plan
        if isinstance(report, MigrationRequested):
            plan = await self.plans.pinned(report.definition, report.options)
        await driver.decided()
        before = driver.state.seq
        with next_row_decides(mail):
            if isinstance(report, MigrationRequested):
                await driver.move(plan, report)
                return before + 1
            return before + 1 if await driver.deliver(report) else 0

    def left(self, execution: ExecutionId) -> ListEntry | None:
        """Drop the driver of an execution about which this runtime only decided reports; return what continues it."""
        driver = self.drivers.pop(execution, None)
        self._reached.discard(execution)
        if driver is None:
            return None
        entry = self._left_entry(driver)
        if driver.is_waited_for:
            self._follow(execution, driver.plan, driver.state)
        if driver.failure is None:
            driver.failure = JournalMoved(f"execution {execution!r} continues in another process")
        driver.notify()
        return ListEntry(entry.wakes, entry.awaits)

    def _left_entry(self, driver: Driver) -> Summary:
        """Return the list entry of an execution whose commands another runtime carries out."""
        state = driver.state
        entry = driver.passivation.summary(driver.execution, state)
        return replace(entry, wakes=Instant(self.clock.now())) if has_work(state) else entry

    async def rested(self, execution: ExecutionId) -> None:
        """Return when an execution is not driven here any more; release it as soon as it only waits."""
        pause = RESTS_S_MIN
        while (driver := self.drivers.get(execution)) is not None and driver.failure is None:
            await driver.drained()
            for child in self.children.resting(self.clock.now() + REST_S):
                await self.park(child)
            if self.drivers.get(execution) is driver and driver.failure is None:  # A near timer, or a sub-workflow.
                await asyncio.sleep(pause)
                pause = min(2 * pause, RESTS_S_MAX)
        if driver is not None and self.drivers.get(execution) is driver:
            del self.drivers[execution]

    async def hand_over(self) -> None:
        """Stop all work and release every execution that is driven here: other runtimes continue them at once."""
        for driver in [*self.drivers.values()]:
            with suppress(Outage):  # What could not be stored is decided again by the next owner.
                await driver.close()
            if self.drivers.get(driver.execution) is driver:
                self.passivate(driver, self._left_entry(driver))

    def lost(self, execution: ExecutionId) -> None:
        """Stop all work of an execution that another runtime has claimed."""
        driver = self.drivers.get(execution)
        if driver is not None:
            driver.on_lost_claim()

    def _release(self, execution: ExecutionId, entry: Summary | None = None) -> None:
        claim = self.ownership.held(execution)
        if claim is not None:
            claim.release(None if entry is None else ListEntry(entry.wakes, entry.awaits))

    async def release_idle(self) -> None:
        """Release what only waits if there is a leader; else what this runtime opened for one report only, and steps
        that it cannot perform."""
        for driver in self.children.resting(self.clock.now() + REST_S):
            if self.stands_by or driver.execution in self._reached or driver.state.steps_without_worker:
                await self.park(driver)
        await self._look_for_workers()

    async def _look_for_workers(self) -> None:
        """Let placed steps wait whose queues have lost their last worker."""
        queues, now = self.ownership.steps, self.clock.now()
        placed = [driver for driver in self.drivers.values() if driver.placed and driver.failure is None]
        if queues is None or not placed or now - self._looked_for_workers < UNSERVED_S:
            return
        self._looked_for_workers = now
        for one in await queues.unserved():
            driver = self.drivers.get(one.execution)
            step = None if driver is None else next((step for step in driver.placed if str(step) == one.step), None)
            if driver is not None and step is not None:
                await driver.wait_for_queue(step, one.attempt, one.queue)

    async def park(self, driver: Driver) -> None:
        """Drop an execution that only waits from memory; its list entry states when it continues."""
        shared = self.store.claims is not None
        summary = None if shared else await self.store.executions.find(driver.execution)
        if not rests(driver, self.clock.now()) or self.drivers.get(driver.execution) is not driver:
            return
        is_left = driver.execution in self._reached and not driver.state.ended
        if driver.state.steps_without_worker and driver.state.status == "running":
            # Another worker may have what this one lacks.
            again = self.clock.now() + (DRAINED_AGAIN_S if self.is_draining else again_s(driver))
            means = driver.passivation.offered(again, driver.execution, driver.state)
        else:
            means = driver.passivation.summary(driver.execution, driver.state)
        if is_left and shared and driver.state.status == "running" and means.wakes is None:
            means = replace(means, wakes=Instant(self.clock.now()))
        if summary is not None and (summary.wakes, summary.awaits) != (means.wakes, means.awaits):
            await self.store.executions.put(means, seq=driver.state.seq)
        self.passivate(driver, means)

    @property
    def is_draining(self) -> bool:
        """Return whether this process stops: it performs no further attempt."""
        return isinstance(self.executors, HoldingExecutor)

    def drives(self, execution: ExecutionId) -> bool:
        """Return whether the execution is driven here."""
        driver = self.drivers.get(execution)
        return driver is not None and driver.failure is None and execution not in self._reached

    def _drive(self, driver: Driver) -> Driver:
        self.drivers[driver.execution] = driver
        driver.performs = self.ownership.drives(driver.execution)
        driver.passivation.urgent = driver.passivation.urgent or not driver.performs
        self._reached.discard(driver.execution)
        self._neighbours.watch()
        return driver

    async def _made(self, execution: ExecutionId) -> Driver:
        state = await self.load(execution)
        return Driver(execution, await self.plans.pinned(state.setup.definition, state.setup.options), state, self)

    @asynccontextmanager
    async def alone(self, execution: ExecutionId) -> AsyncGenerator[None, None]:
        """Prevent other tasks from opening a driver of this execution."""
        lock = self._making.get(execution)
        if lock is None:
            lock = self._making[execution] = DriverOpening()
        lock.wanted += 1
        try:
            async with lock.held:
                yield
        finally:
            lock.wanted -= 1
            if not lock.wanted:
                del self._making[execution]

    async def load(self, execution: ExecutionId) -> ExecutionState:
        """Return the state of an execution from its journal. Raises `UnknownExecution`."""
        state = ExecutionState(execution)
        async for row in self.journal.read(execution):
            begin_decision(state, row.seq, row.at)
            for event in row.events:
                fold(state, event)
        if state.seq == 0:
            raise unknown_execution(execution)
        return state

    async def take_work(self, execution: ExecutionId) -> bool:
        """Resume an execution that was lost to another process if that process cannot perform a step that this one can.

        The step, or one of its sub-workflows, waits for a worker with what this process has, and no work runs. Return
        whether it was resumed.
        """
        summary = await self.store.executions.find(execution)
        driver = self.drivers.get(execution)
        if summary is None or summary.status in ENDED:
            if driver is not None and driver.failure is not None and not driver.is_waited_for:
                del self.drivers[execution]
            return False
        if not await self._has_work(summary):
            return False
        await self.open(execution)
        return True

    async def _has_work(self, summary: Summary) -> bool:
        if summary.status not in OPEN or (summary.worker and not is_gone(summary.worker)):
            return False
        for need in summary.needs:
            if await self.executors.has(need):
                return True
        below = ExecutionQuery(parent=summary.execution, statuses=OPEN, limit=PAGE)
        children = await self.store.executions.list(below)
        if any(child.worker and not is_gone(child.worker) for child in children):
            return False
        return any([await self._has_work(child) for child in children])

    def passivate(self, driver: Driver, entry: Summary | None = None) -> None:
        """Drop the driver of an execution that ended or only waits: its journal is enough. `entry`: for the list."""
        if self.drivers.get(driver.execution) is driver:
            del self.drivers[driver.execution]
            self._reached.discard(driver.execution)
            driver.timers.stop()
            self.children.forget(driver.execution)
            self._release(driver.execution, entry)

    async def close(self) -> None:
        """Stop everything as if the process had ended: all executions can be resumed."""
        close_worker(self.worker)
        for waiting in self._left:
            waiting.cancel()
        await self._neighbours.close()
        drivers = list(self.drivers.values())
        self.drivers.clear()
        followers = list(self.followers.values())
        self.deadlines.stop()
        closed = await asyncio.gather(*(driver.close() for driver in (*drivers, *followers)), return_exceptions=True)
        await self.ownership.close()
        for lost in closed:
            # A timer that has just fired was stopped during its commit: it fires again.
            if lost is not None and not isinstance(lost, asyncio.CancelledError):
                raise lost

    # Services for drivers

    async def start_child(self, parent: ExecutionId, command: StartChild) -> None:
        """Start or find the child of a step; report its end to the parent if it waits for it."""
        await self.children.start(parent, command)

    async def hold_child(self, parent: ExecutionId, command: HoldChild) -> None:
        """Pause the child of a step and the children below it."""
        await self.children.hold(child_id(parent, command.step, command.attempt, command.call))

    async def tell(self, source: ExecutionId, order: OutboxMessage) -> None:
        """Cancel a child, or deliver an event to all executions that wait for it."""
        if isinstance(order, StopChild):
            await self.children.stop(source, child_id(source, order.step, order.attempt, order.call))
        else:
            key = f"{source}|{order.order}"
            is_waiting = None if self.audience_of is None else await self.audience_of(source)
            await self.broadcast(order.name, order.data, by=source, key=key, but=source, is_waiting=is_waiting)
            if self._emitted is not None:
                await self._emitted(order.name, order.data, key, source)

    async def broadcast(
        self,
        name: str,
        data: Json,
        *,
        by: str = "",
        key: str = "",
        but: ExecutionId | None = None,
        is_waiting: IsWaitingFor | None = None,
    ) -> int:
        """Deliver an event to every execution that waits for it, passivated ones included; return how many took it.

        `key` identifies the event: a repeated delivery has no effect. `is_waiting` filters the receivers; absent: all.
        Executions
        without a driver are left to the leader, unless this process is the leader.
        """
        report = EventReceived(name=name, data=data, by=by, key=key)
        here = {
            execution
            for execution, driver in self.drivers.items()
            if execution != but and name in driver.state.events.waiters
        }
        here = {execution for execution in here if is_waiting is None or await is_waiting(execution)}
        count = sum([await self._delivered(execution, report) for execution in here])
        parked, before, listed = True, None, without_nul(name)
        while parked:
            summaries = await self.store.executions.list(ExecutionQuery(awaits=listed, before=before, limit=PAGE))
            for summary in summaries:
                may_hear = is_waiting is None or await is_waiting(summary.execution)
                if summary.execution != but and summary.execution not in here and may_hear:
                    count += await self._delivered(summary.execution, report)
            before = (summaries[-1].started, summaries[-1].execution) if summaries else None
            parked = len(summaries) == PAGE
        return count

    async def concerns(self, execution: ExecutionId, report: EventReceived) -> bool:
        """Return whether an event would change the execution. Writes nothing and resumes nothing."""
        if self.drives(execution):
            return True  # the driver decides
        state = await self.load(execution)
        plan = await self.plans.pinned(state.setup.definition, state.setup.options)
        decision = await in_turns(deciding(plan, state, storable(report), self.clock.now()))
        return bool(decision.events)

    async def _delivered(self, execution: ExecutionId, report: EventReceived) -> bool:
        """Deliver an event and return whether it was taken.

        A recipient's failure (event too large, execution deleted, definition gone) must not fail the sender.
        """
        try:
            return await self._deliver_to(execution, report)
        except Outage:
            raise
        except (AuthorError, CallerError, OperatorError) as why:
            LOG.warning("%s cannot receive the event %r: [%s] %s", execution, report.name, why.code, why)
            return False

    async def _deliver_to(self, execution: ExecutionId, report: EventReceived) -> bool:
        for _ in range(MOVED_MAX):
            try:
                known = self.drivers.get(execution)
                if self.store.claims is not None or self.is_leading or (known is not None and known.failure is None):
                    driver = await self.open(execution, recover=self.is_leading)
                    return bool(await driver.deliver(report))
                async with self.alone(execution):
                    driver = await self._made(execution)
                    before = driver.state.seq
                    await driver.leave(report)
                    return driver.state.seq > before
            except (JournalMoved, DriverLost):
                continue  # another writer was faster: read again
        raise DriverLost(f"{execution!r} kept changing under another process; gave up", hint="Deliver the event again.")

    async def turn_ended(self, state: ExecutionState) -> None:
        """Notify the conversation store and the parent."""
        if self._ended is not None:
            await self._ended(state)
        await self.children.ended(state)

    def failed(self, execution: ExecutionId, why: BaseException) -> None:
        """Give the execution up, so that the leader continues it, and notify those that wait for it."""
        driver, entry = self.drivers.get(execution), None
        if driver is not None:  # Its state may be ahead of the journal: it is resumed whatever its status.
            # Another process can continue it at once; also if a caller was cancelled while the store wrote its row.
            is_sound = isinstance(why, (Outage, JournalMoved, DriverLost, asyncio.CancelledError))
            again = self.clock.now() + (0.0 if is_sound else OFFER_AGAIN_S)
            entry = replace(driver.passivation.summary(execution, driver.state), wakes=Instant(again))
        self._release(execution, entry)
        self.children.failed(execution, why)

    def over(self, state: ExecutionState) -> None:
        """Drop the driver; a failed execution may be resumed later."""
        if state.status != "failed":
            self.drivers.pop(ExecutionId(state.id), None)
            self._reached.discard(ExecutionId(state.id))
            self._release(ExecutionId(state.id))


LEFT: Final = "they ran for longer than `drain` allows, or the store could not be reached"
DRAIN_POLL_S: Final = 0.02
AttemptKey = tuple[ExecutionId, Step]


class HoldingExecutor:
    """Executor that performs nothing: each command waits until the process ends."""

    def __init__(self, runtime: LocalRuntime) -> None:
        self._runtime = runtime
        self.places: set[AttemptKey] = set()

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Return null: nothing is performed and nothing cached."""
        return None

    async def has(self, need: str) -> bool:
        """Return False: no further step is offered."""
        return False

    def executor_for(self, command: Execute) -> Executor:
        return self

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> NoReturn:
        place = run.execution, command.step
        self.places.add(place)
        task = asyncio.current_task()
        if task is not None:
            self._runtime.deadlines.drop(task)  # It has not started: its deadline must not pass.
        try:
            await asyncio.Event().wait()
            raise asyncio.CancelledError
        finally:
            self.places.discard(place)


async def drain(runtime: LocalRuntime, *, patience: Seconds, hurry: asyncio.Event) -> int:
    """Wait until no attempt runs and no decision is being made or written, for at most `patience` seconds or until
    `hurry`. Return the number of those that are left, which is logged. From then on this process does not wait for its
    store.
    """
    executor = HoldingExecutor(runtime)
    runtime.executors = executor
    until = runtime.clock.now() + patience
    while (remaining := len(performed_attempts(runtime) - executor.places) + decisions(runtime)) and not hurry.is_set():
        if runtime.clock.now() >= until:
            break
        await runtime.clock.sleep_until(runtime.clock.now() + DRAIN_POLL_S)
    if remaining:
        LOG.warning("%d steps are not stored at the end of the drain, and are performed again: %s", remaining, LEFT)
    if runtime.store.claims is not None:
        runtime.store.claims.stop_waiting()
    return remaining


def decisions(runtime: LocalRuntime) -> int:
    """Return the number of executions whose last decision is being made in parts, or written: the result that it is
    about is not stored."""
    return sum(driver.is_deciding or driver.commits.writing for driver in runtime.drivers.values())


def performed_attempts(runtime: LocalRuntime) -> set[AttemptKey]:
    """Return every attempt that runs here."""
    return {
        (driver.execution, step)
        for driver in runtime.drivers.values()
        for step, task in driver.worker_tasks.items()
        if isinstance(task, asyncio.Task)
    }
