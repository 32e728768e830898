"""Detect whether the scripted model or a scripted tool answers for an execution: its outputs are not real then."""

from __future__ import annotations

from typing import Final

from pointsman.engine.state import ExecutionState

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
