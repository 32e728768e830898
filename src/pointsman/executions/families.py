"""An execution together with its sub-workflows: whether they stand still, and their open gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from pointsman.engine.decide import limits
from pointsman.engine.reports import PauseRequested, ResumeRequested
from pointsman.engine.state import ExecutionState, StepState, status_of
from pointsman.executions.views import (
    AwaitedEvent,
    ExecutionView,
    GateView,
    NeededWorker,
    TimerView,
    awaiting_view,
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
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.values import ExecutionId

MOVING = frozenset({"wait", "retry", "delay"})
"""Purposes of timers that continue an execution by themselves; timers of gates only end a wait for people."""


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


def is_still(runtime: LocalRuntime, driver: Driver) -> bool:
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
    return all(child is not None and not _is_due(child) and is_still(runtime, child) for child in below)


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
    return [runtime.drivers.get(name) for name in children_of(driver.execution, at)]


def gates_of(runtime: LocalRuntime, driver: Driver) -> Iterator[OpenGate]:
    """Yield the open gates of an execution in the order of their steps, then those of each sub-workflow."""
    for at in driver.state.open_gates:
        yield OpenGate(driver, at)
    for at in sorted(driver.state.steps.values(), key=lambda at: at.step):
        for child in _children(runtime, driver, at):
            if child is not None:
                yield from gates_of(runtime, child)


class Waits(NamedTuple):
    """What an execution and its sub-workflows wait for."""

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


async def _is_stopped(runtime: LocalRuntime, state: ExecutionState) -> bool:
    """Return whether a step was in progress in a process that has ended, and no process continued it."""
    execution = ExecutionId(state.id)
    if state.status != "running" or not state.counters.running_steps or runtime.drives(execution):
        return False
    known = await runtime.store.executions.find(execution)
    return known is not None and status_shown(known.status, known.worker) == "stopped"


W = TypeVar("W", GateView, AwaitedEvent, NeededWorker, TimerView)


def _of(execution: ExecutionId, wait: W) -> W:
    """Add the execution to a wait, unless it names one further below."""
    wait.setdefault("executionId", execution)
    return wait


async def family_view(runtime: LocalRuntime, state: ExecutionState, rows: list[Row]) -> ExecutionView:
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


async def pause_family(runtime: LocalRuntime, driver: Driver, by: str) -> None:
    """Pause an execution and its running sub-workflows. A repeated call pauses what a crash left running."""
    await driver.deliver(PauseRequested(by=by))
    for child in await _below(runtime, driver, recover=False):
        if child.state.status in ("running", "paused"):
            await pause_family(runtime, child, by)


async def resume_family(
    runtime: LocalRuntime, driver: Driver, limits: dict[str, float], by: str, *, step: bool = False
) -> None:
    """Resume a paused or interrupted execution and its paused sub-workflows. `step`: run the execution itself one step
    at a time."""
    await driver.deliver(ResumeRequested(limits=limits, by=by, step=step))
    for child in await _below(runtime, driver, recover=True):
        if child.state.status == "paused":
            await resume_family(runtime, child, {}, by)


async def carry_out_due(runtime: LocalRuntime, driver: Driver) -> None:
    """Return once everything that is due is carried out, here and in sub-workflows: deadlines, waits, retries."""
    await driver.until(lambda: driver.state.ended or not driver.is_due)
    for child in await _below(runtime, driver, recover=driver.recovered):
        await carry_out_due(runtime, child)


async def _below(runtime: LocalRuntime, driver: Driver, *, recover: bool) -> list[Driver]:
    """Return the started sub-workflows that the execution waits for."""
    names = [name for at in driver.state.steps.values() for name in children_of(driver.execution, at)]
    begun = [name for name in names if name in runtime.drivers or await runtime.journal.last(name)]
    return [await runtime.open(name, recover=recover) for name in begun]
