"""Operations on executions: start, list, read, delete, bulk actions, and event streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import combinations
from time import monotonic
from typing import Annotated, Any, Final, Literal

from fastapi import Header, Query, Request, Response
from pydantic import Field, model_validator
from typing_extensions import TypedDict

from pointsman.app import Execution
from pointsman.auth.callers import Caller
from pointsman.errors import CallerError
from pointsman.executions.bulk import BulkResultView, BulkSelection, bulk_result_view
from pointsman.executions.pages import EventPage, ExecutionDefinition, ExecutionPage
from pointsman.executions.verbs import ExecutionFilters, ExecutionVerbs
from pointsman.executions.views import ExecutionStatus, ExecutionView, StartedExecution, scripted_warnings
from pointsman.operations.tracing import origin_in
from pointsman.server.context import CallerSession, CurrentServer
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Eid, Id, Key, Limit, Of, once
from pointsman.server.schemas.answers import EXECUTION_ID, Described, answers, refusals
from pointsman.server.schemas.requests import Body, ExecuteBody, given, ruled, sample
from pointsman.server.schemas.views import example
from pointsman.server.streaming.broker import Beginning, SubscriptionStart, join
from pointsman.server.streaming.live_feed import moment_of
from pointsman.server.streaming.sse import BEAT, MEDIA_TYPE, SHUT, EventStream, begun, server_sent
from pointsman.session import Session
from pointsman.values import JsonObject

router = Operations(prefix="/api/workflows", tags=["executions"])


EVENTS_MAX: Final = 5000

STARTED: Final = answers(ExecutionView) | answers(
    StartedExecution,
    "unknown-workflow",
    "input-invalid",
    "workflow-invalid",
    "workflow-disabled",
    "key-reused",
    "model-fixed",
    503,
    status=202,
    body=True,
)
"""Documented responses of a start: the whole execution if the caller waits for it."""


example(
    ExecutionDefinition,
    {"document": {"pointsman": 1, "id": "letter", "nodes": []}, "graph": {"regions": [], "implied": []}},
)


@router.post(
    "/{id}/execute",
    verb=ExecutionVerbs.start,
    responses=STARTED,
    status_code=202,
    summary="Start an execution",
)
async def execute(
    *,
    session: CallerSession,
    id: Id,
    body: ExecuteBody,
    key: Key = None,
    traceparent: Annotated[str | None, Header(max_length=100, description="The trace it belongs to.")] = None,
) -> Response:
    """Answers when its start is durable: 202; with `wait` when nothing more happens by itself: 200."""
    execution = await session.executions.start(
        id,
        body.input,
        session=body.session_id,
        config=body.config,
        durability=body.durability,
        language=body.language,
        model=body.model,
        trigger=triggered(session.caller, traceparent),
        key=key,
    )
    return await started(session, execution, wait=body.wait)


def triggered(caller: Caller, traceparent: str | None) -> JsonObject:
    """Return the trigger of an execution: the caller, and the `traceparent` header if it is valid."""
    trace: JsonObject = {} if origin_in(traceparent) is None else {"traceparent": traceparent}
    return {"kind": "api", "by": caller.name, **trace}


async def seen(session: Session, execution: Execution) -> JsonReply:
    """Answer with an execution, see `ExecutionVerbs.view`."""
    return JsonReply(await session.executions.view(execution))


async def started(session: Session, execution: Execution, *, wait: bool) -> Response:
    """Answer a start with the settled execution (`wait`), else with its id and status 202."""
    if wait:
        await execution.settled()
        return await seen(session, execution)
    said: StartedExecution = {
        "executionId": execution.id,
        "status": execution.status,
        "scripted": execution.is_scripted,
        "warnings": scripted_warnings(execution.state),
    }
    return JsonReply(said, status=202, headers={"location": f"/api/workflows/executions/{execution.id}"})


@router.get(
    "/executions",
    verb=ExecutionVerbs.list,
    responses=answers(ExecutionPage, "place-invalid"),
    summary="List executions",
)
async def list_(
    *,
    session: CallerSession,
    status: Annotated[
        list[ExecutionStatus] | None, Query(max_length=20, description="Only those of these statuses.")
    ] = None,
    workflow: Of = None,
    of_session: Annotated[
        str | None, Query(alias="session", max_length=200, description="Only the turns of this conversation.")
    ] = None,
    q: Annotated[
        str | None, Query(max_length=1000, description="Only those with all these words in input, output or error.")
    ] = None,
    since: Annotated[float | None, Query(ge=0, le=1e11, description="Started at or after: unix seconds.")] = None,
    until: Annotated[float | None, Query(ge=0, le=1e11, description="Started before: unix seconds.")] = None,
    order: Annotated[Literal["desc", "asc"], Query(description="`desc`: newest first, as they started.")] = "desc",
    trials: Annotated[bool, Query(description="Also those in which somebody only tried a part of a workflow.")] = False,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the page before.")] = None,
    limit: Limit = 50,
) -> Response:
    """Those of workflows that the caller may see, newest first unless `order` says otherwise. They are ordered by when
    they started, which never changes. A search finds what has ended, the newest first, on one page."""
    filters: ExecutionFilters = {
        "statuses": status or (),
        "workflow": workflow,
        "session": of_session,
        "since": since,
        "until": until,
        "trials": trials,
        "limit": limit,
    }
    if q is not None:
        return JsonReply(await session.executions.search(q, **filters))
    return JsonReply(await session.executions.list(before=before, oldest_first=order == "asc", **filters))


@router.get(
    "/executions/{eid}",
    verb=ExecutionVerbs.read,
    responses=answers(ExecutionView, "unknown-execution"),
    summary="Read an execution",
)
async def read(session: CallerSession, eid: Eid) -> Response:
    """Its state, as its journal tells."""
    return JsonReply(await session.executions.read(eid))


@router.delete(
    "/executions/{eid}",
    verb=ExecutionVerbs.delete,
    status_code=204,
    responses=refusals("unknown-execution", "execution-unfinished"),
    summary="Delete an execution",
)
async def delete(session: CallerSession, eid: Eid) -> Response:
    """For good, with everything that only it used. It must have ended."""
    await session.executions.delete(eid)
    return Response(status_code=204)


@router.get(
    "/executions/{eid}/events",
    verb=ExecutionVerbs.events,
    responses=answers(EventPage, "place-invalid", "unknown-execution"),
    summary="Read events",
)
async def events(
    session: CallerSession,
    eid: Eid,
    after: Annotated[str | None, Query(max_length=100, description="`last` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=EVENTS_MAX, description="At most so many.")] = 200,
) -> Response:
    """For whoever cannot hold a stream: ask again with `after`, until `status` says that it ended."""
    return JsonReply(await session.executions.events(eid, after=after, limit=limit))


@router.get(
    "/executions/{eid}/state",
    verb=ExecutionVerbs.read_at,
    responses=answers(ExecutionView, "unknown-execution"),
    summary="Travel in time",
)
async def state(
    session: CallerSession,
    eid: Eid,
    at: Annotated[int | None, Query(ge=1, le=2**53, description="A row of its journal; absent: the last one.")] = None,
) -> Response:
    """The execution as it was after a row of its journal."""
    return JsonReply(await session.executions.read_at(eid, at))


@router.get(
    "/executions/{eid}/workflow",
    verb=ExecutionVerbs.definition,
    responses=answers(ExecutionDefinition, "unknown-execution", "definition-gone"),
    summary="Read what it runs on",
)
async def definition(session: CallerSession, eid: Eid) -> Response:
    """The definition as it was when it began, or was moved to: in the native dialect, whatever its author wrote."""
    return JsonReply(await session.executions.definition(eid))


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
    "/executions/stream",
    verb=ExecutionVerbs.watch,
    responses=BOARD | refusals("place-invalid", "too-many-requests"),
    response_class=Response,
    summary="Stream all executions",
)
async def stream_all(
    server: CurrentServer,
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
    seat = server.take_stream(session.caller)
    return EventStream(server.broker.board.changes(shown, after=after), seat)


@router.get(
    "/executions/{eid}/stream",
    verb=ExecutionVerbs.check,
    responses=STREAM | refusals("place-invalid", "too-many-requests", "unknown-execution"),
    response_class=Response,
    summary="Stream an execution",
)
async def stream(
    *,
    server: CurrentServer,
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
    joined = await join(server.app.context, server.broker, eid, begin=begin, last=last_event_id or after)
    if joined is None:
        return Response(status_code=204)
    seat = server.take_stream(session.caller)
    frames = while_seen(session, eid, server.broker.frames(eid, after=joined.after))
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


EXECUTIONS_MAX: Final = 200


NAMED: Final[dict[str, Any]] = {"required": ["executions"], "properties": {"executions": {"minItems": 1}}}
NARROWED: Final[dict[str, Any]] = {
    "anyOf": [
        *(given(one) for one in ("workflow", "sessionId", "parent", "since", "until")),
        {"required": ["statuses"], "properties": {"statuses": {"minItems": 1}}},
    ]
}
ALL: Final[dict[str, Any]] = {"required": ["all"], "properties": {"all": {"const": True}}}
"""The three selections: executions by id (`NAMED`), by filters (`NARROWED`), or all of them."""


class BulkBody(Body):
    """A verb, and which executions are meant: what is absent does not narrow. All are meant only where that is said."""

    model_config = ruled(
        sample(verb="cancel", workflow="letter", statuses=["waiting"], dryRun=True),
        anyOf=[NAMED, NARROWED, ALL, {"required": ["dryRun"], "properties": {"dryRun": {"const": True}}}],
        **{"not": {"anyOf": [{"allOf": [one, other]} for one, other in combinations((NAMED, NARROWED, ALL), 2)]}},
    )
    verb: Literal["cancel", "pause", "resume", "retry", "delete"]
    workflow: str | None = Field(default=None, max_length=300)
    statuses: list[ExecutionStatus] = Field(default_factory=list[ExecutionStatus], max_length=20)
    session_id: str | None = Field(default=None, max_length=200)
    parent: str | None = Field(default=None, max_length=100, description="Only its sub-workflows.")
    since: float | None = Field(default=None, ge=0, le=1e11, description="Started at or after: unix seconds.")
    until: float | None = Field(default=None, ge=0, le=1e11, description="Started before: unix seconds.")
    executions: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        default_factory=list[str],
        max_length=EXECUTIONS_MAX,
        description="These and no others: each is told about, also those that refuse. Nothing else may narrow then.",
    )
    all: bool = Field(default=False, description="Every execution is meant, where nothing narrows.")
    dry_run: bool = Field(default=False, description="Only tell which are meant.")

    @model_validator(mode="after")
    def _names_or_narrows(self) -> BulkBody:
        narrows = (self.workflow, self.statuses, self.session_id, self.parent, self.since, self.until)
        narrowed = any(one not in (None, []) for one in narrows)
        if self.executions and narrowed:
            raise ValueError("name the executions, or narrow by what they have in common: not both")
        if self.all and (self.executions or narrowed):
            raise ValueError("`all` is for every execution: leave it out where some are named, or narrowed to")
        if not (self.executions or narrowed or self.all or self.dry_run):
            raise ValueError("nothing says which executions are meant: name or narrow them, or say that `all` are")
        return self


class BulkResults(TypedDict):
    """The result for each selected execution."""

    executions: list[BulkResultView]


example(BulkResults, {"executions": [{"executionId": EXECUTION_ID, "status": "cancelled", "error": None}]})


@router.post(
    "/executions/bulk",
    verb=ExecutionVerbs.bulk,
    responses=answers(BulkResults, "key-reused", "key-in-use", body=True),
    summary="Act on many executions",
)
async def bulk(session: CallerSession, request: Request, body: BulkBody, key: Key = None) -> Response:
    """Those that the caller sees and for which the verb means something. One that refuses does not stop the others.
    Deleting is for admins."""
    which = BulkSelection(body.workflow, frozenset(body.statuses), body.session_id, body.parent, body.since, body.until)

    async def work() -> Response:
        found = await session.executions.bulk(
            body.verb,
            None if body.executions else which,
            executions=body.executions,
            dry_run=body.dry_run,
        )
        results: BulkResults = {"executions": [bulk_result_view(one) for one in found]}
        return JsonReply(results)

    return await once(session.acting, request, key, work)
