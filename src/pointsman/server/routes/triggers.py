"""Operations on triggers: publish events; list, try and call webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Path, Request, Response
from pydantic import Field

from pointsman.auth.policy import must_see_workflow, visible
from pointsman.executions.lists import names_of_workflows
from pointsman.paging import page_by
from pointsman.searching import says
from pointsman.server.bodies import body_of
from pointsman.server.context import CurrentServer, address_of
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Editor, Id, Key, Limit, Operator, Words
from pointsman.server.routes.response_docs import answers, raw_body
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, Body, JsonValue, SignalBody, sample
from pointsman.triggers.call_views import called, deliveries_for, published_for, webhooks_view
from pointsman.triggers.trial import try_webhook
from pointsman.values import JsonObject

router = Operations(tags=["triggers"])

SEARCHED: Final = ("path", "workflowId", "trigger", "event")
"""Fields that a search looks in, beside the name of the workflow."""

Trigger = Annotated[str, Path(min_length=1, max_length=200, description="The trigger's id in the document.")]
CALL: Final[dict[str, Any]] = raw_body(
    {
        "application/json": ({}, {"order": 12}),
        "application/x-www-form-urlencoded": ({"type": "object"}, {"order": "12"}),
    }
)


class PublishedAnswer(Answer):
    """What became of an event."""

    model_config = sample(key="order-12", delivered=[EXECUTION_ID], started=[], untold=[])
    key: str = Field(description="Publish it again under this key, and nobody who knows it is told again.")
    delivered: list[str] = Field(description="The executions that took it: those that the caller sees.")
    started: list[str]
    untold: list[JsonValue] = Field(description="Who could not be told, and why.")


class WebhookAnswer(Answer):
    """A webhook that is in effect."""

    path: str
    address: str
    workflow_id: str
    trigger: str
    event: str | None
    signed: bool = Field(description="Whether calls must be signed.")
    scheme: Literal["standard", "github"] = Field(description="How: as Standard Webhooks, or as GitHub signs.")
    stopped: str | None = Field(
        description="Why it starts nothing: its owner, the author of the revision, lost the right. null: it does."
    )


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
                "scheme": "standard",
                "stopped": None,
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
async def publish(desk: CurrentServer, caller: Operator, body: SignalBody, key: Key = None) -> Response:
    """To every execution that waits for it and that the caller sees; and to the triggers that start workflows with it,
    where the caller may execute these."""
    published = await desk.app.publish(body.name, body.data, key=body.key or key or "", by=caller.name, caller=caller)
    return JsonReply(await published_for(desk.app.context, caller, published))


class TryWebhookBody(Body):
    """What a sender would send."""

    model_config = sample(data={"order": 12})
    data: JsonValue = None


class TriedWebhookAnswer(CalledAnswer):
    """What came of a call that was made to try a webhook."""

    model_config = sample(delivery="try-2f", accepted=True, started=EXECUTION_ID, delivered=[])
    started: str | None = Field(description="The execution that it started.")
    delivered: list[str] = Field(description="The executions that took the event: those that the caller sees.")


@router.post(
    "/api/workflows/{id}/triggers/{trigger}/try",
    responses=answers(
        TriedWebhookAnswer,
        "unknown-workflow",
        "no-such-trigger",
        "webhook-refused",
        "place-taken",
        "trigger-stopped",
        503,
        body=True,
    ),
    summary="Try a webhook",
)
async def try_(
    desk: CurrentServer,
    caller: Operator,
    id: Id,
    trigger: Trigger,
    body: TryWebhookBody,
) -> Response:
    """One call as a sender would make it, signed with the webhook's secret. What it starts, is started for real."""
    await must_see_workflow(desk.app.context, caller, id)
    received = await try_webhook(desk.app.context, caller, id, trigger, body.data)
    told = None if received.published is None else await published_for(desk.app.context, caller, received.published)
    return JsonReply(
        {**called(received), "started": received.started, "delivered": [] if told is None else told["delivered"]}
    )


DELIVERY: Final[JsonObject] = {
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


class DeliveryAnswer(Answer):
    """What came of one call."""

    model_config = sample(**DELIVERY)
    id: str = Field(description="As its sender calls it; empty: it was not said, or nobody knows who said it.")
    at: float
    bytes: int = Field(description="Of its body, which is not kept.")
    outcome: Literal["started", "published", "ignored", "failed", "refused"] = Field(
        description="`ignored`: its `match` did not hold. `failed`: nothing came of it. `refused`: it is not signed."
    )
    signed: bool = Field(description="By who knows the webhook's secret.")
    code: str | None = Field(description="Of the error that it was answered with.")
    why: str | None
    hint: str | None = Field(description="What to do about it.")
    execution_id: str | None = Field(description="What it started, where the caller sees it.")
    delivered: int = Field(description="How many executions took the event.")


class DeliveryList(Answer):
    """The last calls of a webhook."""

    model_config = sample(deliveries=[DELIVERY])
    deliveries: list[DeliveryAnswer]


@router.get(
    "/api/workflows/{id}/triggers/{trigger}/deliveries",
    responses=answers(DeliveryList, "unknown-workflow", "no-such-trigger"),
    summary="List the calls of a webhook",
)
async def deliveries(desk: CurrentServer, caller: Editor, id: Id, trigger: Trigger) -> Response:
    """The last 40 that were taken and the last 10 that were refused, the newest first. What another process
    refused is shown some seconds later."""
    await must_see_workflow(desk.app.context, caller, id)
    return JsonReply({"deliveries": [*await deliveries_for(desk.app.context, caller, id, trigger)]})


@router.get("/api/webhooks", responses=answers(WebhookPage), summary="List webhooks")
async def webhooks(
    *, desk: CurrentServer, caller: Editor, search: Words = "", after: After = None, limit: Limit = 50
) -> Response:
    """By path: those that saved workflows declare, of workflows that the caller may see. With `search` only those with
    all these words in the path, the workflow, its trigger or the event."""

    async def seen(one: JsonObject) -> bool:
        return await visible(desk.app.context, caller, str(one["workflowId"]))

    names = await names_of_workflows(desk.app.context, search)
    wanted = (
        one
        for one in await webhooks_view(desk.app.context)
        if says(search, *(one[name] for name in SEARCHED), names(str(one["workflowId"])))
    )
    page = await page_by("path", wanted, after=after, limit=limit, sees=seen)
    return JsonReply({"webhooks": [*page.entries], "next": page.next})


@router.post(
    "/api/webhooks/{path:path}",
    responses=answers(
        CalledAnswer,
        "webhook-refused",
        "body-too-large",
        "place-taken",
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
async def call(
    desk: CurrentServer,
    request: Request,
    path: Annotated[str, Path(min_length=1, max_length=500, description="As the workflow declares it.")],
) -> Response:
    """Takes no key: a call is signed with the webhook's secret in the scheme of its trigger: as
    Standard Webhooks, or as GitHub signs. A call that
    comes again with the same id is taken once."""
    desk.webhook_rate_limiter.take(address_of(request))
    body_of(request.scope).allow(desk.app.settings.server.webhook_bytes_max)
    body = await desk.unchecked.read(request.receive)
    try:
        received = await desk.app.webhook(path, body, dict(request.headers))
    finally:
        desk.unchecked.release(body)
    return JsonReply(called(received), status=202)
