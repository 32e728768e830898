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
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import Eid, Id, Key, Limit, Of, reply_once
from pointsman.server.schemas.answers import EXECUTION_ID, Described, answers, example, refusals
from pointsman.server.schemas.requests import Body, ExecuteBody, requires_fields, sample, with_schema_rule
from pointsman.server.streaming.broker import Beginning, SubscriptionStart, join
from pointsman.server.streaming.live_feed import moment_of
from pointsman.server.streaming.sse import BEAT, MEDIA_TYPE, SHUT, EventStream, server_sent, with_first_chunk
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
    "model-override",
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
    traceparent: Annotated[str | None, Header(max_length=100, description="Trace context of the caller.")] = None,
) -> Response:
    """Returns 202 when the start is stored durably; with `wait`, 200 once the execution has ended or cannot
    continue by itself."""
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


async def view_reply(session: Session, execution: Execution) -> JsonReply:
    """Answer with an execution, see `ExecutionVerbs.view`."""
    return JsonReply(await session.executions.view(execution))


async def started(session: Session, execution: Execution, *, wait: bool) -> Response:
    """Answer a start with the settled execution (`wait`), else with its id and status 202."""
    if wait:
        await execution.settled()
        return await view_reply(session, execution)
    started_execution: StartedExecution = {
        "executionId": execution.id,
        "status": execution.status,
        "scripted": execution.is_scripted,
        "warnings": scripted_warnings(execution.state),
    }
    return JsonReply(started_execution, status=202, headers={"location": f"/api/workflows/executions/{execution.id}"})


@router.get(
    "/executions",
    verb=ExecutionVerbs.list,
    responses=answers(ExecutionPage, "position-invalid"),
    summary="List executions",
)
async def list_(
    *,
    session: CallerSession,
    status: Annotated[
        list[ExecutionStatus] | None, Query(max_length=20, description="Only executions with one of these statuses.")
    ] = None,
    workflow: Of = None,
    of_session: Annotated[
        str | None, Query(alias="session", max_length=200, description="Only turns of this conversation.")
    ] = None,
    q: Annotated[
        str | None,
        Query(max_length=1000, description="Only executions with all these words in input, output or error."),
    ] = None,
    since: Annotated[
        float | None, Query(ge=0, le=1e11, description="Started at or after this time (Unix seconds).")
    ] = None,
    until: Annotated[float | None, Query(ge=0, le=1e11, description="Started before this time (Unix seconds).")] = None,
    order: Annotated[Literal["desc", "asc"], Query(description="`desc`: newest start first.")] = "desc",
    trials: Annotated[bool, Query(description="Include partial runs.")] = False,
    before: Annotated[str | None, Query(max_length=300, description="`next` of the previous page.")] = None,
    limit: Limit = 50,
) -> Response:
    """Executions of workflows that the caller may see, newest first unless `order` is `asc`.

    They are ordered by their start time, which never changes. A search finds only ended executions, and returns one
    page, newest first.
    """
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
    """The state of an execution, from its journal."""
    return JsonReply(await session.executions.read(eid))


@router.delete(
    "/executions/{eid}",
    verb=ExecutionVerbs.delete,
    status_code=204,
    responses=refusals("unknown-execution", "execution-unfinished"),
    summary="Delete an execution",
)
async def delete(session: CallerSession, eid: Eid) -> Response:
    """Delete an ended execution permanently, with all data that only it uses."""
    await session.executions.delete(eid)
    return Response(status_code=204)


@router.get(
    "/executions/{eid}/events",
    verb=ExecutionVerbs.events,
    responses=answers(EventPage, "position-invalid", "unknown-execution"),
    summary="Read events",
)
async def events(
    session: CallerSession,
    eid: Eid,
    after: Annotated[str | None, Query(max_length=100, description="`last` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=EVENTS_MAX, description="Maximum number of events.")] = 200,
) -> Response:
    """For clients that cannot hold a stream: request again with `after` until `status` is final."""
    return JsonReply(await session.executions.events(eid, after=after, limit=limit))


@router.get(
    "/executions/{eid}/state",
    verb=ExecutionVerbs.read_at,
    responses=answers(ExecutionView, "unknown-execution"),
    summary="Read an earlier state",
)
async def state(
    session: CallerSession,
    eid: Eid,
    at: Annotated[int | None, Query(ge=1, le=2**53, description="A row of the journal; absent: the last one.")] = None,
) -> Response:
    """The execution as it was after a row of its journal."""
    return JsonReply(await session.executions.read_at(eid, at))


@router.get(
    "/executions/{eid}/workflow",
    verb=ExecutionVerbs.definition,
    responses=answers(ExecutionDefinition, "unknown-execution", "definition-missing"),
    summary="Read the definition of an execution",
)
async def definition(session: CallerSession, eid: Eid) -> Response:
    """The definition with which the execution started, or to which it was migrated, in the native dialect."""
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
    204: {"description": "The execution has ended, and all events were sent: do not reconnect."},
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
    responses=BOARD | refusals("position-invalid", "too-many-requests"),
    response_class=Response,
    summary="Stream all executions",
)
async def stream_all(
    server: CurrentServer,
    session: CallerSession,
    workflow: Of = None,
    of_session: Annotated[
        str | None, Query(alias="session", max_length=200, description="Only turns of this conversation.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="Sent by browsers when they reconnect.")
    ] = None,
) -> Response:
    """Send each visible execution, in its list form, whenever it changes: for lists, inboxes and dashboards.

    Read the list first, then replace its entries by those of the stream. An entry is the present state of an execution,
    so a repeated one does no harm. At `workflow.executions.reset`, read the list again.
    """
    shown = await session.executions.watch(workflow=workflow, session=of_session)
    after = moment_of(last_event_id)
    stream = server.take_stream(session.caller)
    return EventStream(server.broker.live_feed.changes(shown, after=after), stream)


@router.get(
    "/executions/{eid}/stream",
    verb=ExecutionVerbs.check,
    responses=STREAM | refusals("position-invalid", "too-many-requests", "unknown-execution"),
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
            description="`start`: all events from the first one on. `now`: only new events. `snapshot`: the event "
            "`workflow.snapshot` with the present state, then new events. A reconnect with an id "
            "continues after it.",
        ),
    ] = "start",
    after: Annotated[str | None, Query(max_length=100, description="Start after the event with this id.")] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="Sent by browsers when they reconnect.")
    ] = None,
) -> Response:
    """Events of the journal, then new events, without gaps or duplicates, until the execution ends."""
    await session.executions.check(eid)
    joined = await join(server.app.context, server.broker, eid, begin=begin, last=last_event_id or after)
    if joined is None:
        return Response(status_code=204)
    stream = server.take_stream(session.caller)
    frames = while_seen(session, eid, server.broker.frames(eid, after=joined.after))
    return EventStream(with_first_chunk(_first(joined, begin), frames), stream)


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
        *(requires_fields(one) for one in ("workflow", "sessionId", "parent", "since", "until")),
        {"required": ["statuses"], "properties": {"statuses": {"minItems": 1}}},
    ]
}
ALL: Final[dict[str, Any]] = {"required": ["all"], "properties": {"all": {"const": True}}}
"""The three selections: executions by id (`NAMED`), by filters (`NARROWED`), or all of them."""


class BulkBody(Body):
    """A verb and the executions that it applies to:

    absent filters do not narrow the selection. `all` is required to select every execution.
    """

    model_config = with_schema_rule(
        sample(verb="cancel", workflow="letter", statuses=["waiting"], dryRun=True),
        anyOf=[NAMED, NARROWED, ALL, {"required": ["dryRun"], "properties": {"dryRun": {"const": True}}}],
        **{"not": {"anyOf": [{"allOf": [one, other]} for one, other in combinations((NAMED, NARROWED, ALL), 2)]}},
    )
    verb: Literal["cancel", "pause", "resume", "retry", "delete"]
    workflow: str | None = Field(default=None, max_length=300)
    statuses: list[ExecutionStatus] = Field(default_factory=list[ExecutionStatus], max_length=20)
    session_id: str | None = Field(default=None, max_length=200)
    parent: str | None = Field(default=None, max_length=100, description="Only its sub-workflows.")
    since: float | None = Field(
        default=None, ge=0, le=1e11, description="Started at or after this time (Unix seconds)."
    )
    until: float | None = Field(default=None, ge=0, le=1e11, description="Started before this time (Unix seconds).")
    executions: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field(
        default_factory=list[str],
        max_length=EXECUTIONS_MAX,
        description="Exactly these executions; the answer contains a result for each, also for refused ones. Cannot "
        "be combined with filters.",
    )
    all: bool = Field(default=False, description="Required to select every execution, if there is no filter.")
    dry_run: bool = Field(default=False, description="Only return the selected executions.")

    @model_validator(mode="after")
    def _names_or_narrows(self) -> BulkBody:
        narrows = (self.workflow, self.statuses, self.session_id, self.parent, self.since, self.until)
        narrowed = any(narrow not in (None, []) for narrow in narrows)
        if self.executions and narrowed:
            raise ValueError("give either ids of executions or filters, not both")
        if self.all and (self.executions or narrowed):
            raise ValueError("`all` selects every execution: omit it if ids or filters are given")
        if not (self.executions or narrowed or self.all or self.dry_run):
            raise ValueError("no executions are selected: give ids or filters, or set `all`")
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
async def execute_bulk_action(session: CallerSession, request: Request, body: BulkBody, key: Key = None) -> Response:
    """Apply a verb to the executions that the caller may see and to which it can apply.

    If one refuses, the others continue. Deleting requires the role admin.
    """
    which = BulkSelection(body.workflow, frozenset(body.statuses), body.session_id, body.parent, body.since, body.until)

    async def work() -> Response:
        outcomes = await session.executions.bulk(
            body.verb,
            None if body.executions else which,
            executions=body.executions,
            dry_run=body.dry_run,
        )
        results: BulkResults = {"executions": [bulk_result_view(outcome) for outcome in outcomes]}
        return JsonReply(results)

    return await reply_once(session.acting, request, key, work)
