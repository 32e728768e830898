"""The status of an execution as callers see it, and whether a script answers for it."""

from __future__ import annotations

from typing import Final

from pointsman.engine.state import ExecutionState, Status

OPTION: Final = "scripted"
"""Option of executions that use the scripted model, as known at their start."""
SCRIPT: Final = "script"
"""Option of executions started with a script: its digest."""


def is_scripted(state: ExecutionState) -> bool:
    """Return whether a script answers in an execution: known at its start, or because the scripted model or a
    scripted tool has answered, here or in a sub-workflow.
    """
    used = state.usage
    return bool(state.setup.options.get(OPTION)) or used.scripted or used.free_calls > 0


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
