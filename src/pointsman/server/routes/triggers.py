"""What starts executions by itself: events, schedules, webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, model_validator

from pointsman.app.access.callers import Caller
from pointsman.app.access.seeing import must_see_workflow, visible
from pointsman.app.paging import page_by
from pointsman.app.triggers.calling import called, published_for, webhooks_view
from pointsman.app.triggers.schedules import Kept
from pointsman.app.triggers.views import schedule_view
from pointsman.server.desk import Asking, AtDesk, Desk
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers, bytes_body, refusals
from pointsman.server.routes.parameters import After, Editor, Key, Limit, Of, Operator
from pointsman.server.samples import EXECUTION_ID
from pointsman.server.shapes import Answer, Body, JsonValue, SignalBody, sample
from pointsman.values import JsonObject

router = APIRouter(tags=["triggers"])

ScheduleId = Annotated[str, Path(min_length=1, max_length=500, description="The schedule's id.")]
SCHEDULE: JsonObject = {
    "id": "morning",
    "workflowId": "letter",
    "trigger": None,
    "when": "0 8 * * 1-5",
    "timezone": "Europe/Berlin",
    "input": {"goal": "tides"},
    "missed": "once",
    "overlap": "skip",
    "paused": False,
    "enabled": True,
    "next": 1_763_708_400.0,
    "queued": [],
    "results": [],
}
CALL: Final[dict[str, Any]] = bytes_body('{"order": 12}', "application/json", "application/x-www-form-urlencoded")


class PublishedAnswer(Answer):
    """What became of an event."""

    model_config = sample(key="order-12", delivered=[EXECUTION_ID], started=[], untold=[])
    key: str = Field(description="Publish it again under this key, and nobody who knows it is told again.")
    delivered: list[str] = Field(description="The executions that took it: those that the caller sees.")
    started: list[str]
    untold: list[JsonValue] = Field(description="Who could not be told, and why.")


class ScheduleAnswer(Answer):
    """A schedule, when it is next due, and what became of it lately."""

    model_config = sample(**SCHEDULE)
    id: str
    workflow_id: str
    trigger: str | None = Field(description="The trigger of the workflow's document that it belongs to.")
    when: str
    timezone: str
    input: JsonValue
    missed: Literal["skip", "once", "all"]
    overlap: Literal["allow", "skip", "queue", "replace"]
    paused: bool
    enabled: bool
    next: float | None
    queued: list[float]
    results: list[JsonValue]


class SchedulePage(Answer):
    """Schedules by id."""

    model_config = sample(schedules=[SCHEDULE], next=None)
    schedules: list[ScheduleAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class TimesAnswer(Answer):
    """When it is next due."""

    model_config = sample(times=[1_763_708_400.0, 1_763_794_800.0])
    times: list[float]


class ScheduleBody(Body):
    """When to start a workflow: by `cron`, `every` so many seconds, or once `at` an instant."""

    model_config = sample(workflow="letter", cron="0 8 * * 1-5", timezone="Europe/Berlin", input={"goal": "tides"})
    workflow: str = Field(min_length=1, max_length=300, description="`id`, or `id@revision` for always the same one.")
    id: str | None = Field(default=None, max_length=200, description="The schedule's; absent: the workflow's.")
    cron: str | None = Field(default=None, max_length=200)
    every: float | None = Field(default=None, gt=0, le=1e10, description="Seconds.")
    at: float | None = Field(default=None, ge=0, le=1e11, description="Unix seconds.")
    timezone: str = Field(default="UTC", max_length=100)
    input: JsonValue = None
    missed: Literal["skip", "once", "all"] = "once"
    overlap: Literal["allow", "skip", "queue", "replace"] = "skip"

    @model_validator(mode="after")
    def _one(self) -> ScheduleBody:
        if sum(one is not None for one in (self.cron, self.every, self.at)) != 1:
            raise ValueError("give exactly one of `cron`, `every` and `at`")
        return self


class WebhookAnswer(Answer):
    """A webhook that is in effect."""

    path: str
    address: str
    workflow_id: str
    trigger: str
    event: str | None
    signed: bool = Field(description="Whether calls must be signed.")


class WebhookPage(Answer):
    """Webhooks by path."""

    model_config = sample(
        webhooks=[
            {
                "path": "orders",
                "address": "/api/webhooks/orders",
                "workflowId": "letter",
                "trigger": "order",
                "event": None,
                "signed": True,
            }
        ],
        next=None,
    )
    webhooks: list[WebhookAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class CalledAnswer(Answer):
    """A call that was taken. What it started is not told: whoever calls need not see it."""

    model_config = sample(delivery="msg_2f", accepted=True)
    delivery: str
    accepted: bool = Field(description="False: the webhook's `match` does not hold, and nothing happened.")


@router.post("/api/events", responses=answers(PublishedAnswer, "input-invalid", body=True), summary="Publish an event")
async def publish(desk: AtDesk, caller: Operator, body: SignalBody, key: Key = None) -> Response:
    """To every execution that waits for it; and to the triggers that start workflows with it."""
    name = body.key or ("" if key is None else f"{caller.name}|{key}")
    published = await desk.app.publish(body.name, body.data, key=name, by=caller.name)
    return JsonReply(await published_for(desk.app, caller, published))


@router.get("/api/schedules", responses=answers(SchedulePage), summary="List schedules")
async def schedules(
    *, desk: AtDesk, caller: Asking, workflow: Of = None, after: After = None, limit: Limit = 50
) -> Response:
    """By id: those of workflows that the caller may see."""

    async def seen(one: JsonObject) -> bool:
        return await visible(desk.app, caller, str(one["workflowId"]))

    found = [schedule_view(kept) for kept in await desk.app.triggers.schedules.list()]
    wanted = (one for one in found if workflow in (None, str(one["workflowId"]).partition("@")[0]))
    page = await page_by("id", wanted, after=after, limit=limit, sees=seen)
    return JsonReply({"schedules": [*page.entries], "next": page.next})


@router.post(
    "/api/schedules",
    responses=answers(
        ScheduleAnswer, "unknown-workflow", "schedule-exists", "schedule-invalid", 400, status=201, body=True
    ),
    status_code=201,
    summary="Schedule a workflow",
)
async def plan(desk: AtDesk, caller: Editor, body: ScheduleBody) -> Response:
    """Due from now on, as long as a process keeps the store. The same one again is refused: it is there."""
    await must_see_workflow(desk.app, caller, body.workflow)
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
    )
    return JsonReply(schedule_view(kept), status=201, headers={"location": f"/api/schedules/{kept.id}"})


@router.get("/api/schedules/{sid:path}/times", responses=answers(TimesAnswer, "no-such-schedule"), summary="Look ahead")
async def times(
    desk: AtDesk,
    caller: Asking,
    sid: ScheduleId,
    count: Annotated[int, Query(ge=1, le=100, description="How many.")] = 5,
) -> Response:
    """When it is next due, whether or not it is paused."""
    await _schedule(desk, caller, sid)
    return JsonReply({"times": [*await desk.app.triggers.schedules.next_times(sid, count)]})


@router.get(
    "/api/schedules/{sid:path}", responses=answers(ScheduleAnswer, "no-such-schedule"), summary="Read a schedule"
)
async def read(desk: AtDesk, caller: Asking, sid: ScheduleId) -> Response:
    """With what became of its latest times."""
    return JsonReply(schedule_view(await _schedule(desk, caller, sid)))


@router.post(
    "/api/schedules/{sid:path}/pause", responses=answers(ScheduleAnswer, "no-such-schedule"), summary="Pause a schedule"
)
async def pause(desk: AtDesk, caller: Operator, sid: ScheduleId) -> Response:
    """Nothing is due until it is resumed."""
    await _schedule(desk, caller, sid)
    return JsonReply(schedule_view(await desk.app.triggers.schedules.pause(sid)))


@router.post(
    "/api/schedules/{sid:path}/resume",
    responses=answers(ScheduleAnswer, "no-such-schedule"),
    summary="Resume a schedule",
)
async def resume(desk: AtDesk, caller: Operator, sid: ScheduleId) -> Response:
    """Due from now on: times that passed meanwhile are not made up for."""
    await _schedule(desk, caller, sid)
    return JsonReply(schedule_view(await desk.app.triggers.schedules.resume(sid)))


@router.delete(
    "/api/schedules/{sid:path}",
    status_code=204,
    responses=refusals("no-such-schedule", "schedule-invalid"),
    summary="Delete a schedule",
)
async def delete(desk: AtDesk, caller: Editor, sid: ScheduleId) -> Response:
    """Executions that it started go on. One that a workflow's document declares is paused instead."""
    await _schedule(desk, caller, sid)
    await desk.app.triggers.schedules.delete(sid)
    return Response(status_code=204)


async def _schedule(desk: Desk, caller: Caller, sid: str) -> Kept:
    """Raises `NoSuchSchedule`, `NotAllowed`."""
    kept = await desk.app.triggers.schedules.get(sid)
    await must_see_workflow(desk.app, caller, kept.schedule.workflow)
    return kept


@router.get("/api/webhooks", responses=answers(WebhookPage), summary="List webhooks")
async def webhooks(*, desk: AtDesk, caller: Editor, after: After = None, limit: Limit = 50) -> Response:
    """By path: those that saved workflows declare, of workflows that the caller may see."""

    async def seen(one: JsonObject) -> bool:
        return await visible(desk.app, caller, str(one["workflowId"]))

    page = await page_by("path", await webhooks_view(desk.app), after=after, limit=limit, sees=seen)
    return JsonReply({"webhooks": [*page.entries], "next": page.next})


@router.post(
    "/api/webhooks/{path:path}",
    responses=answers(CalledAnswer, "webhook-refused", "body-too-large", 400, 409, 503, status=202),
    status_code=202,
    summary="Call a webhook",
    openapi_extra=CALL,
)
async def call(
    desk: AtDesk,
    request: Request,
    path: Annotated[str, Path(min_length=1, max_length=500, description="As the workflow declares it.")],
) -> Response:
    """Takes no key: a call is signed with the webhook's secret (Standard Webhooks, or as GitHub signs). A call that
    comes again with the same id is taken once."""
    received = await desk.app.webhook(path, await request.body(), dict(request.headers))
    return JsonReply(called(received), status=202)
