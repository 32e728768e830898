"""Operations on schedules."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from fastapi import Path, Query, Response
from pydantic import Field, model_validator

from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_see_workflow, sees_workflow
from pointsman.etags import moved
from pointsman.executions.lists import names_of_workflows
from pointsman.paging import page_by
from pointsman.searching import says
from pointsman.server.context import CurrentCaller, CurrentServer, ServerContext
from pointsman.server.if_match import etag_of, held
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Editor, IfMatch, Limit, Of, Operator, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, Body, JsonValue, given, ruled, sample
from pointsman.triggers.schedules import StoredSchedule, must_own, no_such_schedule
from pointsman.triggers.views import fired_view, schedule_view
from pointsman.values import JsonObject
from pointsman.workflows.calendar import EVERY_S_MIN, timing_of

router = Operations(tags=["triggers"])

ScheduleId = Annotated[str, Path(min_length=1, max_length=500, description="The schedule's id.")]
FIRED: JsonObject = {
    "due": 1_763_622_000.0,
    "at": 1_763_622_000.4,
    "outcome": "started",
    "executionId": EXECUTION_ID,
    "count": 1,
    "error": None,
    "note": None,
}
SCHEDULE: JsonObject = {
    "id": "morning",
    "workflowId": "letter",
    "trigger": None,
    "when": "0 8 * * 1-5 (Europe/Berlin)",
    "cron": "0 8 * * 1-5",
    "every": None,
    "at": None,
    "timezone": "Europe/Berlin",
    "input": {"goal": "tides"},
    "missed": "once",
    "overlap": "skip",
    "paused": False,
    "enabled": True,
    "owner": "ada",
    "stopped": None,
    "next": 1_763_708_400.0,
    "queued": [],
    "results": [FIRED],
}


class FiredError(Answer):
    """Why a time brought no execution."""

    code: str
    message: str
    hint: str | None = Field(description="What to do about it.")


class FiredAnswer(Answer):
    """What became of a time."""

    model_config = sample(**FIRED)
    due: float
    at: float
    outcome: Literal["started", "missed", "skipped", "queued", "failed"]
    execution_id: str | None
    count: int = Field(description="How many times it stands for, where they were missed.")
    error: FiredError | None
    note: str | None


class ScheduleAnswer(Answer):
    """A schedule, when it is next due, and what became of it lately."""

    model_config = sample(**SCHEDULE)
    id: str
    workflow_id: str
    trigger: str | None = Field(description="The trigger of the workflow's document that it belongs to.")
    when: str = Field(description="In one line.")
    cron: str | None
    every: float | None = Field(description="Seconds.")
    at: float | None = Field(description="Unix seconds.")
    timezone: str
    input: JsonValue
    missed: Literal["skip", "once", "all"]
    overlap: Literal["allow", "skip", "queue", "replace"]
    paused: bool
    enabled: bool
    owner: str | None = Field(
        description="In whose name it starts the workflow. null: people at the machine of the store, or the author of "
        "the document that declares it."
    )
    stopped: str | None = Field(
        description="Why it starts nothing until it is resumed: its owner lost the right. null: it is not stopped."
    )
    next: float | None
    queued: list[float]
    results: list[FiredAnswer] = Field(description="The latest ones, newest first.")


class SchedulePage(Answer):
    """Schedules by id."""

    model_config = sample(schedules=[SCHEDULE], next=None)
    schedules: list[ScheduleAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class TimesAnswer(Answer):
    """When it is next due."""

    model_config = sample(times=[1_763_708_400.0, 1_763_794_800.0])
    times: list[float]


ONE_TIMING: Final[dict[str, Any]] = {"oneOf": [given("cron"), given("every"), given("at")]}


class TimingBody(Body):
    """When something is due: by `cron`, `every` so many seconds, or once `at` an instant."""

    model_config = ruled(sample(cron="0 8 * * 1-5", timezone="Europe/Berlin"), **ONE_TIMING)
    cron: str | None = Field(default=None, max_length=200)
    every: float | None = Field(
        default=None, gt=0, le=1e10, description="Seconds.", json_schema_extra={"minimum": EVERY_S_MIN}
    )
    at: float | None = Field(default=None, ge=0, le=1e11, description="Unix seconds.")
    timezone: str = Field(default="UTC", max_length=100)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(one is not None for one in (self.cron, self.every, self.at)) != 1:
            raise ValueError("give exactly one of `cron`, `every` and `at`")
        return self


class RevisedBody(TimingBody):
    """What a schedule shall be from now on."""

    model_config = ruled(
        sample(workflow="letter", cron="0 8 * * 1-5", timezone="Europe/Berlin", input={"goal": "tides"}), **ONE_TIMING
    )
    workflow: str = Field(min_length=1, max_length=300, description="`id`, or `id@revision` for always the same one.")
    input: JsonValue = None
    missed: Literal["skip", "once", "all"] = "once"
    overlap: Literal["allow", "skip", "queue", "replace"] = "skip"


class ScheduleBody(RevisedBody):
    """When to start a workflow: by `cron`, `every` so many seconds, or once `at` an instant."""

    model_config = ruled(
        sample(workflow="letter", cron="0 8 * * 1-5", timezone="Europe/Berlin", input={"goal": "tides"}), **ONE_TIMING
    )
    id: str | None = Field(default=None, max_length=200, description="The schedule's; absent: the workflow's.")


@router.get("/api/schedules", responses=answers(SchedulePage), summary="List schedules")
async def schedules(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    workflow: Of = None,
    search: Words = "",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """By id: those of workflows that the caller may see. With `search` only those with all these words in the id, or in
    the id or name of the workflow."""

    async def seen(one: JsonObject) -> bool:
        return await sees_workflow(desk.app.context, caller, str(one["workflowId"]))

    called = await names_of_workflows(desk.app.context, search)

    def is_wanted(kept: StoredSchedule) -> bool:
        of = kept.schedule.workflow
        return workflow in (None, of.partition("@")[0]) and says(search, kept.id, of, called(of))

    found = {kept.id: kept for kept in await desk.app.triggers.schedules.list() if is_wanted(kept)}
    named: list[JsonObject] = [{"id": id, "workflowId": kept.schedule.workflow} for id, kept in found.items()]
    page = await page_by("id", named, after=after, limit=limit, sees=seen)
    # The next due time is computed only for the entries of the page.
    return JsonReply({"schedules": [schedule_view(found[str(one["id"])]) for one in page.entries], "next": page.next})


@router.post(
    "/api/schedules",
    responses=answers(
        ScheduleAnswer, "unknown-workflow", "schedule-exists", "schedule-invalid", 400, status=201, body=True
    ),
    status_code=201,
    summary="Schedule a workflow",
)
async def plan(desk: CurrentServer, caller: Editor, body: ScheduleBody) -> Response:
    """Due from now on, as long as a process keeps the store. The same one again is refused: it is there."""
    await must_see_workflow(desk.app.context, caller, body.workflow)
    kept = await desk.app.schedule(
        body.workflow,
        cron=body.cron,
        every=body.every,
        at=body.at,
        timezone=body.timezone,
        id=body.id,
        input=body.input,
        missed=body.missed,
        overlap=body.overlap,
        caller=caller,
    )
    return JsonReply(schedule_view(kept), status=201, headers={"location": f"/api/schedules/{kept.id}"})


@router.post(
    "/api/schedules/times",
    responses=answers(TimesAnswer, "schedule-invalid", 400, body=True),
    summary="Try a timing",
)
async def tried(
    desk: CurrentServer,
    caller: CurrentCaller,
    body: TimingBody,
    count: Annotated[int, Query(ge=1, le=100, description="How many.")] = 5,
) -> Response:
    """When a schedule would be due that was made now. Nothing is kept."""
    timing = timing_of(cron=body.cron, every_s=body.every, at=body.at, timezone=body.timezone)
    return JsonReply({"times": [*desk.app.triggers.schedules.times_of(timing, count)]})


@router.get("/api/schedules/{sid:path}/times", responses=answers(TimesAnswer, "no-such-schedule"), summary="Look ahead")
async def times(
    desk: CurrentServer,
    caller: CurrentCaller,
    sid: ScheduleId,
    count: Annotated[int, Query(ge=1, le=100, description="How many.")] = 5,
) -> Response:
    """When it is next due, whether or not it is paused."""
    await _schedule(desk, caller, sid)
    return JsonReply({"times": [*await desk.app.triggers.schedules.next_times(sid, count)]})


@router.get(
    "/api/schedules/{sid:path}", responses=answers(ScheduleAnswer, "no-such-schedule"), summary="Read a schedule"
)
async def read(desk: CurrentServer, caller: CurrentCaller, sid: ScheduleId) -> Response:
    """With what became of its latest times."""
    return _reply(await _schedule(desk, caller, sid))


@router.put(
    "/api/schedules/{sid:path}",
    responses=answers(
        ScheduleAnswer,
        "no-such-schedule",
        "unknown-workflow",
        "revision-moved",
        "schedule-invalid",
        400,
        body=True,
    ),
    summary="Change a schedule",
)
async def revise(
    desk: CurrentServer, caller: Editor, sid: ScheduleId, body: RevisedBody, if_match: IfMatch = None
) -> Response:
    """By its owner, or an admin. What it started, and whether it is paused, stays as it is. Other times count from now
    on. One that a workflow's document declares is changed there."""
    known = await _schedule(desk, caller, sid)
    must_own(known, caller, "change it")
    await must_see_workflow(desk.app.context, caller, body.workflow)
    kept = await desk.app.triggers.schedules.revise(
        sid,
        body.workflow,
        after=_held(known, if_match),
        cron=body.cron,
        every=body.every,
        at=body.at,
        timezone=body.timezone,
        input=body.input,
        missed=body.missed,
        overlap=body.overlap,
    )
    return _reply(kept)


@router.post(
    "/api/schedules/{sid:path}/run",
    responses=answers(FiredAnswer, "no-such-schedule"),
    summary="Run a schedule now",
)
async def run(desk: CurrentServer, caller: Operator, sid: ScheduleId) -> Response:
    """Once, whatever its times and its pause say. Where it cannot be started, the answer says why."""
    await _schedule(desk, caller, sid)
    return JsonReply(fired_view(await desk.app.triggers.scheduler.run_now(sid, caller=caller)))


@router.post(
    "/api/schedules/{sid:path}/pause", responses=answers(ScheduleAnswer, "no-such-schedule"), summary="Pause a schedule"
)
async def pause(desk: CurrentServer, caller: Operator, sid: ScheduleId) -> Response:
    """Nothing is due until it is resumed."""
    await _schedule(desk, caller, sid)
    return JsonReply(schedule_view(await desk.app.triggers.schedules.pause(sid)))


@router.post(
    "/api/schedules/{sid:path}/resume",
    responses=answers(ScheduleAnswer, "no-such-schedule"),
    summary="Resume a schedule",
)
async def resume(desk: CurrentServer, caller: Operator, sid: ScheduleId) -> Response:
    """Due from now on: times that passed meanwhile are not made up for. Also one that was stopped, which starts nothing
    unless its owner may do so again."""
    await _schedule(desk, caller, sid)
    return JsonReply(schedule_view(await desk.app.triggers.schedules.resume(sid)))


@router.delete(
    "/api/schedules/{sid:path}",
    status_code=204,
    responses=refusals("no-such-schedule", "schedule-invalid", "revision-moved"),
    summary="Delete a schedule",
)
async def delete(desk: CurrentServer, caller: Editor, sid: ScheduleId, if_match: IfMatch = None) -> Response:
    """By its owner, or an admin. Executions that it started go on. One that a workflow's document declares is paused
    instead."""
    known = await _schedule(desk, caller, sid)
    if not known.schedule.trigger:
        must_own(known, caller, "delete it")
    await desk.app.triggers.schedules.delete(sid, after=_held(known, if_match))
    return Response(status_code=204)


async def _schedule(desk: ServerContext, caller: Caller, sid: str) -> StoredSchedule:
    """Return a schedule. Raises `NoSuchSchedule`, also if the caller may not see its workflow."""
    kept = await desk.app.triggers.schedules.find(sid)
    if kept is None:
        raise no_such_schedule(sid)
    if not await sees_workflow(desk.app.context, caller, kept.schedule.workflow):
        raise no_such_schedule(sid)
    return kept


def _reply(kept: StoredSchedule) -> Response:
    return JsonReply(schedule_view(kept), headers={"etag": _etag(kept)})


def _etag(kept: StoredSchedule) -> str:
    return etag_of(kept.schedule.mark)


def _held(kept: StoredSchedule, if_match: str | None) -> str | None:
    return held(if_match, _etag(kept), kept.schedule.mark, moved(f"the schedule {kept.id!r}"))
