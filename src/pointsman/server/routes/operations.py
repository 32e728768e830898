"""Health and readiness of the server."""

from __future__ import annotations

from typing import Final

from fastapi import Response

from pointsman import __version__
from pointsman.operations.readiness import HealthView, ReadyView, readiness
from pointsman.server.context import CurrentServer
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import Described, answer
from pointsman.server.schemas.views import example

router = Operations(tags=["operations"])


example(HealthView, {"status": "ok", "version": "0.2.0"})
example(
    ReadyView,
    {
        "status": "ready",
        "version": "0.2.0",
        "stopping": False,
        "store": True,
        "writable": True,
        "room": True,
        "keeper": "here",
        "model": "configured",
    },
)
NOT_READY: Final = "Its store does not answer, can only be read or has no room, or it is about to stop."
READY: Final[Described] = answer(ReadyView, "It takes requests.") | answer(ReadyView, NOT_READY, status=503)


@router.get("/health", responses=answer(HealthView, "The process lives."), summary="Does it live?")
async def health() -> Response:
    """It answers: the process lives. Needs no key."""
    alive: HealthView = {"status": "ok", "version": __version__}
    return JsonReply(alive)


@router.get("/ready", responses=READY, summary="Is it ready?")
async def ready(server: CurrentServer) -> Response:
    """Whether to send it requests: its store answers, can be written and has room, and it is not about to end. No key.

    `keeper` tells whether this process keeps the store or stands by; both serve.
    """
    found = await readiness(server.app.context, server.lifecycle)
    return JsonReply(found.to_json(), status=200 if found.ready else 503)
