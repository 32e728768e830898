"""Operations on schedules."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from fastapi import Path, Query, Response
from pydantic import Field, model_validator

from pointsman.etags import etag_of
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, IfMatch, Limit, Of, Words
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Body, JsonValue, given, ruled, sample
from pointsman.server.schemas.views import example
from pointsman.triggers.schedules import StoredSchedule
from pointsman.triggers.verbs import ScheduleVerbs
from pointsman.triggers.views import DueTimes, FiredView, SchedulePage, ScheduleView, fired_view, schedule_view
from pointsman.workflows.calendar import EVERY_S_MIN, Timing, timing_of

router = Operations(tags=["triggers"])

ScheduleId = Annotated[str, Path(min_length=1, max_length=500, description="The schedule's id.")]
Count = Annotated[int, Query(ge=1, le=100, description="How many.")]
FIRED: Final[FiredView] = {
    "due": 1_763_622_000.0,
    "at": 1_763_622_000.4,
    "outcome": "started",
    "executionId": EXECUTION_ID,
    "count": 1,
    "error": None,
    "note": None,
}
SCHEDULE: Final[ScheduleView] = {
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


example(FiredView, FIRED)
example(ScheduleView, SCHEDULE)
example(SchedulePage, {"schedules": [SCHEDULE], "next": None})
example(DueTimes, {"times": [1_763_708_400.0, 1_763_794_800.0]})


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


@router.get("/api/schedules", verb=ScheduleVerbs.list, responses=answers(SchedulePage), summary="List schedules")
async def schedules(
    *, session: CallerSession, workflow: Of = None, search: Words = "", after: After = None, limit: Limit = 50
) -> Response:
    """By id: those of workflows that the caller may see. With `search` only those with all these words in the id, or in
    the id or name of the workflow."""
    return JsonReply(await session.schedules.list(workflow=workflow, search=search, after=after, limit=limit))


@router.post(
    "/api/schedules",
    verb=ScheduleVerbs.add,
    responses=answers(
        ScheduleView, "unknown-workflow", "schedule-exists", "schedule-invalid", 400, status=201, body=True
    ),
    status_code=201,
    summary="Schedule a workflow",
)
async def plan(session: CallerSession, body: ScheduleBody) -> Response:
    """Due from now on, as long as a worker runs. A second one with the same id is refused."""
    kept = await session.schedules.add(
        body.workflow, _timing(body), id=body.id, input=body.input, missed=body.missed, overlap=body.overlap
    )
    return JsonReply(schedule_view(kept), status=201, headers={"location": f"/api/schedules/{kept.id}"})


@router.post(
    "/api/schedules/times",
    verb=ScheduleVerbs.times_of,
    responses=answers(DueTimes, "schedule-invalid", 400, body=True),
    summary="Try a timing",
)
async def tried(session: CallerSession, body: TimingBody, count: Count = 5) -> Response:
    """When a schedule would be due that was added now. Nothing is stored."""
    return JsonReply({"times": await session.schedules.times_of(_timing(body), count)})


@router.get(
    "/api/schedules/{sid:path}/times",
    verb=ScheduleVerbs.next_times,
    responses=answers(DueTimes, "no-such-schedule"),
    summary="Look ahead",
)
async def times(session: CallerSession, sid: ScheduleId, count: Count = 5) -> Response:
    """When it is next due, whether or not it is paused."""
    return JsonReply({"times": await session.schedules.next_times(sid, count)})


@router.get(
    "/api/schedules/{sid:path}",
    verb=ScheduleVerbs.get,
    responses=answers(ScheduleView, "no-such-schedule"),
    summary="Read a schedule",
)
async def read(session: CallerSession, sid: ScheduleId) -> Response:
    """With its latest outcomes."""
    return _reply(await session.schedules.get(sid))


@router.put(
    "/api/schedules/{sid:path}",
    verb=ScheduleVerbs.revise,
    responses=answers(
        ScheduleView,
        "no-such-schedule",
        "unknown-workflow",
        "revision-moved",
        "schedule-invalid",
        400,
        body=True,
    ),
    summary="Change a schedule",
)
async def revise(session: CallerSession, sid: ScheduleId, body: RevisedBody, if_match: IfMatch = None) -> Response:
    """By its owner, or an admin. What it started, and whether it is paused, stays as it is. Other times count from now
    on. One that a workflow's document declares is changed there."""
    kept = await session.schedules.revise(
        sid,
        body.workflow,
        _timing(body),
        input=body.input,
        missed=body.missed,
        overlap=body.overlap,
        match=if_match,
    )
    return _reply(kept)


@router.post(
    "/api/schedules/{sid:path}/run",
    verb=ScheduleVerbs.run,
    responses=answers(FiredView, "no-such-schedule"),
    summary="Run a schedule now",
)
async def run(session: CallerSession, sid: ScheduleId) -> Response:
    """Once, whatever its times and its pause say. If it cannot be started, the answer says why."""
    return JsonReply(fired_view(await session.schedules.run(sid)))


@router.post(
    "/api/schedules/{sid:path}/pause",
    verb=ScheduleVerbs.pause,
    responses=answers(ScheduleView, "no-such-schedule"),
    summary="Pause a schedule",
)
async def pause(session: CallerSession, sid: ScheduleId) -> Response:
    """Nothing is due until it is resumed."""
    return JsonReply(schedule_view(await session.schedules.pause(sid)))


@router.post(
    "/api/schedules/{sid:path}/resume",
    verb=ScheduleVerbs.resume,
    responses=answers(ScheduleView, "no-such-schedule"),
    summary="Resume a schedule",
)
async def resume(session: CallerSession, sid: ScheduleId) -> Response:
    """Due from now on: runs that were due meanwhile are dropped. Also one that was stopped, which starts nothing unless
    its owner may do so again."""
    return JsonReply(schedule_view(await session.schedules.resume(sid)))


@router.delete(
    "/api/schedules/{sid:path}",
    verb=ScheduleVerbs.delete,
    status_code=204,
    responses=refusals("no-such-schedule", "schedule-invalid", "revision-moved"),
    summary="Delete a schedule",
)
async def delete(session: CallerSession, sid: ScheduleId, if_match: IfMatch = None) -> Response:
    """By its owner, or an admin. Executions that it started go on. One that a workflow's document declares is paused
    instead."""
    await session.schedules.delete(sid, match=if_match)
    return Response(status_code=204)


def _timing(body: TimingBody) -> Timing:
    """Return the timing of a request. Raises as `timing_of`."""
    return timing_of(cron=body.cron, every_s=body.every, at=body.at, timezone=body.timezone)


def _reply(kept: StoredSchedule) -> Response:
    return JsonReply(schedule_view(kept), headers={"etag": etag_of(kept.schedule.mark)})
