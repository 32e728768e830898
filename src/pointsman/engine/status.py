"""The status of an execution as people see it."""

from __future__ import annotations

from pointsman.engine.state import ExecutionState, Status


def status_of(state: ExecutionState) -> Status:
    """`waiting` is `running` where only gates, timers and events are open, and `interrupted` where people are asked."""
    if state.asks_on:
        return "waiting"
    if state.status != "running" or state.working or not state.steps:
        return state.status
    for at in state.steps.values():
        if at.child or at.runs:
            return "running"
    return "waiting"
