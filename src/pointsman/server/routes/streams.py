"""Streams: an execution as server-sent events, from where a subscriber left off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from pointsman.app.access.seeing import must_see
from pointsman.app.channels import START
from pointsman.app.looking import place_of
from pointsman.server.desk import Asking, AtDesk
from pointsman.server.routes.answers import Described, refusals
from pointsman.server.routes.executions import Eid
from pointsman.values import JsonObject

router = APIRouter(prefix="/api/workflows/executions/{eid}", tags=["executions"])

HEARTBEAT_S: Final = 15.0
"""So often a silent stream says that it lives: proxies close those that do not."""
BEAT: Final = b": still here\n\n"
HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
STREAM: Final[Described] = {
    200: {
        "description": "Server-sent events. `id` is `<row>.<n>`; live deltas have none.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    },
    204: {"description": "It has ended, and everything was told: do not connect again."},
}


@router.get("/stream", responses=STREAM | refusals(400, 404), response_class=Response, summary="Stream an execution")
async def stream(
    desk: AtDesk,
    caller: Asking,
    eid: Eid,
    after: Annotated[str | None, Query(description="Begin behind this event; absent: with the first.")] = None,
    last_event_id: Annotated[str | None, Header(description="As browsers send it when they come back.")] = None,
) -> Response:
    """What is in its journal and then what comes, without loss or repeat, until it ends."""
    await must_see(desk.app, caller, eid)
    given = last_event_id or after
    place = place_of(given)
    if given and await desk.channels.is_over(eid, place):
        return Response(status_code=204)
    frames = desk.channels.frames(eid, after=place if given else START)
    return StreamingResponse(with_heartbeat(frames), media_type="text/event-stream", headers=HEADERS)


async def with_heartbeat(frames: AsyncIterator[bytes], *, every_s: float = HEARTBEAT_S) -> AsyncIterator[bytes]:
    """The frames, and a sign of life where none comes for a while."""
    coming = asyncio.ensure_future(anext(frames, None))
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=every_s)
            if not done:
                yield BEAT
                continue
            frame = coming.result()
            if frame is None:
                return
            yield frame
            coming = asyncio.ensure_future(anext(frames, None))
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


def server_sent(event: str, told: JsonObject, place: str, /) -> bytes:
    """One event as it is sent."""
    head = f"id: {place}\n" if place else ""
    return f"{head}event: {event}\ndata: ".encode() + msgspec.json.encode(told) + b"\n\n"
