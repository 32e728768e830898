"""The driver of one execution: decide, commit, perform the commands, receive reports.

    report ─▶ decide ─▶ append (durable) ─▶ notify ─▶ commands ─┬─▶ worker tasks: one step after another
       ▲                                                        ├─▶ timers
       └────────────────────────────────────────────────────────┴─▶ children, events

Any task of the event loop may call `deliver`: deciding is synchronous and appends keep their order, so no queue is
needed. A worker task that finished a step takes the next one itself; a chain of steps is one task.

One task sleeps until the earliest timer is due. It does nothing else, because an earlier timer cancels it.

A decision about many steps without work takes longer. It is made in parts, and other tasks get a turn between them:

    report ─▶ part ─▶ turn of others ─▶ part ─▶ … ─▶ append       still one row
                        └─ further reports wait until the decision is finished

Meanwhile the state counts as not durable (`committing`): nothing is concluded from it. A caller that stops waiting does
not stop the decision; a driver that is closed discards it as a whole.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakMethod

from pointsman.engine import commands
from pointsman.engine.actions import WorkAction
from pointsman.engine.causes import cause_of
from pointsman.engine.commands import Command, Execute, OutboxMessage
from pointsman.engine.decide.context import DecisionContext, Parts
from pointsman.engine.decide.dispatch import MOVES_MAX, advance, begin
from pointsman.engine.decide.entry import outstanding
from pointsman.engine.events.steps import Event
from pointsman.engine.failures import Failure, failure_by
from pointsman.engine.plan import Plan
from pointsman.engine.reports import (
    DeliveryConfirmed,
    GateAnswered,
    MigrationRequested,
    Report,
    ResumeRequested,
    RetryRequested,
    Start,
    TimerFired,
    ToolCallsProposed,
    WorkDone,
    WorkerMissing,
    WorkerOffered,
    WorkFailed,
)
from pointsman.engine.state import ENDED, ExecutionState, Status
from pointsman.engine.steps import Step
from pointsman.errors import Outage, PointsmanError
from pointsman.ports import Clock, Row
from pointsman.runtime import attempts
from pointsman.runtime.attempts import LocalAttempt, StoredUses, UsageMeter
from pointsman.runtime.commits import Commits, DriverLost, behind_s, can_wait, storable
from pointsman.runtime.dependencies import Committed, RuntimeDeps
from pointsman.runtime.passivation import Passivation
from pointsman.store.errors import JournalMoved
from pointsman.store.records import Summary
from pointsman.values import ExecutionId

OnTimer: TypeAlias = "WeakMethod[Callable[[str], None]]"
"""Called with the name of a fired timer. Starts the consequences and does not block. Weak, as the driver has them."""


class Timers:
    """Fires names at their times. A name that was dropped or set again fires only at its last time."""

    def __init__(self, clock: Clock, ring: OnTimer) -> None:
        self._clock = clock
        self._ring = ring
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._sleeper: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._at)

    def are_due(self, now: float) -> bool:
        """Return whether a timer is due at `now` (unix seconds)."""
        return bool(self._heap) and self._heap[0][0] <= now and any(at <= now for at in self._at.values())

    def set(self, name: str, at: float) -> None:
        """Fire `name` at or after `at` (unix seconds)."""
        self._at[name] = at
        heapq.heappush(self._heap, (at, name))
        if self._sleeper is None or self._heap[0][1] == name:
            self._sleep()

    def drop(self, name: str) -> None:
        """Drop a timer."""
        self._at.pop(name, None)
        if not self._at:
            self.stop()

    def stop(self) -> None:
        """Drop all timers."""
        self._at.clear()
        self._heap.clear()
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper = None

    def _sleep(self) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()
        self._sleeper = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while self._heap:
            at, name = self._heap[0]
            if self._at.get(name) != at:
                heapq.heappop(self._heap)
                continue
            await self._clock.sleep_until(at)
            heapq.heappop(self._heap)
            if self._at.get(name) == at:
                del self._at[name]
                if (ring := self._ring()) is not None:
                    ring(name)
        self._sleeper = None


T = TypeVar("T")
Settled: TypeAlias = tuple[tuple[Event, ...], tuple[Command, ...]]
"""The durable events of a report, and the commands that they cause."""
GOES_ON_IN_THE_MIDDLE: Final = frozenset({ResumeRequested, RetryRequested, GateAnswered, WorkerOffered})
"""Reports after which attempts may continue that had started before."""
ABSENT: Final = "absent"
"""Option of an execution: what the process that started it lacked, as in `Failure.needs`."""
WorkReport: TypeAlias = WorkDone | WorkFailed | ToolCallsProposed | WorkerMissing
QUEUE: Final = "queue"
"""Kind of the need for a worker of a queue, as in `Failure.needs`."""
PART_S: Final = 0.02
"""Time after which a decision or a replay yields to the event loop, in seconds."""
IN_A_ROW_MAX: Final = 64
"""Attempts before yielding to the event loop: work that returns at once would block other tasks."""


class Driver:
    """The owner of the state of one execution while it is in memory."""

    is_closing = False
    """Whether all work here ends: rows that are decided become durable, and nothing further begins."""

    def __init__(
        self, execution: ExecutionId, plan: Plan, state: ExecutionState, world: RuntimeDeps, *, begun_here: bool = False
    ) -> None:
        """`begun_here`: this process started the execution and checked its requirements: a missing one is a failure."""
        self.begun_here = begun_here
        self.execution = execution
        self.plan = plan
        self.state = state
        self.world, self.journal = world, world.journal
        self.timers = Timers(world.clock, WeakMethod(self._on_timer))
        self.ringing: set[str] = set()
        """Timers that have fired and whose consequences are not decided yet."""
        self.offering = 0
        """Number of waiting steps for which this process is still checking whether it can perform them."""
        self.deadlines = world.deadlines
        self.worker_tasks: dict[Step, asyncio.Task[Any] | Execute] = {}
        """The task of each running step; before its first turn, the command it will perform."""
        self.ready: deque[Execute] = deque()
        self.busy = self.in_a_row = 0
        self.stopped: set[asyncio.Task[Any]] = set()
        """Worker tasks of cancelled attempts, which may take time to wind down."""
        self.cache_keys: dict[Step, attempts.CacheKey] = {}
        """Cache keys for the results of steps that are being performed."""
        self.failure: BaseException | None = None
        self.successor: Driver | None = None
        """The next driver of the same execution in this process, created after this one was lost or passivated."""
        self.commits = Commits(execution)
        self.passivation = Passivation(state, world.worker, counts_tool_calls=bool(plan.limits.budgets))
        self.behind_s = behind_s(plan, state)
        self._asked_early = False
        """The state was read while a row was being written: notify again once it is durable."""
        self._changed: list[asyncio.Future[None]] = []
        self._deciding: asyncio.Event | None = None
        """Set when the decision is finished that is being made in parts; None: no such decision."""
        self.tasks: set[asyncio.Task[Any]] = set()
        self.placed: dict[Step, int] = {}
        """Attempts of steps that were put into queues here."""
        self.confirmed_orders: list[str] = []
        """Delivered messages whose delivery is not in the journal yet."""
        self.performs = True
        """Whether commands are carried out here. False: another runtime does so, after it has claimed the execution."""
        self.recovered = False
        """Whether it has issued the commands again that were outstanding when it was created."""
        self.again: set[Step] = set()
        """Steps whose attempt may have started before: their recorded effects are read from the store."""
        self.unrecorded: list[LocalAttempt] = []
        """Attempts that were broken off, which may have answers that are not durable yet."""
        self.usage_meter = UsageMeter(plan, state)
        self.uses = StoredUses(execution, world.effects)

    # Reports

    async def deliver(self, report: Report) -> Sequence[Event]:
        """Process a report; return its events when they are durable and their commands issued. Empty: no effect.

        The decision is made at once. The caller continues before any consequence starts, so that it can read the state
        or subscribe in time.
        """
        events, commands = await self._settle(report, performs=True)
        self._perform(commands)
        return events

    async def leave(self, report: Report) -> None:
        """Process a report, and leave its commands to the leader of the store."""
        self.passivation.urgent = True
        await self._settle(report)

    def _settle(
        self, report: Report, attempt: LocalAttempt | None = None, *, performs: bool = False
    ) -> Coroutine[Any, Any, Settled]:
        """Decide about a report, and return the commit of the row with the answers that its attempt has not stored yet.

        `attempt`: the caller is a task of this driver, which nobody cancels amid a commit; None: any other caller.
        `performs`: the caller performs the commands.
        """
        if self._deciding is not None:
            return self._settle_next(report, attempt, performs=performs)
        if self.failure is not None:
            raise DriverLost(
                f"{self.execution!r} is not executed by this process any more", hint="Read it again."
            ) from self.failure
        before = self.state.status
        report = storable(report)
        ctx = begin(self.plan, self.state, report, self.world.clock.now())
        if ctx is None:
            return _nothing()
        if not (advance(ctx, MOVES_MAX) or _part(ctx)):
            self._deciding = asyncio.Event()
            return self._joined(self._task(self._in_parts(ctx, report, before, attempt)), performs=performs)
        commit = self._commit(ctx, report, before, attempt)
        # Nobody cancels a worker task while it writes a row, and only the caller of a start knows the execution.
        is_own = attempt is not None or type(report) is Start
        return commit if is_own else self._joined(self._task(commit), performs=performs)

    async def _settle_next(self, report: Report, attempt: LocalAttempt | None, *, performs: bool) -> Settled:
        """Decide about a report after the decision that is being made."""
        await self.decided()
        return await self._settle(report, attempt, performs=performs)

    async def _joined(self, task: asyncio.Task[Settled], *, performs: bool) -> Settled:
        """Return the outcome of a decision. It is finished even if the caller stops waiting."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if performs:
                task.add_done_callback(self._perform_settled)
            raise

    @property
    def is_deciding(self) -> bool:
        """Return whether a decision is being made in parts."""
        return self._deciding is not None

    async def decided(self) -> None:
        """Return when no decision is being made: the state is that after a row."""
        while self._deciding is not None:
            await self._deciding.wait()

    async def _in_parts(
        self, ctx: DecisionContext, report: Report, before: Status, attempt: LocalAttempt | None
    ) -> Settled:
        """Finish a long decision, with a turn of the event loop between its parts, and commit it."""
        assert self._deciding is not None
        try:
            while True:
                await asyncio.sleep(0)
                if _part(ctx):
                    break
        except asyncio.CancelledError:
            self.failure = DriverLost(f"{self.execution!r} was closed before a decision was finished")
            self.notify()
            raise
        except BaseException as why:
            self.fail(why)
            raise
        finally:
            self._deciding.set()
            self._deciding = None
        return await self._commit(ctx, report, before, attempt)

    def _perform_settled(self, task: asyncio.Task[Settled]) -> None:
        """Perform the commands of a decision whose caller did not wait for it."""
        if not task.cancelled() and task.exception() is None:
            self._perform(task.result()[1])

    def _commit(
        self, ctx: DecisionContext, report: Report, before: Status, attempt: LocalAttempt | None
    ) -> Coroutine[Any, Any, Settled]:
        """Return the commit of a decision, whose row has its place in the order from now on. `before`: the status
        before the decision."""
        state = self.state
        events, commands = tuple(ctx.events), tuple(ctx.commands)
        del ctx  # Many executions may wait for the disk at a time: Python's collector searches all that they hold.
        if not events:
            return _nothing()
        row = Row(state.seq, state.at, events, cause_of(report, events))
        effects = () if attempt is None else attempt.take_unrecorded()
        summary = self.passivation.changed(self.execution, state, events)
        if attempt is not None and self.behind_s != 0.0 and not effects and can_wait(state, report, commands):
            return self._written_later(row, commands, summary)
        written = self.commits.now(self, row, summary, effects)
        return self._written(written, row, commands, report, before, state.status, summary)

    async def _written_later(self, row: Row, commands: tuple[Command, ...], summary: Summary | None) -> Settled:
        await self.commits.later(self, row, summary, within_s=self.behind_s)
        if self.usage_meter.on_usage is not None:
            self.usage_meter.notify()
        return row.events, commands

    async def _written(
        self,
        written: Coroutine[Any, Any, None],
        row: Row,
        commands: tuple[Command, ...],
        report: Report,
        before: Status,
        after: Status,
        summary: Summary | None,
    ) -> Settled:
        """Return when the row of a report is durable, and what that requires is done.

        `before` and `after` its decision: rows that are decided later may end the execution while this one is written.
        """
        await written
        state = self.state
        if after in ENDED and state.status in ENDED:
            if before not in ENDED:
                await self.world.turn_ended(state)
            if not (state.outbox or self.commits.behind):
                self.world.over(state)
        if type(report) is Start:
            self.behind_s = behind_s(self.plan, self.state)
        elif before == "interrupted" or type(report) in GOES_ON_IN_THE_MIDDLE:
            self.again |= self.state.steps.keys()  # stopped in the middle by a limit, or held for approval
            if self.state.steps_without_worker and type(report) is not WorkerOffered:
                self.offer()
        if self.usage_meter.on_usage is not None:
            self.usage_meter.notify()
        has_changed = summary is not None or type(report) is DeliveryConfirmed
        if has_changed or (self._asked_early and not self.committing):
            self.notify()
        return row.events, commands

    def committed(self, row: Row) -> None:
        if self.world.feed.watched:
            self.world.feed.show(Committed(self.execution, row, self.state))
        if self._asked_early and not self.committing and not self.state.ended:
            self.notify()

    def fail(self, why: BaseException) -> None:
        """Fail the driver with an error and notify waiters."""
        self.failure = why
        self.world.failed(self.execution, why)
        self.notify()

    def on_refused_row(self, why: BaseException) -> None:
        """Handle a refused row: stop all work for the execution and notify waiters."""
        self.timers.stop()
        self.commits.drop()
        self.ready.clear()
        for lane in self.worker_tasks.values():
            if isinstance(lane, asyncio.Task):
                lane.cancel()
        if self.failure is None:
            self.fail(why)

    def on_foreign_row(self, last: int) -> None:
        """Handle a journal that ends with row `last`: if it is foreign, another process drives the execution."""
        durable = self.state.seq - self.committing
        if self.failure is None and last > (self.state.seq if self.commits.writing else durable):
            self.on_refused_row(
                JournalMoved(f"execution {self.execution!r} is at row {last}, written by another process")
            )

    def on_lost_claim(self) -> None:
        """Handle the loss of the execution to another runtime, which drives it now."""
        if self.failure is None:
            self.on_refused_row(JournalMoved(f"execution {self.execution!r} has another owner"))

    @property
    def committing(self) -> int:
        """Return the number of rows that are being decided, or decided and not durable yet."""
        return self.commits.behind if self._deciding is None else self.commits.behind + 1

    async def move(self, plan: Plan, report: MigrationRequested) -> None:
        """Continue with another plan. Raises the errors of the decision; then nothing has changed."""
        await self.decided()
        was, self.plan = self.plan, plan
        try:
            await self.deliver(report)
        except BaseException:
            self.plan = was
            raise

    def recover(self) -> None:
        """Issue, once, all commands again that were outstanding when this process started."""
        if self.recovered or not self.performs:
            return
        self.recovered = True
        under_way = {*self.worker_tasks, *(command.step for command in self.ready)}
        self.again = {*self.state.steps}
        commands = outstanding(self.plan, self.state)
        self._perform(
            [command for command in commands if type(command) is not Execute or command.step not in under_way]
        )
        self.offer()

    # Steps that wait for a worker

    def leaves(self, failure: Failure) -> bool:
        """Return whether an attempt that lacks something waits for a worker that has it.

        A part that the process that started the execution lacked as well is a failure.
        """
        absent = self.state.setup.options.get(ABSENT) if self.performs else None
        return bool(failure.needs) and not (self.begun_here or (isinstance(absent, list) and failure.needs in absent))

    def offer(self) -> None:
        """Offer to perform the steps that wait for a worker, as far as this process has what they need."""
        for step in self.state.steps_without_worker if self.performs else ():
            at = self.state.steps[step]
            self.offering += 1
            queue = self._queue_of(step)
            report = WorkerOffered(step=step, attempt=at.attempt)
            self.spawn(self._place_again(report, queue) if queue else self._offer(report, at.needs))

    async def _offer(self, report: WorkerOffered, needs: str) -> None:
        try:
            if await self.world.executors.has(needs):
                await self.deliver(report)
        finally:
            self.offering -= 1
            self.notify()

    # Steps that workers of a queue perform

    def _queue_of(self, step: Step) -> str:
        """Return the queue whose workers perform a step; empty: it is performed here."""
        return self.plan.queues.get(step.node, "") if self.world.ownership.steps is not None else ""

    async def _place(self, step: Step, attempt: int, queue: str) -> None:
        """Put an attempt into its queue. Without a worker of the queue, the step waits for one."""
        queues = self.world.ownership.steps
        assert queues is not None
        await self.commits.flush(self)  # The worker reads the journal.
        self.placed[step] = attempt
        if not await queues.place(self.execution, str(step), attempt, queue):
            await self.wait_for_queue(step, attempt, queue)

    async def _place_again(self, offer: WorkerOffered, queue: str) -> None:
        """Let the workers of a queue look again at a step that waits for one of them."""
        queues = self.world.ownership.steps
        assert queues is not None
        try:
            self.placed[offer.step] = offer.attempt
            await queues.place(self.execution, str(offer.step), offer.attempt, queue)
        finally:
            self.offering -= 1
            self.notify()

    async def wait_for_queue(self, step: Step, attempt: int, queue: str) -> None:
        """Let a placed step wait, because no live worker serves its queue. No effect if it does not run any more."""
        at = self.state.steps.get(step)
        if at is not None and at.is_running and at.attempt == attempt:
            await self.deliver(WorkerMissing(step=step, attempt=attempt, failure=queue_unserved(queue)))

    async def perform(self, command: Execute) -> WorkReport | None:
        """Perform an attempt for the owner of the execution, which decides the report. None: it was stopped."""
        task = asyncio.current_task()
        assert task is not None
        self.again.add(command.step)
        self.performs = False  # Neither commands nor decisions: a worker of the queue has what its own process lacks.
        attempt = self._new_attempt(command)
        try:
            report = await self._attempt(attempt, command, task)
        finally:
            await attempt.flush()
        if type(report) is WorkFailed and self.leaves(report.failure):
            return WorkerMissing(step=report.step, attempt=report.attempt, failure=report.failure)
        return report

    # Commands

    def _perform(self, commands: Sequence[Command], *, remaining: int = 0) -> None:
        """Perform commands; leave `remaining` pieces of ready work to the calling worker task."""
        if self.is_closing:
            return  # The next owner issues them again.
        for command in commands if self.performs else ():
            if type(command) is not Execute:
                self._other(command)
            elif self.plan.queues and (queue := self._queue_of(command.step)):
                self.spawn(self._place(command.step, command.attempt, queue))
            else:
                self.ready.append(command)
        while len(self.ready) > remaining and self.busy + remaining < self.plan.limits.parallel:
            self._open_lane()
        if self.state.ended:
            self.timers.stop()
            self.notify()

    def _open_lane(self) -> None:
        self.busy += 1
        command = self.ready.popleft()
        self.worker_tasks[command.step] = command
        self.spawn(self._lane(command))

    def _other(self, command: Command) -> None:
        match command:
            case commands.Stop(step=step):
                self._stop(step)
            case commands.SetTimer(timer=timer, at=at):
                self.timers.set(timer, at)
            case commands.DropTimer(timer=timer):
                self.timers.drop(timer)
            case commands.StartChild():
                self.spawn(self.world.start_child(self.execution, command))
            case commands.HoldChild():
                self.spawn(self.world.hold_child(self.execution, command))
            case commands.StopChild() | commands.Publish():
                self.spawn(self._send_message(command))
            case _:
                pass

    async def _send_message(self, order: OutboxMessage) -> None:
        """Deliver a message. One row confirms all deliveries once no work runs; after a crash before it, they are
        repeated.
        """
        await self.world.tell(self.execution, order)
        self.confirmed_orders.append(order.order)

    async def _confirm(self) -> None:
        orders, self.confirmed_orders = self.confirmed_orders, []
        await self.deliver(DeliveryConfirmed(orders=tuple(orders)))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._task(work)

    def _task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (why := task.exception()) is not None and self.failure is None:
            self.fail(why)
            return
        if self.confirmed_orders and not self.busy and self.failure is None:
            self.spawn(self._confirm())
        if self.state.is_halted and not self.busy:
            self.notify()  # Waiters for a halt read the status while this task still ran.

    async def _lane(self, command: Execute) -> None:
        """Perform a step, then other ready steps, until none is left."""
        task = asyncio.current_task()
        assert task is not None
        stopped = (
            self.failure is not None or self.worker_tasks.get(command.step) is not command
        )  # before its first turn
        attempt = self._new_attempt(command)
        try:
            while True:
                report, stopped = None if stopped else await self._attempt(attempt, command, task), False
                if type(report) is WorkFailed and self.leaves(report.failure):
                    report = WorkerMissing(step=report.step, attempt=report.attempt, failure=report.failure)
                if report is not None:
                    decided, commands = await self._settle(report, attempt)
                    if (
                        self.cache_keys
                        and (place := self.cache_keys.pop(report.step, None))
                        and type(report) is WorkDone
                    ):
                        await attempts.cache_result(report, decided, place, self.world.memory)
                    others = self.ready or self.plan.queues or self.is_closing
                    if len(commands) == 1 and type(commands[0]) is Execute and not others:
                        command = commands[0]
                        attempt = self._new_attempt(command)
                        continue
                    self.busy -= 1
                    self._perform(commands, remaining=1)
                else:
                    self.busy -= 1
                if attempt.has_unrecorded:  # stopped, or its report came too late: no row was decided
                    await attempt.flush()
                if not self.ready or self.busy >= self.plan.limits.parallel:
                    return
                self.busy += 1
                command = self.ready.popleft()
                attempt = self._new_attempt(command)
        except BaseException:
            self.busy = max(0, self.busy - 1)
            self.unrecorded.append(attempt)
            raise

    def _new_attempt(self, command: Execute) -> LocalAttempt:
        return LocalAttempt(
            self.execution,
            command,
            self.world,
            self.usage_meter,
            uses=self.uses,
            leaves=self.leaves,
            revision=revision_of(self.state),
        )

    async def _attempt(
        self, attempt: LocalAttempt, command: Execute, task: asyncio.Task[Any]
    ) -> WorkDone | WorkFailed | ToolCallsProposed | None:
        """Perform one attempt; None if it was stopped. The time limit counts work: neither queueing nor waits for the
        store."""
        step = command.step
        does = self.plan.nodes[step.node].action
        assert isinstance(does, WorkAction)
        self.worker_tasks[step] = task
        try:
            place = None
            if does.cache != "off":
                place = attempts.cache_key_of(self.state, command, does, self.world.executors)
            if place is not None:
                if (cached := await attempts.cached_result(command, place, self.world.memory)) is not None:
                    return cached
                self.cache_keys[step] = place
            if command.verdicts or (self.again and step in self.again) or (self.recovered and self.behind_s != 0.0):
                self.again.discard(step)
                await attempt.remember(surely=self.behind_s == 0.0)
            self.in_a_row += 1
            if self.in_a_row % IN_A_ROW_MAX == 0 or self.world.ownership.in_doubt:
                await asyncio.sleep(0)
                await self.world.ownership.confirmed()
            if command.timeout_s is not None:
                attempt.lane = task
                self.deadlines.set(task, command.timeout_s)
            return await self.world.executors.executor_for(command).execute(command, does.spec, attempt)
        except asyncio.CancelledError:
            return self._cancelled(command, task, attempt.last_failure)
        except Outage as why:
            self.on_refused_row(why)
            raise
        except PointsmanError as why:
            failure = failure_by(why)
            return WorkFailed(step=step, attempt=command.attempt, failure=failure)
        finally:
            if task in self.stopped:
                self.stopped.discard(task)
            else:
                del self.worker_tasks[step]
                self.usage_meter.over(step)
            if command.timeout_s is not None:
                self.deadlines.drop(task)

    def _cancelled(self, command: Execute, task: asyncio.Task[Any], last: Failure | None) -> WorkFailed | None:
        """Return the failure of a timed-out attempt; None if the step was stopped or the whole task is cancelled."""
        if task in self.stopped:
            task.uncancel()
            return None
        if self.deadlines.expired(task):
            task.uncancel()
            failure = self._took_too_long(command, last)
            return WorkFailed(step=command.step, attempt=command.attempt, failure=failure)
        raise asyncio.CancelledError

    def _took_too_long(self, command: Execute, last: Failure | None) -> Failure:
        """Return the failure of a timed-out attempt, with the last failure of a call that it was trying again."""
        does = self.plan.nodes[command.step.node].action
        own = isinstance(does, WorkAction) and does.own_time
        message = f"{command.step.node!r} took longer than {command.timeout_s:g} seconds"
        hint = "Raise its `execution.timeout`." if own else "Raise the workflow's `config.limits.nodeTime`."
        if last is None:
            return Failure(code="timeout", message=message, retryable=True, hint=hint)
        return Failure(
            code="timeout",
            message=f"{message} while retrying a failed call: {last.message}",
            retryable=True,
            hint=f"{last.hint} {hint}".strip(),
            details={**(last.details or {}), "cause": last.code},
        )

    def _stop(self, step: Step) -> None:
        queues = self.world.ownership.steps
        if queues is not None and self.placed.pop(step, None) is not None:
            self.spawn(queues.withdraw(self.execution, str(step)))
            return
        lane = self.worker_tasks.pop(step, None)
        if lane is None:
            self.ready = deque(command for command in self.ready if command.step != step)
            return
        self.cache_keys.pop(step, None)
        self.usage_meter.over(step)
        if isinstance(lane, asyncio.Task):
            self.stopped.add(lane)
            lane.cancel()

    def _on_timer(self, timer: str) -> None:
        self.ringing.add(timer)
        self.spawn(self._timer_fired(timer))

    async def _timer_fired(self, timer: str) -> None:
        try:
            await self.deliver(TimerFired(timer=timer))
        finally:
            self.ringing.discard(timer)
            self.notify()  # Waiters for a halt depend on timers, and the status may not have changed.

    @property
    def is_due(self) -> bool:
        """Return whether a fired timer is about to have consequences."""
        return bool(self.ringing) or self.timers.are_due(self.world.clock.now())

    # Waiting

    def notify(self) -> None:
        """Wake waiters: rows or other observable values have changed."""
        changed, self._changed = self._changed, []
        self._asked_early = False
        for future in changed:
            if not future.done():
                future.set_result(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when `holds` is true of the durable state; tested on status changes. Raises the driver's error."""
        while self.committing or self.commits.lost or not holds():
            if self.failure is not None:
                raise self.failure
            self._asked_early = self._asked_early or self.committing > 0
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._changed.append(future)
            await future

    @property
    def is_waited_for(self) -> bool:
        """Return whether this process watches the execution."""
        return any(not future.done() for future in self._changed)

    async def drained(self) -> None:
        """Return when no work is in progress here; a pending timer is not work in progress."""
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def _until_no_task_writes(self) -> None:
        """Return when no row is being written by a task whose cancellation would leave it unwritten."""
        while self.commits.writes_alone:
            await self.commits.until_written()

    async def close(self) -> None:
        """Stop as if the process had ended here, except that decided rows become durable."""
        self.is_closing = True
        self.timers.stop()
        self.ready.clear()
        await self._until_no_task_writes()
        driven = self.failure is None
        while self.tasks:
            for task in self.tasks:
                task.cancel()
            await asyncio.wait(self.tasks)
            await self._until_no_task_writes()  # The end of a task may have caused a row.
        if driven and not self.commits.lost:
            for attempt in self.unrecorded:
                await attempt.flush()
            await self.commits.flush(self)


async def _nothing() -> Settled:
    """Return the outcome of a report without effect."""
    return (), ()


async def in_turns(work: Parts[T]) -> T:
    """Do all parts of the work, with turns of the event loop between them, and return its result."""
    while True:
        until = time.perf_counter() + PART_S
        try:
            next(work)
            while time.perf_counter() < until:
                next(work)
        except StopIteration as finished:
            return finished.value
        await asyncio.sleep(0)


def _part(ctx: DecisionContext) -> bool:
    """Make one part of a decision; return whether the decision is finished."""
    until = time.perf_counter() + PART_S
    while not advance(ctx, MOVES_MAX):
        if time.perf_counter() >= until:
            return False
    return True


def queue_unserved(queue: str) -> Failure:
    """Return why a placed step waits."""
    return Failure(
        code="queue-unserved",
        message=f"no worker of the queue {queue!r} runs",
        hint=f"Start one: pointsman worker --queue {queue}",
        needs=f"{QUEUE}:{queue}",
    )


def revision_of(state: ExecutionState) -> str:
    """Return the saved revision of an execution, `id@number`; empty: the document is not saved."""
    number = state.setup.options.get("revision")
    return f"{state.setup.workflow}@{number}" if isinstance(number, int) and number > 0 else ""
