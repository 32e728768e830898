"""Commits: write the rows of one execution to the journal, in order, immediately or batched.

    step    row ─▶ on disk ─▶ commands
    async   row ─▶ commands ┄┄ rows gather ┄┄▶ on disk after 100 ms or 64 rows, whichever is first
    exit    row ─▶ commands ┄┄ rows gather ┄┄▶ on disk when no work runs any more

One write per execution is in progress at a time; rows decided meanwhile join the next one. A refused row (another
driver was faster) discards all rows behind it, because they were decided on a state that does not exist.

`now` writes rows that were promised to a caller, that cause messages to others, that bring the answer of a call, or
after which no work runs: it waits until they and everything before them are durable. Rows that were not durable are
decided again after a crash.

`storable` accepts only values that a journal stores exactly, before anything is decided and in every store alike. NaN,
infinity, lone surrogates and unbounded nesting in the result of work fail the step. In input, answers and events they
are refused with the position of the value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from msgspec.structs import replace

from pointsman.engine.commands import Command, DropTimer, Execute, Stop
from pointsman.engine.failures import failure_by
from pointsman.engine.plan import Plan
from pointsman.engine.reports import ChildEnded, EventReceived, GateAnswered, Report, Start, WorkDone, WorkFailed
from pointsman.engine.state import ExecutionState
from pointsman.errors import EngineBug
from pointsman.ports import Row
from pointsman.store.api import StoreJournal
from pointsman.store.codec import encode_json
from pointsman.store.errors import UnstorableValue
from pointsman.store.records import EffectRecord, Summary
from pointsman.values import CONTAINERS, ExecutionId, Json, Seconds

BEHIND_S_MAX: Final = Seconds(0.1)
BEHIND_ROWS_MAX: Final = 64
"""Time and number of rows that a crash may lose under `async`."""
GOES_ON: Final = frozenset({Execute, Stop, DropTimer})
"""Commands without effects outside this process."""
EXIT_ROWS_MAX: Final = 10_000
"""Maximum rows held in memory under `exit`; then they are committed in any case."""


class DriverLost(EngineBug):
    """The journal refused a row: another process drives this execution, or the store is gone. Nothing was written."""

    code = "driver-lost"


def behind_s(plan: Plan, state: ExecutionState) -> float | None:
    """Return how many seconds a row may stay behind its commands: 0, a bound, or None (until a caller waits)."""
    mode = state.setup.options.get("durability") or plan.durability
    return BEHIND_S_MAX if mode == "async" else None if mode == "exit" else 0.0


class RowOwner(Protocol):
    """The driver whose rows are written. It is an argument of each call, since a reference would make it a cycle, which
    Python frees late."""

    @property
    def journal(self) -> StoreJournal: ...

    def committed(self, row: Row) -> None:
        """Handle a row that has become durable. Called for each row, in order."""
        ...

    def on_refused_row(self, why: BaseException) -> None:
        """Handle the error that prevents that a row becomes durable."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work in a task of its own."""
        ...


class Commits:
    """The commits of one driver."""

    def __init__(self, execution: ExecutionId) -> None:
        self._execution = execution
        self.behind = 0
        """Rows that are decided and not durable yet; the state is ahead of the journal by these."""
        self._rows: list[Row] = []
        self._summary: Summary | None = None
        self._effects: list[EffectRecord] = []
        self._writing = asyncio.Lock()
        """Held by the task that writes gathered rows."""
        self._alone = False
        """Whether a row is being written that had no others before it: that needs no lock."""
        self._alone_over: asyncio.Future[None] | None = None
        """Set when a task waits for the end of that write."""
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None

    @property
    def writing(self) -> bool:
        """Return whether a row is being written: the journal may hold it before the result arrives."""
        return self._alone or self._writing.locked()

    @property
    def writes_alone(self) -> bool:
        """Return whether the task that decided a row writes it: cancelling the task would cancel the write."""
        return self._alone

    @property
    def lost(self) -> bool:
        """Return whether a decided row can never become durable."""
        return self._failure is not None

    def now(
        self, owner: RowOwner, row: Row, summary: Summary | None, effects: Sequence[EffectRecord] = ()
    ) -> Coroutine[Any, Any, None]:
        """Return when the row, all rows before it, and the answers of its effects are durable.

        The call gives the row its place in the order, even if the result is awaited later.
        """
        if self.behind:
            self._add(row, summary, effects)
            return self.flush(owner)
        self.behind, self._alone = 1, True
        return self._write_alone(owner, row, summary, effects)

    async def _write_alone(
        self, owner: RowOwner, row: Row, summary: Summary | None, effects: Sequence[EffectRecord]
    ) -> None:
        try:
            await owner.journal.append(self._execution, row, summary=summary, effects=effects)
        except BaseException as why:
            self._failure = why
            owner.on_refused_row(why)
            raise
        finally:
            self.behind -= 1
            self._alone = False
            if self._alone_over is not None and not self._alone_over.done():
                self._alone_over.set_result(None)
        owner.committed(row)

    async def later(self, owner: RowOwner, row: Row, summary: Summary | None, *, within_s: float | None) -> None:
        """Return at once while few rows are behind. `within_s`: None leaves them until a caller must wait."""
        self._add(row, summary)
        if self.behind >= (EXIT_ROWS_MAX if within_s is None else BEHIND_ROWS_MAX):
            await self.flush(owner)
        elif within_s is not None and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(within_s, lambda: owner.spawn(self.flush(owner)))

    async def flush(self, owner: RowOwner) -> None:
        """Return when all rows decided before are durable. Raises the error that prevents it."""
        async with self._writing:
            await self.until_written()
            rows, summary, effects = self._take()
            if self._failure is not None:
                self.behind -= len(rows)
            elif rows:  # The waiting caller may be cancelled; decided rows are written all the same.
                await asyncio.shield(asyncio.ensure_future(self._write(owner, rows, summary, effects)))
            if self._failure is not None:
                raise self._failure

    async def until_written(self) -> None:
        """Return when the row is durable or refused that a task writes alone. That task must not be cancelled before:
        nobody would know which of both it is."""
        if self._alone:
            if self._alone_over is None or self._alone_over.done():
                self._alone_over = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._alone_over})  # Several tasks may wait for it.

    async def _write(
        self, owner: RowOwner, rows: list[Row], summary: Summary | None, effects: list[EffectRecord]
    ) -> None:
        try:
            await owner.journal.append(self._execution, *rows, summary=summary, effects=effects)
        except BaseException as why:
            self._failure = why
            owner.on_refused_row(why)
            return
        finally:
            self.behind -= len(rows)
        for row in rows:
            owner.committed(row)

    def drop(self) -> None:
        """Discard pending rows; commit nothing more."""
        self._take()

    def _add(self, row: Row, summary: Summary | None, effects: Sequence[EffectRecord] = ()) -> None:
        """Add a row to those that the next flush writes."""
        self.behind += 1
        self._rows.append(row)
        self._effects.extend(effects)
        if summary is not None:
            self._summary = summary.after(self._summary)

    def _take(self) -> tuple[list[Row], Summary | None, list[EffectRecord]]:
        batch = self._rows, self._summary, self._effects
        self._rows, self._summary, self._effects = [], None, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return batch


def can_wait(state: ExecutionState, report: Report, commands: Sequence[Command]) -> bool:
    """Return whether a row may be written later: not promised, not visible to others, and followed by work."""
    return (
        (type(report) is WorkDone or type(report) is WorkFailed)
        and state.counters.running_steps > 0
        and state.status == "running"
        and all(type(command) in GOES_ON for command in commands)
    )


INTEGER_MAX: Final = 2**63


def storable(report: Report) -> Report:
    """Return the report, or a failure in place of a result that cannot be stored.

    Raises `UnstorableValue` if the sender can be notified of the error.
    """
    match report:
        case WorkDone():
            if report.text is None and not report.messages and is_plain(report.result):
                return report
            return _measured(report)
        case ChildEnded():
            check_storable(report.output)
        case GateAnswered():
            check_storable(report.data)
            check_storable(report.comment)
        case EventReceived():
            check_storable(report.data)
        case Start():
            check_storable(report.session)
            for message in report.messages or ():
                check_storable(message)
            return replace(report, input_bytes=len(encode_json(report.input)))
        case _:
            pass
    return report


def _measured(report: WorkDone) -> Report:
    """Return the report with the size of its result; a failure if the journal cannot store it."""
    result = report.result
    messages: list[Json] = [*report.messages] if report.text is None else [report.text, *report.messages]
    try:
        if isinstance(result, CONTAINERS):
            report = replace(report, result_bytes=len(encode_json(result)))
        else:
            check_storable(result)
        if messages:
            encode_json(messages)
    except UnstorableValue as why:
        failure = failure_by(why)
        return WorkFailed(step=report.step, attempt=report.attempt, failure=failure, usage=report.usage)
    return report


def check_storable(value: Json) -> None:
    """Raise `UnstorableValue` unless the journal returns the value unchanged. Plain values cost almost nothing."""
    if not is_plain(value):
        encode_json(value)


def is_plain(value: Json) -> bool:
    """Return whether the value is always storable."""
    if isinstance(value, str):
        return value.isascii()
    if isinstance(value, int):
        return -INTEGER_MAX < value < INTEGER_MAX
    return value is None
