"""Operations on the server: health, metrics, usage, settings in effect, backup, and the API reference."""

from __future__ import annotations

import asyncio
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Annotated, Final

from fastapi import APIRouter, FastAPI, Header, Query, Request, Response, Security
from fastapi.responses import FileResponse
from fastapi.security.http import HTTPAuthorizationCredentials
from pydantic import Field
from starlette.background import BackgroundTask
from typing_extensions import TypedDict

from pointsman import __version__
from pointsman.executions.usage_rollup import Dimension, UsageRow
from pointsman.operations.metrics import OPENMETRICS, PLAIN, is_scraper
from pointsman.operations.readiness import HealthView, ReadyView, readiness
from pointsman.operations.usage import BudgetReport, csv_of
from pointsman.operations.verbs import OperationVerbs
from pointsman.operations.workers import WorkersReport
from pointsman.server.context import BEARER, CallerSession, CurrentServer, caller_of
from pointsman.server.operation import LazyRoute, Operations
from pointsman.server.pages import api_page
from pointsman.server.problems import JsonReply
from pointsman.server.schemas.answers import (
    EXECUTION_ID,
    Described,
    answer,
    answers,
    bytes_answer,
    example,
    refusals,
    text_answer,
)

router = Operations(tags=["operations"])
reference_router = APIRouter(include_in_schema=False, route_class=LazyRoute)


NOT_READY: Final = "The store is not available, is read-only or has no room, or the server is stopping."
READY: Final[Described] = answer(ReadyView, "The server accepts requests.") | answer(ReadyView, NOT_READY, status=503)


@router.get("/health", responses=answer(HealthView, "The process is alive."), summary="Check liveness")
async def health() -> Response:
    """Answers as long as the process is alive. Requires no key."""
    alive: HealthView = {"status": "ok", "version": __version__}
    return JsonReply(alive)


@router.get("/ready", responses=READY, summary="Check readiness")
async def ready(server: CurrentServer) -> Response:
    """Whether to send requests to this server:

    its store is available, writable and has room, and the server is not stopping. Requires no key. `leader` shows
    whether this process is the leader of the store or stands by; both serve requests.
    """
    readiness_view = await readiness(server.app.context, server.lifecycle)
    return JsonReply(readiness_view.to_json(), status=200 if readiness_view.ready else 503)


@reference_router.get("/api/docs")
async def reference(request: Request) -> Response:
    """Show the parameters, responses and errors of each operation. Needs no key, like the document."""
    return api_page(request)


@reference_router.get("/api/openapi.json")
async def document(request: Request) -> Response:
    """Return the OpenAPI document. Needs no key."""
    content = await asyncio.get_running_loop().run_in_executor(_DOCUMENT_THREAD, _document, request.app)
    return Response(content, media_type="application/json")


_DOCUMENT_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="openapi")
"""Makes the document, once: that takes a second of processor time, and strangers may be the first to request it."""


@cache
def _document(api: FastAPI) -> bytes:
    return json.dumps(api.openapi(), ensure_ascii=False, separators=(",", ":")).encode()


EXAMPLE: Final = 'pointsman_executions_ended_total{workflow="news",status="completed"} 12.0\n'


class UsageTable(TypedDict):
    """Usage, the most expensive row first."""

    usage: list[UsageRow]
    rows: int
    """Number of all rows; the answer contains at most `limit` of them."""


example(
    UsageTable,
    {
        "usage": [
            {
                "workflow": "letter",
                "steps": 12,
                "retries": 1,
                "failures": 0,
                "cached": 0,
                "seconds": 31.5,
                "modelCalls": 8,
                "toolCalls": 3,
                "inputTokens": 8120,
                "outputTokens": 2400,
                "cacheReadTokens": 0,
                "costUsd": 0.021,
                "unpricedCalls": 0,
                "scriptedCalls": 0,
            }
        ],
        "rows": 1,
    },
)
example(
    BudgetReport,
    {
        "budgets": [
            {
                "workflow": "letter",
                "measure": "costUsd",
                "most": 2.0,
                "setBy": "workflow",
                "policy": "stop",
                "warnAt": 0.8,
                "executions": 12,
                "near": 1,
                "over": 0,
                "highest": 1.7,
                "left": 0.3,
                "dearest": EXECUTION_ID,
            }
        ]
    },
)

Narrow = Annotated[str, Field(max_length=400)]
CSV: Final = "text/csv; charset=utf-8; header=present"
USAGE: Final[Described] = answers(UsageTable, "period-invalid", "usage-unknown")
USAGE[200]["description"] = "As JSON, or with `csv` as a table."
USAGE[200]["content"][CSV] = {
    "schema": {"type": "string"},
    "example": "workflow,steps,costUsd\r\nletter,12,0.04\r\n",
}


@router.get(
    "/metrics",
    responses=text_answer(PLAIN, EXAMPLE) | refusals(503),
    response_class=Response,
    summary="Read metrics for Prometheus",
)
async def metrics(
    request: Request,
    server: CurrentServer,
    shown: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)] = None,
    accept: Annotated[str | None, Header(max_length=1000, description="OpenMetrics, if requested.")] = None,
) -> Response:
    """The text format of Prometheus, or OpenMetrics if `Accept` requests it.

    Requires the key of the setting `metrics`, or the role admin: the labels contain names of workflows of all groups.
    """
    wants = "application/openmetrics-text" in (accept or "")
    if is_scraper(server.app.settings, None if shown is None else shown.credentials):
        text = await server.measuring.text(openmetrics_format=wants)
    else:
        caller = await caller_of(request)
        text = await server.app.acting_as(caller).operations.metrics(server.measuring, openmetrics_format=wants)
    return Response(text, media_type=OPENMETRICS if wants else PLAIN)


@router.get("/api/usage", verb=OperationVerbs.usage, responses=USAGE, summary="Read usage")
async def usage(
    *,
    session: CallerSession,
    by: Annotated[
        list[Dimension] | None, Query(max_length=7, description="Dimensions to group by (default: workflow).")
    ] = None,
    of: Annotated[
        list[Narrow] | None,
        Query(
            max_length=7,
            description="Only entries with this value of a dimension: `model:gpt-5`. Entries without a value: `key:`.",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Maximum number of rows.")] = 1_000,
    since: Annotated[str, Query(max_length=40, description="From this day on (UTC).")] = "",
    until: Annotated[str, Query(max_length=40, description="Up to and including this day (UTC).")] = "",
    as_csv: Annotated[bool, Query(alias="csv", description="Return CSV instead of JSON.")] = False,
) -> Response:
    """Steps, time, calls, tokens and cost of ended executions, the most expensive first: of saved workflows that the
    caller may see now; admins see everything. Usage remains when an execution is deleted.
    """
    rows = await session.operations.usage(by or ("workflow",), since=since, until=until, of=of or ())
    if as_csv:
        return Response(csv_of(rows[:limit]), media_type=CSV)
    table: UsageTable = {"usage": rows[:limit], "rows": len(rows)}
    return JsonReply(table)


@router.get(
    "/api/budgets",
    verb=OperationVerbs.budgets,
    responses=answers(BudgetReport, "period-invalid"),
    summary="Read budgets",
)
async def list_budgets(
    *,
    session: CallerSession,
    since: Annotated[
        str, Query(max_length=40, description="Only executions that ended on this day (UTC) or later.")
    ] = "",
    until: Annotated[str, Query(max_length=40, description="Up to and including this day (UTC).")] = "",
) -> Response:
    """Budgets of the saved workflows that the caller may see, set by the workflow or by the operator, and the highest
    usage by executions. A budget applies to each execution separately. `GET /api/models/keys` has the daily limits of
    API keys."""
    report: BudgetReport = {"budgets": await session.operations.budgets(since=since, until=until)}
    return JsonReply(report)


example(
    WorkersReport,
    {
        "version": "1.0.0",
        "engine": "temporal://temporal.example.com:7233/pointsman",
        "shared": True,
        "workers": [
            {
                "name": "gpu-1/4711/91230/1",
                "role": "worker",
                "version": "1.0.0",
                "queues": ["gpu"],
                "capacity": 2,
                "executions": 0,
                "steps": 1,
                "since": 1767225600.0,
                "beatSeconds": 1.2,
            }
        ],
        "queues": [{"queue": "gpu", "workers": 1, "waiting": 3, "running": 1, "oldestSeconds": 12.5}],
        "owned": [{"executionId": EXECUTION_ID, "worker": "web-1/812/90100/1"}],
    },
)


@router.get("/api/workers", verb=OperationVerbs.workers, responses=answers(WorkersReport), summary="List workers")
async def list_workers(session: CallerSession) -> Response:
    """The live processes of the store, the queues of `placement` with their steps, and the owners of executions."""
    return JsonReply(await session.operations.workers())


MEDIA: Final = "application/vnd.sqlite3"
NAME: Final = "pointsman.backup"


@router.post(
    "/api/backup",
    verb=OperationVerbs.back_up,
    responses=bytes_answer(MEDIA) | refusals("store-copy-unsupported"),
    summary="Back up the store",
    response_class=Response,
)
async def create_backup(session: CallerSession) -> Response:
    """A verified copy of everything in the store at this moment, as a file for `pointsman restore`.

    It contains hashes of keys and the inputs of executions: protect it as you protect the store.
    """
    folder = tempfile.mkdtemp(prefix="pointsman-")
    try:
        path = Path(folder) / NAME
        await session.operations.back_up(path)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    done = BackgroundTask(rmtree, folder, ignore_errors=True)
    return FileResponse(path, media_type=MEDIA, filename=NAME, background=done)


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
        "leader": "here",
        "keeper": "here",
        "model": "configured",
    },
)
