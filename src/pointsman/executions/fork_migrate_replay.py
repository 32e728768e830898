"""Fork, migrate and replay: copy executions, continue them with other definitions, decide their journals again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TypedDict, Unpack

from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.engine.decide.migrate import MigrationMismatch
from pointsman.engine.replay import Replay
from pointsman.engine.reports import MigrationRequested
from pointsman.engine.state import ExecutionState
from pointsman.executions.authority import own_fork
from pointsman.executions.execution import Execution
from pointsman.executions.forking import ForkChanges, at_row, before_step, fork, rows_of
from pointsman.executions.migrating import move, onto_definition
from pointsman.executions.opening import SCRIPTS
from pointsman.executions.replays import replay_rows
from pointsman.executions.start import must_run_revision, prepared_for
from pointsman.runtime.local import folded
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.sources import Workflow


class ForkOptions(TypedDict, total=False):
    """How a fork differs from its origin."""

    at: int | None
    """The last row that is copied; absent: all rows."""
    before: str | None
    """A step to run again: a node, or a step's text. Everything that led to it is copied."""
    set: Mapping[str, Json]
    """Data that change, by path; `each[1.0]/a.b` is inside an open branch."""
    input: JsonObject | None
    """Fields of the input that change."""
    session: str | None
    """The conversation it belongs to; absent: none."""
    limits: Mapping[str, float]
    """Raised limits, if its origin was stopped by one."""
    to: Workflow | str | None
    """The definition that the fork continues with."""
    by: str
    caller: Caller
    """The owner of the fork: it acts for this caller, and not for the people its origin acts for."""


class Lives:
    """Fork, migrate and replay for the executions of one application."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self.runtime = app.runtime
        self.library = app[LIBRARY]
        self._settings = app.settings

    async def fork(self, execution: str, **how: Unpack[ForkOptions]) -> Execution:
        """Start a new execution as a copy of another one. It continues by itself: steps that were open run again.

        Raises, before anything is written: `NoSuchRow`, `NoSuchStep`, `NoWayBack`, `EditRefused`, `InputInvalid`,
        `MigrationRefused`, `WrongStatus`.
        """
        name, by, to = ExecutionId(execution), how.get("by", ""), how.get("to")
        rows = await rows_of(self.runtime.store, name)
        before, at = how.get("before"), how.get("at")
        if before is not None:
            origin = await before_step(self.library, name, rows, before)
        else:
            origin = at_row(name, rows, len(rows) if at is None else at)
        await self._app[SCRIPTS].take_up(name)
        caller = how.get("caller", LOCAL)
        changes = ForkChanges(how.get("set", {}), how.get("input"), how.get("session"), how.get("limits", {}), by)
        onto, begun = partial(self._forked_onto, to, by, caller), partial(own_fork, self._app, caller)
        forked = await fork(self.runtime, self.library, self._settings, origin, changes, continued=onto, begun=begun)
        return Execution(self.runtime, forked)

    async def move(
        self,
        execution: str,
        to: Workflow | str,
        *,
        check_only: bool = False,
        by: str = "",
        caller: Caller = LOCAL,
    ) -> list[MigrationMismatch]:
        """Continue an execution that stands still with another definition, and return what does not fit. Empty: it is
        migrated, or would be with `check_only`. Raises `MigrationRefused` if something does not fit and it is not only
        checked."""
        driver = await self.runtime.open(ExecutionId(execution), recover=False)
        onto = await self._continued_with(to, driver.state, by, caller)
        return await move(self.library, driver, onto, check_only=check_only)

    async def replay(self, execution: str, *, against: Workflow | str | None = None, caller: Caller = LOCAL) -> Replay:
        """Decide the journal again without model or tool calls, with its own definition or another one."""
        name = ExecutionId(execution)
        rows = await rows_of(self.runtime.store, name)
        plan = None
        if against is not None:
            prepared = await prepared_for(self._app, against, caller=caller)
            onto = await onto_definition(self.library, prepared, folded(name, rows), "")
            plan = await self.library.pinned(onto.definition, onto.options)
        return await replay_rows(self.library, name, rows, plan)

    async def _continued_with(
        self, to: Workflow | str, state: ExecutionState, by: str, caller: Caller
    ) -> MigrationRequested:
        """Return the request to continue with a definition. Raises `NotAllowed` for a caller below an editor, unless it
        is the latest revision of the same workflow: an older one may lack a gate that an editor has added since."""
        prepared = await prepared_for(self._app, to, caller=caller)
        if prepared.definition.id != state.setup.workflow:
            caller.must_have("editor", "continue with another workflow")
        await must_run_revision(self._app, caller, state.setup.workflow, prepared.revision)
        return await onto_definition(self.library, prepared, state, by)

    async def _forked_onto(
        self, to: Workflow | str | None, by: str, caller: Caller, state: ExecutionState
    ) -> MigrationRequested | None:
        """Return the request to continue a fork with a definition; None: with that of its origin. A fork starts that
        one again: raises `NotAllowed` or `Disabled` if the caller may not."""
        if to is not None:
            return await self._continued_with(to, state, by, caller)
        workflow, revision = state.setup.workflow, state.setup.options.get("revision")
        if not isinstance(revision, int) or not revision:
            return None  # It runs on a document that was not saved.
        await must_run_revision(self._app, caller, workflow, revision)
        with suppress(UnknownWorkflow):  # The workflow was deleted.
            await self.library.startable(f"{workflow}@{revision}")
        return None
