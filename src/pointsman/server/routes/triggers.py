"""Operations on triggers: publish events; webhooks, schedules, and notifications with their delivery status."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from fastapi import Path, Query, Request, Response
from pydantic import Field, model_validator

from pointsman.etags import etag_of
from pointsman.server.bodies import body_of
from pointsman.server.context import CallerSession, CurrentServer, ServerContext, address_of
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import After, Id, IfMatch, Key, Limit, Match, Of, Words
from pointsman.server.schemas.answers import EXECUTION_ID, GATE, answers, example, raw_body, refusals
from pointsman.server.schemas.requests import Body, JsonValue, SignalBody, requires_fields, sample, with_schema_rule
from pointsman.session import Session
from pointsman.triggers.answer_links import (
    ANSWER_LINKS,
    TOKEN_CHARS_MAX,
    AnswerLink,
    AnswerLinkInvalid,
    LinkAnswerView,
    LinkedGateView,
)
from pointsman.triggers.destinations import (
    RECIPIENTS_MAX,
    DestinationRecipient,
    DestinationRequest,
    Format,
    NoticeEvent,
)
from pointsman.triggers.notifications import (
    AddressView,
    NoticePage,
    NoticeState,
    NoticeView,
    TestedDestination,
    notice_view,
)
from pointsman.triggers.schedules import StoredSchedule
from pointsman.triggers.verbs import NotificationVerbs, ScheduleVerbs, TriggerVerbs
from pointsman.triggers.views import (
    CalledView,
    DeliveryList,
    DeliveryView,
    DueTimes,
    FiredView,
    PublishedView,
    SchedulePage,
    ScheduleView,
    TriedWebhookView,
    WebhookPage,
    called_view,
    fired_view,
    schedule_view,
)
from pointsman.workflows.calendar import EVERY_S_MIN, Timing, timing_of

router = Operations(tags=["triggers"])
notifications_router = Operations(prefix="/api/notifications", tags=["notifications"])
links_router = Operations(prefix="/api/answer-links", tags=["notifications"])
TOKEN: Final = "WyJleGVj….c2lnbmF0dXJl"


Trigger = Annotated[str, Path(min_length=1, max_length=200, description="The trigger's id in the document.")]
CALL: Final[dict[str, Any]] = raw_body(
    {
        "application/json": ({}, {"order": 12}),
        "application/x-www-form-urlencoded": ({"type": "object"}, {"order": "12"}),
    }
)


example(PublishedView, {"key": "order-12", "delivered": [EXECUTION_ID], "started": [], "undelivered": [], "untold": []})
example(
    WebhookPage,
    {
        "webhooks": [
            {
                "path": "orders",
                "address": "/api/webhooks/orders",
                "workflowId": "letter",
                "trigger": "order",
                "event": None,
                "signed": True,
                "scheme": "standard",
                "stopped": None,
            }
        ],
        "next": None,
    },
)
example(CalledView, {"delivery": "msg_2f", "accepted": True})
example(TriedWebhookView, {"delivery": "try-2f", "accepted": True, "started": EXECUTION_ID, "delivered": []})
DELIVERY: Final[DeliveryView] = {
    "id": "msg_2f",
    "at": 1_763_700_000.0,
    "bytes": 12,
    "outcome": "started",
    "signed": True,
    "code": None,
    "why": None,
    "hint": None,
    "executionId": EXECUTION_ID,
    "delivered": 0,
}
example(DeliveryView, DELIVERY)
example(DeliveryList, {"deliveries": [DELIVERY]})


@router.post(
    "/api/events",
    verb=TriggerVerbs.publish,
    responses=answers(PublishedView, "input-invalid", body=True),
    summary="Publish an event",
)
async def publish(session: CallerSession, body: SignalBody, key: Key = None) -> Response:
    """Send an event to all executions that wait for it and that the caller may see, and to triggers that start
    workflows with it, if the caller may execute these."""
    return JsonReply(await session.triggers.publish(body.name, body.data, key=body.key or key or ""))


class TryWebhookBody(Body):
    """A test call of a webhook."""

    model_config = sample(data={"order": 12})
    data: JsonValue = None


@router.post(
    "/api/workflows/{id}/triggers/{trigger}/try",
    verb=TriggerVerbs.try_webhook,
    responses=answers(
        TriedWebhookView,
        "unknown-workflow",
        "no-such-trigger",
        "webhook-refused",
        "concurrency-limit-reached",
        "trigger-stopped",
        503,
        body=True,
    ),
    summary="Test a webhook",
)
async def try_(session: CallerSession, id: Id, trigger: Trigger, body: TryWebhookBody) -> Response:
    """Make one call as a sender would, signed with the webhook's secret. It really starts executions."""
    return JsonReply(await session.triggers.try_webhook(id, trigger, body.data))


@router.get(
    "/api/workflows/{id}/triggers/{trigger}/deliveries",
    verb=TriggerVerbs.deliveries,
    responses=answers(DeliveryList, "unknown-workflow", "no-such-trigger"),
    summary="List calls of a webhook",
)
async def deliveries(session: CallerSession, id: Id, trigger: Trigger) -> Response:
    """The last 40 accepted and the last 10 refused calls, newest first.

    Calls that another process refused appear some seconds later.
    """
    return JsonReply({"deliveries": await session.triggers.deliveries(id, trigger)})


@router.get("/api/webhooks", verb=TriggerVerbs.webhooks, responses=answers(WebhookPage), summary="List webhooks")
async def list_webhooks(
    *, session: CallerSession, search: Words = "", after: After = None, limit: Limit = 50
) -> Response:
    """Webhooks of saved workflows that the caller may see, by path.

    With `search`, only webhooks with all these words in the path, the workflow, its trigger or the event.
    """
    return JsonReply(await session.triggers.webhooks(search=search, after=after, limit=limit))


@router.post(
    "/api/webhooks/{path:path}",
    responses=answers(
        CalledView,
        "webhook-refused",
        "body-too-large",
        "concurrency-limit-reached",
        "too-many-requests",
        "trigger-stopped",
        400,
        503,
        status=202,
        asks=False,
    ),
    status_code=202,
    summary="Call a webhook",
    openapi_extra=CALL,
)
async def call_webhook(
    server: CurrentServer,
    request: Request,
    path: Annotated[str, Path(min_length=1, max_length=500, description="The path in the workflow's trigger.")],
) -> Response:
    """Requires no key:

    a call is signed with the webhook's secret, in the scheme of its trigger (Standard Webhooks or GitHub). A repeated
    call with the same id has no further effect.
    """
    server.webhook_rate_limiter.take(address_of(request))
    body_of(request.scope).allow(server.app.settings.server.webhook_bytes_max)
    body = await server.unchecked.read(request.receive)
    # A header that is there twice counts as a list, as in HTTP: a proxy may have read the other one.
    headers = {name: ", ".join(request.headers.getlist(name)) for name in request.headers}
    try:
        received = await server.app.webhook(path, body, headers)
    finally:
        server.unchecked.release(body)
    return JsonReply(called_view(received), status=202)


NOTICE: Final[NoticeView] = {
    "id": "desk/exec-06f0c2k8-gate-review",
    "to": "desk",
    "recipient": None,
    "reminder": 0,
    "event": "workflow.human.required",
    "executionId": EXECUTION_ID,
    "state": "dead",
    "at": 1_763_700_000.0,
    "attempts": 8,
    "due": None,
    "error": "answered 500",
}


ADDRESS: Final[AddressView] = {
    "name": "desk",
    "source": "app",
    "inUse": True,
    "url": "https://chat.example/…",
    "events": ["gate", "failed"],
    "workflows": ["*"],
    "signed": True,
    "format": "json",
    "recipients": [],
    "answerLinks": False,
    "language": "",
    "mailTo": [],
    "changedAt": 1_763_700_000.0,
    "changedBy": "ada",
    "etag": '"0b1f6c0ad1e2c3d4"',
}


class RecipientBody(Body):
    """A recipient of mail."""

    name: str = Field(min_length=1, max_length=200, description="Name as in `approvers`.")
    address: str = Field(min_length=3, max_length=320, description="Mail address.")


class DestinationBody(Body):
    """A destination of notices."""

    model_config = sample(format="slack", url="https://hooks.example.com/T00/0badcafe", events=["gate", "failed"])
    format: Format
    url: str | None = Field(
        default=None, max_length=2_000, description="Address of the webhook, never shown again. Absent: the stored one."
    )
    key: str | None = Field(
        default=None,
        max_length=1_000,
        description="Key that signs the format `json`. Absent: the stored one; empty: not signed.",
    )
    events: list[NoticeEvent] = Field(default_factory=lambda: ["gate", "failed"], max_length=5)
    workflows: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default_factory=lambda: ["*"], max_length=100, description="Patterns of workflow ids."
    )
    recipients: list[RecipientBody] = Field(
        default_factory=list[RecipientBody], max_length=RECIPIENTS_MAX, description="With the format `mail`."
    )
    answer_links: bool = Field(
        default=False, description="With the format `mail`: send links for answers, where the workflow allows it."
    )
    language: str = Field(default="", max_length=20, description="Language of the notices; empty: the usual one.")

    def request(self) -> DestinationRequest:
        """Return the request of the domain."""
        recipients = (DestinationRecipient(name=one.name, address=one.address) for one in self.recipients)
        return DestinationRequest(
            format=self.format,
            url=self.url,
            key=self.key,
            events=tuple(self.events),
            workflows=tuple(self.workflows),
            recipients=tuple(recipients),
            answer_links=self.answer_links,
            language=self.language,
        )


example(NoticeView, NOTICE)
example(AddressView, ADDRESS)
example(TestedDestination, {"sent": True, "error": ""})
example(
    NoticePage,
    {
        "addresses": [ADDRESS],
        "notices": [NOTICE],
        "next": None,
    },
)


@notifications_router.get("", verb=NotificationVerbs.list, responses=answers(NoticePage), summary="List notifications")
async def list_(
    *,
    session: CallerSession,
    state: Annotated[NoticeState | None, Query(description="Only notices in this state.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """The configured addresses, and the delivery status of each notice. Sent notices are deleted after some time."""
    return JsonReply(await session.notifications.list(state=state, after=after, limit=limit))


AddressName = Annotated[str, Path(min_length=1, max_length=30, description="Name of the destination.")]


@notifications_router.post(
    "/addresses/{name}/test",
    verb=NotificationVerbs.try_address,
    responses=answers(TestedDestination, "notification-invalid", "notification-in-settings", body=True),
    summary="Test a destination of notices",
)
async def try_address(session: CallerSession, name: AddressName, body: DestinationBody) -> Response:
    """Send a test message. Nothing is saved. The answer states why it was not sent."""
    return JsonReply(await session.notifications.try_address(name, body.request()))


@notifications_router.put(
    "/addresses/{name}",
    verb=NotificationVerbs.save_address,
    responses=answers(
        AddressView, "notification-invalid", "notification-in-settings", "revision-moved", "vault-locked", body=True
    ),
    summary="Save a destination of notices",
)
async def save_address(
    session: CallerSession, name: AddressName, body: DestinationBody, match: Match = None
) -> Response:
    """Add or change a destination, with its address and key encrypted. Takes effect at once, in every process.

    A destination of the settings cannot be replaced.
    """
    view = await session.notifications.save_address(name, body.request(), match=match)
    return JsonReply(view, headers={"etag": view["etag"]})


@notifications_router.delete(
    "/addresses/{name}",
    verb=NotificationVerbs.delete_address,
    status_code=204,
    responses=refusals("no-such-notification", "revision-moved"),
    summary="Delete a destination of notices",
)
async def delete_address(session: CallerSession, name: AddressName, if_match: IfMatch = None) -> Response:
    """Delete a destination, its address and its key. Notices that wait for it are given up."""
    await session.notifications.delete_address(name, match=if_match)
    return Response(status_code=204)


@notifications_router.post(
    "/{id:path}/retry",
    verb=NotificationVerbs.retry,
    responses=answers(NoticeView, "no-such-notice"),
    summary="Retry a notice",
)
async def retry(
    session: CallerSession,
    id: Annotated[str, Path(min_length=1, max_length=500, description="The notice's id.")],
) -> Response:
    """Start again with the first attempt. The leader of the store sends the notice."""
    return JsonReply(notice_view(await session.notifications.retry(id)))


@notifications_router.post(
    "/revoke-links",
    verb=NotificationVerbs.revoke_links,
    status_code=204,
    responses=refusals(503),
    summary="Revoke answer links",
)
async def revoke_links(session: CallerSession) -> Response:
    """Make all answer links that were sent invalid. Notices that are sent from now on contain valid ones."""
    await session.notifications.revoke_links()
    return Response(status_code=204)


class LinkBody(Body):
    """The token of an answer link."""

    model_config = sample(token=TOKEN)
    token: str = Field(
        min_length=1, max_length=TOKEN_CHARS_MAX, description="The part of the link after the character #."
    )


class LinkAnswerBody(LinkBody):
    """An answer by a link."""

    model_config = sample(token=TOKEN, action="approve", comment="Fine.")
    action: str = Field(min_length=1, max_length=500, description="One of the gate's options.")
    data: JsonValue = Field(default=None, description="Data for the gate's form, or the changed fields.")
    comment: str = Field(default="", max_length=10_000)


LINK_ERRORS: Final = (
    "answer-link-invalid",
    "answer-link-expired",
    "answer-link-used",
    "gate-closed",
    "gate-changed",
    "unknown-execution",
    "too-many-requests",
    503,
)
example(
    LinkedGateView,
    {"workflowId": "letter", "recipient": "ada", "expiresAt": 1_763_700_000.0, "scripted": False, "gate": GATE},
)
example(LinkAnswerView, {"closed": True})


async def link_session(server: ServerContext, request: Request, token: str, via: str) -> tuple[AnswerLink, Session]:
    """Verify a token; return its link, and the session of its recipient. Tokens that are not valid count as wrong keys
    of the address. Raises `AnswerLinkInvalid`, `AnswerLinkExpired`, `TooManyRequests`."""
    address = address_of(request)
    server.login_throttle.may_try(address, token)
    try:
        link = await server.app.context[ANSWER_LINKS].read(token)
    except AnswerLinkInvalid:
        server.audit.failed_login(address)
        server.login_throttle.failed(address, token)
        raise
    server.login_throttle.opened(token)
    server.rate_limiter.take(f"link {link.caller.name}")
    request.state.caller = link.caller.name
    return link, server.app.acting_as(link.caller, via=via, target=link.target, origin=address)


@links_router.post(
    "/read",
    responses=answers(LinkedGateView, *LINK_ERRORS, body=True, asks=False),
    summary="Read the gate of an answer link",
)
async def read_link(server: CurrentServer, request: Request, body: LinkBody) -> Response:
    """The gate that a link of a notification opens, with its data and form. Requires no key; changes nothing."""
    link, session = await link_session(server, request, body.token, "POST /api/answer-links/read")
    return JsonReply(await session.answer_links.gate(link), headers={"cache-control": "no-store"})


@links_router.post(
    "/answer",
    responses=answers(
        LinkAnswerView,
        *LINK_ERRORS,
        "action-not-offered",
        "answer-invalid",
        "not-an-approver",
        body=True,
        asks=False,
    ),
    summary="Answer a gate by a link",
)
async def answer_by_link(server: CurrentServer, request: Request, body: LinkAnswerBody) -> Response:
    """Answer the gate of a link as its recipient, once. Requires no key.

    The answer is stored durably before this operation returns. The same answer again has no further effect.
    """
    link, session = await link_session(server, request, body.token, "POST /api/answer-links/answer")
    answered = await session.answer_links.answer(link, body.action, body.data, comment=body.comment)
    return JsonReply(answered, headers={"cache-control": "no-store"})


ScheduleId = Annotated[str, Path(min_length=1, max_length=500, description="The schedule's id.")]
Count = Annotated[int, Query(ge=1, le=100, description="Number of times.")]
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


ONE_TIMING: Final[dict[str, Any]] = {
    "oneOf": [requires_fields("cron"), requires_fields("every"), requires_fields("at")]
}


class TimingBody(Body):
    """The times of a schedule: `cron`, `every` so many seconds, or once `at` an instant."""

    model_config = with_schema_rule(sample(cron="0 8 * * 1-5", timezone="Europe/Berlin"), **ONE_TIMING)
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
    """Changes of a schedule."""

    model_config = with_schema_rule(
        sample(workflow="letter", cron="0 8 * * 1-5", timezone="Europe/Berlin", input={"goal": "tides"}), **ONE_TIMING
    )
    workflow: str = Field(
        min_length=1, max_length=300, description="`id` for the latest revision, or `id@revision` for a fixed one."
    )
    input: JsonValue = None
    missed: Literal["skip", "once", "all"] = "once"
    overlap: Literal["allow", "skip", "queue", "replace"] = "skip"


class ScheduleBody(RevisedBody):
    """A new schedule: `cron`, `every` so many seconds, or once `at` an instant."""

    model_config = with_schema_rule(
        sample(workflow="letter", cron="0 8 * * 1-5", timezone="Europe/Berlin", input={"goal": "tides"}), **ONE_TIMING
    )
    id: str | None = Field(
        default=None, max_length=200, description="The id of the schedule; absent: the id of the workflow."
    )


@router.get("/api/schedules", verb=ScheduleVerbs.list, responses=answers(SchedulePage), summary="List schedules")
async def list_schedules(
    *, session: CallerSession, workflow: Of = None, search: Words = "", after: After = None, limit: Limit = 50
) -> Response:
    """Schedules of workflows that the caller may see, by id.

    With `search`, only schedules with all these words in the id, or in the id or name of the workflow.
    """
    return JsonReply(await session.schedules.list(workflow=workflow, search=search, after=after, limit=limit))


@router.post(
    "/api/schedules",
    verb=ScheduleVerbs.add,
    responses=answers(
        ScheduleView, "unknown-workflow", "schedule-exists", "schedule-invalid", 400, status=201, body=True
    ),
    status_code=201,
    summary="Create a schedule",
)
async def create_schedule(session: CallerSession, body: ScheduleBody) -> Response:
    """Due from now on, while a worker runs. An existing id is refused."""
    stored = await session.schedules.add(
        body.workflow, _timing(body), id=body.id, input=body.input, missed=body.missed, overlap=body.overlap
    )
    return JsonReply(schedule_view(stored), status=201, headers={"location": f"/api/schedules/{stored.id}"})


@router.post(
    "/api/schedules/times",
    verb=ScheduleVerbs.times_of,
    responses=answers(DueTimes, "schedule-invalid", 400, body=True),
    summary="Preview due times",
)
async def preview_times(session: CallerSession, body: TimingBody, count: Count = 5) -> Response:
    """The next due times of a schedule if it were created now. Nothing is stored."""
    return JsonReply({"times": await session.schedules.times_of(_timing(body), count)})


@router.get(
    "/api/schedules/{sid:path}/times",
    verb=ScheduleVerbs.next_times,
    responses=answers(DueTimes, "no-such-schedule"),
    summary="List the next times of a schedule",
)
async def next_times(session: CallerSession, sid: ScheduleId, count: Count = 5) -> Response:
    """The next due times, even if the schedule is paused."""
    return JsonReply({"times": await session.schedules.next_times(sid, count)})


@router.get(
    "/api/schedules/{sid:path}",
    verb=ScheduleVerbs.get,
    responses=answers(ScheduleView, "no-such-schedule"),
    summary="Read a schedule",
)
async def read(session: CallerSession, sid: ScheduleId) -> Response:
    """A schedule with its latest results."""
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
async def replace_schedule(
    session: CallerSession, sid: ScheduleId, body: RevisedBody, if_match: IfMatch = None
) -> Response:
    """Allowed for its owner and admins.

    Its executions and its pause remain. New times count from now on. Change a schedule that a workflow's document
    declares in that document.
    """
    stored = await session.schedules.revise(
        sid,
        body.workflow,
        _timing(body),
        input=body.input,
        missed=body.missed,
        overlap=body.overlap,
        match=if_match,
    )
    return _reply(stored)


@router.post(
    "/api/schedules/{sid:path}/run",
    verb=ScheduleVerbs.run,
    responses=answers(FiredView, "no-such-schedule"),
    summary="Run a schedule now",
)
async def run(session: CallerSession, sid: ScheduleId) -> Response:
    """Start the workflow once, whatever the times and the pause of the schedule.

    If the start fails, the answer contains the error.
    """
    return JsonReply(fired_view(await session.schedules.run(sid)))


@router.post(
    "/api/schedules/{sid:path}/pause",
    verb=ScheduleVerbs.pause,
    responses=answers(ScheduleView, "no-such-schedule"),
    summary="Pause a schedule",
)
async def pause(session: CallerSession, sid: ScheduleId) -> Response:
    """Start nothing until the schedule is resumed."""
    return JsonReply(schedule_view(await session.schedules.pause(sid)))


@router.post(
    "/api/schedules/{sid:path}/resume",
    verb=ScheduleVerbs.resume,
    responses=answers(ScheduleView, "no-such-schedule"),
    summary="Resume a schedule",
)
async def resume(session: CallerSession, sid: ScheduleId) -> Response:
    """Due from now on; runs that were due in the meantime are dropped.

    Also resumes a schedule that was stopped because its owner lost the right to run the workflow; it starts nothing
    until the owner has that right again.
    """
    return JsonReply(schedule_view(await session.schedules.resume(sid)))


@router.delete(
    "/api/schedules/{sid:path}",
    verb=ScheduleVerbs.delete,
    status_code=204,
    responses=refusals("no-such-schedule", "schedule-invalid", "revision-moved"),
    summary="Delete a schedule",
)
async def delete(session: CallerSession, sid: ScheduleId, if_match: IfMatch = None) -> Response:
    """Allowed for its owner and admins.

    Its executions continue. A schedule that a workflow's document declares is paused instead.
    """
    await session.schedules.delete(sid, match=if_match)
    return Response(status_code=204)


def _timing(body: TimingBody) -> Timing:
    """Return the timing of a request. Raises as `timing_of`."""
    return timing_of(cron=body.cron, every_s=body.every, at=body.at, timezone=body.timezone)


def _reply(stored: StoredSchedule) -> Response:
    return JsonReply(schedule_view(stored), headers={"etag": etag_of(stored.schedule.mark)})
