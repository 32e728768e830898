"""Detect whether the scripted model or a scripted tool answers for an execution: its outputs are not real then."""

from __future__ import annotations

from typing import Final

from pointsman.engine.state import ExecutionState

OPTION: Final = "scripted"
"""Option of executions some of whose models are the scripted one, as known at their start."""
SCRIPT: Final = "script"
"""Option of executions that were started with a script: its digest."""


def is_scripted(state: ExecutionState) -> bool:
    """Whether a script answers in an execution: the scripted model as known at its start, or because that model or a
    scripted tool has answered, here or in a sub-workflow."""
    used = state.usage
    return bool(state.options.get(OPTION)) or used.scripted or used.free_calls > 0
