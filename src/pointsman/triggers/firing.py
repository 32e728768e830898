"""Firing: records one outcome for each due time of a schedule, even if the process crashes in between.

    due times ─▶ which of them run (missed) ─▶ may they (overlap) ─▶ start ─▶ record the outcomes
                                                                      └─ crash: the next check finds the execution

An outcome is recorded after the start. The execution id derives from schedule and due time, so a start that happened
before a crash is found, not repeated.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from msgspec.structs import replace

from pointsman.auth.callers import LOCAL, Caller, together
from pointsman.context import AppContext
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.state import ENDED
from pointsman.errors import AuthorError, CallerError, OperatorError
from pointsman.executions.opening import reach_execution
from pointsman.runtime.local import UnknownExecution
from pointsman.store.errors import EntryMoved, StoreFailed
from pointsman.triggers.owners import TriggerStopped, author_for, owner_for
from pointsman.triggers.schedules import RESULTS_KEPT, Fired, Outcome, Schedule, Schedules, StoredSchedule
from pointsman.triggers.starts import CausedStarts, id_for
from pointsman.values import ExecutionId
from pointsman.workflows.calendar import due_after

ON_TIME_S: Final = 60.0
"""A due time noticed within this delay does not count as missed: processes restart, machines are busy."""
CATCH_UP_MAX: Final = 100
"""Maximum number of missed runs that are caught up at once."""
QUEUED_MAX: Final = 100
"""Maximum number of queued runs of one schedule; further ones are skipped."""
OPEN_MAX: Final = 100
"""Maximum number of open executions tracked per schedule."""
QUEUE_LOOK_S: Final = 5.0
"""How often to check whether the execution has ended that queued runs wait for."""
CAUSE: Final = "schedule"


class Scheduler:
    """Scheduler of due runs. Several may run at once, in several processes."""

    def __init__(self, app: AppContext, schedules: Schedules, starts: CausedStarts) -> None:
        self._app = app
        self._schedules = schedules
        self._starts = starts

    async def next_due(self) -> float | None:
        """Return the time when `fire` has something to do next. None: nothing is scheduled."""
        found: list[float] = []
        for kept in await self._schedules.list():
            if kept.schedule.active:
                due = kept.schedule.next_due()
                found += [] if due is None else [due]
                found += [self._app.clock.now() + QUEUE_LOOK_S] if kept.schedule.queued else []
        return min(found, default=None)

    async def fire(self, now: float) -> list[Fired]:
        """Determine the outcome of every due time up to `now`. Return the new outcomes. Raises the
        errors of the store."""
        fired: list[Fired] = []
        for kept in await self._schedules.list():
            if kept.schedule.active:
                fired += await self._settle(kept, now)
        return fired

    async def run_now(self, id: str, *, caller: Caller = LOCAL) -> Fired:
        """Start a run now for a caller and the owner, regardless of due times, pause and overlap policy."""
        schedule = (await self._schedules.get(id)).schedule
        now = self._app.clock.now()
        fired = await self._start(id, schedule, now, now, "by hand", caller=caller)
        await self._schedules.change(id, lambda one: _noted(one, [fired], _opened(one.open, fired)))
        return fired

    async def _settle(self, kept: StoredSchedule, now: float) -> list[Fired]:
        """Record the outcomes up to `now`. If another process changes the schedule meanwhile, repeats with the new
        version, and finds what was already started."""
        id, schedule, version = kept
        while schedule.active:
            look = DueCheck(id, schedule, now, await self._still_open(schedule.open))
            told, dues = await self._sorted(look)
            for due in (*schedule.queued, *dues):
                fired = await self._take(look, due)
                if fired.outcome != "queued" or due not in schedule.queued:
                    told.append(fired)
            if not told:
                return []
            noted = _noted(schedule, told, look.open)
            noted = replace(noted, queued=tuple(look.queued), settled=max(schedule.settled, now))
            stopped = [one.message for one in told if one.code == TriggerStopped.code]
            noted = replace(noted, stopped=stopped[-1]) if stopped else noted
            try:
                await self._schedules.put(id, noted, after=version)
            except EntryMoved:
                again = await self._schedules.find(id)
                if again is None:
                    return told
                _, schedule, version = again
                continue
            return told
        return []

    async def _sorted(self, look: DueCheck) -> tuple[list[Fired], list[float]]:
        """Split the due times into missed ones, as outcomes, and those to run."""
        schedule, now = look.schedule, look.now
        since = max(schedule.settled, now - max(schedule.catch_up_s, ON_TIME_S))
        behind = due_after(schedule.timing, since, begin=schedule.begin)
        times = [*takewhile(lambda due: due <= now, behind)]
        late = [due for due in times if due < now - ON_TIME_S]
        fresh = times[len(late) :]
        begun = 0
        while begun < len(late) and await self._starts.began(_execution_for(look.id, late[begun])):
            begun += 1
        found, late = late[:begun], late[begun:]
        made_up = {"skip": [], "once": [] if fresh else late[-1:], "all": late[-CATCH_UP_MAX:]}[schedule.missed]
        missed = late[: len(late) - len(made_up)]
        first = schedule.next_due()
        if first is not None and first <= since:
            missed.insert(0, first)
        told: list[Fired] = []
        if missed:
            told.append(Fired(due=missed[-1], at=now, outcome="missed", count=len(missed)))
        return told, [*found, *made_up, *fresh]

    async def _take(self, look: DueCheck, due: float) -> Fired:
        """Return the outcome of one due time. A run that started before a crash is found, even if other executions are
        open."""
        if look.open and not await self._starts.began(_execution_for(look.id, due)):
            match look.schedule.overlap:
                case "skip":
                    return look.outcome(due, "skipped", f"{look.open[-1]} is not over")
                case "queue":
                    if len(look.queued) >= QUEUED_MAX:
                        return look.outcome(due, "skipped", f"{QUEUED_MAX} runs wait already")
                    look.queued.append(due)
                    return look.outcome(due, "queued", f"{look.open[-1]} is not over")
                case "replace":
                    await self._stop(look)
                case "allow":
                    pass
        fired = await self._start(look.id, look.schedule, due, look.now)
        look.open = await self._still_open(_opened(look.open, fired))
        return fired

    async def _still_open(self, executions: tuple[str, ...]) -> tuple[str, ...]:
        """Return the executions that have not ended. A failed execution has ended, although it can be retried."""
        found = [await self._app.store.executions.find(ExecutionId(one)) for one in executions]
        return tuple(one.execution for one in found if one is not None and one.status not in ENDED)

    async def _stop(self, look: DueCheck) -> None:
        for execution in look.open:
            with suppress(WrongStatus, UnknownExecution):  # It ended by itself, or was deleted.
                reached = await reach_execution(self._app, execution)
                await reached.cancel(reason=f"replaced by the next run of schedule {look.id!r}", by="schedule")
                await reached.drained()
        look.open = ()

    async def _start(
        self, id: str, schedule: Schedule, due: float, now: float, *more: str, caller: Caller = LOCAL
    ) -> Fired:
        """Start the run of a due time. Errors that people must fix become an outcome; errors of the
        store are raised."""
        cause = _cause(id, due, *more)
        try:
            owner = await self._owner(schedule)
            by = owner if caller.is_machine else together(caller, owner)
            started = await self._starts.start(schedule.workflow, schedule.input, *cause, caller=by)
        except StoreFailed:
            raise
        except (AuthorError, CallerError, OperatorError) as why:
            return Fired(due=due, at=now, outcome="failed", code=why.code, message=str(why), hint=why.hint)
        return Fired(due=due, at=now, outcome="started", execution=started.execution)

    async def _owner(self, schedule: Schedule) -> Caller:
        """Return the owner of a schedule. Raises `TriggerStopped`, `UnknownWorkflow`."""
        if schedule.trigger:
            return await author_for(self._app, schedule.workflow)
        return await owner_for(self._app, schedule.owners, schedule.workflow)


@dataclass(slots=True)
class DueCheck:
    """One check of one schedule, whose due times are processed in order."""

    id: str
    schedule: Schedule
    now: float
    open: tuple[str, ...]
    """Executions that have not ended."""
    queued: list[float] = field(default_factory=list[float])
    """Due times that wait for them."""

    def outcome(self, due: float, outcome: Outcome, message: str) -> Fired:
        return Fired(due=due, at=self.now, outcome=outcome, message=message)


def _cause(id: str, due: float, *more: str) -> tuple[str, ...]:
    return (CAUSE, id, f"{due:.6f}", *more)


def _execution_for(id: str, due: float) -> ExecutionId:
    return id_for(*_cause(id, due))


def _opened(open: tuple[str, ...], fired: Fired) -> tuple[str, ...]:
    if not fired.execution or fired.execution in open:
        return open
    return (*open, fired.execution)[-OPEN_MAX:]


def _noted(schedule: Schedule, fired: list[Fired], open: tuple[str, ...]) -> Schedule:
    results = (*reversed(fired), *schedule.results)[:RESULTS_KEPT]
    return replace(schedule, results=results, open=open)
