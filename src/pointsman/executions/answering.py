"""Answering gates: find the gate that is meant, explain how a closed one was closed, and accept repeated answers.

    name ─▶ open gate? ─▶ deliver ─▶ refused as closed ─┐
              └─ none ──────────────────────────────────┴▶ the journal shows who closed it and how, or that it holds
                                                            this very answer (same key), which counts as success

The journal is the only record of answers: the state of an execution holds nothing about closed gates.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

from pointsman.engine.decide.human_tasks import GateClosedAlready, same_answer
from pointsman.engine.events import lifecycle as life_events
from pointsman.engine.events import steps as events
from pointsman.engine.events import waits as wait_events
from pointsman.engine.instants import instant_text
from pointsman.engine.reports import DelegationRequested, GateAnswered, TimerFired
from pointsman.engine.steps import NoSuchStep, Step
from pointsman.errors import CallerError, PointsmanError
from pointsman.executions.families import OpenGate, gates_of
from pointsman.ports import Row
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.store.errors import JournalMoved
from pointsman.store.records import ExecutionQuery
from pointsman.values import ExecutionId, Json

RACES_MAX: Final = 5
"""How often a delivery is tried when another process appends first."""
CHILDREN_MAX: Final = 1000


class GateUnclear(CallerError):
    """Several open gates fit; the answer must name one."""

    code: ClassVar[str] = "gate-unclear"


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


class Past(NamedTuple):
    """A gate that is no longer open."""

    gate: str
    node: str
    how: str
    answers: dict[str, tuple[str, str, Json]]
    """Idempotency key -> (who, action, data)."""


async def answer_gate(runtime: LocalRuntime, driver: Driver, name: str, answer: GateAnswer) -> None:
    """Answer the open gate with that id, or of that node if only one is open. The answer is durable on return.

    Raises `GateClosedAlready` with how it was closed, `GateChangedMeanwhile` if the gate shows something else than
    the digest of the answer identifies, `GateUnclear`, `NoSuchStep`, and the errors for an answer that the gate does
    not accept.
    """
    if answer.key and await _is_answered(runtime, driver, name, answer):
        return

    async def deliver(gate: OpenGate) -> None:
        said = GateAnswered(
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
        await gate.driver.deliver(said)

    try:
        await _told(runtime, driver, name, deliver)
    except (GateClosedAlready, NoSuchStep) as why:
        if answer.key and await _is_answered(runtime, driver, name, answer):
            return
        raise await _closed(runtime, driver, name) or why from None


async def delegate_gate(
    runtime: LocalRuntime, driver: Driver, name: str, to: str, *, by: str, groups: tuple[str, ...], comment: str
) -> None:
    """Pass the right of `by` to answer on to another person. Raises like `answer_gate`, and `NotDelegable`."""

    async def deliver(gate: OpenGate) -> None:
        said = DelegationRequested(step=gate.at.step, to=to, by=by, groups=groups, comment=comment, gate=gate.id)
        await gate.driver.deliver(said)

    try:
        await _told(runtime, driver, name, deliver)
    except (GateClosedAlready, NoSuchStep) as why:
        raise await _closed(runtime, driver, name) or why from None


async def _told(
    runtime: LocalRuntime, driver: Driver, name: str, deliver: Callable[[OpenGate], Awaitable[None]]
) -> None:
    """Deliver to the current gate; look it up again when another process appends first."""
    for left in reversed(range(RACES_MAX)):
        gate = gate_named([*gates_of(runtime, driver)], name)
        try:
            if await _rang(gate, runtime.clock.now()):
                gate = gate_named([*gates_of(runtime, driver)], name)
            await deliver(gate)
            return
        except (JournalMoved, DriverLost):
            if not left:
                raise
            again = await runtime.open(gate.driver.execution, recover=False)
            driver = again if gate.driver is driver else driver


async def _rang(gate: OpenGate, now: float) -> bool:
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
    """Return the open gate with that id or of that node. Raises `GateUnclear`, `NoSuchStep`."""
    found = [gate for gate in gates if gate.id == name] or [gate for gate in gates if gate.node == name]
    if len(found) == 1:
        return found[0]
    if found:
        hint = f"Name one: {', '.join(_names(found))}."
        if len({gate.id for gate in found}) < len(found):
            asking = ", ".join(sorted(gate.driver.execution for gate in found))
            hint = f"Sub-workflows ask. Answer at one of them: {asking}."
        raise GateUnclear(f"{name!r} has {len(found)} open gates", hint=hint)
    raise NoSuchStep(f"no gate {name!r} is open", hint=f"Open: {', '.join(_names(gates)) or 'none'}.")


def _names(gates: list[OpenGate]) -> list[str]:
    return sorted({gate.id for gate in gates})


async def _is_answered(runtime: LocalRuntime, driver: Driver, name: str, answer: GateAnswer) -> bool:
    """Return whether this very answer is in the journal. Raises `AnswerDiffers` if its key was used for another one."""
    async for past in _pasts(runtime, driver.execution, name):
        known = past.answers.get(answer.key)
        if known is not None:
            same_answer(answer.key, known, (answer.by, answer.action, answer.data))
            return True
    return False


async def _closed(runtime: LocalRuntime, driver: Driver, name: str) -> GateClosedAlready | None:
    """Return how the latest gate of that name was closed; None: there was none."""
    latest: Past | None = None
    async for past in _pasts(runtime, driver.execution, name):
        latest = past
    if latest is None:
        return None
    return GateClosedAlready(f"the gate {latest.gate!r} is closed: {latest.how}", hint="Its first answer stays.")


async def _pasts(runtime: LocalRuntime, execution: ExecutionId, name: str) -> AsyncIterator[Past]:
    """Yield the closed gates with that id or of that node, of an execution and then of its sub-workflows, oldest
    first."""
    driver = runtime.drivers.get(execution)
    if driver is not None:
        with suppress(PointsmanError):  # A lost driver has no more rows to write.
            await driver.until(lambda: True)
    rows = [row async for row in runtime.journal.read(execution)]
    for past in pasts_of(rows):
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


def pasts_of(rows: list[Row]) -> list[Past]:
    """Return the closed gates in a journal, oldest first."""
    found: list[Past] = []
    still: dict[Step, Past] = {}
    for row in rows:
        for event in row.events:
            step = getattr(event, "step", None)
            if isinstance(event, wait_events.GateOpened):
                still[event.step] = Past(event.gate, event.step.node, "", {})
            elif isinstance(event, life_events.ExecutionCancelled | life_events.ExecutionCompleted):
                found += [gate._replace(how=f"the execution was {event_word(event)}") for gate in still.values()]
                still.clear()
            elif isinstance(step, Step) and step in still:
                _take(still[step], event)
                how = _how(event, row.at)
                if how:
                    found.append(still.pop(step)._replace(how=how))
    return found


def event_word(event: life_events.ExecutionCancelled | life_events.ExecutionCompleted) -> str:
    return "cancelled" if isinstance(event, life_events.ExecutionCancelled) else "completed"


def _take(past: Past, event: events.Event) -> None:
    if isinstance(event, wait_events.GateVoted | wait_events.GateClosed) and event.key:
        past.answers.setdefault(event.key, (event.by, event.action, event.data))


def _how(event: events.Event, at: float) -> str:
    """Return how the event closed its gate; empty: it did not."""
    when = instant_text(at)
    match event:
        case wait_events.GateClosed(cause="timeout"):
            return f"its time was up at {when}, and {event.action!r} was taken"
        case wait_events.GateClosed():
            by = f" by {event.by!r}" if event.by else ""
            return f"it was answered {event.action!r}{by} at {when}"
        case events.StepFailed(final=True):
            return f"its time was up at {when}" if event.failure.code == "gate-timeout" else f"it failed at {when}"
        case events.StepCancelled():
            return f"it was cancelled at {when}"
        case _:
            return ""
