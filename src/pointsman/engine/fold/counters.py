"""Counters: open steps, running steps, tokens per scope. Both `decide` and `fold` rely on them being exact."""

from __future__ import annotations

from pointsman.engine.state import ExecutionState, StepState
from pointsman.engine.steps import Step


def tick(state: ExecutionState, more: int = 0) -> None:
    """Add the working time up to now. Call it before the status changes; `more` is the change in running steps."""
    known = state.counters
    if known.running_steps and state.status in ("running", "paused"):
        known.worked_s += state.at - known.working_since
    known.working_since = state.at
    known.running_steps += more


def add(state: ExecutionState, at: StepState) -> None:
    """Add an open step."""
    scope, node = at.scope, at.step.node
    scope.open_steps[node] = scope.open_steps.get(node, 0) + 1
    scope.tokens += 1
    state.steps[at.step] = at
    if at.is_running:
        tick(state, 1)


def _stop_awaiting(state: ExecutionState, name: str) -> None:
    left = state.events.waiters[name] - 1
    if left:
        state.events.waiters[name] = left
    else:
        del state.events.waiters[name]


def shut(state: ExecutionState, at: StepState) -> None:
    """Remove the gate of the step."""
    at.gate = None
    beside = state.gates[at.step.scope]
    del beside[at.step]
    if not beside:
        del state.gates[at.step.scope]


def settle(state: ExecutionState, step: Step) -> StepState:
    """Remove a finished step from the open steps."""
    at = state.steps.pop(step)
    if at.gate is not None:
        state.row.changed_gates[step] = None
        shut(state, at)
    state.parallel_frames.pop(step, None)
    if at.is_running:
        tick(state, -1)
        at.is_running = False
    if at.needs:
        at.needs = ""
        del state.steps_without_worker[step]
    scope, node = at.scope, step.node
    left = scope.open_steps[node] - 1
    if left:
        scope.open_steps[node] = left
    else:
        del scope.open_steps[node]
    if at.timers:
        for timer in at.timers:
            state.timers.pop(timer, None)
        at.timers = ()
    if at.event is not None:
        _stop_awaiting(state, at.event)
    scope.tokens -= 1
    return at
