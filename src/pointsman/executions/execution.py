"""An execution in a caller's hands: watch it, wait for it, answer it, stop it, take it up again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final, Literal, TypeAlias, TypeVar

from pointsman.engine.actions import WorkAction, WorkflowAction
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.events.waits import EventConsumed
from pointsman.engine.failures import Failure
from pointsman.engine.reports import (
    CancelRequested,
    EventReceived,
    ResumeRequested,
    RetryRequested,
    SteerRequested,
)
from pointsman.engine.scripted import is_scripted
from pointsman.engine.state import ExecutionState, StepState
from pointsman.engine.status import status_of
from pointsman.errors import CallerError, PointsmanError
from pointsman.executions.answering import GateAnswer, answer_gate, delegate_gate, gate_named
from pointsman.executions.data_edits import edits_of
from pointsman.executions.families import (
    OpenGate,
    carry_out_due,
    family_view,
    gates_of,
    is_still,
    pause_family,
    resume_family,
)
from pointsman.executions.inputs import check_event, event_key
from pointsman.executions.views import event_view, waiting_view
from pointsman.ports import Row
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.driver import Driver
from pointsman.runtime.feed import Committed, Delta
from pointsman.runtime.local import OPEN, LocalRuntime
from pointsman.store.errors import JournalMoved
from pointsman.tools.tracebacks import cause_in
from pointsman.values import ExecutionId, Json, JsonObject

HANDED_BACK_S: Final = 3.0
"""How long it is waited for another process to leave a step to this one."""
LOOKS_S: Final = 0.1
RACES_MAX: Final = 50
"""How often another process may be faster before we give up what we have to say: one that works commits often."""
TELLS: Final = "`pointsman show` tells how far it is."

T = TypeVar("T")


class TakenOver(CallerError):
    """Another process appended to the journal of this execution: it is driven there now, and not here any more."""

    code: ClassVar[str] = "taken-over"


class ExecutionFailed(PointsmanError):
    """The output of an execution was asked for, and it has none.

    Where a step failed, `code` is that of its failure, and what a tool raised is the `__cause__`.
    """

    code: ClassVar[str] = "execution-failed"
    execution: str = ""
    node: str = ""
    step: str = ""
    failure: Failure | None = None

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        execution: str = "",
        node: str = "",
        step: str = "",
        failure: Failure | None = None,
    ) -> None:
        """`node` and `step`: where it failed; empty where no single step did."""
        super().__init__(message, hint=hint)
        self.execution, self.node, self.step, self.failure = execution, node, step, failure
        if failure is not None:
            vars(self)["code"] = failure.code  # of this one; the class keeps its own


def failed_of(state: ExecutionState) -> ExecutionFailed:
    """Why an execution has no output."""
    failure = state.failure
    if failure is None:
        status = status_of(state)
        message, hint = f"execution {state.id} is {status}", "`pointsman show` tells what it waits for."
        return ExecutionFailed(message, hint=hint, execution=state.id)
    at = next((one.step for one in state.failed_work if isinstance(one, StepState)), None)
    where = "" if at is None else f" at {at.node!r}" if str(at) == at.node else f" at {at.node!r} (step {at})"
    return ExecutionFailed(
        f"execution {state.id} failed{where}: [{failure.code}] {failure.message}",
        hint=failure.hint,
        execution=state.id,
        node="" if at is None else at.node,
        step="" if at is None else str(at),
        failure=failure,
    )


Signalled: TypeAlias = Literal["taken", "kept", "known"]
"""What became of an event: steps that waited took it; it is kept for who waits later; it had come before."""


class Execution:
    """One execution. Cheap to hold; everything it says comes from the journal."""

    def __init__(self, runtime: LocalRuntime, driver: Driver) -> None:
        self._runtime = runtime
        self._known = driver
        self._had_ended = driver.state.ended

    @property
    def _driver(self) -> Driver:
        """The driver in this process now; else the last one that this process had: its state is where it stopped."""
        known = self._runtime.drivers.get(self.id, self._known)
        while known.successor is not None:
            known = known.successor
        self._known = known
        return known

    @property
    def id(self) -> ExecutionId:
        return self._known.execution

    @property
    def state(self) -> ExecutionState:
        """The live state: read it, never change it."""
        return self._driver.state

    @property
    def status(self) -> str:
        return status_of(self._driver.state)

    @property
    def is_scripted(self) -> bool:
        """Whether the scripted model answers in it: its output is made up."""
        return is_scripted(self._driver.state)

    @property
    def waiting(self) -> list[Json]:
        """The open gates."""
        return waiting_view(self._driver.state)

    @property
    def names(self) -> dict[str, str]:
        """Node -> what people call it, where it does work and has a name."""
        nodes = self._driver.plan.nodes.items()
        return {
            id: node.action.spec.name
            for id, node in nodes
            if isinstance(node.action, WorkAction) and node.action.spec.name
        }

    @property
    def gates(self) -> list[OpenGate]:
        """The open gates, in the order of their steps, then those of its sub-workflows."""
        return [*gates_of(self._runtime, self._driver)]

    @property
    def is_still(self) -> bool:
        """Nothing more happens by itself."""
        return is_still(self._runtime, self._driver)

    async def settled(self) -> str:
        """Wait until nothing more happens by itself: ended, paused, or only people and events can go on. Its status.

        Where another process went on with it and left a step to a worker that this process is, it goes on here.
        Raises `TakenOver` where another process goes on with it.
        """
        while True:
            try:
                await self._stand_still()
            except JournalMoved as why:
                if not await self._handed_back():
                    raise self._taken_over() from why
            else:
                return self.status

    async def _stand_still(self) -> None:
        driver = self._driver
        if isinstance(driver.failure, JournalMoved):
            driver = await self._after_loss(driver.failure)
        if driver.failure is None and not self.is_still:
            driver = await self._alive()
        calls = any(isinstance(node.action, WorkflowAction) for node in driver.plan.nodes.values())
        if calls or "pins" in driver.state.options:  # agents call sub-workflows too
            await self._family_still()
        else:
            await driver.until(lambda: self.is_still)

    async def _after_loss(self, why: JournalMoved) -> Driver:
        """The driver of an execution that was lost to another process. Raises `why` while that one works on it."""
        if await self._runtime.take_work(self.id):
            return self._driver
        if status_of(await self._runtime.load(self.id)) == "running":
            raise why
        return await self._alive()

    async def _handed_back(self) -> bool:
        """Whether the process that went on with it soon left it to a worker that this process is: it goes on here."""
        until = time.monotonic() + HANDED_BACK_S
        while time.monotonic() < until:
            driver = self._driver
            if driver.failure is None or await self._runtime.take_work(self.id):
                return True
            known = await self._runtime.store.executions.find(self.id)
            if known is None or known.status not in OPEN:
                return False
            await asyncio.sleep(LOOKS_S)
        return False

    def _taken_over(self) -> TakenOver:
        return TakenOver(f"another process went on with {self.id!r}", hint=TELLS)

    async def _family_still(self) -> None:
        """As `until`, but asked again whenever anything happens in any execution of this process."""
        woken = asyncio.Event()
        leave = self._runtime.feed.watch(lambda _: woken.set())
        try:
            while not self.is_still:
                woken.clear()
                await self._wait(woken)
        finally:
            leave()

    async def output(self) -> Json:
        """Wait for its end and return what it produced. Raises `ExecutionFailed` where it did not complete."""
        status = await self.settled()
        state = self._driver.state
        if status == "completed":
            return state.output
        raise failed_of(state) from cause_in(state.failure)

    async def rows(self) -> list[Row]:
        """The whole journal."""
        return [row async for row in self._runtime.journal.read(self.id)]

    async def view(self) -> JsonObject:
        """The execution as JSON, as its journal tells."""
        return await family_view(self._runtime, await self._runtime.load(self.id), await self.rows())

    @property
    def is_kept(self) -> bool:
        """Other processes can find it."""
        return self._runtime.store.shared

    async def events(self, *, after: int = 0, follow: bool = True) -> AsyncIterator[JsonObject]:
        """Its events, from the journal and then live, without loss or repeat, until nothing more happens by itself.

        Raises `TakenOver` where another process went on with it.
        """
        woken = asyncio.Event()

        def see(seen: Committed | Delta) -> None:
            if isinstance(seen, Committed) and seen.execution == self.id:
                woken.set()

        leave = self._runtime.feed.watch(see)
        try:
            while True:
                woken.clear()
                settled = self.is_still
                async for row in self._runtime.journal.read(self.id, after=after):
                    after = row.seq
                    for number, event in enumerate(row.events):
                        yield event_view(row, number, event)
                if settled or not follow:
                    return
                try:
                    await self._wait(woken)
                except JournalMoved as why:
                    if not await self._handed_back():
                        raise self._taken_over() from why
        finally:
            leave()

    async def _wait(self, woken: asyncio.Event) -> None:
        """Until a row comes, or the driver says that something changed. Raises what broke the driver."""
        changed = asyncio.ensure_future(self._driver.until(lambda: woken.is_set() or self.is_still))
        came = asyncio.ensure_future(woken.wait())
        try:
            await asyncio.wait({changed, came}, return_when=asyncio.FIRST_COMPLETED)
            if changed.done():
                changed.result()
        finally:
            for one in (changed, came):
                one.cancel()

    # What people do ------------------------------------------------------------------------------------------------

    async def answer(
        self,
        gate: str,
        action: str,
        data: Json = None,
        *,
        comment: str = "",
        by: str = "",
        groups: Sequence[str] = (),
        key: str = "",
        digest: str = "",
    ) -> None:
        """Answer an open gate, named by its id, or by its node's id while that is unique.

        `by` and `groups` say who answers, as whoever let them in knows them. The same answer with the same `key` again
        succeeds and changes nothing, also after the gate was closed. `digest`: of what the person saw, from the gate's
        view; the answer is refused where the gate shows something else by now.
        """
        said = GateAnswer(action, data, comment, by, tuple(groups), key, digest)
        await answer_gate(self._runtime, await self._alive(), gate, said)
        await self._alive()

    async def delegate(self, gate: str, to: str, *, by: str, groups: Sequence[str] = (), comment: str = "") -> None:
        """Pass the right of `by` to answer an open gate on to another person."""
        driver = await self._alive()
        await delegate_gate(self._runtime, driver, gate, to, by=by, groups=tuple(groups), comment=comment)
        await self._alive()

    async def _alive(self) -> Driver:
        """The driver; a new one where another process was faster than ours, or the keeper let go of the last one."""
        known = self._driver
        if known.failure is not None:
            self._known = await self._runtime.open(self.id, recover=False)
        elif not known.state.ended and known.execution not in self._runtime.drivers:
            self._known = await self._runtime.open(self.id)
        return self._known

    async def _tell(self, say: Callable[[Driver], Awaitable[T]]) -> T:
        """Say it to the execution as it is now: where another process was faster, look again."""
        for _ in range(RACES_MAX):
            with suppress(JournalMoved, DriverLost):
                return await say(await self._alive())
        return await say(await self._alive())

    def asking(self, gate: OpenGate) -> Execution:
        """Whose gate it is: this execution, or a sub-workflow of it."""
        return Execution(self._runtime, gate.driver)

    def gate(self, name: str) -> OpenGate:
        """The open gate of that id, or of that node. Raises `GateUnclear`, `NoSuchStep`."""
        return gate_named(self.gates, name)

    async def cancel(self, *, reason: str = "", by: str = "", now: bool = False) -> None:
        """Stop it for good, and its sub-workflows with it. A second time does nothing.

        What its workflow knows to undo is undone first: it goes on until then. `now`: nothing (more) is undone.
        """
        await self._tell(lambda driver: driver.deliver(CancelRequested(reason=reason, by=by, now=now)))

    async def steer(
        self,
        messages: Sequence[Json] = (),
        *,
        set: Mapping[str, Json] | None = None,
        goto: str | None = None,
        reason: str = "",
        by: str = "",
    ) -> None:
        """Take a hand between steps: say something in the conversation (a text is the user's), put values into the
        data (`a.b`, or `each[1.0]/a.b` in an open branch), send control to a node, and nowhere else.

        All of it or nothing. Raises `NotSteerable`, `WrongStatus`, `EditRefused`.
        """
        said: tuple[Json, ...] = tuple(
            {"role": "user", "content": one} if isinstance(one, str) else one for one in messages
        )

        def steer(driver: Driver) -> Awaitable[object]:
            edits = edits_of(driver.state, set or {})
            return driver.deliver(SteerRequested(edits=edits, messages=said, goto=goto, reason=reason, by=by))

        await self._tell(steer)

    async def drained(self) -> None:
        """Return when nothing of it is under way here any more: its last commands are carried out."""
        await self._driver.drained()

    async def pause(self, *, by: str = "") -> None:
        """Let no further step start, here and in its sub-workflows; running ones may finish."""
        await self._tell(lambda driver: pause_family(self._runtime, driver, by))

    async def resume(self, *, limits: dict[str, float] | None = None, by: str = "", step: bool = False) -> None:
        """Go on after a pause or a limit. After a crash, opening the execution has done so already: it may have ended
        since. Returns once everything that is due is carried out. `step`: only until the next step would begin.

        Raises `TakenOver` where another process let it go on at the same moment; `ModelUnusable` or `ModelUnnamed`
        where a model that it still needs cannot be called from here. Nothing has changed then.
        """
        driver = await self._alive()
        await self._must_go_on(driver)
        if driver.state.is_halted:
            await self._tell(lambda driver: self._resume(driver, limits or {}, by, step=step))
        elif limits and not driver.state.ended:
            raise WrongStatus(
                f"{self.id!r} is {self.status}: a limit is raised where one stopped it, or where it is paused",
                hint="Leave --limit out, or pause it first.",
            )
        elif driver.state.steps_without_worker:
            driver.offer()
        elif driver.state.ended and (self._had_ended or not driver.recovered):
            await driver.deliver(ResumeRequested(by=by))  # refused, with the reason
        await self._carry_out_due()

    async def _carry_out_due(self) -> None:
        """What is due is done before the caller looks at the state."""
        await self._tell(lambda driver: carry_out_due(self._runtime, driver))

    async def _resume(self, driver: Driver, limits: dict[str, float], by: str, *, step: bool) -> None:
        if not driver.state.is_halted and not driver.state.ended:
            raise self._taken_over()
        await resume_family(self._runtime, driver, limits, by, step=step)

    async def _must_go_on(self, driver: Driver) -> None:
        if driver.state.status not in ("completed", "cancelled") and self._runtime.can_go_on is not None:
            await self._runtime.can_go_on(driver.plan, driver.state)

    async def retry(self, *, limits: dict[str, float] | None = None, by: str = "") -> None:
        """Try the step again that failed the execution, with higher limits if need be. Raises as `resume` where a model
        cannot be called."""
        await self._must_go_on(self._driver)
        await self._tell(lambda driver: driver.deliver(RetryRequested(limits=limits or {}, by=by)))
        await self._carry_out_due()

    async def signal(self, name: str, data: Json = None, *, key: str = "", by: str = "") -> Signalled:
        """Send it an event: to the steps that wait for it, else to the first that will. Under one key of one caller
        (`by`) it comes once.

        Raises `WrongStatus` where it has ended, `TooManyKept` where too many events wait, `EventTooLarge`.
        """
        check_event(name, data)
        named = event_key("caller", by, key) if key else ""
        told = EventReceived(name=name, data=data, by=by, key=named, keeps=True)
        events = await self._tell(lambda driver: driver.deliver(told))
        taken = [event for event in events if isinstance(event, EventConsumed)]
        if taken:
            return "kept" if taken[0].kept else "taken"
        if self.state.ended:
            raise WrongStatus(f"{self.id!r} is {self.status}: it takes no events", hint="Start another one.")
        return "known"
