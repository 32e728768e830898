"""Handle of one execution: watch it, wait for it, answer its gates, stop it, resume it; and typed gates."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, cast, overload

import msgspec
from typing_extensions import TypeVar

from pointsman.arguments import CallInvalid, checks_arguments
from pointsman.client.events import PublicEvent, event_of
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
from pointsman.engine.state import ExecutionState, Status, StepState, is_scripted, status_of
from pointsman.errors import CallerError, PointsmanError
from pointsman.executions.children import (
    GateAnswer,
    OpenGate,
    answer_gate,
    carry_out_due,
    delegate_gate,
    gate_named,
    gates_of,
    is_answered,
    is_idle,
    pause_with_children,
    resume_with_children,
    view_with_children,
    waits_of,
)
from pointsman.executions.inputs import check_event, edits_of, event_key
from pointsman.executions.notebook import execution_html
from pointsman.executions.public_events import delta_event, public_events
from pointsman.executions.views import ExecutionView, GateView, event_view, waiting_view
from pointsman.json_conversion import JsonType, as_json
from pointsman.ports import Row
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import OPEN, LocalRuntime, folded
from pointsman.store.errors import JournalMoved
from pointsman.tools.tool import cause_in
from pointsman.values import ExecutionId, Json, JsonObject

Shown = TypeVar("Shown")
Answer = TypeVar("Answer")


@checks_arguments
class Gate(Generic[Shown, Answer]):
    """The gate of a node, with the Python types of what it shows and of the data of an answer.

    review = Gate("review", shows=Draft, takes=Verdict)
    draft = execution.shown(review)
    await execution.answer(review, "approve", Verdict(stars=5))
    """

    def __init__(self, node: str, *, shows: type[Shown], takes: type[Answer]) -> None:
        """`node`: id of the node, or of one of its gates. Raises `TypeUnsupported`."""
        self.node = node
        self._shows = JsonType(shows, what=f"what the gate {node!r} shows")
        self._takes = JsonType(takes, what=f"the answer to the gate {node!r}")

    def read(self, shown: Json) -> Shown:
        """Return what the gate shows. Raises `TypeMismatch`."""
        return self._shows.read(shown)

    def written(self, data: Answer | None) -> Json:
        """Return the data of an answer as JSON; None: the answer has no data. Raises `TypeMismatch`."""
        return None if data is None else self._takes.write(data)


HANDED_BACK_S: Final = 3.0
"""How long to wait for another process to hand a step back to a worker in this one, in seconds."""
LOOKS_S: Final = 0.1
RACES_MAX: Final = 50
"""How often a delivery is repeated when another process appends first: a busy process commits often."""
TELLS: Final = "`pointsman show` shows its progress."

T = TypeVar("T")


class OwnershipLost(CallerError):
    """Another process appended to the journal of this execution and drives it now; this process no longer does."""

    code: ClassVar[str] = "ownership-lost"


class ExecutionFailed(PointsmanError):
    """The caller asked for the output of an execution that has none.

    If a step failed, `code` is the code of its failure, and the exception that a tool raised is the `__cause__`.
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
        """`node` and `step`: where the execution failed; empty if no single step did."""
        super().__init__(message, hint=hint)
        self.execution, self.node, self.step, self.failure = execution, node, step, failure
        if failure is not None:
            vars(self)["code"] = failure.code  # set on the instance; the class keeps its own code


def failed_of(state: ExecutionState) -> ExecutionFailed:
    """Return the error that explains why an execution has no output."""
    failure = state.outcome.failure
    if failure is None:
        status = status_of(state)
        message, hint = f"execution {state.id} is {status}", "`pointsman show` shows what it waits for."
        return ExecutionFailed(message, hint=hint, execution=state.id)
    at = next((one.step for one in state.outcome.failed_work if isinstance(one, StepState)), None)
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
"""Outcome of an event: waiting steps consumed it; it is kept for a later wait; or it is a repeat that arrived
before."""


Out = TypeVar("Out", default=Json)
NewOut = TypeVar("NewOut")


def _event_position(after: str) -> tuple[int, int]:
    """Return the row and the number of an event. Raises `CallInvalid`."""
    try:
        row, number = map(int, after.split("."))
    except ValueError:
        raise CallInvalid(f"{after[:60]!r} is not the id of an event", hint="Use the `id` of an event.") from None
    return row, number


@checks_arguments
class Execution(Generic[Out]):
    """Handle of one execution, whose output is `Out`. It is cheap to hold, and everything it returns comes from the
    journal."""

    def __init__(self, runtime: LocalRuntime, driver: Driver, output_type: JsonType[Out] | None = None) -> None:
        self._output_type = output_type
        self._runtime = runtime
        self._known = driver
        self._had_ended = driver.state.ended

    def returning(self, output: type[NewOut] | JsonType[NewOut]) -> Execution[NewOut]:
        """Return a handle of the same execution that reads the output as a Python type. Raises `TypeUnsupported`."""
        described = output if isinstance(output, JsonType) else JsonType(output, what=f"the output of {self.id!r}")
        return Execution(self._runtime, self._known, described)

    @property
    def _driver(self) -> Driver:
        """The current driver in this process, or else the last one it had, whose state is where that one stopped."""
        driver = self._runtime.drivers.get(self.id, self._known)
        while driver.successor is not None:
            driver = driver.successor
        self._known = driver
        return driver

    @property
    def id(self) -> ExecutionId:
        return self._known.execution

    @property
    def state(self) -> ExecutionState:
        """The live state. Callers must not change it."""
        return self._driver.state

    @property
    def status(self) -> Status:
        return status_of(self._driver.state)

    @property
    def is_scripted(self) -> bool:
        """Whether the scripted model answers in it, so that its output is made up."""
        return is_scripted(self._driver.state)

    @property
    def waiting(self) -> list[GateView]:
        """The open gates."""
        return waiting_view(self._driver.state)

    @property
    def names(self) -> dict[str, str]:
        """Map each node that does work and has a name to its display name."""
        nodes = self._driver.plan.nodes.items()
        return {
            id: node.action.spec.name
            for id, node in nodes
            if isinstance(node.action, WorkAction) and node.action.spec.name
        }

    @property
    def gates(self) -> list[OpenGate]:
        """The open gates: its own in the order of their steps, then those of its sub-workflows."""
        return [*gates_of(self._runtime, self._driver)]

    @property
    def is_idle(self) -> bool:
        """Whether nothing more happens without input from outside."""
        return is_idle(self._runtime, self._driver)

    async def settled(self) -> str:
        """Wait until nothing more happens by itself, and return the status of its view: the execution has ended, is
        paused, or only people and events can continue it or its sub-workflows (`waiting`).

        If another process continued it and left a step to a worker in this process, the wait continues here. Raises
        `OwnershipLost` if another process drives it.
        """
        while True:
            try:
                await self._stand_still()
            except JournalMoved as why:
                if not await self._handed_back():
                    raise self._taken_over() from why
            else:
                break
        if self.status == "running" and (await waits_of(self._runtime, self.state)).still:
            return "waiting"
        return self.status

    async def _stand_still(self) -> None:
        driver = self._driver
        if isinstance(driver.failure, JournalMoved):
            driver = await self._after_loss(driver.failure)
        if driver.failure is None and (not self.is_idle or self._is_elsewhere):
            driver = await self._alive()
        calls = any(isinstance(node.action, WorkflowAction) for node in driver.plan.nodes.values())
        if calls or "pins" in driver.state.setup.options:  # agents call sub-workflows too
            await self._lineage_settled()
        else:
            await driver.until(lambda: self.is_idle)

    @property
    def _is_elsewhere(self) -> bool:
        """Whether another process may have continued the execution since this one released it."""
        shared = self._runtime.store.claims is not None
        return shared and not self.state.ended and self.id not in self._runtime.drivers

    async def _after_loss(self, why: JournalMoved) -> Driver:
        """Return the driver of an execution that was lost to another process.

        Raises `why` while that process works on it.
        """
        if self._runtime.store.claims is not None:
            return await self._alive()
        if await self._runtime.take_work(self.id):
            return self._driver
        if status_of(await self._runtime.load(self.id)) == "running":
            raise why
        return await self._alive()

    async def _handed_back(self) -> bool:
        """Return whether the process that took over leaves the execution to a worker of this process within
        `HANDED_BACK_S`."""
        until = time.monotonic() + HANDED_BACK_S
        while time.monotonic() < until:
            driver = self._driver
            if driver.failure is None or await self._runtime.take_work(self.id):
                return True
            summary = await self._runtime.store.executions.find(self.id)
            if summary is None or summary.status not in OPEN:
                return False
            await asyncio.sleep(LOOKS_S)
        return False

    def _taken_over(self) -> OwnershipLost:
        return OwnershipLost(f"another process continued {self.id!r}", hint=TELLS)

    async def _lineage_settled(self) -> None:
        """Wait like `until`, but check again whenever anything happens in any execution of this process."""
        woken = asyncio.Event()
        leave = self._runtime.feed.watch(lambda _: woken.set())
        try:
            while not self.is_idle:
                woken.clear()
                await self._wait(woken)
        finally:
            leave()

    async def output(self) -> Out:
        """Wait for the end and return the output. Raises `ExecutionFailed` if the execution did not complete, and
        `TypeMismatch` if the output does not fit its Python type."""
        status = await self.settled()
        state = self._driver.state
        if status == "completed":
            output = state.outcome.output
            return cast("Out", output) if self._output_type is None else self._output_type.read(output)
        raise failed_of(state) from cause_in(state.outcome.failure)

    async def rows(self) -> list[Row]:
        """Return the whole journal."""
        return [row async for row in self._runtime.journal.read(self.id)]

    async def view(self) -> ExecutionView:
        """Return the view of the execution, built from its journal."""
        rows = await self.rows()
        return await view_with_children(self._runtime, folded(self.id, rows), rows)

    async def html(self) -> str:
        """Return a picture for notebooks: status, open gates, timeline."""
        return execution_html(self.state, await self.rows())

    def _repr_html_(self) -> str:
        """Return a picture without the timeline, which only `html` can read from the journal."""
        return execution_html(self.state)

    @property
    def is_kept(self) -> bool:
        """Whether other processes can find the execution."""
        return self._runtime.store.shared

    async def events(
        self, *, after: str = "", live: bool = False, follow: bool = True
    ) -> AsyncGenerator[PublicEvent, None]:
        """Yield its events, see `client.events`: first from the journal and then as they come, without loss or repeat,
        until nothing more happens by itself. `after`: continue behind the event with this id. `live`: also partial
        output of models and tools.

        Raises `OwnershipLost` if another process drives it.
        """
        seq, n = _event_position(after) if after else (0, -1)
        async with aclosing(self._updates(max(0, seq - 1), live=live, follow=follow)) as updates:
            async for update in updates:
                if isinstance(update, Delta):
                    yield delta_event(update)
                    continue
                for event in public_events(self.id, update, "full"):
                    if update.seq > seq or int(str(event["id"]).partition(".")[2]) > n:
                        yield event_of(msgspec.to_builtins(event))

    async def journal(self, *, after: int = 0, follow: bool = True) -> AsyncGenerator[JsonObject, None]:
        """Yield the complete events of its journal behind row `after`, as `events` does: each has a `kind`."""
        async with aclosing(self._updates(after, live=False, follow=follow)) as updates:
            async for row in updates:
                if isinstance(row, Row):
                    for number, event in enumerate(row.events):
                        yield event_view(row, number, event)

    async def _updates(self, after: int, *, live: bool, follow: bool) -> AsyncGenerator[Row | Delta, None]:
        """Yield the rows behind row `after`, and live output in its place between them."""
        woken = asyncio.Event()
        news = deque[Committed | Delta]()

        def see(seen: Committed | Delta) -> None:
            if seen.execution == self.id and (live or isinstance(seen, Committed)):
                news.append(seen)
                woken.set()

        leave = self._runtime.feed.watch(see)
        try:
            while True:
                woken.clear()
                settled = self.is_idle
                is_complete = bool(news) and not settled
                while news:
                    seen = news.popleft()
                    if isinstance(seen, Delta):
                        yield seen
                    elif seen.row.seq == after + 1:
                        after = seen.row.seq
                        yield seen.row
                    elif seen.row.seq > after:
                        is_complete = False
                if not is_complete:  # at first, at the end, and for rows of other processes
                    async for row in self._runtime.journal.read(self.id, after=after):
                        after = row.seq
                        yield row
                if settled or not follow:
                    return
                await self._wait_for_news(woken)
        finally:
            leave()

    async def _wait_for_news(self, woken: asyncio.Event) -> None:
        """Wait like `_wait`. Raises `OwnershipLost` if another process drives the execution."""
        try:
            await self._wait(woken)
        except JournalMoved as why:
            if not await self._handed_back():
                raise self._taken_over() from why

    async def _wait(self, woken: asyncio.Event) -> None:
        """Wait until a row arrives or the driver reports a change. Raises the error that broke the driver."""
        changed = asyncio.ensure_future(self._driver.until(lambda: woken.is_set() or self.is_idle))
        wake_up = asyncio.ensure_future(woken.wait())
        try:
            await asyncio.wait({changed, wake_up}, return_when=asyncio.FIRST_COMPLETED)
            if changed.done():
                changed.result()
        finally:
            for one in (changed, wake_up):
                one.cancel()

    # Actions of people ---------------------------------------------------------------------------------------------

    @overload
    async def answer(
        self,
        gate: Gate[Any, Answer],
        action: str,
        data: Answer | None = None,
        *,
        comment: str = "",
        by: str = "",
        groups: Sequence[str] = (),
        key: str = "",
        digest: str = "",
    ) -> None: ...

    @overload
    async def answer(
        self,
        gate: str,
        action: str,
        data: object = None,
        *,
        comment: str = "",
        by: str = "",
        groups: Sequence[str] = (),
        key: str = "",
        digest: str = "",
    ) -> None: ...

    async def answer(
        self,
        gate: str | Gate[Any, Any],
        action: str,
        data: object = None,
        *,
        comment: str = "",
        by: str = "",
        groups: Sequence[str] = (),
        key: str = "",
        digest: str = "",
    ) -> None:
        """Answer an open gate, named by its id, or by its node's id if only one gate of that node is open; or a typed
        `Gate`. `data`: JSON, or dataclasses and pydantic models that are written as JSON.

        `by` and `groups` identify the person, as the caller authenticated them. Repeating the same answer with the
        same `key` succeeds and changes nothing, even after the gate was closed. `digest` identifies what the person
        saw, from the gate's view; the answer is refused if the gate shows something else by now.
        """
        if isinstance(gate, Gate):
            answer_data, gate = gate.written(data), gate.node
        else:
            answer_data = as_json(data, what="the answer", path="data")
        answer = GateAnswer(action, answer_data, comment, by, tuple(groups), key, digest)
        await answer_gate(self._runtime, await self._alive(), gate, answer)
        await self._alive()

    async def has_answer(self, gate: str, action: str, data: Json, *, by: str, key: str) -> bool:
        """Return whether a closed gate has this very answer. Raises `AnswerDiffers` if `key` was used for another."""
        return await is_answered(self._runtime, await self._alive(), gate, GateAnswer(action, data, by=by, key=key))

    async def delegate(self, gate: str, to: str, *, by: str, groups: Sequence[str] = (), comment: str = "") -> None:
        """Pass the right of `by` to answer an open gate on to another person."""
        driver = await self._alive()
        await delegate_gate(self._runtime, driver, gate, to, by=by, groups=tuple(groups), comment=comment)
        await self._alive()

    async def _alive(self) -> Driver:
        """Return the driver; open a new one if another process appended first or the leader evicted the execution."""
        known = self._driver
        if known.failure is not None:
            self._known = await self._runtime.open(self.id, recover=False)
        elif not known.state.ended and known.execution not in self._runtime.drivers:
            self._known = await self._runtime.open(self.id)
        await self._known.decided()
        return self._known

    async def _deliver(self, say: Callable[[Driver], Awaitable[T]]) -> T:
        """Deliver to the current state of the execution; retry up to `RACES_MAX` times when another process appends
        first."""
        for _ in range(RACES_MAX):
            with suppress(JournalMoved, DriverLost):
                return await say(await self._alive())
        return await say(await self._alive())

    def asking(self, gate: OpenGate) -> Execution:
        """Return the execution that a gate belongs to: this one or one of its sub-workflows."""
        return Execution(self._runtime, gate.driver)

    def gate(self, name: str) -> OpenGate:
        """Return the open gate with that id or of that node. Raises `GateAmbiguous`, `NoSuchGate`."""
        return gate_named(self.gates, name)

    def shown(self, gate: Gate[Shown, Any]) -> Shown:
        """Return what an open gate shows. Raises `GateAmbiguous`, `NoSuchGate`, `TypeMismatch`."""
        at = self.gate(gate.node).at
        return gate.read(None if at.gate is None else at.gate.displayed)

    async def cancel(self, *, reason: str = "", by: str = "", now: bool = False) -> None:
        """Cancel the execution and its sub-workflows for good. A second call has no effect.

        Compensation runs first, and the execution continues until it is done. `now`: skip compensation, or what is
        left of it.
        """
        await self._deliver(lambda driver: driver.deliver(CancelRequested(reason=reason, by=by, now=now)))

    async def steer(
        self,
        messages: Sequence[Json] = (),
        *,
        set: Mapping[str, Json] | None = None,
        goto: str | None = None,
        reason: str = "",
        by: str = "",
    ) -> None:
        """Intervene between steps: add messages to the conversation (a plain string is the user's), set values in the
        data (`a.b`, or `each[1.0]/a.b` in an open branch), and send control to one node only.

        Everything takes effect or nothing does. Raises `NotSteerable`, `WrongStatus`, `EditRefused`.
        """
        values: tuple[Json, ...] = tuple(
            {"role": "user", "content": message} if isinstance(message, str) else message for message in messages
        )

        def steer(driver: Driver) -> Awaitable[object]:
            edits = edits_of(driver.state, set or {})
            return driver.deliver(SteerRequested(edits=edits, messages=values, goto=goto, reason=reason, by=by))

        await self._deliver(steer)

    async def drained(self) -> None:
        """Return when this process has carried out its last commands and nothing of it is in progress here."""
        await self._driver.drained()

    async def pause(self, *, by: str = "") -> None:
        """Start no further step here or in its sub-workflows; running steps may finish."""
        await self._deliver(lambda driver: pause_with_children(self._runtime, driver, by))

    async def resume(self, *, limits: dict[str, float] | None = None, by: str = "", step: bool = False) -> None:
        """Continue after a pause or a limit, and return once everything that is due is carried out.

        After a crash, opening the execution has continued it already: it may have ended since, or paused again. `step`:
        continue only until the next step would begin.

        Raises `OwnershipLost` if another process resumed it at the same moment; `ModelUnusable` or `ModelUnnamed` if a
        model that it still needs cannot be called from here. Nothing has changed then.
        """
        known, was_halted = self._driver, self._driver.state.is_halted
        driver = await self._alive()
        await self._must_go_on(driver)
        if was_halted if driver is known else driver.state.is_halted:
            await self._deliver(lambda driver: self._resume(driver, limits or {}, by, step=step))
        elif limits and not driver.state.ended:
            raise WrongStatus(
                f"{self.id!r} is {self.status}: a limit can only be raised if the execution is paused or "
                "reached a limit",
                hint="Omit --limit, or pause the execution first.",
            )
        elif driver.state.steps_without_worker:
            driver.offer()
        elif driver.state.ended and (self._had_ended or not driver.recovered):
            await driver.deliver(ResumeRequested(by=by))  # refused, with the reason
        await self._carry_out_due()

    async def _carry_out_due(self) -> None:
        """Carry out what is due before the caller reads the state."""
        await self._deliver(lambda driver: carry_out_due(self._runtime, driver))

    async def _resume(self, driver: Driver, limits: dict[str, float], by: str, *, step: bool) -> None:
        if not driver.state.is_halted and not driver.state.ended:
            raise self._taken_over()
        await resume_with_children(self._runtime, driver, limits, by, step=step)

    async def _must_go_on(self, driver: Driver) -> None:
        if driver.state.status not in ("completed", "cancelled") and self._runtime.can_go_on is not None:
            await self._runtime.can_go_on(driver.plan, driver.state)

    async def retry(self, *, limits: dict[str, float] | None = None, by: str = "") -> None:
        """Retry the step that failed the execution, optionally with higher limits. Raises like `resume` if a model
        cannot be called."""
        await self._must_go_on(self._driver)
        await self._deliver(lambda driver: driver.deliver(RetryRequested(limits=limits or {}, by=by)))
        await self._carry_out_due()

    async def signal(self, name: str, data: Json = None, *, key: str = "", by: str = "") -> Signalled:
        """Send an event: to the steps that wait for it, or else to the first step that will. Events with the same key
        of the same sender (`by`) are delivered once.

        Raises `WrongStatus` if the execution has ended, `TooManyBufferedEvents` if too many events wait,
        `EventTooLarge`.
        """
        check_event(name, data)
        named = event_key("caller", by, key) if key else ""
        received = EventReceived(name=name, data=data, by=by, key=named, keeps=True)
        events = await self._deliver(lambda driver: driver.deliver(received))
        taken = [event for event in events if isinstance(event, EventConsumed)]
        if taken:
            return "kept" if taken[0].kept else "taken"
        if self.state.ended:
            raise WrongStatus(
                f"{self.id!r} is {self.status}: it does not accept events", hint="Send the event to another execution."
            )
        return "known"
