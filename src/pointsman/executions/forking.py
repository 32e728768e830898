"""Forking: start a new execution from a copy of another one's journal, with changes.

The copy is checked before any of its rows is written; lists show it from its own first row on. What a crash leaves
before that is deleted by `gc` (see `executions.copies`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from pointsman.engine.decide.dispatch import decide
from pointsman.engine.events.steps import AttemptStarted, StepStarted
from pointsman.engine.plan import Plan
from pointsman.engine.replay import row_of, short_of
from pointsman.engine.reports import ForkRequested, MigrationRequested
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import Step
from pointsman.errors import CallerError
from pointsman.executions.copies import announced
from pointsman.executions.files import copy_artifacts
from pointsman.executions.inputs import check_input, edits_of
from pointsman.executions.opening import new_id
from pointsman.ports import Row
from pointsman.runtime.attempts import attempt_name, copy_uses
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime, folded, unknown_execution
from pointsman.settings import Settings
from pointsman.store.api import Store
from pointsman.store.errors import SessionMoved
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import Library

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


async def rows_of(store: Store, execution: ExecutionId) -> list[Row]:
    """Return the whole journal. Raises `UnknownExecution`."""
    rows = [row async for row in store.journal.read(execution)]
    if not rows:
        raise unknown_execution(execution)
    return rows


def at_row(execution: ExecutionId, rows: Sequence[Row], last: int) -> ForkOrigin:
    """Return an origin with everything up to a row. Raises `NoSuchRow`."""
    if not 1 <= last <= len(rows):
        raise NoSuchRow(f"{execution!r} has no row {last}", hint=f"It has 1 to {len(rows)}: `pointsman events` shows.")
    return ForkOrigin(execution, tuple(rows[:last]), last)


async def before_step(library: Library, execution: ExecutionId, rows: Sequence[Row], name: str) -> ForkOrigin:
    """Return an origin with everything up to a step, which has not begun. Raises `NoSuchStep`, `NoWayBack`."""
    number, step = row_of(rows, name)
    state = folded(execution, rows[:number])
    begun = rows[0].events[0] if number == 0 else None
    definition, options = (
        getattr(begun, "definition", state.setup.definition),
        getattr(begun, "options", state.setup.options),
    )
    events = short_of(await library.pinned(definition, options), state, rows[number], step)
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
    begun: Begun | None = None,
) -> Driver:
    """Start the copy and run it.

    `continued` receives the copied state and returns the definition that the fork continues with, None for that of the
    origin; it raises if the caller may not run it. `begun` receives the id of the fork before any row is written.

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
        if begun is not None:
            await begun(execution)
        return await runtime.adopt(execution, plan, origin.rows, report)


def _ended_attempts(origin: ForkOrigin, state: ExecutionState) -> set[str]:
    """Return the names of the attempts whose outcome the rows contain. The copy repeats the others from their start."""
    begun = [
        attempt_name(event.step, event.attempt if isinstance(event, AttemptStarted) else 1)
        for row in origin.rows
        for event in row.events
        if isinstance(event, StepStarted | AttemptStarted)
    ]
    return {*begun} - {attempt_name(at.step, at.attempt) for at in state.steps.values()}


async def _check(
    runtime: LocalRuntime, library: Library, plan: Plan, definition: str, draft: ExecutionState, report: ForkRequested
) -> None:
    """Decide the fork on a draft, and check the changed input against the workflow's schema."""
    decide(plan, draft, report, runtime.clock.now())
    workflow = await library.kept(definition)
    if report.input is not None and workflow.input_schema is not None:
        check_input(draft.setup.input, workflow.input_schema)


async def _take_along(store: Store, state: ExecutionState, session: str) -> None:
    """Copy the conversation before the forked turn into an empty session; a session that already holds it is left as it
    is. Raises `SessionMoved`."""
    known = state.setup.options.get("history")
    messages = state.root.data.root.get("messages")
    if not isinstance(known, int) or not isinstance(messages, list):
        return
    said = tuple(messages[:known])
    held = (await store.sessions.load(session)).messages
    if held and held != said:
        raise SessionMoved(
            f"the session {session!r} says something else than the forked turn knows",
            hint="Name a new session: it begins with what was said before the turn.",
        )
    if said and not held:
        await store.sessions.append(session, said, after=0)
