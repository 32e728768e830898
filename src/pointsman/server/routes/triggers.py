"""Operations on triggers: publish events; list, try and call webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path, Request, Response

from pointsman.server.bodies import body_of
from pointsman.server.context import CallerSession, CurrentServer, address_of
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Id, Key, Limit, Words
from pointsman.server.routes.response_docs import answers, raw_body
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Body, JsonValue, SignalBody, sample
from pointsman.server.schemas.views import example
from pointsman.triggers.verbs import TriggerVerbs
from pointsman.triggers.views import (
    CalledView,
    DeliveryList,
    DeliveryView,
    PublishedView,
    TriedWebhookView,
    WebhookPage,
    called_view,
)

router = Operations(tags=["triggers"])

Trigger = Annotated[str, Path(min_length=1, max_length=200, description="The trigger's id in the document.")]
CALL: Final[dict[str, Any]] = raw_body(
    {
        "application/json": ({}, {"order": 12}),
        "application/x-www-form-urlencoded": ({"type": "object"}, {"order": "12"}),
    }
)


example(PublishedView, {"key": "order-12", "delivered": [EXECUTION_ID], "started": [], "untold": []})
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
    """To every execution that waits for it and that the caller sees; and to the triggers that start workflows with it,
    where the caller may execute these."""
    return JsonReply(await session.triggers.publish(body.name, body.data, key=body.key or key or ""))


class TryWebhookBody(Body):
    """What a sender would send."""

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
        "place-taken",
        "trigger-stopped",
        503,
        body=True,
    ),
    summary="Try a webhook",
)
async def try_(session: CallerSession, id: Id, trigger: Trigger, body: TryWebhookBody) -> Response:
    """One call as a sender would make it, signed with the webhook's secret. What it starts, is started for real."""
    return JsonReply(await session.triggers.try_webhook(id, trigger, body.data))


@router.get(
    "/api/workflows/{id}/triggers/{trigger}/deliveries",
    verb=TriggerVerbs.deliveries,
    responses=answers(DeliveryList, "unknown-workflow", "no-such-trigger"),
    summary="List the calls of a webhook",
)
async def deliveries(session: CallerSession, id: Id, trigger: Trigger) -> Response:
    """The last 40 that were taken and the last 10 that were refused, the newest first. What another process
    refused is shown some seconds later."""
    return JsonReply({"deliveries": await session.triggers.deliveries(id, trigger)})


@router.get("/api/webhooks", verb=TriggerVerbs.webhooks, responses=answers(WebhookPage), summary="List webhooks")
async def webhooks(*, session: CallerSession, search: Words = "", after: After = None, limit: Limit = 50) -> Response:
    """By path: those that saved workflows declare, of workflows that the caller may see. With `search` only those with
    all these words in the path, the workflow, its trigger or the event."""
    return JsonReply(await session.triggers.webhooks(search=search, after=after, limit=limit))


@router.post(
    "/api/webhooks/{path:path}",
    responses=answers(
        CalledView,
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
    server: CurrentServer,
    request: Request,
    path: Annotated[str, Path(min_length=1, max_length=500, description="As the workflow declares it.")],
) -> Response:
    """Takes no key: a call is signed with the webhook's secret in the scheme of its trigger: as
    Standard Webhooks, or as GitHub signs. A call that
    comes again with the same id is taken once."""
    server.webhook_rate_limiter.take(address_of(request))
    body_of(request.scope).allow(server.app.settings.server.webhook_bytes_max)
    body = await server.unchecked.read(request.receive)
    try:
        received = await server.app.webhook(path, body, dict(request.headers))
    finally:
        server.unchecked.release(body)
    return JsonReply(called_view(received), status=202)
