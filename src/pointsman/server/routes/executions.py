"""Operations on executions: start, list, read, delete."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Header, Query, Response

from pointsman.app import Execution
from pointsman.auth.callers import Caller
from pointsman.executions.pages import EventPage, ExecutionDefinition, ExecutionPage
from pointsman.executions.verbs import ExecutionFilters, ExecutionVerbs
from pointsman.executions.views import scripted_warnings
from pointsman.operations.tracing import origin_in
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Eid, Id, Key, Limit, Of
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import ExecuteBody
from pointsman.server.schemas.responses import ExecutionAnswer, Started, Status
from pointsman.server.schemas.views import example
from pointsman.session import Session
from pointsman.values import JsonObject, JsonView

router = Operations(prefix="/api/workflows", tags=["executions"])

EVENTS_MAX: Final = 5000

STARTED: Final = answers(ExecutionAnswer) | answers(
    Started,
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
    said: JsonView = {
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
    status: Annotated[list[Status] | None, Query(max_length=20, description="Only those of these statuses.")] = None,
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
    responses=answers(ExecutionAnswer, "unknown-execution"),
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
    responses=answers(ExecutionAnswer, "unknown-execution"),
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
