"""Test calls of a webhook: built and signed as a sender would, and processed like any other call."""

from __future__ import annotations

import os
from typing import ClassVar, Final

import msgspec

from pointsman.auth.callers import Caller
from pointsman.context import AppContext
from pointsman.errors import CallerError
from pointsman.triggers.declarations import WEBHOOK, Declared, read_declared
from pointsman.triggers.signatures import key_of, signed_headers
from pointsman.triggers.triggers import TRIGGERS
from pointsman.triggers.webhooks import Received
from pointsman.values import Json

DELIVERY: Final = "try-"
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
        f"{workflow!r} has no webhook {trigger!r} in effect", hint="GET /api/webhooks lists them; is it enabled?"
    )


async def try_webhook(app: AppContext, caller: Caller, workflow: str, trigger: str, data: Json) -> Received:
    """Call a webhook for real, on behalf of the caller and the webhook's owner. Raises `NoSuchTrigger`, and the errors
    of a call."""
    path, declared = await webhook_of(app, workflow, trigger)
    body, delivery, at = msgspec.json.encode(data), DELIVERY + os.urandom(16).hex(), int(app.clock.now())
    headers = {"content-type": "application/json", "webhook-id": delivery}
    if declared.secret:
        key = key_of(await app[TRIGGERS].webhooks.secret_of(declared))
        headers |= signed_headers(key, declared.scheme, delivery, at, body)
    return await app[TRIGGERS].webhooks.receive(path, body, headers, caller=caller)
