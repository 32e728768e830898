"""Test calls of webhooks, and JSON views of schedules, published events and webhooks.

The views contain only executions that the caller may see.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.auth.policy import sees
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.triggers.events import Published
from pointsman.triggers.schedules import Fired, Missed, Outcome, Overlap, StoredSchedule
from pointsman.triggers.signatures import key_of, signed_headers
from pointsman.triggers.starts import WEBHOOK, Declared, read_declared, why_stopped
from pointsman.triggers.triggers import TRIGGERS
from pointsman.triggers.webhooks import Outcome as DeliveryOutcome
from pointsman.triggers.webhooks import Received
from pointsman.values import ExecutionId, Json

if TYPE_CHECKING:
    from collections.abc import Collection


TEST_DELIVERY: Final = "try-"
"""Prefix of the ids of test calls."""


class NoSuchTrigger(CallerError):
    """The workflow has no webhook of this name in effect."""

    code: ClassVar[str] = "no-such-trigger"


async def webhook_of(app: AppContext, workflow: str, trigger: str) -> tuple[str, Declared]:
    """Return the path of a webhook, and its declaration. Raises `NoSuchTrigger`."""
    for entry in await app.store.entries.list(WEBHOOK):
        declared = read_declared(entry.value)
        if (declared.workflow, declared.trigger) == (workflow, trigger):
            return entry.key, declared
    raise NoSuchTrigger(
        f"{workflow!r} has no enabled webhook {trigger!r}", hint="GET /api/webhooks lists enabled webhooks."
    )


async def try_webhook(app: AppContext, caller: Caller, workflow: str, trigger: str, data: Json) -> Received:
    """Call a webhook for real, on behalf of the caller and the webhook's owner. Raises `NoSuchTrigger`, and the errors
    of a call."""
    path, declared = await webhook_of(app, workflow, trigger)
    body, delivery, at = msgspec.json.encode(data), TEST_DELIVERY + os.urandom(16).hex(), int(app.clock.now())
    headers = {"content-type": "application/json", "webhook-id": delivery}
    if declared.secret:
        key = key_of(await app[TRIGGERS].webhooks.secret_of(declared))
        headers |= signed_headers(key, declared.scheme, delivery, at, body)
    return await app[TRIGGERS].webhooks.receive(path, body, headers, caller=caller)


class FiredErrorView(TypedDict):
    """Why a due time started no execution."""

    code: str
    message: str
    hint: str | None
    """What to do about it."""


class FiredView(TypedDict):
    """The outcome of a due time."""

    due: float
    at: float
    outcome: Outcome
    executionId: str | None
    count: int
    """How many due times it stands for, if they were missed."""
    error: FiredErrorView | None
    note: str | None


class ScheduleView(TypedDict):
    """A schedule, its next due time and its latest outcomes."""

    id: str
    workflowId: str
    trigger: str | None
    """The trigger of the workflow's document that declares it."""
    when: str
    """The due times in one line."""
    cron: str | None
    every: float | None
    """Seconds."""
    at: float | None
    """Unix seconds."""
    timezone: str
    input: Json
    missed: Missed
    overlap: Overlap
    paused: bool
    enabled: bool
    owner: str | None
    """The person on whose behalf it starts the workflow. null: a person at the machine of the store, or the author of
    the document that declares it."""
    stopped: str | None
    """Why it starts nothing until it is resumed: its owner lost the right. null: it is not stopped."""
    next: float | None
    """null: nothing is due any more, or the schedule is paused or stopped."""
    queued: list[float]
    results: list[FiredView]
    """The latest outcomes, newest first."""


class SchedulePage(TypedDict):
    """Schedules by id."""

    schedules: list[ScheduleView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


class DueTimes(TypedDict):
    """The next due times."""

    times: list[float]


class UndeliveredView(TypedDict):
    """An execution that did not receive an event, or a trigger that did not start."""

    who: str
    code: str
    message: str
    hint: str | None


class PublishedView(TypedDict):
    """The outcome of a published event."""

    key: str
    """Publish the event again under this key: recipients that have received it ignore it."""
    delivered: list[str]
    """The executions that accepted it, as far as the caller sees them."""
    started: list[str]
    undelivered: list[UndeliveredView]
    """The recipients that could not be reached, and why."""
    untold: list[UndeliveredView]
    """Deprecated: the same as `undelivered`."""


class WebhookView(TypedDict):
    """A webhook in effect."""

    path: str
    address: str
    workflowId: str
    trigger: str
    event: str | None
    signed: bool
    """Whether calls must be signed."""
    scheme: Literal["standard", "github"]
    """The signature: of Standard Webhooks, or of GitHub."""
    stopped: str | None
    """Why it starts nothing: its owner, the author of the revision, lost the right. null: it is not stopped."""


class WebhookPage(TypedDict):
    """Webhooks by path."""

    webhooks: list[WebhookView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


class CalledView(TypedDict):
    """A call that was accepted. It does not name what it started: the sender need not see that."""

    delivery: str
    accepted: bool
    """False: the webhook's `match` does not hold, and nothing happened."""


class TriedWebhookView(CalledView):
    """The outcome of a test call of a webhook."""

    started: str | None
    """The execution that it started."""
    delivered: list[str]
    """The executions that accepted the event, as far as the caller sees them."""


class DeliveryView(TypedDict):
    """The outcome of one call."""

    id: str
    """The sender's id of the call; empty: there was none, or the sender is not known."""
    at: float
    bytes: int
    """Size of its body, which is not stored."""
    outcome: DeliveryOutcome
    """`ignored`: its `match` did not hold. `failed`: it started and published nothing. `refused`: its signature is
    invalid."""
    signed: bool
    """Whether the sender knows the webhook's secret."""
    code: str | None
    """The error code of the answer."""
    why: str | None
    hint: str | None
    """What to do about it."""
    executionId: str | None
    """The execution it started, if the caller sees it."""
    delivered: int
    """How many executions accepted the event."""


class DeliveryList(TypedDict):
    """The latest calls of a webhook."""

    deliveries: list[DeliveryView]


def schedule_view(stored: StoredSchedule) -> ScheduleView:
    schedule = stored.schedule
    return {
        "id": stored.id,
        "workflowId": schedule.workflow,
        "trigger": schedule.trigger or None,
        "when": str(schedule.timing),
        "cron": schedule.timing.cron,
        "every": schedule.timing.every_s,
        "at": schedule.timing.at,
        "timezone": schedule.timing.timezone,
        "input": schedule.input,
        "missed": schedule.missed,
        "overlap": schedule.overlap,
        "paused": schedule.paused,
        "enabled": schedule.enabled,
        "owner": schedule.owners[0].name if schedule.owners else None,
        "stopped": schedule.stopped or None,
        "next": schedule.next_due() if schedule.active else None,
        "queued": [*schedule.queued],
        "results": [fired_view(result) for result in schedule.results],
    }


def fired_view(fired: Fired) -> FiredView:
    return {
        "due": fired.due,
        "at": fired.at,
        "outcome": fired.outcome,
        "executionId": fired.execution or None,
        "count": fired.count,
        "error": {"code": fired.code, "message": fired.message, "hint": fired.hint or None} if fired.code else None,
        "note": fired.message if fired.message and not fired.code else None,
    }


async def published_view(app: AppContext, caller: Caller, published: Published) -> PublishedView:
    """Return the outcome of an event. Only admins receive the recipients that could not be reached."""
    undelivered: list[UndeliveredView] = [
        {"who": one.who, "code": one.code, "message": one.message, "hint": one.hint or None}
        for one in published.undelivered
    ]
    visible = undelivered if caller.role == "admin" else []
    return {
        "key": published.key,
        "delivered": await _visible(app, caller, published.delivered),
        "started": await _visible(app, caller, published.started),
        "undelivered": visible,
        "untold": visible,
    }


async def _visible(app: AppContext, caller: Caller, executions: Collection[str]) -> list[str]:
    """Return the executions that the caller may see."""
    if caller.role == "admin":
        return [*executions]
    return [execution for execution in executions if await _is_seen(app, caller, execution)]


async def _is_seen(app: AppContext, caller: Caller, execution: str) -> bool:
    """Return whether an execution exists and the caller may see it."""
    summary = await app.store.executions.find(ExecutionId(execution))
    return summary is not None and await sees(app, caller, summary)


async def webhook_views(app: AppContext) -> list[WebhookView]:
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


def called_view(received: Received) -> CalledView:
    """Return the answer to the sender of a webhook call."""
    accepted = received.started is not None or received.published is not None
    return {"delivery": received.delivery, "accepted": accepted}


async def delivery_views(app: AppContext, caller: Caller, workflow: str, trigger: str) -> list[DeliveryView]:
    """Return the outcomes of the latest calls of a webhook, the newest first. Raises `NoSuchTrigger`."""
    path, _ = await webhook_of(app, workflow, trigger)
    return [
        {
            "id": one.id,
            "at": one.at,
            "bytes": one.bytes,
            "outcome": one.outcome,
            "signed": one.signed,
            "code": one.code or None,
            "why": one.why or None,
            "hint": one.hint or None,
            "executionId": one.execution if one.execution and await _is_seen(app, caller, one.execution) else None,
            "delivered": one.delivered,
        }
        for one in await app[TRIGGERS].webhooks.deliveries.note(path)
    ]
