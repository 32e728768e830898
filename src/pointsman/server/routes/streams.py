"""Event streams of executions, resumable from the last received event."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic
from typing import Annotated, Final

from fastapi import Header, Query, Response

from pointsman.errors import CallerError
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.server.context import CallerSession, CurrentServer
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Eid, Of
from pointsman.server.routes.response_docs import Described, refusals
from pointsman.server.streaming.live_feed import moment_of
from pointsman.server.streaming.sse import BEAT, MEDIA_TYPE, SHUT, EventStream, begun, server_sent
from pointsman.server.streaming.subscriptions import Beginning, SubscriptionStart, join
from pointsman.session import Session

router = Operations(prefix="/api/workflows/executions", tags=["executions"])

SNAPSHOT: Final = "workflow.snapshot"
EVERY_S: Final = 2.0
"""Minimal interval, in seconds, between checks that a caller may still see the execution of a stream."""
EXAMPLE: Final = 'id: 1.0\nevent: workflow.start\ndata: {"executionId": "exec-…", "workflowId": "letter"}\n\n'
STREAM: Final[Described] = {
    200: {
        "description": "Server-sent events. `id` is `<row>.<n>`; live deltas have none.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": EXAMPLE}},
    },
    204: {"description": "It has ended, and everything was told: do not connect again."},
}
BOARD_EXAMPLE: Final = (
    "id: 1763700004.250000\nevent: workflow.execution.changed\n"
    'data: {"executionId": "exec-…", "workflowId": "letter", "status": "waiting"}\n\n'
)
BOARD: Final[Described] = {
    200: {
        "description": "Server-sent events, until the client goes.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": BOARD_EXAMPLE}},
    },
}


@router.get(
    "/stream",
    verb=ExecutionVerbs.watch,
    responses=BOARD | refusals("place-invalid", "too-many-requests"),
    response_class=Response,
    summary="Stream all executions",
)
async def stream_all(
    desk: CurrentServer,
    session: CallerSession,
    workflow: Of = None,
    of_session: Annotated[
        str | None, Query(alias="session", max_length=200, description="Only the turns of this conversation.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="As browsers send it when they come back.")
    ] = None,
) -> Response:
    """Each execution that the caller may see, as lists show it, whenever that changes: for lists, inboxes, dashboards.

    Begin with the list, and put in what is told: it is how an execution is, so told twice it means the same. At
    `workflow.executions.reset` read the list again.
    """
    shown = await session.executions.watch(workflow=workflow, session=of_session)
    after = moment_of(last_event_id)
    seat = desk.take_stream(session.caller)
    return EventStream(desk.broker.board.changes(shown, after=after), seat)


@router.get(
    "/{eid}/stream",
    verb=ExecutionVerbs.check,
    responses=STREAM | refusals("place-invalid", "too-many-requests", "unknown-execution"),
    response_class=Response,
    summary="Stream an execution",
)
async def stream(
    *,
    desk: CurrentServer,
    session: CallerSession,
    eid: Eid,
    begin: Annotated[
        Beginning,
        Query(
            alias="from",
            description="`start`: everything from the first event on. `now`: what comes. `snapshot`: the execution as "
            "it is, as the event `workflow.snapshot`, then what comes. Whoever comes back with an id goes on there.",
        ),
    ] = "start",
    after: Annotated[str | None, Query(max_length=100, description="Begin behind the event of this id.")] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="As browsers send it when they come back.")
    ] = None,
) -> Response:
    """What is in its journal and then what comes, without loss or repeat, until it ends."""
    await session.executions.check(eid)
    joined = await join(desk.app.context, desk.broker, eid, begin=begin, last=last_event_id or after)
    if joined is None:
        return Response(status_code=204)
    seat = desk.take_stream(session.caller)
    frames = while_seen(session, eid, desk.broker.frames(eid, after=joined.after))
    return EventStream(begun(_first(joined, begin), frames), seat)


async def while_seen(
    session: Session, execution: str, frames: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield the frames until the caller loses access to the execution, for example by a change of its sharing."""
    looked = monotonic()
    async with aclosing(frames):
        async for frame in frames:
            if frame != BEAT and monotonic() - looked >= EVERY_S:
                try:
                    await session.executions.check(execution)
                except CallerError:
                    yield SHUT
                    return
                looked = monotonic()
            yield frame


def _first(joined: SubscriptionStart, begin: Beginning) -> bytes:
    """Return the first chunk: the snapshot, or an id from which a client can resume if it is disconnected at once."""
    if joined.snapshot is not None:
        return server_sent(SNAPSHOT, joined.snapshot, joined.id)
    return f"id: {joined.id}\n\n".encode() if begin == "now" else b""
