"""Whether the server lives and is ready."""

from __future__ import annotations

from fastapi import APIRouter, Response

from pointsman import __version__
from pointsman.app.health import store_answers
from pointsman.server.desk import AtDesk
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import Described
from pointsman.server.shown import Health

router = APIRouter(tags=["operations"])

READY: Described = {
    200: {"model": Health, "description": "It takes requests."},
    503: {"model": Health, "description": "Its store does not answer, or it is about to stop."},
}


@router.get("/health", responses={200: {"model": Health, "description": "The process lives."}}, summary="Does it live?")
async def health() -> Response:
    """It answers: the process lives. Needs no key."""
    return JsonReply({"status": "ok", "version": __version__})


@router.get("/ready", responses=READY, summary="Is it ready?")
async def ready(desk: AtDesk) -> Response:
    """Whether to send it requests: its store answers. Needs no key."""
    if await store_answers(desk.app):
        return JsonReply({"status": "ready", "version": __version__})
    return JsonReply({"status": "unready", "version": __version__}, status=503)
