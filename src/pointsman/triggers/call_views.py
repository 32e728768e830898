"""JSON views of published events and webhook calls, limited to the executions that the caller may see."""

from __future__ import annotations

from pointsman.auth.callers import Caller
from pointsman.auth.policy import sees
from pointsman.context import AppContext
from pointsman.triggers.declarations import WEBHOOK, read_declared
from pointsman.triggers.events import Published
from pointsman.triggers.owners import why_stopped
from pointsman.triggers.trial import webhook_of
from pointsman.triggers.triggers import TRIGGERS
from pointsman.triggers.views import published_view
from pointsman.triggers.webhooks import Received
from pointsman.values import JsonObject


async def published_for(app: AppContext, caller: Caller, published: Published) -> JsonObject:
    """Return the outcome of an event, limited to the executions that the caller may see."""
    view = published_view(published)
    if caller.role == "admin":
        return view
    summaries = {one: await app.store.executions.find(one) for one in (*published.delivered, *published.started)}
    seen = {name for name, one in summaries.items() if one is not None and await sees(app, caller, one)}
    return {
        **view,
        "delivered": [one for one in published.delivered if one in seen],
        "started": [one for one in published.started if one in seen],
        "untold": [],
    }


async def webhooks_view(app: AppContext) -> list[JsonObject]:
    """Return the webhooks in effect with their addresses, without their secrets."""
    found = [(entry.key, read_declared(entry.value)) for entry in await app.store.entries.list(WEBHOOK)]
    return [
        {
            "path": path,
            "address": f"/api/webhooks/{path}",
            "workflowId": one.workflow,
            "trigger": one.trigger,
            "event": one.event or None,
            "signed": bool(one.secret),
            "scheme": one.scheme,
            "stopped": await why_stopped(app, one.workflow),
        }
        for path, one in found
    ]


def called(received: Received) -> JsonObject:
    """Return the JSON answer to the caller of a webhook."""
    accepted = received.started is not None or received.published is not None
    return {"delivery": received.delivery, "accepted": accepted}


async def deliveries_for(app: AppContext, caller: Caller, workflow: str, trigger: str) -> list[JsonObject]:
    """Return the outcomes of the latest calls of a webhook, the newest first, with executions that the caller may see.

    Raises `NoSuchTrigger`.
    """
    path, _ = await webhook_of(app, workflow, trigger)
    found: list[JsonObject] = []
    for one in await app[TRIGGERS].webhooks.deliveries.note(path):
        started = None if one.execution is None else await app.store.executions.find(one.execution)
        seen = started is not None and await sees(app, caller, started)
        found.append(
            {
                "id": one.id,
                "at": one.at,
                "bytes": one.bytes,
                "outcome": one.outcome,
                "signed": one.signed,
                "code": one.code or None,
                "why": one.why or None,
                "hint": one.hint or None,
                "executionId": one.execution if seen else None,
                "delivered": one.delivered,
            }
        )
    return found
