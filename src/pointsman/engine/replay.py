"""Replay: decide a journal again without performing any command, and compare the events.

    row ─▶ the report that caused it ─▶ decide on the state before ─▶ the same events?

The wording of failures and warnings is not compared: another version may state the same in other words.
Rows from before causes were stored may lack a part of their report: they are folded as they are, and listed as not
comparable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, Protocol, TypeAlias, cast

import msgspec
from msgspec import Struct

from pointsman.engine.causes import Cause, report_of
from pointsman.engine.decide.context import Parts
from pointsman.engine.decide.dispatch import deciding
from pointsman.engine.decide.migrate import MigrationMismatch, misfits
from pointsman.engine.events.lifecycle import ExecutionForked, ExecutionMigrated, ExecutionStarted
from pointsman.engine.events.steps import Event, InstantStepCompleted, StepStarted
from pointsman.engine.events.waits import WarningRaised
from pointsman.engine.fold.dispatch import begin_decision, fold
from pointsman.engine.plan import Plan
from pointsman.engine.reports import Report
from pointsman.engine.state import ExecutionState
from pointsman.engine.steps import NoSuchStep, Step
from pointsman.errors import CallerError, PointsmanError
from pointsman.values import Json

Plans: TypeAlias = Callable[[str], Plan]
"""Return the plan of a definition by its digest."""

WORDING: Final = re.compile(r"(?:.*\.)?failure\.(?:message|hint)")
"""Paths of texts for people inside an event."""

BEGUN: Final = (StepStarted, InstantStepCompleted)


class RecordedRow(Protocol):
    """A journal row to be decided again."""

    @property
    def seq(self) -> int: ...
    @property
    def at(self) -> float: ...
    @property
    def events(self) -> tuple[Event, ...]: ...
    @property
    def cause(self) -> Cause | None: ...


class ReplayDifference(Struct, frozen=True, kw_only=True):
    """A difference between the recorded events and those decided again."""

    row: int
    event: int
    """Position of the event in the row, from 0."""
    kind: str
    """The kind of event, or why nothing could be decided."""
    field: str
    """Path inside the event, or the part that does not fit into the other definition; empty: the whole event."""
    recorded: Json
    now: Json


class StepNotRepeatable(CallerError):
    """A step cannot be run again: it did not start in this journal, or the journal lacks a part of what led to it."""

    code = "step-not-repeatable"


class Replay(Struct):
    """The outcome of replaying a journal."""

    state: ExecutionState
    rows: int = 0
    differences: list[ReplayDifference] = []
    rows_without_report: list[int] = []
    """Rows without their whole report; they are folded as they are."""


def replaying(
    plans: Plans, execution: str, rows: Sequence[RecordedRow], *, other: bool = False, differences_max: int = 100
) -> Parts[Replay]:
    """Decide every row again like `replay`, in parts: at least one for each row."""
    replayed = Replay(ExecutionState(execution))
    owners = _owners(execution, rows)
    for number, row in enumerate(rows):
        yield
        replayed.state.id = owners[number]
        replayed.rows = row.seq
        plan = plans(_definition(replayed.state, row))
        unfit = [_unfit(row, mismatch) for mismatch in misfits(plan, replayed.state)] if other else []
        if unfit:
            replayed.differences += unfit
            break
        report = report_of(replayed.state, row.cause, row.events)
        if report is None:
            replayed.rows_without_report.append(row.seq)
            _fold(replayed.state, row)
            continue
        differences = yield from _differences(plan, replayed.state, row, report, _short_of(rows, number))
        if differences is not None:
            replayed.differences += differences
            replayed.state = _folded(rows[: number + 1], owners)
        if len(replayed.differences) >= differences_max:
            break
    return replayed


def _definition(state: ExecutionState, row: RecordedRow) -> str:
    """Return the definition of a row; for a migration, the new one."""
    definitions = [event.definition for event in row.events if isinstance(event, ExecutionStarted | ExecutionMigrated)]
    return definitions[0] if definitions else state.setup.definition


def _owners(execution: str, rows: Sequence[RecordedRow]) -> list[str]:
    """Return the execution that decided each row: a fork begins with the rows of its origin."""
    owners: list[str] = []
    owner = execution
    for row in reversed(rows):
        owners.append(owner)
        if isinstance(row.events[0], ExecutionForked):
            owner = row.events[0].origin
    return owners[::-1]


def _short_of(rows: Sequence[RecordedRow], number: int) -> Step | None:
    """Return the step before which a row was decided, for a fork that runs the step again."""
    follows = rows[number + 1].events[0] if number + 1 < len(rows) else None
    return follows.before if isinstance(follows, ExecutionForked) else None


def _fold(state: ExecutionState, row: RecordedRow) -> None:
    begin_decision(state, row.seq, row.at)
    for event in row.events:
        fold(state, event)


def _folded(rows: Sequence[RecordedRow], owners: Sequence[str]) -> ExecutionState:
    state = ExecutionState("")
    for owner, row in zip(owners, rows, strict=False):
        state.id = owner
        _fold(state, row)
    return state


def _unfit(row: RecordedRow, mismatch: MigrationMismatch) -> ReplayDifference:
    return ReplayDifference(
        row=row.seq, event=0, kind=mismatch.code, field=mismatch.where, recorded=None, now=mismatch.message
    )


def _differences(
    plan: Plan, state: ExecutionState, row: RecordedRow, report: Report, before: Step | None
) -> Parts[list[ReplayDifference] | None]:
    """Decide a row again. Return the differences, without those in wording; None if the events are equal."""
    try:
        decided = (yield from deciding(plan, state, report, row.at, before=before)).events
    except PointsmanError as why:
        kind, now = type(row.events[0]).__name__, f"[{why.code}] {why}"
        return [ReplayDifference(row=row.seq, event=0, kind=kind, field="", recorded="decided", now=now)]
    if decided == row.events:
        return None
    return [
        ReplayDifference(
            row=row.seq,
            event=number,
            kind=type(now if was is None else was).__name__,
            field=field,
            recorded=recorded,
            now=computed,
        )
        for number, (was, now) in enumerate(zip_longest(row.events, decided))
        for field, recorded, computed in value_differences(_plain(was), _plain(now))
        if not _is_wording(now, field)
    ]


def _is_wording(event: Event | None, field: str) -> bool:
    """Return whether a field is a text for people that the engine wrote."""
    return WORDING.fullmatch(field) is not None or (isinstance(event, WarningRaised) and field == "message")


def _plain(event: Event | None) -> Json:
    return cast(Json, msgspec.to_builtins(event))


def value_differences(first: Json, other: Json, place: str = "") -> Iterator[tuple[str, Json, Json]]:
    """Yield the differences of two values at the greatest depth: the path, and both values."""
    if isinstance(first, dict) and isinstance(other, dict) and first.get("kind") == other.get("kind"):
        for name in sorted({*first, *other}):
            yield from value_differences(first.get(name), other.get(name), f"{place}.{name}".lstrip("."))
    elif isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        for number, (left, right) in enumerate(zip(first, other, strict=True)):
            yield from value_differences(left, right, f"{place}[{number}]")
    elif first != other:
        yield place, first, other


def row_of(rows: Sequence[RecordedRow], name: str) -> tuple[int, Step]:
    """Return the position of the row in which a step started, and the step. Raises `NoSuchStep`.

    `name` is the text of the step or its node; of several the last one counts.
    """
    steps = [
        (number, event.step) for number, row in enumerate(rows) for event in row.events if isinstance(event, BEGUN)
    ]
    matches = [entry for entry in steps if str(entry[1]) == name] or [entry for entry in steps if entry[1].node == name]
    if not matches:
        names = ", ".join(dict.fromkeys(str(step) for _, step in steps[-20:]))
        raise NoSuchStep(f"no step {name!r} has started", hint=f"The latest steps: {names or 'none'}.")
    return matches[-1]


def replay_until_step(plan: Plan, state: ExecutionState, row: RecordedRow, step: Step) -> Parts[tuple[Event, ...]]:
    """Decide a row again so that the execution pauses before the step, and return the events.

    `state` is the state before the row; the events are folded into it. Raises `StepNotRepeatable`.
    """
    report = report_of(state, row.cause, row.events)
    if report is not None:
        decided = yield from deciding(plan, state, report, row.at, before=step)
        if state.status == "paused" and step not in state.steps:
            return decided.events
    raise StepNotRepeatable(
        f"{str(step)!r} cannot be run again: row {row.seq} no longer leads to it",
        hint=f"Fork at an earlier row: `pointsman fork {state.id} --at {row.seq - 1}`.",
    )
