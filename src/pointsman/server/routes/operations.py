"""Health and readiness of the server."""

from __future__ import annotations

from typing import Literal

from fastapi import Response

from pointsman import __version__
from pointsman.operations.readiness import readiness
from pointsman.server.context import CurrentServer
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import Described
from pointsman.server.schemas.requests import Answer, sample

router = Operations(tags=["operations"])


class Health(Answer):
    """Whether it serves."""

    model_config = sample(status="ok", version="0.2.0")
    status: str
    version: str


class Ready(Health):
    """Whether it is ready for more."""

    model_config = sample(
        status="ready",
        version="0.2.0",
        stopping=False,
        store=True,
        writable=True,
        room=True,
        keeper="here",
        model="configured",
    )
    stopping: bool
    store: bool
    """It answers."""
    writable: bool
    """False: the store can only be read, and so can everything here."""
    room: bool
    """There is some left on its disk."""
    keeper: Literal["here", "standby"]
    """Whether this process goes on with executions by itself, or would if the one that does were gone."""
    model: Literal["configured", "scripted", "none"]
    """Whether a model provider is configured. `none`: workflows that call a model are refused. Has no effect on the
    status."""


READY: Described = {
    200: {"model": Ready, "description": "It takes requests."},
    503: {
        "model": Ready,
        "description": "Its store does not answer, can only be read or has no room, or it is about to stop.",
    },
}


@router.get("/health", responses={200: {"model": Health, "description": "The process lives."}}, summary="Does it live?")
async def health() -> Response:
    """It answers: the process lives. Needs no key."""
    return JsonReply({"status": "ok", "version": __version__})


@router.get("/ready", responses=READY, summary="Is it ready?")
async def ready(desk: CurrentServer) -> Response:
    """Whether to send it requests: its store answers, can be written and has room, and it is not about to end. No key.

    `keeper` tells whether this process keeps the store or stands by; both serve.
    """
    found = await readiness(desk.app.context, desk.lifecycle)
    status = "ready" if found.ready else "unready"
    return JsonReply({"status": status, "version": __version__, **found.to_json()}, status=200 if found.ready else 503)
