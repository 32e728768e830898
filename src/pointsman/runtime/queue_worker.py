"""A worker of queues: performs placed steps for the owners of their executions.

    owner    Execute ─▶ placed step ─▶ queue                                     ─▶ row ─▶ next steps
    worker              take ─▶ read the journal ─▶ perform the attempt ─▶ report ─▶ mailbox

It drives no execution and decides nothing: the state that it reads gives it the command, and the owner decides its
report. The claim of a placed step is like that of an execution: a worker that shows no beat for 12 s has lost it, and
another one performs the attempt again, with the recorded effects. A step that waits because no worker of its queue ran
is offered to the owner first, so that the journal states when its attempt begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from pointsman.engine.commands import Execute
from pointsman.engine.decide.context import DecisionContext
from pointsman.engine.decide.entry import execution_of
from pointsman.engine.plan import Plan
from pointsman.engine.reports import WorkDone, WorkerMissing, WorkerOffered
from pointsman.engine.state import ExecutionState, StepState
from pointsman.errors import Outage, PointsmanError
from pointsman.runtime import attempts
from pointsman.runtime.driver import QUEUE, Driver, WorkReport
from pointsman.runtime.local import LocalRuntime, UnknownExecution
from pointsman.store.coordination import Claims, PlacedStep, RuntimeFacts
from pointsman.values import ExecutionId, Seconds

LOG: Final = logging.getLogger("pointsman.runtime")
LOOK_S: Final = 1.0
"""How often the queues are read if no notification arrives."""
PUT_OFF_S: Final = Seconds(60.0)
"""When a worker looks again at a step that it cannot perform now."""


class QueueWorker:
    """Performs the steps of some queues in this process, a limited number at a time."""

    def __init__(
        self,
        runtime: LocalRuntime,
        claims: Claims,
        queues: Sequence[str],
        *,
        capacity: int,
        take_up: Callable[[ExecutionId], Awaitable[object]],
    ) -> None:
        """`take_up` prepares this process for the steps of an execution, before the first one."""
        self._runtime = runtime
        self._claims = claims
        self._queues = tuple(sorted({*queues}))
        self._capacity = capacity
        self._take_up = take_up
        self._running: dict[int, asyncio.Task[bool]] = {}
        """The work on taken steps, by number, until they are removed or left to others."""
        self._ends: set[asyncio.Task[None]] = set()
        self._put_off: dict[tuple[int, int], float] = {}
        """Steps that cannot be performed here now, by number and version, and when to look again."""
        self._withdrawn: set[int] = set()
        """Steps in progress whose results are not needed here any more."""
        self._woken = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> None:
        """Perform steps until `stopping` is set: then take no more, and return."""
        facts = RuntimeFacts(role="worker", queues=self._queues, capacity=self._capacity)
        await self._runtime.ownership.announce(facts)
        tasks = [
            asyncio.create_task(self._claims.listen(self._woken.set)),
            asyncio.create_task(self._take_steps()),
        ]
        stopped = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({stopped, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in (stopped, *tasks):
                task.cancel()
            await asyncio.gather(stopped, *tasks, return_exceptions=True)
            with suppress(PointsmanError):  # Without the store, the beat ends its service.
                await self._runtime.ownership.announce(RuntimeFacts(role="worker", capacity=self._capacity))

    async def drain(self, *, patience: Seconds, hurry: asyncio.Event) -> int:
        """Wait until no step is performed, for at most `patience` seconds or until `hurry`; leave the others to other
        workers. Return their number."""
        waiting = asyncio.create_task(hurry.wait())
        until = asyncio.get_running_loop().time() + patience
        while self._running and not hurry.is_set():
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await asyncio.wait({waiting, *self._ends}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        rest = [work for work in self._running.values() if not work.done()]
        for work in rest:
            work.cancel()
        await asyncio.gather(*self._ends)
        return len(rest)

    async def _take_steps(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._look()
            except Outage:
                pass  # The runtime reports outages of the store.
            except PointsmanError as why:
                LOG.warning("the queues cannot be read: [%s] %s", why.code, why)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._woken.wait()

    async def _look(self) -> None:
        """Stop the steps that are withdrawn, and take further ones."""
        now = self._runtime.clock.now()
        self._put_off = {one: at for one, at in self._put_off.items() if at > now}
        steps, before = self._claims.steps, {*self._running}
        held = await steps.held()
        for no in before:
            if not held.get(no) and (work := self._running.get(no)) is not None:
                self._withdrawn.add(no)
                work.cancel()
        for no in held.keys() - before - self._running.keys():
            await steps.give_back(no)  # An outage of the store prevented it before.
        free = self._capacity - len(self._running)
        if free <= 0:
            return
        for placed in await steps.take(self._queues, most=free, but=[*self._put_off]):
            if placed.no in self._running:
                continue  # This worker was stopped for long, and has its own step again.
            work = self._running[placed.no] = asyncio.create_task(self._perform(placed))
            end = asyncio.create_task(self._ended(placed, work))
            self._ends.add(end)
            end.add_done_callback(self._ends.discard)

    async def _ended(self, placed: PlacedStep, work: asyncio.Task[bool]) -> None:
        """Remove a step from its queue when its attempt has ended, or leave it to another worker."""
        await asyncio.wait({work})
        is_over = placed.no in self._withdrawn or self._is_over(placed, work)
        self._withdrawn.discard(placed.no)
        try:
            with suppress(PointsmanError):  # Without the store, it is left to others later, or the beat ends its claim.
                await (self._claims.steps.finish(placed) if is_over else self._claims.steps.give_back(placed.no))
        finally:
            del self._running[placed.no]
            self._woken.set()

    def _is_over(self, placed: PlacedStep, work: asyncio.Task[bool]) -> bool:
        """Return whether no worker of the queue has to perform the step after this attempt."""
        why = None if work.cancelled() else work.exception()
        if work.cancelled() or isinstance(why, Outage):
            return False  # Another worker takes it, or this one when the store is back: with the recorded effects.
        if isinstance(why, UnknownExecution):
            return True
        if why is not None:
            code = f"[{why.code}] " if isinstance(why, PointsmanError) else ""
            LOG.warning("a step of %s cannot be performed here: %s%s", placed.execution, code, why)
        if why is not None or not work.result():
            self._put_off_step(placed)
            return False
        return True

    def _put_off_step(self, placed: PlacedStep) -> None:
        self._put_off[placed.no, placed.version] = self._runtime.clock.now() + PUT_OFF_S

    async def _perform(self, placed: PlacedStep) -> bool:
        """Perform an attempt and send its report. Return whether the step is over for the queue.

        False: this worker cannot perform it now, or its execution does not run.
        """
        await self._take_up(placed.execution)
        plan, state = await self._read(placed.execution)
        at = attempt_in(state, placed)
        if at is None:
            return True
        if at.needs:
            if not at.needs.startswith(f"{QUEUE}:") and not await self._runtime.executors.has(at.needs):
                return False
            if state.status != "running":
                return False
            await self._runtime.ownership.report(placed.execution, WorkerOffered(step=at.step, attempt=at.attempt))
            plan, state = await self._read(placed.execution)
            at = attempt_in(state, placed)
            if at is None or not at.is_running:
                return at is None
        driver = Driver(placed.execution, plan, state, self._runtime)
        command = execution_of(DecisionContext(plan, state), at.step)
        report = await driver.perform(command)
        if report is None or placed.no not in await self._claims.steps.held():
            return report is None  # This worker was stopped for so long that another one performs the attempt.
        return await self._report(driver, command, report)

    async def _report(self, driver: Driver, command: Execute, report: WorkReport) -> bool:
        row = await self._runtime.ownership.report(driver.execution, report)
        place = driver.cache_keys.get(command.step)
        if place is not None and row and type(report) is WorkDone:
            async for one in self._runtime.journal.read(driver.execution, after=row - 1):
                await attempts.cache_result(report, one.events, place, self._runtime.memory)
                break
        return type(report) is not WorkerMissing

    async def _read(self, execution: ExecutionId) -> tuple[Plan, ExecutionState]:
        state = await self._runtime.load(execution)
        return await self._runtime.plans.pinned(state.setup.definition, state.setup.options), state


def attempt_in(state: ExecutionState, placed: PlacedStep) -> StepState | None:
    """Return the step of a placed attempt, if the attempt runs or waits for a worker; None: it is over."""
    if state.ended:
        return None
    found = next((at for step, at in state.steps.items() if str(step) == placed.step), None)
    is_open = found is not None and found.attempt == placed.attempt and (found.is_running or bool(found.needs))
    return found if is_open else None
