"""Concurrency limits: how many executions of a group may run at once; others queue, are refused, or replace.

    queue of a group   a  b │ c  d        max 2: a and b run, c and d are pending
                       ╰ a ends ╯
                       b  c │ d           c is admitted, by the first process that sees the end

The queue is one entry of the store, changed by compare-and-set. Ended executions are found by reading their status,
so nothing is lost if the process that ended one dies. While an execution is pending here, this process looks once
per second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple, TypeAlias

import msgspec

from pointsman.background import retried
from pointsman.definition.model.policies import Concurrency
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.reports import AdmissionGranted, CancelRequested
from pointsman.engine.state import ENDED, ExecutionState
from pointsman.errors import CallerError
from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.ports import Clock
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.driver import Driver
from pointsman.store.api import Store
from pointsman.store.errors import EntryMoved, JournalMoved
from pointsman.values import ExecutionId, Json, JsonObject

KIND: Final = "places"
OPTION: Final = "place"
"""The option of an execution that names its group and the group's limit."""

LOOK_S: Final = 1.0
UNSTARTED_S: Final = 60.0
"""The slot of an execution that never started is free again after this many seconds."""

Open: TypeAlias = Callable[[ExecutionId], Awaitable[Driver]]
"""Opens an execution with everything it needs to run."""


class ConcurrencyLimitReached(CallerError):
    """The workflow's limit of running executions is reached, and its policy refuses another one."""

    code: ClassVar[str] = "concurrency-limit-reached"


class Group(NamedTuple):
    """Executions that share a concurrency limit."""

    name: str
    most: int


class Admission(NamedTuple):
    """The group and policy that apply to a new execution of a workflow."""

    group: Group
    policy: str

    @property
    def said(self) -> JsonObject:
        """The option of the execution that records the group."""
        return {"group": self.group.name, "max": self.group.most}


class InLine(NamedTuple):
    """An execution that holds a slot or is queued for one."""

    execution: ExecutionId
    since: float


class QueuePosition(NamedTuple):
    """Queue position of an execution that has no slot yet."""

    execution: ExecutionId
    group: Group
    holders: tuple[ExecutionId, ...]
    """The executions that hold the slots."""
    ahead: int
    """How many executions are queued before it."""


def group_of(workflow: WorkflowDefinition, rule: Concurrency, input: JsonObject) -> Group:
    """Return the group of an execution with this input. Raises what evaluating its key raises."""
    name = str(workflow.id)
    if rule.key is not None:
        value = compile_expression(rule.key).evaluate(Environment(state=input, names={"input": input}))
        name = f"{name}:{msgspec.json.encode(value, order='sorted').decode()}"
    return Group(name, rule.max)


def group_in(options: JsonObject) -> Group | None:
    """Return the group that an execution was started in."""
    group = options.get(OPTION)
    if not isinstance(group, dict):
        return None
    name, most = group.get("group"), group.get("max")
    return Group(name, most) if isinstance(name, str) and isinstance(most, int) else None


class PendingGroup(NamedTuple):
    """A group with an execution that is pending in this process."""

    task: asyncio.Task[None]
    again: asyncio.Event
    """Set when an execution has ended, to look at once."""


class ConcurrencyLimits:
    """The queues of one store, as seen from one process."""

    def __init__(self, store: Store, clock: Clock, open_: Open) -> None:
        self._store = store
        self._clock = clock
        self._open = open_
        self._looking: dict[str, PendingGroup] = {}
        self._closed = False

    async def before(self, workflow: WorkflowDefinition, input: JsonObject, execution: ExecutionId) -> Admission | None:
        """Return the admission of an execution that is about to start; None: the workflow has no limit. Raises
        `ConcurrencyLimitReached` under `skip`."""
        rule = workflow.concurrency
        if rule is None:
            return None
        place = Admission(group_of(workflow, rule, input), rule.policy or "queue")
        if place.policy == "skip":
            await self.claim(place.group, execution)
        return place

    async def claim(self, group: Group, execution: ExecutionId) -> None:
        """Take a slot at once. Raises `ConcurrencyLimitReached`, which does not name the executions that hold the
        slots: the caller may start a workflow without being allowed to see everything that runs on
        it; lists show what they may see."""
        if not await self._join(group, execution, waits=False):
            most = "1 execution" if group.most == 1 else f"{group.most} executions"
            raise ConcurrencyLimitReached(
                f"{group.name!r} has reached its limit of {most} at the same time",
                hint="Wait until an execution ends (`pointsman list` shows running ones), or set "
                "concurrency.policy to `queue`.",
            )

    async def enter(self, group: Group, driver: Driver, *, replace: bool = False) -> None:
        """Join the queue, and start as soon as a slot is free. `replace`: cancel the oldest executions to free one."""
        await self._join(group, driver.execution, waits=True)
        if replace:
            line = await self._line(group)
            ahead = [one.execution for one in line[: len(line) - group.most] if one.execution != driver.execution]
            for execution in ahead:
                await self._cancel(execution, driver.execution)
        await self.admit(group)
        if driver.state.status == "pending":
            self.look(group)

    async def standing(self, state: ExecutionState) -> QueuePosition | None:
        """Return the queue position of a pending execution; None: it is not queued."""
        group = group_in(state.setup.options) if state.status == "pending" else None
        if group is None:
            return None
        line = [one.execution for one in await self._line(group)]
        execution, holders = ExecutionId(state.id), tuple(line[: group.most])
        if execution in holders or execution not in line:
            return None  # it is about to start
        return QueuePosition(execution, group, holders, line.index(execution) - group.most)

    async def admit(self, group: Group) -> None:
        """Start the executions that have a slot now."""
        for one in (await self._line(group))[: group.most]:
            summary = await self._store.executions.find(one.execution)
            if summary is not None and summary.status == "pending":
                try:
                    driver = await self._open(one.execution)
                    await driver.deliver(AdmissionGranted())
                except (JournalMoved, DriverLost):
                    continue  # another process was faster

    async def close(self) -> None:
        """Stop looking for ended executions."""
        self._closed = True
        looking, self._looking = [*self._looking.values()], {}
        for look in looking:
            look.task.cancel()
        await asyncio.gather(*(look.task for look in looking), return_exceptions=True)

    def look(self, group: Group) -> None:
        """Start the executions that have a slot, now and as long as others are queued."""
        looking = self._looking.get(group.name)
        if looking is not None:
            looking.again.set()
        if looking is not None or self._closed:
            return
        again = asyncio.Event()
        task = asyncio.get_running_loop().create_task(self._keep_looking(group, again))
        self._looking[group.name] = PendingGroup(task, again)

    async def _keep_looking(self, group: Group, again: asyncio.Event) -> None:
        try:
            while True:
                again.clear()
                with retried(f"to let in who waits for {group.name!r}"):
                    await self.admit(group)
                    if len(await self._line(group)) <= group.most and not again.is_set():
                        return
                await self._pause(again)
        finally:
            self._looking.pop(group.name, None)

    async def _pause(self, again: asyncio.Event) -> None:
        """Wait for `LOOK_S`, or until an execution here has ended."""
        slept = asyncio.ensure_future(self._clock.sleep_until(self._clock.now() + LOOK_S))
        woken = asyncio.ensure_future(again.wait())
        try:
            await asyncio.wait({slept, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            slept.cancel()
            woken.cancel()

    async def _join(self, group: Group, execution: ExecutionId, *, waits: bool) -> bool:
        """Join the end of the queue, once. False: no slot is free and `waits` is not set."""
        while True:
            entry = await self._store.entries.find(KIND, group.name)
            line = await self._alive([] if entry is None else _read(entry.value))
            if any(one.execution == execution for one in line):
                return True
            if not waits and len(line) >= group.most:
                return False
            line.append(InLine(execution, self._clock.now()))
            try:
                await self._store.entries.put(KIND, group.name, _written(line), after=entry.version if entry else 0)
            except EntryMoved:
                continue
            return True

    async def _line(self, group: Group) -> list[InLine]:
        """Return the current queue; delete its entry if it is empty."""
        entry = await self._store.entries.find(KIND, group.name)
        if entry is None:
            return []
        line = await self._alive(_read(entry.value))
        if not line:
            try:
                await self._store.entries.delete(KIND, group.name, after=entry.version)
            except EntryMoved:
                return await self._line(group)
        return line

    async def _alive(self, line: list[InLine]) -> list[InLine]:
        return [one for one in line if await self._is_alive(one)]

    async def _is_alive(self, one: InLine) -> bool:
        summary = await self._store.executions.find(one.execution)
        if summary is None:
            return one.since > self._clock.now() - UNSTARTED_S
        return summary.status not in ENDED

    async def _cancel(self, execution: ExecutionId, by: ExecutionId) -> None:
        """Cancel an execution; retry whenever another process appends first."""
        while (summary := await self._store.executions.find(execution)) is not None and summary.status not in ENDED:
            driver = await self._open(execution)
            with suppress(JournalMoved, DriverLost):
                await driver.deliver(CancelRequested(reason=f"replaced by {by}"))
                return


def _read(value: Json) -> list[InLine]:
    return msgspec.convert(value, list[InLine])


def _written(line: list[InLine]) -> Json:
    return [[one.execution, one.since] for one in line]
