"""Schedules: configuration and progress of each schedule, and the scheduler that starts what is due.

    due times ─▶ which of them run (missed) ─▶ may they (overlap) ─▶ start ─▶ record the outcomes
                                                                      └─ crash: the next check finds the execution

Each schedule is one entry of the store, changed by compare-and-set, so that the scheduler and editors do not overwrite
each other. Each due time gets one outcome, even if the process crashes: the execution id derives from schedule and due
time, so a start that happened before a crash is found, not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice, takewhile
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pointsman.arguments import checks_arguments
from pointsman.auth.callers import LOCAL, Caller, combined_caller
from pointsman.auth.sharing import Sharing, must_be_of
from pointsman.context import AppContext
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.instants import instant_text
from pointsman.engine.state import ENDED
from pointsman.errors import AuthorError, CallerError, OperatorError
from pointsman.etags import revision_moved
from pointsman.executions.opening import reach_execution
from pointsman.runtime.local import UnknownExecution
from pointsman.store.errors import EntryMoved, StoreFailed
from pointsman.triggers.starts import CausedStarts, TriggerStopped, author_for, id_for, owner_for
from pointsman.values import ExecutionId, Json
from pointsman.workflows.authors import Party, owner_of
from pointsman.workflows.builtin import BUILT_IN
from pointsman.workflows.calendar import Timing, TimingInvalid, due_after, timing_of
from pointsman.workflows.library import LIBRARY

KIND: Final = "schedule"
CATCH_UP_S: Final = 86_400.0
"""How far back missed runs are caught up, unless a schedule specifies otherwise."""
CATCH_UP_S_MAX: Final = 31 * 86_400.0
RESULTS_KEPT: Final = 10
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
RESERVED: Final = ("times",)
"""Words that have a meaning in URLs."""

Missed: TypeAlias = Literal["skip", "once", "all"]
Overlap: TypeAlias = Literal["allow", "skip", "queue", "replace"]
Outcome: TypeAlias = Literal["started", "missed", "skipped", "queued", "failed"]


class ScheduleTimes(TypedDict, total=False):
    """When a workflow is started automatically: exactly one of `cron`, `every`, `at`."""

    cron: str | None
    every: float | None
    """Seconds."""
    at: float | None
    """Unix seconds."""
    timezone: str
    id: str | None
    """The id of the schedule; default: the id of the workflow."""
    input: Json
    missed: Missed
    overlap: Overlap
    caller: Caller
    """The owner."""


class NoSuchSchedule(CallerError):
    """No schedule has this id."""

    code: ClassVar[str] = "no-such-schedule"


def no_such_schedule(id: str) -> NoSuchSchedule:
    """Return the error for a schedule that does not exist or that the caller may not see, which are
    not distinguished."""
    hint = "`pointsman schedules list` and GET /api/schedules list the schedules that you may see."
    return NoSuchSchedule(f"there is no schedule {id!r}", hint=hint)


class ScheduleExists(CallerError):
    """A schedule of this id exists already."""

    code: ClassVar[str] = "schedule-exists"


class ScheduleInvalid(CallerError):
    """The id of the schedule is invalid, or it belongs to the document of a workflow."""

    code: ClassVar[str] = "schedule-invalid"


class Fired(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one due time, or of several that were missed."""

    due: float
    at: float
    outcome: Outcome
    execution: str = ""
    code: str = ""
    message: str = ""
    hint: str = ""
    """What to do about a failure."""
    count: int = 1


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Configuration and progress of a schedule."""

    workflow: str
    """A saved workflow: `id` is its latest revision at the due time, `id@3` always the same one."""
    timing: Timing
    input: Json = None
    missed: Missed = "once"
    """What to do about runs missed while no worker was running: nothing, one run for all of them, or one run each."""
    overlap: Overlap = "skip"
    """What to do if the previous execution has not ended."""
    catch_up_s: float = CATCH_UP_S
    """Runs missed longer ago than this are never caught up."""
    paused: bool = False
    enabled: bool = True
    """False: the document that declares it disabled it."""
    owners: tuple[Party, ...] = ()
    """The people on whose behalf it starts the workflow; empty: users at the machine of the store. The owners of a
    declared schedule are the authors of the document's latest revision, and are not recorded here."""
    stopped: str = ""
    """Why it starts nothing until it is resumed; empty: it is not stopped."""
    trigger: str = ""
    """The trigger that declares it in the workflow's document; empty: it was added separately."""
    begin: float = 0.0
    """Only times after this one count, and `every` counts from here."""
    settled: float = 0.0
    """Every due time up to this one has its outcome."""
    open: tuple[str, ...] = ()
    """Executions it started that had not ended at the last check."""
    queued: tuple[float, ...] = ()
    """Due times that wait for the end of the previous execution."""
    results: tuple[Fired, ...] = ()
    """The latest outcomes, newest first."""

    @property
    def active(self) -> bool:
        return self.enabled and not self.paused and not self.stopped

    @property
    def rests(self) -> bool:
        """Whether it starts nothing until a user resumes it."""
        return self.paused or bool(self.stopped)

    @property
    def mark(self) -> str:
        """ETag of the configuration; the progress is not part of it."""
        content = msgspec.json.encode((self.workflow, self.timing, self.input, self.missed, self.overlap))
        return sha256(content).hexdigest()[:16]

    def next_due(self) -> float | None:
        """Return the first time that has no outcome yet."""
        return next(due_after(self.timing, self.settled, begin=self.begin), None)


class StoredSchedule(NamedTuple):
    """A schedule with its id and version in the store."""

    id: str
    schedule: Schedule
    version: int


@checks_arguments
class Schedules:
    """Schedules of one app."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def plan(self, workflow: str, **how: Unpack[ScheduleTimes]) -> StoredSchedule:
        """Start a saved workflow at the times in `how`. Raises the errors of `timing_of` and `add`."""
        timing = timing_of(
            cron=how.get("cron"), every_s=how.get("every"), at=how.get("at"), timezone=how.get("timezone", "UTC")
        )
        name, missed, overlap = how.get("id"), how.get("missed", "once"), how.get("overlap", "skip")
        id = usual_id(workflow) if name is None else name
        caller = how.get("caller", LOCAL)
        return await self.add(
            id, workflow, timing, input=how.get("input"), missed=missed, overlap=overlap, caller=caller
        )

    async def add(
        self,
        id: str,
        workflow: str,
        timing: Timing,
        *,
        input: Json = None,
        missed: Missed = "once",
        overlap: Overlap = "skip",
        catch_up_s: float = CATCH_UP_S,
        caller: Caller = LOCAL,
    ) -> StoredSchedule:
        """Add a schedule that is due from now on, with `caller` as owner.

        Raises `ScheduleExists`, `ScheduleInvalid`, `TimingInvalid`, `UnknownWorkflow`.
        """
        if not NAME.fullmatch(id) or id in RESERVED:
            hint = f"Use letters, digits and `. _ -`, at most 200; not {', '.join(RESERVED)}."
            raise ScheduleInvalid(f"{id[:200]!r} is not a valid schedule id", hint=hint)
        if not 0 <= catch_up_s <= CATCH_UP_S_MAX:
            raise ScheduleInvalid(
                f"runs missed {catch_up_s:g} s ago cannot be caught up", hint=f"Use at most {CATCH_UP_S_MAX:g} s."
            )
        await self._app[LIBRARY].found(workflow)
        now = self._app.clock.now()
        _must_be_ahead(timing, now)
        schedule = Schedule(
            workflow=workflow,
            timing=timing,
            input=input,
            missed=missed,
            overlap=overlap,
            catch_up_s=catch_up_s,
            owners=tuple(owner_of(caller)),
            begin=now,
            settled=now,
        )
        try:
            version = await self.put(id, schedule, after=0)
        except EntryMoved:
            raise ScheduleExists(
                f"the schedule {id!r} already exists", hint="Delete that schedule, or choose another id."
            ) from None
        return StoredSchedule(id, schedule, version)

    async def revise(
        self,
        id: str,
        workflow: str,
        timing: Timing,
        *,
        input: Json = None,
        missed: Missed = "once",
        overlap: Overlap = "skip",
        after: str | None = None,
    ) -> StoredSchedule:
        """Replace the configuration of a schedule; its executions and outcomes are kept. Changed times count from now
        on.

        `after` is the `mark` it must have. Raises `RevisionMoved`, `ScheduleInvalid` for a schedule that a document
        declares, and the errors of `add`.
        """
        _must_be_its_own(await self.get(id), "Change the document of the workflow.")
        now = self._app.clock.now()
        _must_be_ahead(timing, now)
        await self._app[LIBRARY].found(workflow)

        def changed(schedule: Schedule) -> Schedule:
            if after not in (None, schedule.mark):
                raise revision_moved(f"the schedule {id!r}")
            revised = replace(
                schedule,
                workflow=workflow,
                timing=timing,
                input=input,
                missed=missed,
                overlap=overlap,
                stopped="",
            )
            return (
                revised
                if timing == schedule.timing
                else replace(revised, begin=now, settled=max(schedule.settled, now))
            )

        return await self.change(id, changed)

    async def put(self, id: str, schedule: Schedule, *, after: int) -> int:
        """Write a schedule. Raises `EntryMoved` if its version has changed."""
        return await self._app.store.entries.put(KIND, id, msgspec.to_builtins(schedule), after=after)

    async def find(self, id: str) -> StoredSchedule | None:
        found = await self._app.store.entries.find(KIND, id)
        return None if found is None else StoredSchedule(id, msgspec.convert(found.value, Schedule), found.version)

    async def get(self, id: str) -> StoredSchedule:
        """Return a schedule. Raises `NoSuchSchedule`."""
        found = await self.find(id)
        if found is None:
            raise no_such_schedule(id)
        return found

    async def list(self) -> list[StoredSchedule]:
        """Return all schedules by id."""
        entries = await self._app.store.entries.list(KIND)
        return [StoredSchedule(entry.key, msgspec.convert(entry.value, Schedule), entry.version) for entry in entries]

    async def pause(self, id: str) -> StoredSchedule:
        """Pause a schedule: nothing is due until it is resumed. Queued runs stay queued."""
        return await self.change(id, lambda schedule: replace(schedule, paused=True))

    async def resume(self, id: str) -> StoredSchedule:
        """Resume a schedule from now on: times during the pause are not caught up."""
        now = self._app.clock.now()
        return await self.change(
            id, lambda one: replace(one, paused=False, stopped="", settled=max(one.settled, now)) if one.rests else one
        )

    async def delete(self, id: str, *, after: str | None = None) -> None:
        """Delete a schedule; its executions continue. `after` is the `mark` it must have. Raises `RevisionMoved`, and
        `ScheduleInvalid` for a schedule that a document declares."""
        while True:
            stored = await self.get(id)
            _must_be_its_own(stored, "Pause it, or save the workflow without this trigger.")
            if after not in (None, stored.schedule.mark):
                raise revision_moved(f"the schedule {id!r}")
            with suppress(EntryMoved):  # The version also changes with the progress, which does not conflict.
                await self._app.store.entries.delete(KIND, id, after=stored.version)
                return

    async def remove(self, id: str) -> None:
        """Delete a schedule even if a document declares it."""
        await self._app.store.entries.delete(KIND, id)

    async def next_times(self, id: str, count: int = 5) -> list[float]:
        """Return the next due times, whether or not the schedule is paused."""
        schedule = (await self.get(id)).schedule
        behind = max(schedule.settled, self._app.clock.now())
        return [*islice(due_after(schedule.timing, behind, begin=schedule.begin), count)]

    def times_of(self, timing: Timing, count: int = 5) -> list[float]:
        """Return the due times of a schedule that would be added now."""
        now = self._app.clock.now()
        return [*islice(due_after(timing, now, begin=now), count)]

    async def change(self, id: str, change: Callable[[Schedule], Schedule]) -> StoredSchedule:
        """Change a schedule; retries after concurrent changes. Raises `NoSuchSchedule`."""
        while True:
            stored = await self.get(id)
            changed = change(stored.schedule)
            if changed == stored.schedule:
                return stored
            try:
                return StoredSchedule(id, changed, await self.put(id, changed, after=stored.version))
            except EntryMoved:
                continue


def must_own(stored: StoredSchedule, caller: Caller, what: str) -> None:
    """Raise `NotAllowed` if the caller does not own the schedule; `what` as in "change it"."""
    owner = stored.schedule.owners[0].name if stored.schedule.owners else ""
    must_be_of(Sharing(owner=owner, audience="private"), caller, f"the schedule {stored.id!r}", what)


def usual_id(workflow: str) -> str:
    """Return the default id of a schedule: that of its workflow."""
    return workflow.partition("@")[0].removeprefix(BUILT_IN)


def _must_be_ahead(timing: Timing, now: float) -> None:
    if timing.at is not None and timing.at <= now:
        raise TimingInvalid(f"{instant_text(timing.at)} is in the past", hint="Choose a time in the future.")


def _must_be_its_own(stored: StoredSchedule, hint: str) -> None:
    if stored.schedule.trigger:
        raise ScheduleInvalid(f"{stored.id!r} is declared in the document of {stored.schedule.workflow!r}", hint=hint)


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
        times: list[float] = []
        for stored in await self._schedules.list():
            if stored.schedule.active:
                due = stored.schedule.next_due()
                times += [] if due is None else [due]
                times += [self._app.clock.now() + QUEUE_LOOK_S] if stored.schedule.queued else []
        return min(times, default=None)

    async def fire(self, now: float) -> list[Fired]:
        """Determine the outcome of every due time up to `now`. Return the new outcomes. Raises the
        errors of the store."""
        fired: list[Fired] = []
        for stored in await self._schedules.list():
            if stored.schedule.active:
                fired += await self._settle(stored, now)
        return fired

    async def run_now(self, id: str, *, caller: Caller = LOCAL) -> Fired:
        """Start a run now for a caller and the owner, regardless of due times, pause and overlap policy."""
        schedule = (await self._schedules.get(id)).schedule
        now = self._app.clock.now()
        fired = await self._start(id, schedule, now, now, "by hand", caller=caller)
        await self._schedules.change(id, lambda one: _with_result(one, [fired], _opened(one.open, fired)))
        return fired

    async def _settle(self, stored: StoredSchedule, now: float) -> list[Fired]:
        """Record the outcomes up to `now`. If another process changes the schedule meanwhile, repeats with the new
        version, and finds what was already started."""
        id, schedule, version = stored
        while schedule.active:
            look = DueCheck(id, schedule, now, await self._still_open(schedule.open))
            outcomes, dues = await self._sorted(look)
            for due in (*schedule.queued, *dues):
                fired = await self._take(look, due)
                if fired.outcome != "queued" or due not in schedule.queued:
                    outcomes.append(fired)
            if not outcomes:
                return []
            noted = _with_result(schedule, outcomes, look.open)
            noted = replace(noted, queued=tuple(look.queued), settled=max(schedule.settled, now))
            stopped = [outcome.message for outcome in outcomes if outcome.code == TriggerStopped.code]
            noted = replace(noted, stopped=stopped[-1]) if stopped else noted
            try:
                await self._schedules.put(id, noted, after=version)
            except EntryMoved:
                again = await self._schedules.find(id)
                if again is None:
                    return outcomes
                _, schedule, version = again
                continue
            return outcomes
        return []

    async def _sorted(self, look: DueCheck) -> tuple[list[Fired], list[float]]:
        """Split the due times into missed ones, as outcomes, and those to run."""
        schedule, now = look.schedule, look.now
        since = max(schedule.settled, now - max(schedule.catch_up_s, ON_TIME_S))
        behind = due_after(schedule.timing, since, begin=schedule.begin)
        times = [*takewhile(lambda due: due <= now, behind)]
        late = [due for due in times if due < now - ON_TIME_S]
        fresh = times[len(late) :]
        started = 0
        while started < len(late) and await self._starts.began(_execution_for(look.id, late[started])):
            started += 1
        found, late = late[:started], late[started:]
        made_up = {"skip": [], "once": [] if fresh else late[-1:], "all": late[-CATCH_UP_MAX:]}[schedule.missed]
        missed = late[: len(late) - len(made_up)]
        first = schedule.next_due()
        if first is not None and first <= since:
            missed.insert(0, first)
        outcomes: list[Fired] = []
        if missed:
            outcomes.append(Fired(due=missed[-1], at=now, outcome="missed", count=len(missed)))
        return outcomes, [*found, *made_up, *fresh]

    async def _take(self, look: DueCheck, due: float) -> Fired:
        """Return the outcome of one due time. A run that started before a crash is found, even if other executions are
        open."""
        if look.open and not await self._starts.began(_execution_for(look.id, due)):
            match look.schedule.overlap:
                case "skip":
                    return look.outcome(due, "skipped", f"{look.open[-1]} has not ended")
                case "queue":
                    if len(look.queued) >= QUEUED_MAX:
                        return look.outcome(due, "skipped", f"{QUEUED_MAX} runs are queued already")
                    look.queued.append(due)
                    return look.outcome(due, "queued", f"{look.open[-1]} has not ended")
                case "replace":
                    await self._stop(look)
                case "allow":
                    pass
        fired = await self._start(look.id, look.schedule, due, look.now)
        look.open = await self._still_open(_opened(look.open, fired))
        return fired

    async def _still_open(self, executions: tuple[str, ...]) -> tuple[str, ...]:
        """Return the executions that have not ended. A failed execution has ended, although it can be retried."""
        found = [await self._app.store.executions.find(ExecutionId(execution)) for execution in executions]
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
            by = owner if caller.is_machine else combined_caller(caller, owner)
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


def _with_result(schedule: Schedule, fired: list[Fired], open: tuple[str, ...]) -> Schedule:
    results = (*reversed(fired), *schedule.results)[:RESULTS_KEPT]
    return replace(schedule, results=results, open=open)
