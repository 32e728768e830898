"""Fork, migrate and replay: copy executions, continue them with other definitions, decide their journals again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final, Unpack

from typing_extensions import TypedDict

from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.engine.data import dotted
from pointsman.engine.decide.migrate import MigrationMismatch, MigrationRefused, misfits
from pointsman.engine.decide.outputs import undeclared
from pointsman.engine.events.lifecycle import ExecutionMigrated, ExecutionStarted
from pointsman.engine.plan import Plan
from pointsman.engine.replay import Replay, ReplayDifference, replay
from pointsman.engine.reports import MigrationRequested
from pointsman.engine.state import ExecutionState, status_of
from pointsman.executions.authority import own_fork
from pointsman.executions.execution import Execution
from pointsman.executions.forking import ForkChanges, at_row, before_step, fork, rows_of
from pointsman.executions.opening import SCRIPTS
from pointsman.executions.start import must_run_revision, prepared_for
from pointsman.ports import Row
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import folded
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import AUTHORS, LIBRARY, Library, Prepared
from pointsman.workflows.sources import Workflow


async def replay_rows(library: Library, execution: ExecutionId, rows: list[Row], against: Plan | None) -> Replay:
    """Decide every row again: with the definitions it was decided with, or all rows with another one."""
    if against is not None:
        return replay(lambda _: against, execution, rows, other=True)
    plans: dict[str, Plan] = {}
    options: JsonObject = {}
    for row in rows:
        for event in row.events:
            if isinstance(event, ExecutionStarted | ExecutionMigrated):
                options = event.options or options
                plans[event.definition] = await library.pinned(event.definition, options)
    return replay(plans.__getitem__, execution, rows)


def replay_view(found: Replay) -> JsonObject:
    """Return the outcome of a replay as JSON."""
    return {
        "executionId": found.state.id,
        "same": not found.differences,
        "rows": found.rows,
        "status": status_of(found.state),
        "differences": [difference_view(one) for one in found.differences],
        "untold": [*found.untold],
    }


def difference_view(one: ReplayDifference) -> JsonObject:
    return {
        "row": one.row,
        "event": one.event,
        "kind": one.kind,
        "field": one.field,
        "recorded": one.recorded,
        "now": one.now,
    }


OF_DEFINITIONS: Final = frozenset({"revision", "pins", "observability", AUTHORS})
"""Options that an execution has from its definition."""


async def onto_definition(library: Library, prepared: Prepared, state: ExecutionState, by: str) -> MigrationRequested:
    """Return the request to continue with a definition, which is saved in the store for it."""
    kept: JsonObject = {name: value for name, value in state.setup.options.items() if name not in OF_DEFINITIONS}
    options = {**kept, **await library.options(prepared)}
    return MigrationRequested(definition=await library.keep(prepared.runnable), options=options, by=by)


async def move(
    library: Library, driver: Driver, onto: MigrationRequested, *, check_only: bool
) -> list[MigrationMismatch]:
    """Migrate an execution if everything fits; with `check_only` return everything that does not fit.

    Raises `MigrationRefused`, `WrongStatus`.
    """
    plan = await library.pinned(onto.definition, onto.options)
    found = [*misfits(plan, driver.state, driver.plan)]
    found += [
        MigrationMismatch("state-schema", dotted(path), message)
        for path, message in undeclared(plan.declared, driver.state.root.data.root)
    ]
    if check_only:
        return found
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise MigrationRefused(f"{found[0].where}: {found[0].message}{more}", hint="`move … --check` lists all of it.")
    await driver.move(plan, onto)
    return []


class MisfitView(TypedDict):
    """Something in progress that has no place in the other definition."""

    code: str
    where: str
    """The step, or the node with its branch."""
    message: str


class MigrationView(TypedDict):
    """Whether everything in progress has a place in the other definition."""

    executionId: str
    fits: bool
    moved: bool
    problems: list[MisfitView]


def migration_view(execution: str, found: list[MigrationMismatch], *, check_only: bool) -> MigrationView:
    """Return the outcome of a migration."""
    return {
        "executionId": execution,
        "fits": not found,
        "moved": not found and not check_only,
        "problems": [{"code": one.code, "where": one.where, "message": one.message} for one in found],
    }


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
