"""Execution view for people: its journal, the gates of its sub-workflows, its files."""

from __future__ import annotations

from pointsman.executions.families import family_view
from pointsman.executions.files import artifacts_of
from pointsman.executions.forking import rows_of
from pointsman.executions.views import ExecutionView
from pointsman.ports import Row
from pointsman.runtime.local import LocalRuntime, folded
from pointsman.settings import Settings
from pointsman.values import ExecutionId


async def seen(runtime: LocalRuntime, settings: Settings, execution: str) -> tuple[list[Row], ExecutionView]:
    """Return its journal, and its view as of the last row. Raises `UnknownExecution`."""
    rows = await rows_of(runtime.store, ExecutionId(execution))
    view = await family_view(runtime, folded(execution, rows), rows)
    return rows, {**view, "artifacts": await artifacts_of(settings, execution)}
