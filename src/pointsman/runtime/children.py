"""Child executions: the sub-workflows that executions of this process wait for.

    parent requests ─▶ child starts, or is found ─▶ … ─▶ child ends ─▶ the parent's driver is notified, if it is here
                                                           └─ else the leader resumes the parent, which finds the child

The id of a child follows from its parent's step and attempt, so a parent finds it again after a crash. A waiting parent
performs no work: both can be passivated. A child that another process drives is read again at each of its rows.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from hashlib import blake2b
from typing import ClassVar, Final, NamedTuple, Protocol

from msgspec.structs import replace

from pointsman.engine.commands import StartChild
from pointsman.engine.failures import Failure, failure_by
from pointsman.engine.plan import Plan
from pointsman.engine.reports import (
    CancelRequested,
    ChildEnded,
    ChildUsageReported,
    PauseRequested,
    ResumeRequested,
    Start,
    Usage,
)
from pointsman.engine.state import ExecutionState, StepState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError, Outage, PointsmanError
from pointsman.ports import Clock
from pointsman.runtime.dependencies import Plans
from pointsman.runtime.driver import Driver
from pointsman.runtime.ownership import Ownership
from pointsman.runtime.summary import usage_of
from pointsman.store.api import Store
from pointsman.store.errors import JournalMoved
from pointsman.values import ExecutionId, Instant, Json, JsonObject

CHILD_DEPTH_MAX: Final = 16
"""Maximum nesting of sub-workflows: a deeper one is an endless recursion."""


class NestedTooDeep(CallerError):
    """Sub-workflows are nested too deeply. This one was not started."""

    code: ClassVar[str] = "nested-too-deep"


def child_id(parent: ExecutionId, step: Step, attempt: int, call: int = 0) -> ExecutionId:
    """Return the id of a child: always the same for the same step, attempt and tool call (`call`)."""
    named = f"{parent}|{step}|{attempt}|{call}" if call else f"{parent}|{step}|{attempt}"
    digest = blake2b(named.encode(), digest_size=16).digest()
    return ExecutionId("exec-" + b32encode(digest).decode().rstrip("=").lower())


def children_of(parent: ExecutionId, at: StepState) -> list[ExecutionId]:
    """Return the ids of the sub-workflows that a step waits for; some may not have started."""
    return [child_id(parent, at.step, at.attempt, call) for call in at.children]


class AwaitedChild(NamedTuple):
    """A parent and its request for a child."""

    parent: ExecutionId
    command: StartChild


class ChildHost(Protocol):
    """The part of the runtime that child executions use."""

    @property
    def drivers(self) -> dict[ExecutionId, Driver]: ...
    @property
    def store(self) -> Store: ...
    @property
    def plans(self) -> Plans: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def ownership(self) -> Ownership: ...
    @property
    def alone(self) -> Callable[[ExecutionId], AbstractAsyncContextManager[None]]:
        """Prevent other tasks from opening a driver of this execution."""
        ...

    async def start(
        self,
        execution: ExecutionId,
        plan: Plan,
        report: Start,
        *,
        begun_here: bool = True,
        under: ExecutionId | None = None,
    ) -> Driver: ...

    async def opened(self, execution: ExecutionId, *, recover: bool, under: ExecutionId | None = None) -> Driver: ...

    def at_hand(self, execution: ExecutionId) -> Driver | None: ...

    async def load(self, execution: ExecutionId) -> ExecutionState: ...

    def over(self, state: ExecutionState) -> None: ...


class ChildExecutions:
    """Children driven here and the parents that wait for them."""

    def __init__(self, runtime: ChildHost) -> None:
        self._runtime = runtime
        self._parents: dict[ExecutionId, AwaitedChild] = {}
        """Children by id, with the parents that wait for them in this process."""
        self._elsewhere: dict[ExecutionId, Driver] = {}
        """Followers of those children that other runtimes drive."""

    async def start(self, parent: ExecutionId, command: StartChild) -> None:
        """Start or find the child of a step; report its end if the step waits for it."""
        name = child_id(parent, command.step, command.attempt, command.call)
        try:
            async with self._runtime.alone(name):
                child = await self._child(name, parent, command)
        except Outage:
            raise  # The next driver of the parent requests its child again.
        except PointsmanError as why:
            failure = failure_by(why)
            report = ChildEnded(step=command.step, attempt=command.attempt, failure=failure, call=command.call)
            await self._report(parent, report)
            return
        if child is None:
            return
        above = self._runtime.drivers.get(parent)
        if above is not None and above.state.is_halted:
            await self._pause_tree(child)  # it started while the parent was being halted
        elif above is not None and above.state.status == "running":
            await self._let_continue(child)
        if not command.wait:
            started: JsonObject = {"executionId": child.execution}
            await self._report(parent, ChildEnded(step=command.step, attempt=command.attempt, output=started))
            return
        self._parents[child.execution] = AwaitedChild(parent, command)
        if child.execution not in self._runtime.drivers:
            self._elsewhere[child.execution] = child
        self._count(parent, command, child)
        self._notify(parent)
        if child.state.ended and not child.committing:
            self._tell_parent(child.state)
            self._runtime.over(child.state)

    def _count(self, parent: ExecutionId, command: StartChild, child: Driver) -> None:
        """Report the child's usage to the parent if it or one of its ancestors has a budget."""
        above = self._runtime.drivers.get(parent)
        if above is None or not above.usage_meter.matters:
            return

        def add_to_parent(usage: Usage) -> None:
            report = ChildUsageReported(step=command.step, attempt=command.attempt, usage=usage, call=command.call)
            above.spawn(self._report(parent, report))

        child.usage_meter.on_usage = add_to_parent

    def _notify(self, execution: ExecutionId | None) -> None:
        """Notify the waiters of all parents: a child execution is driven here."""
        while execution is not None and (driver := self._runtime.at_hand(execution)) is not None:
            driver.notify()
            execution = None if driver.state.setup.parent is None else ExecutionId(driver.state.setup.parent)

    async def _child(self, name: ExecutionId, parent: ExecutionId, command: StartChild) -> Driver | None:
        """Return the driver of the child; None if the step was stopped before the child started."""
        under = parent if command.wait else None
        if name in self._runtime.drivers or await self._runtime.store.journal.last(name) > 0:
            return await self._runtime.opened(name, recover=True, under=under)
        above = self._runtime.drivers.get(parent)
        at = None if above is None else above.state.steps.get(command.step)
        if above is None or at is None or command.call not in at.children or at.attempt != command.attempt:
            return None
        depth = above.state.setup.options.get("depth")
        deeper = (depth if isinstance(depth, int) else 0) + 1
        if deeper > CHILD_DEPTH_MAX:
            raise NestedTooDeep(
                f"sub-workflows are nested more than {CHILD_DEPTH_MAX} deep", hint="Let the recursion end earlier."
            )
        plan, begin = await self._runtime.plans.child(command.workflow, above.state, command.step.node)
        report = Start(
            input=command.input,
            config=begin.config,
            parent=parent,
            session=above.state.setup.session,
            definition=begin.definition,
            options={**begin.options, "depth": deeper},
            seed=above.state.setup.seed,
        )
        return await self._runtime.start(name, plan, report, begun_here=above.begun_here, under=under)

    async def hold(self, name: ExecutionId) -> None:
        """Pause a child because a limit stopped its parent. Running work may finish."""
        child = await self._begun(name)
        if child is not None:
            await self._pause_tree(child)

    async def _pause_tree(self, child: Driver) -> None:
        await child.decided()
        if child.state.status == "running":
            await child.deliver(PauseRequested(by=_as_parent(child)))
        for below in await self._below(child):
            await self._pause_tree(below)

    async def _begun(self, name: ExecutionId) -> Driver | None:
        async with self._runtime.alone(name):
            if name in self._runtime.drivers or await self._runtime.store.journal.last(name) > 0:
                return await self._runtime.opened(name, recover=False)
        return None

    async def _below(self, driver: Driver) -> list[Driver]:
        """Return the drivers of the started sub-workflows that it waits for."""
        names = [name for at in driver.state.steps.values() for name in children_of(driver.execution, at)]
        children = [await self._begun(name) for name in names]
        return [child for child in children if child is not None]

    async def _let_continue(self, child: Driver) -> None:
        """Resume a child that was paused only because its parent was halted."""
        await child.decided()
        if stands_still_for_parent(child):
            await child.deliver(ResumeRequested(by=_as_parent(child)))
            for below in await self._below(child):
                await self._let_continue(below)

    async def stop(self, parent: ExecutionId, name: ExecutionId) -> None:
        async with self._runtime.alone(name):
            if name not in self._runtime.drivers and await self._runtime.store.journal.last(name) == 0:
                return
            driver = await self._runtime.opened(name, recover=False)
        await driver.decided()
        if not driver.state.ended:
            await driver.deliver(CancelRequested(reason=f"its parent {parent} was cancelled"))

    def forget(self, child: ExecutionId) -> None:
        """Drop the record of a child that is passivated together with its parent."""
        self._parents.pop(child, None)
        self._elsewhere.pop(child, None)

    async def ended(self, state: ExecutionState) -> None:
        """Handle the durable end of a child."""
        if state.setup.parent is not None:
            await self._tell_absent_parent(state, ExecutionId(state.setup.parent))
            self._tell_parent(state)

    def _tell_parent(self, state: ExecutionState) -> None:
        awaits = self._parents.pop(ExecutionId(state.id), None)
        self._elsewhere.pop(ExecutionId(state.id), None)
        if awaits is not None and (driver := self._runtime.drivers.get(awaits.parent)) is not None:
            command = awaits.command
            driver.spawn(self._report(awaits.parent, _ended(command.step, command.attempt, command.call, state)))

    async def _tell_absent_parent(self, state: ExecutionState, parent: ExecutionId) -> None:
        """Report the end of a child to a parent that another process drives, or that is passivated: it finds its child
        when the leader resumes it."""
        if parent in self._runtime.drivers or ExecutionId(state.id) in self._parents:
            return
        mailbox = self._runtime.ownership.mailbox
        if mailbox is not None:
            above = await self._runtime.load(parent)
            for at in above.steps.values():
                for call in at.children:
                    if child_id(parent, at.step, at.attempt, call) == state.id:
                        report = _ended(at.step, at.attempt, call, state)
                        await mailbox.send(parent, report, f"child {state.id} {state.seq}")
            return
        last = await self._runtime.store.journal.last(parent)  # Read before the summary, which may be of a later row.
        summary = await self._runtime.store.executions.find(parent)
        if summary is not None and summary.status == "running":
            # A process that writes a later row drives the parent and finds the child itself.
            wakes = replace(summary, wakes=Instant(self._runtime.clock.now()))
            await self._runtime.store.executions.put(wakes, seq=last)

    def failed(self, execution: ExecutionId, why: BaseException) -> None:
        """Handle a child that another process drives now.

        If another process drives it, its parent keeps waiting; otherwise the parent's driver fails as well.
        """
        awaits = self._parents.get(execution)
        parent = self._runtime.drivers.get(awaits.parent) if awaits is not None else None
        if parent is not None and parent.failure is None and isinstance(why, JournalMoved):
            parent.spawn(self._read_again(execution, parent.execution))
            return
        self.forget(execution)
        if parent is not None and parent.failure is None:
            parent.fail(why)

    async def _read_again(self, child: ExecutionId, parent: ExecutionId) -> None:
        """Read a child to which another process wrote, and report its end to the parent."""
        async with self._runtime.alone(child):
            child_driver = self._runtime.drivers.get(child)
            if child_driver is not None and child_driver.failure is None:
                return
            driver = await self._runtime.opened(child, recover=False)
        self._notify(parent)
        if driver.state.ended:
            self._tell_parent(driver.state)
            self._runtime.over(driver.state)

    def moved_elsewhere(self, child: Driver) -> None:
        """Handle rows of an execution that another runtime drives: its parent here may wait for its end."""
        parent = child.state.setup.parent
        self._notify(None if parent is None else ExecutionId(parent))
        if child.state.ended:
            self._tell_parent(child.state)

    def resting(self, horizon: float) -> list[Driver]:
        """Return idle drivers without waiters, with all their child executions and parents."""
        below: dict[ExecutionId, list[Driver]] = {}
        for child, awaits in self._parents.items():
            if child in self._runtime.drivers:
                below.setdefault(awaits.parent, []).append(self._runtime.drivers[child])
        drivers: list[Driver] = []

        def rest(driver: Driver) -> list[Driver] | None:
            family = [driver]
            for child in below.get(driver.execution, ()):
                under = rest(child)
                if under is None:
                    return None
                family += under
            return family if rests(driver, horizon) else None

        for driver in list(self._runtime.drivers.values()):
            awaits = self._parents.get(driver.execution)
            if awaits is None or awaits.parent not in self._runtime.drivers:
                drivers += rest(driver) or ()
        return drivers

    async def _report(self, parent: ExecutionId, report: ChildEnded | ChildUsageReported) -> None:
        driver = self._runtime.drivers.get(parent)
        if driver is not None and driver.failure is None:
            await driver.deliver(report)


def rests(driver: Driver, horizon: float) -> bool:
    """Return whether it only waits: for people, events, sub-workflows, or timers later than `horizon` (unix
    seconds).
    """
    state = driver.state
    return (
        not (
            driver.tasks
            or driver.busy
            or driver.ready
            or driver.confirmed_orders
            or driver.committing
            or driver.is_waited_for
        )
        and driver.failure is None
        and not (state.counters.running_steps or state.outbox)
        and all(timer.at > horizon for timer in state.timers.values())
    )


def stands_still_for_parent(child: Driver) -> bool:
    """Return whether it was paused because its parent was halted, so that it resumes together with the parent."""
    return child.state.status == "paused" and child.state.pause.by == _as_parent(child)


def _as_parent(child: Driver) -> str:
    return f"its parent {child.state.setup.parent}"


def _ended(step: Step, attempt: int, call: int, state: ExecutionState) -> ChildEnded:
    report = ChildEnded(step=step, attempt=attempt, usage=usage_of(state), call=call)
    if state.status == "completed":
        return replace(report, output=state.outcome.output)
    failure = state.outcome.failure or Failure(
        code=f"child-{state.status}", message=f"the sub-workflow was {state.status}"
    )
    return replace(report, failure=_within(state, failure))


def _within(state: ExecutionState, failure: Failure) -> Failure:
    """Return the failure of a sub-workflow with its origin inside: `details["within"]`, outermost first."""
    at = next((work.step for work in state.outcome.failed_work if isinstance(work, StepState)), None)
    if at is None:
        return failure
    details = failure.details or {}
    deeper = details.get("within")
    here: Json = {"executionId": state.id, "workflowId": state.setup.workflow, "nodeId": at.node}
    return replace(failure, details={**details, "within": [here, *(deeper if isinstance(deeper, list) else ())]})
