"""Fork, migrate and replay: copy executions, continue them with other definitions, decide their journals again.

A fork is checked before any of its rows is written; lists show it from its own first row on. Forks and imports announce
their copies, so that `gc` finds what a crash leaves:

    announced ─▶ rows ─▶ rows ─▶ the last row, from which on lists show it ─▶ announcement removed
         └─ a crash ─▶ rows that no list shows, and an entry that names them: `gc` deletes both

One announcement names all executions that are copied together; the copy is finished when lists show the first of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final, NamedTuple, TypeAlias, Unpack

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.context import AppContext
from pointsman.engine.data import dotted
from pointsman.engine.decide.dispatch import deciding
from pointsman.engine.decide.migrate import MigrationMismatch, MigrationRefused, misfits
from pointsman.engine.decide.outputs import undeclared
from pointsman.engine.events.lifecycle import ExecutionMigrated, ExecutionStarted
from pointsman.engine.events.steps import AttemptStarted, StepStarted
from pointsman.engine.plan import Plan
from pointsman.engine.replay import Replay, ReplayDifference, replay_until_step, replaying, row_of
from pointsman.engine.reports import ForkRequested, MigrationRequested
from pointsman.engine.state import ExecutionState, Status, status_of
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.executions.authority import own_fork
from pointsman.executions.children import rows_of
from pointsman.executions.deletion import erase
from pointsman.executions.execution import Execution
from pointsman.executions.inputs import check_input, copy_artifacts, delete_artifacts, edits_of
from pointsman.executions.opening import SCRIPTS, new_id
from pointsman.executions.start import must_run_revision, prepared_for
from pointsman.ports import Clock, Row
from pointsman.runtime.attempts import attempt_name, copy_uses
from pointsman.runtime.driver import Driver, in_turns
from pointsman.runtime.local import LocalRuntime, folded
from pointsman.settings import Settings
from pointsman.store.api import Store
from pointsman.store.errors import JournalMoved, SessionMoved
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import AUTHORS, LIBRARY, Library, Prepared
from pointsman.workflows.sources import Workflow

Begun: TypeAlias = Callable[[ExecutionId], Awaitable[None]]
Continued: TypeAlias = Callable[[ExecutionState], Awaitable[MigrationRequested | None]]


class NoSuchRow(CallerError):
    """The execution has no row with that number."""

    code: ClassVar[str] = "no-such-row"


@dataclass(frozen=True, slots=True)
class ForkChanges:
    """Differences between a fork and its origin."""

    set: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Values by path; `each[1.0]/a.b` is inside an open branch."""
    input: JsonObject | None = None
    """Fields of the input, and of the state, that change."""
    session: str | None = None
    """The conversation it belongs to; None: none."""
    limits: Mapping[str, float] = field(default_factory=dict[str, float])
    by: str = ""


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    """The rows that a fork begins with, and the step before which they stop."""

    execution: ExecutionId
    rows: tuple[Row, ...]
    last: int
    """The last row of the origin of which they contain anything."""
    before: Step | None = None


def at_row(execution: ExecutionId, rows: Sequence[Row], last: int) -> ForkOrigin:
    """Return an origin with everything up to a row. Raises `NoSuchRow`."""
    if not 1 <= last <= len(rows):
        raise NoSuchRow(
            f"{execution!r} has no row {last}", hint=f"It has rows 1 to {len(rows)}: `pointsman events` shows them."
        )
    return ForkOrigin(execution, tuple(rows[:last]), last)


async def before_step(library: Library, execution: ExecutionId, rows: Sequence[Row], name: str) -> ForkOrigin:
    """Return an origin with everything up to a step, which has not begun. Raises `NoSuchStep`, `StepNotRepeatable`."""
    number, step = row_of(rows, name)
    state = folded(execution, rows[:number])
    start_event = rows[0].events[0] if number == 0 else None
    definition, options = (
        getattr(start_event, "definition", state.setup.definition),
        getattr(start_event, "options", state.setup.options),
    )
    events = await in_turns(replay_until_step(await library.pinned(definition, options), state, rows[number], step))
    last = Row(state.seq, state.at, events, rows[number].cause)
    return ForkOrigin(execution, (*rows[:number], last), number + 1, step)


async def fork(
    runtime: LocalRuntime,
    library: Library,
    settings: Settings,
    origin: ForkOrigin,
    changes: ForkChanges,
    *,
    continued: Continued,
    on_begin: Begun | None = None,
) -> Driver:
    """Start the copy and run it.

    `continued` receives the copied state and returns the definition that the fork continues with, None for that of the
    origin; it raises if the caller may not run it. `on_begin` receives the id of the fork before any row is written.

    Raises before anything is written: `EditRefused`, `WrongStatus`, `MigrationRefused`; `ModelUnusable` or
    `ModelUnnamed` if a model that the fork needs cannot be called from here.
    """
    execution = new_id()
    state = folded(execution, origin.rows)
    onto = await continued(state)
    definition = state.setup.definition if onto is None else onto.definition
    options = state.setup.options if onto is None else onto.options
    plan = await library.pinned(definition, options)
    report = ForkRequested(
        origin=origin.execution,
        row=origin.last,
        before=origin.before,
        input=changes.input,
        edits=edits_of(state, changes.set),
        session=changes.session,
        limits=dict(changes.limits),
        onto=onto,
        by=changes.by,
    )
    await _check(runtime, library, plan, definition, state, report)
    if runtime.can_go_on is not None:
        await runtime.can_go_on(plan, state)
    if changes.session is not None:
        await _take_along(runtime.store, state, changes.session)
    async with announced(runtime.store, runtime.clock, [execution]):
        await copy_artifacts(settings, origin.execution, execution)
        await copy_uses(runtime.store.effects, origin.execution, execution, _ended_attempts(origin, state))
        if on_begin is not None:
            await on_begin(execution)
        return await runtime.adopt(execution, plan, origin.rows, report)


def _ended_attempts(origin: ForkOrigin, state: ExecutionState) -> set[str]:
    """Return the names of the attempts whose outcome the rows contain. The copy repeats the others from their start."""
    started = [
        attempt_name(event.step, event.attempt if isinstance(event, AttemptStarted) else 1)
        for row in origin.rows
        for event in row.events
        if isinstance(event, StepStarted | AttemptStarted)
    ]
    return {*started} - {attempt_name(at.step, at.attempt) for at in state.steps.values()}


async def _check(
    runtime: LocalRuntime, library: Library, plan: Plan, definition: str, draft: ExecutionState, report: ForkRequested
) -> None:
    """Decide the fork on a draft, and check the changed input against the workflow's schema."""
    await in_turns(deciding(plan, draft, report, runtime.clock.now()))
    workflow = await library.kept(definition)
    if report.input is not None and workflow.input_schema is not None:
        check_input(draft.setup.input, workflow.input_schema)


async def _take_along(store: Store, state: ExecutionState, session: str) -> None:
    """Copy the conversation before the forked turn into an empty session; a session that already holds it is left as it
    is. Raises `SessionMoved`."""
    history_length = state.setup.options.get("history")
    messages = state.root.data.root.get("messages")
    if not isinstance(history_length, int) or not isinstance(messages, list):
        return
    prefix = tuple(messages[:history_length])
    stored = (await store.sessions.load(session)).messages
    if stored and stored != prefix:
        raise SessionMoved(
            f"the session {session!r} contains other messages than the forked turn",
            hint="Name a new session: it begins with the messages before the turn.",
        )
    if prefix and not stored:
        await store.sessions.append(session, prefix, after=0)


async def replay_rows(library: Library, execution: ExecutionId, rows: list[Row], against: Plan | None) -> Replay:
    """Decide every row again: with the definitions it was decided with, or all rows with another one."""
    if against is not None:
        return await in_turns(replaying(lambda _: against, execution, rows, other=True))
    plans: dict[str, Plan] = {}
    options: JsonObject = {}
    for row in rows:
        for event in row.events:
            if isinstance(event, ExecutionStarted | ExecutionMigrated):
                options = event.options or options
                plans[event.definition] = await library.pinned(event.definition, options)
    return await in_turns(replaying(plans.__getitem__, execution, rows))


class DifferenceView(TypedDict):
    """A decision that differs from the recorded one."""

    row: int
    event: int
    kind: str
    field: str
    recorded: Json
    now: Json


class ReplayView(TypedDict):
    """The result of deciding each row of a journal again."""

    executionId: str
    same: bool
    rows: int
    status: Status
    differences: list[DifferenceView]
    withoutReport: list[int]
    """Rows that cannot be decided again, because their report is not stored."""
    untold: list[int]
    """Deprecated: the same as `withoutReport`."""


def replay_view(replay: Replay) -> ReplayView:
    """Return the outcome of a replay as JSON."""
    return {
        "executionId": replay.state.id,
        "same": not replay.differences,
        "rows": replay.rows,
        "status": status_of(replay.state),
        "differences": [difference_view(difference) for difference in replay.differences],
        "withoutReport": [*replay.rows_without_report],
        "untold": [*replay.rows_without_report],
    }


def difference_view(difference: ReplayDifference) -> DifferenceView:
    return {
        "row": difference.row,
        "event": difference.event,
        "kind": difference.kind,
        "field": difference.field,
        "recorded": difference.recorded,
        "now": difference.now,
    }


OF_DEFINITIONS: Final = frozenset({"revision", "pins", "observability", AUTHORS})
"""Options that an execution has from its definition."""


async def onto_definition(library: Library, prepared: Prepared, state: ExecutionState, by: str) -> MigrationRequested:
    """Return the request to continue with a definition, which is saved in the store for it."""
    own_options: JsonObject = {name: value for name, value in state.setup.options.items() if name not in OF_DEFINITIONS}
    options = {**own_options, **await library.options(prepared)}
    return MigrationRequested(definition=await library.keep(prepared.runnable), options=options, by=by)


async def move(
    library: Library, driver: Driver, onto: MigrationRequested, *, check_only: bool
) -> list[MigrationMismatch]:
    """Migrate an execution if everything fits; with `check_only` return everything that does not fit.

    Raises `MigrationRefused`, `WrongStatus`.
    """
    plan = await library.pinned(onto.definition, onto.options)
    await driver.decided()
    mismatches = [*misfits(plan, driver.state, driver.plan)]
    mismatches += [
        MigrationMismatch("state-schema", dotted(path), message)
        for path, message in undeclared(plan.declared, driver.state.root.data.root)
    ]
    if check_only:
        return mismatches
    if mismatches:
        more = f" (and {len(mismatches) - 1} more)" if len(mismatches) > 1 else ""
        raise MigrationRefused(
            f"{mismatches[0].where}: {mismatches[0].message}{more}", hint="`move … --check` lists all."
        )
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


def migration_view(execution: str, mismatches: list[MigrationMismatch], *, check_only: bool) -> MigrationView:
    """Return the outcome of a migration."""
    return {
        "executionId": execution,
        "fits": not mismatches,
        "moved": not mismatches and not check_only,
        "problems": [
            {"code": mismatch.code, "where": mismatch.where, "message": mismatch.message} for mismatch in mismatches
        ],
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


async def fork_execution(app: AppContext, execution: str, **options: Unpack[ForkOptions]) -> Execution:
    """Start a new execution as a copy of another one. It continues by itself: steps that were open run again.

    Raises, before anything is written: `NoSuchRow`, `NoSuchStep`, `StepNotRepeatable`, `EditRefused`,
    `InputInvalid`, `MigrationRefused`, `WrongStatus`.
    """
    name, by, to = ExecutionId(execution), options.get("by", ""), options.get("to")
    rows = await rows_of(app.runtime.store, name)
    before, at = options.get("before"), options.get("at")
    if before is not None:
        origin = await before_step(app[LIBRARY], name, rows, before)
    else:
        origin = at_row(name, rows, len(rows) if at is None else at)
    await app[SCRIPTS].take_up(name)
    caller = options.get("caller", LOCAL)
    changes = ForkChanges(
        options.get("set", {}), options.get("input"), options.get("session"), options.get("limits", {}), by
    )
    onto, on_begin = partial(_forked_onto, app, to, by, caller), partial(own_fork, app, caller)
    forked = await fork(app.runtime, app[LIBRARY], app.settings, origin, changes, continued=onto, on_begin=on_begin)
    return Execution(app.runtime, forked)


async def move_execution(
    app: AppContext,
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
    driver = await app.runtime.open(ExecutionId(execution), recover=False)
    onto = await _continued_with(app, to, driver.state, by, caller)
    return await move(app[LIBRARY], driver, onto, check_only=check_only)


async def replay_execution(
    app: AppContext, execution: str, *, against: Workflow | str | None = None, caller: Caller = LOCAL
) -> Replay:
    """Decide the journal again without model or tool calls, with its own definition or another one."""
    name = ExecutionId(execution)
    rows = await rows_of(app.runtime.store, name)
    plan = None
    if against is not None:
        prepared = await prepared_for(app, against, caller=caller)
        onto = await onto_definition(app[LIBRARY], prepared, folded(name, rows), "")
        plan = await app[LIBRARY].pinned(onto.definition, onto.options)
    return await replay_rows(app[LIBRARY], name, rows, plan)


async def _continued_with(
    app: AppContext, to: Workflow | str, state: ExecutionState, by: str, caller: Caller
) -> MigrationRequested:
    """Return the request to continue with a definition. Raises `NotAllowed` for a caller below an editor, unless it
    is the latest revision of the same workflow: an older one may lack a gate that an editor has added since."""
    prepared = await prepared_for(app, to, caller=caller)
    if prepared.definition.id != state.setup.workflow:
        caller.must_have("editor", "continue with another workflow")
    await must_run_revision(app, caller, state.setup.workflow, prepared.revision)
    return await onto_definition(app[LIBRARY], prepared, state, by)


async def _forked_onto(
    app: AppContext, to: Workflow | str | None, by: str, caller: Caller, state: ExecutionState
) -> MigrationRequested | None:
    """Return the request to continue a fork with a definition; None: with that of its origin. A fork starts that
    one again: raises `NotAllowed` or `Disabled` if the caller may not."""
    if to is not None:
        return await _continued_with(app, to, state, by, caller)
    workflow, revision = state.setup.workflow, state.setup.options.get("revision")
    if not isinstance(revision, int) or not revision:
        return None  # It runs on a document that was not saved.
    await must_run_revision(app, caller, workflow, revision)
    with suppress(UnknownWorkflow):  # The workflow was deleted.
        await app[LIBRARY].startable(f"{workflow}@{revision}")
    return None


COPY_KIND: Final = "copies"
COPY_S_MAX: Final = 3600.0
"""A copy that takes longer than this many seconds was interrupted."""


class Copy(NamedTuple):
    """The content of an announcement."""

    executions: tuple[ExecutionId, ...]
    since: float


@asynccontextmanager
async def announced(store: Store, clock: Clock, executions: Sequence[ExecutionId]) -> AsyncGenerator[None, None]:
    """Announce copies for the duration of the block. The first execution must be listed last."""
    copy = Copy(tuple(executions), clock.now())
    await store.entries.put(COPY_KIND, copy.executions[0], [[*copy.executions], copy.since])
    yield
    await store.entries.delete(COPY_KIND, copy.executions[0])


async def interrupted(app: AppContext) -> list[Copy]:
    """Return the copies that were announced long ago and are not finished."""
    copies = [msgspec.convert(entry.value, Copy) for entry in await app.store.entries.list(COPY_KIND)]
    return [copy for copy in copies if copy.since < app.clock.now() - COPY_S_MAX]


async def undo_interrupted(app: AppContext) -> int:
    """Delete what interrupted copies left, and return their number."""
    undone = [await undo(app, copy) for copy in await interrupted(app)]
    return sum(undone)


async def make_room(app: AppContext, execution: ExecutionId) -> None:
    """Delete what an interrupted copy of that name left, whatever its age, before the copy is repeated."""
    entry = await app.store.entries.find(COPY_KIND, execution)
    if entry is not None:
        await undo(app, msgspec.convert(entry.value, Copy))


async def undo(app: AppContext, copy: Copy) -> bool:
    """Delete a copy, unless it is finished or being written. Return whether it was deleted. Safe to repeat after a
    crash."""
    store, first = app.store, copy.executions[0]
    last = {one: await store.journal.last(one) for one in copy.executions}
    finished = await store.executions.find(first) is not None
    if not finished:
        try:
            for execution in copy.executions:
                await erase(store, execution, at=last[execution])
                await delete_artifacts(app.settings, execution)
        except JournalMoved:
            return False
    await store.entries.delete(COPY_KIND, first)
    return not finished
