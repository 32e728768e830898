"""An execution together with its sub-workflows: its view, whether it stands still, its open gates and their answers.

    name ─▶ open gate? ─▶ deliver ─▶ refused as closed ─┐
              └─ none ──────────────────────────────────┴▶ the journal shows how and by whom it was closed, or holds
                                                            this very answer (same key), which counts as success

The journal is the only record of answers: the state of an execution holds nothing about closed gates.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from pointsman.context import AppContext
from pointsman.engine.decide import limits
from pointsman.engine.decide.human_tasks import GateClosedAlready, same_answer
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.instants import instant_text
from pointsman.engine.reports import DelegationRequested, GateAnswered, PauseRequested, ResumeRequested, TimerFired
from pointsman.engine.state import ExecutionState, StepState, status_of
from pointsman.engine.steps import Step
from pointsman.errors import CallerError, PointsmanError
from pointsman.executions.inputs import artifacts_of
from pointsman.executions.views import (
    AwaitedEvent,
    ExecutionView,
    GateView,
    NeededWorker,
    TimerView,
    awaiting_view,
    event_view,
    execution_view,
    limit_view,
    needs_view,
    status_shown,
    stopped_by,
    timers_view,
    waiting_view,
)
from pointsman.ports import Row
from pointsman.runtime.children import children_of, stands_still_for_parent
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime, folded, unknown_execution
from pointsman.settings import Settings
from pointsman.store.api import Store
from pointsman.store.errors import JournalMoved
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Json, JsonObject

MOVING = frozenset({"wait", "retry", "delay"})
"""Purposes of timers that continue an execution by themselves; timers of gates only end a wait for people."""


_CHILDREN_MAX: Final = 1000
"""Sub-workflows of one execution that lists look at."""


class OpenGate(NamedTuple):
    """An open gate and the execution that opened it."""

    driver: Driver
    at: StepState

    @property
    def id(self) -> str:
        assert self.at.gate is not None
        return self.at.gate.id

    @property
    def node(self) -> str:
        return self.at.step.node


def is_idle(runtime: LocalRuntime, driver: Driver) -> bool:
    """Return whether nothing more happens by itself: the execution has ended, is paused, or only people and events can
    continue it and its sub-workflows."""
    state = driver.state
    if driver.committing or driver.offering:
        return False  # its decision is not durable yet, or it is about to continue
    if state.ended:
        return not state.outbox
    if driver.is_due:
        return False
    if state.is_halted:
        return not driver.busy
    if not _only_waits(state) or any(timer.purpose in MOVING for timer in state.timers.values()):
        return False
    below = [child for at in state.steps.values() for child in _children(runtime, driver, at)]
    return all(child is not None and not _is_due(child) and is_idle(runtime, child) for child in below)


def _is_due(child: Driver) -> bool:
    """Return whether the child's end is about to be reported, or it is about to continue with its running parent."""
    return child.state.ended or stands_still_for_parent(child)


def _only_waits(state: ExecutionState) -> bool:
    """Return whether every open step waits: for people, events, timers or sub-workflows."""
    return status_of(state) == "waiting" or (
        state.status == "running"
        and not state.counters.running_steps
        and bool(state.steps)
        and not any(at.is_running for at in state.steps.values())
    )


def _children(runtime: LocalRuntime, driver: Driver, at: StepState) -> list[Driver | None]:
    return [runtime.at_hand(name) for name in children_of(driver.execution, at)]


def gates_of(runtime: LocalRuntime, driver: Driver) -> Iterator[OpenGate]:
    """Yield the open gates of an execution in the order of their steps, then those of each sub-workflow."""
    for at in driver.state.open_gates:
        yield OpenGate(driver, at)
    for at in sorted(driver.state.steps.values(), key=lambda at: at.step):
        for child in _children(runtime, driver, at):
            if child is not None:
                yield from gates_of(runtime, child)


class Waits(NamedTuple):
    """The waits of an execution and its sub-workflows."""

    still: bool
    """They do nothing else."""
    stopped: bool
    """The process that worked on one of them has ended."""
    gates: list[GateView]
    events: list[AwaitedEvent]
    needs: list[NeededWorker]
    timers: list[TimerView]


async def waits_of(runtime: LocalRuntime, state: ExecutionState) -> Waits:
    """Collect the waits from the journals; entries of sub-workflows name their execution (`executionId`)."""
    still, gates, awaited, needs = _only_waits(state), waiting_view(state), awaiting_view(state), needs_view(state)
    timers = timers_view(state)
    stopped = await _is_stopped(runtime, state)
    for at in sorted(state.steps.values(), key=lambda a: a.step):
        for name in children_of(ExecutionId(state.id), at):
            if not await runtime.journal.last(name):
                still = False
                continue
            below = await waits_of(runtime, await runtime.load(name))
            still = still and below.still
            gates += [_of(name, gate) for gate in below.gates]
            awaited += [_of(name, event) for event in below.events]
            needs += [_of(name, need) for need in below.needs]
            timers += [_of(name, timer) for timer in below.timers]
            stopped = stopped or below.stopped
    return Waits(still, stopped, gates, awaited, needs, timers)


async def listed_executions(app: AppContext, query: ExecutionQuery | None = None) -> list[Summary]:
    """Return executions, newest first, with the statuses of their views. A `query` selects by stored statuses, where an
    execution whose sub-workflows wait is `running`."""
    summaries = await app.store.executions.list(query if query is not None else ExecutionQuery())
    return [await with_shown_status(app.runtime, summary) for summary in summaries]


async def with_shown_status(runtime: LocalRuntime, summary: Summary) -> Summary:
    """Return the entry of a list with the status that `view_with_children` shows: a stored `running` is `waiting` if
    the execution and its sub-workflows only wait. Journals are read only if all open sub-workflows wait."""
    if summary.status != "running":
        return summary
    open_ = frozenset({"pending", "running", "waiting", "paused", "interrupted"})
    query = ExecutionQuery(parent=summary.execution, statuses=open_, trials=True, limit=_CHILDREN_MAX)
    below = await runtime.store.executions.list(query)
    if not below:
        return summary
    for child in below:
        if (await with_shown_status(runtime, child)).status != "waiting":
            return summary
    waits = await waits_of(runtime, await runtime.load(summary.execution))
    return replace(summary, status="waiting") if waits.still and not waits.stopped else summary


async def _is_stopped(runtime: LocalRuntime, state: ExecutionState) -> bool:
    """Return whether a step was in progress in a process that has ended, and no process continued it."""
    execution = ExecutionId(state.id)
    if state.status != "running" or not state.counters.running_steps or runtime.drives(execution):
        return False
    summary = await runtime.store.executions.find(execution)
    return summary is not None and status_shown(summary.status, summary.worker) == "stopped"


W = TypeVar("W", GateView, AwaitedEvent, NeededWorker, TimerView)


def _of(execution: ExecutionId, wait: W) -> W:
    """Add the execution to a wait, unless it names one further below."""
    wait.setdefault("executionId", execution)
    return wait


async def view_with_children(runtime: LocalRuntime, state: ExecutionState, rows: list[Row]) -> ExecutionView:
    """Return the view of an execution including what its sub-workflows wait for. Its status is `waiting` if everything
    that is left waits. If a limit stopped it, `limit` contains the value it may be raised to."""
    view = execution_view(state, rows)
    limit = stopped_by(state, rows)
    if limit is not None:
        plan = await runtime.plans.pinned(state.setup.definition, state.setup.options)
        view["limit"] = limit_view(limits.offer(plan, state, limit, runtime.clock.now()))
    if state.ended:
        return view
    waits = await waits_of(runtime, state)
    if view["status"] == "running":
        view["status"] = "stopped" if waits.stopped else "waiting" if waits.still else "running"
    view.update({"waiting": waits.gates, "awaiting": waits.events, "waitingFor": waits.needs, "timers": waits.timers})
    return view


async def pause_with_children(runtime: LocalRuntime, driver: Driver, by: str) -> None:
    """Pause an execution and its running sub-workflows. A repeated call pauses what a crash left running."""
    await driver.deliver(PauseRequested(by=by))
    for child in await _below(runtime, driver, recover=False):
        await child.decided()
        if child.state.status in ("running", "paused"):
            await pause_with_children(runtime, child, by)


async def resume_with_children(
    runtime: LocalRuntime, driver: Driver, limits: dict[str, float], by: str, *, step: bool = False
) -> None:
    """Resume a paused or interrupted execution and its paused sub-workflows. `step`: run the execution itself one step
    at a time."""
    await driver.deliver(ResumeRequested(limits=limits, by=by, step=step))
    for child in await _below(runtime, driver, recover=True):
        await child.decided()
        if child.state.status == "paused":
            await resume_with_children(runtime, child, {}, by)


async def carry_out_due(runtime: LocalRuntime, driver: Driver) -> None:
    """Return once everything that is due is carried out, here and in sub-workflows: deadlines, waits, retries."""
    await driver.until(lambda: driver.state.ended or not driver.is_due)
    for child in await _below(runtime, driver, recover=driver.recovered):
        await carry_out_due(runtime, child)


async def _below(runtime: LocalRuntime, driver: Driver, *, recover: bool) -> list[Driver]:
    """Return the started sub-workflows that the execution waits for."""
    names = [name for at in driver.state.steps.values() for name in children_of(driver.execution, at)]
    started = [name for name in names if runtime.at_hand(name) is not None or await runtime.journal.last(name)]
    return [await runtime.open(name, recover=recover) for name in started]


async def _open_below(runtime: LocalRuntime, driver: Driver) -> None:
    """Open the sub-workflows at all levels. Recovery opens them in the background, and a gate is found only in an open
    one."""
    for child in await _below(runtime, driver, recover=driver.recovered):
        await _open_below(runtime, child)


async def rows_and_view(runtime: LocalRuntime, settings: Settings, execution: str) -> tuple[list[Row], ExecutionView]:
    """Return its journal, and its view as of the last row. Raises `UnknownExecution`."""
    rows = await rows_of(runtime.store, ExecutionId(execution))
    view = await view_with_children(runtime, folded(execution, rows), rows)
    return rows, {**view, "artifacts": await artifacts_of(settings, execution)}


async def view_of(app: AppContext, execution: str) -> ExecutionView:
    """Return the view of an execution, without resuming it."""
    return (await rows_and_view(app.runtime, app.settings, execution))[1]


async def state_and_events(app: AppContext, execution: str) -> tuple[ExecutionState, list[JsonObject]]:
    """Return the state of an execution and its events, without resuming it."""
    rows = await rows_of(app.store, ExecutionId(execution))
    events = [event_view(row, number, event) for row in rows for number, event in enumerate(row.events)]
    return folded(execution, rows), events


async def rows_of(store: Store, execution: ExecutionId) -> list[Row]:
    """Return the whole journal. Raises `UnknownExecution`."""
    rows = [row async for row in store.journal.read(execution)]
    if not rows:
        raise unknown_execution(execution)
    return rows


RACES_MAX: Final = 5
"""How often a delivery is tried when another process appends first."""
CHILDREN_MAX: Final = 1000


class NoSuchGate(CallerError):
    """The execution has no open gate with this id or of this node."""

    code: ClassVar[str] = "no-such-gate"


class GateAmbiguous(CallerError):
    """Several open gates fit; the answer must name one."""

    code: ClassVar[str] = "gate-ambiguous"


class GateAnswer(NamedTuple):
    """A person's answer to a gate, and who they are."""

    action: str
    data: Json = None
    comment: str = ""
    by: str = ""
    groups: tuple[str, ...] = ()
    key: str = ""
    """Idempotency key: the same answer with the same key again changes nothing."""
    digest: str = ""
    """Digest of what the person saw, from the gate's view; empty: not known."""


class ClosedGate(NamedTuple):
    """A gate that is no longer open."""

    gate: str
    node: str
    how: str
    answers: dict[str, tuple[str, str, Json]]
    """Idempotency key -> (who, action, data)."""


async def answer_gate(runtime: LocalRuntime, driver: Driver, name: str, answer: GateAnswer) -> None:
    """Answer the open gate with that id, or of that node if only one is open. The answer is durable on return.

    Raises `GateClosedAlready` with how it was closed, `GateChangedMeanwhile` if the gate shows something else than
    the digest of the answer identifies, `GateAmbiguous`, `NoSuchGate`, and the errors for an answer that the gate does
    not accept.
    """
    if answer.key and await is_answered(runtime, driver, name, answer):
        return

    async def deliver(gate: OpenGate) -> None:
        report = GateAnswered(
            step=gate.at.step,
            action=answer.action,
            data=answer.data,
            comment=answer.comment,
            by=answer.by,
            groups=answer.groups,
            key=answer.key,
            gate=gate.id,
            digest=answer.digest,
        )
        await gate.driver.deliver(report)

    try:
        await _deliver(runtime, driver, name, deliver)
    except (GateClosedAlready, NoSuchGate) as why:
        if answer.key and await is_answered(runtime, driver, name, answer):
            return
        raise await _closed(runtime, driver, name) or why from None


async def delegate_gate(
    runtime: LocalRuntime, driver: Driver, name: str, to: str, *, by: str, groups: tuple[str, ...], comment: str
) -> None:
    """Pass the right of `by` to answer on to another person. Raises like `answer_gate`, and `NotDelegable`."""

    async def deliver(gate: OpenGate) -> None:
        report = DelegationRequested(step=gate.at.step, to=to, by=by, groups=groups, comment=comment, gate=gate.id)
        await gate.driver.deliver(report)

    try:
        await _deliver(runtime, driver, name, deliver)
    except (GateClosedAlready, NoSuchGate) as why:
        raise await _closed(runtime, driver, name) or why from None


async def _deliver(
    runtime: LocalRuntime, driver: Driver, name: str, deliver: Callable[[OpenGate], Awaitable[None]]
) -> None:
    """Deliver to the current gate; look it up again when another process appends first."""
    await _open_below(runtime, driver)
    for left in reversed(range(RACES_MAX)):
        gate = gate_named([*gates_of(runtime, driver)], name)
        try:
            if await _fire_due_timers(gate, runtime.clock.now()):
                gate = gate_named([*gates_of(runtime, driver)], name)
            await deliver(gate)
            return
        except (JournalMoved, DriverLost):
            if not left:
                raise
            again = await runtime.open(gate.driver.execution, recover=False)
            driver = again if gate.driver is driver else driver


async def _fire_due_timers(gate: OpenGate, now: float) -> bool:
    """Fire the gate's timers that are due, and return whether there were any.

    A deadline may have passed while no process was running: the gate must be closed or escalated before anyone
    answers. The caller looks the gate up again, since another person may have been faster.
    """
    timers = gate.driver.state.timers
    due = [timer for timer in gate.at.timers if timer in timers and timers[timer].at <= now]
    for timer in due:
        await gate.driver.deliver(TimerFired(timer=timer))
    return bool(due)


def gate_named(gates: list[OpenGate], name: str) -> OpenGate:
    """Return the open gate with that id or of that node. Raises `GateAmbiguous`, `NoSuchGate`."""
    matches = [gate for gate in gates if gate.id == name] or [gate for gate in gates if gate.node == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        hint = f"Choose one: {', '.join(_names(matches))}."
        if len({gate.id for gate in matches}) < len(matches):
            names = ", ".join(sorted(gate.driver.execution for gate in matches))
            hint = f"Sub-workflows ask. Answer at one of them: {names}."
        raise GateAmbiguous(f"{name!r} has {len(matches)} open gates", hint=hint)
    raise NoSuchGate(f"there is no open gate {name!r}", hint=f"Open gates: {', '.join(_names(gates)) or 'none'}.")


def _names(gates: list[OpenGate]) -> list[str]:
    return sorted({gate.id for gate in gates})


async def is_answered(runtime: LocalRuntime, driver: Driver, name: str, answer: GateAnswer) -> bool:
    """Return whether a gate that is closed received this very answer. Raises `AnswerDiffers` if its key was used for
    another one."""
    async for past in _pasts(runtime, driver.execution, name):
        earlier = past.answers.get(answer.key)
        if earlier is not None:
            same_answer(answer.key, earlier, (answer.by, answer.action, answer.data))
            return True
    return False


async def _closed(runtime: LocalRuntime, driver: Driver, name: str) -> GateClosedAlready | None:
    """Return how the latest gate of that name was closed; None: there was none."""
    latest: ClosedGate | None = None
    async for past in _pasts(runtime, driver.execution, name):
        latest = past
    if latest is None:
        return None
    return GateClosedAlready(f"the gate {latest.gate!r} is closed: {latest.how}", hint="The first answer is kept.")


async def _pasts(runtime: LocalRuntime, execution: ExecutionId, name: str) -> AsyncIterator[ClosedGate]:
    """Yield the closed gates with that id or of that node, of an execution and then of its sub-workflows, oldest
    first."""
    driver = runtime.drivers.get(execution)
    if driver is not None:
        with suppress(PointsmanError):  # A lost driver has no more rows to write.
            await driver.until(lambda: True)
    rows = [row async for row in runtime.journal.read(execution)]
    for past in closed_gates(rows):
        if name in (past.gate, past.node):
            yield past
    if any(
        isinstance(event, wait_events.ChildRequested | wait_events.ToolChildrenRequested)
        for row in rows
        for event in row.events
    ):
        below = ExecutionQuery(parent=execution, limit=CHILDREN_MAX)
        for child in await runtime.store.executions.list(below):
            async for past in _pasts(runtime, child.execution, name):
                yield past


def closed_gates(rows: list[Row]) -> list[ClosedGate]:
    """Return the closed gates in a journal, oldest first."""
    gates: list[ClosedGate] = []
    still: dict[Step, ClosedGate] = {}
    for row in rows:
        for event in row.events:
            step = getattr(event, "step", None)
            if isinstance(event, wait_events.GateOpened):
                still[event.step] = ClosedGate(event.gate, event.step.node, "", {})
            elif isinstance(event, life_events.ExecutionCancelled | life_events.ExecutionCompleted):
                gates += [gate._replace(how=f"the execution was {event_name(event)}") for gate in still.values()]
                still.clear()
            elif isinstance(step, Step) and step in still:
                _take(still[step], event)
                closing = _how(event, row.at)
                if closing:
                    gates.append(still.pop(step)._replace(how=closing))
    return gates


def event_name(event: life_events.ExecutionCancelled | life_events.ExecutionCompleted) -> str:
    return "cancelled" if isinstance(event, life_events.ExecutionCancelled) else "completed"


def _take(past: ClosedGate, event: events.Event) -> None:
    if isinstance(event, wait_events.GateVoted | wait_events.GateClosed) and event.key:
        past.answers.setdefault(event.key, (event.by, event.action, event.data))


def _how(event: events.Event, at: float) -> str:
    """Return how the event closed its gate; empty: it did not."""
    when = instant_text(at)
    match event:
        case wait_events.GateClosed(cause="timeout"):
            return f"its deadline passed at {when}, and {event.action!r} was taken"
        case wait_events.GateClosed():
            by = f" by {event.by!r}" if event.by else ""
            return f"it was answered with {event.action!r}{by} at {when}"
        case events.StepFailed(final=True):
            return f"its deadline passed at {when}" if event.failure.code == "gate-timeout" else f"it failed at {when}"
        case events.StepCancelled():
            return f"it was cancelled at {when}"
        case _:
            return ""
