"""The status of an execution as callers see it."""

from __future__ import annotations

from pointsman.engine.state import ExecutionState, Status


def status_of(state: ExecutionState) -> Status:
    """Return the status for callers.

    `waiting` is `running` with only gates, timers and events open, or `interrupted` with an open escalation gate.
    """
    status = state.status
    if status != "running":
        return "waiting" if state.awaits_escalation else status
    if state.counters.running_steps or not state.steps:
        return status
    for at in state.steps.values():
        if at.child or at.workflow_calls or at.is_running:
            return "running"
    return "waiting"
