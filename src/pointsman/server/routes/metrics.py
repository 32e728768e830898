"""Prometheus metrics, usage tables and budgets."""

from __future__ import annotations

from hmac import compare_digest
from typing import Annotated, Final

from fastapi import Header, Query, Request, Response, Security
from fastapi.security.http import HTTPAuthorizationCredentials
from pydantic import Field
from typing_extensions import TypedDict

from pointsman.executions.usage_rollup import Dimension, UsageRow
from pointsman.operations.metrics import OPENMETRICS, PLAIN
from pointsman.operations.usage import BudgetReport, csv_of
from pointsman.operations.verbs import OperationVerbs
from pointsman.server.context import BEARER, COOKIE, CallerSession, CurrentServer, ServerContext, caller_of
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import Described, answers, refusals, text_answer
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.views import example

router = Operations(tags=["operations"])

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
    summary="Measures for Prometheus",
)
async def metrics(
    request: Request,
    server: CurrentServer,
    shown: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)] = None,
    accept: Annotated[str | None, Header(max_length=1000, description="OpenMetrics, where it is wanted.")] = None,
) -> Response:
    """In the text format of Prometheus, or as OpenMetrics where `Accept` wants it. For the key of the setting
    `metrics`, and for admins: names of workflows are among the labels, of all groups.
    """
    wants = "application/openmetrics-text" in (accept or "")
    if _is_scraper(server, shown):
        text = await server.measuring.text(openmetrics_format=wants)
    else:
        caller = await caller_of(request, server, shown, request.cookies.get(COOKIE))
        text = await server.app.acting_as(caller).operations.metrics(server.measuring, openmetrics_format=wants)
    return Response(text, media_type=OPENMETRICS if wants else PLAIN)


@router.get("/api/usage", verb=OperationVerbs.usage, responses=USAGE, summary="What executions cost")
async def usage(
    *,
    session: CallerSession,
    by: Annotated[list[Dimension] | None, Query(max_length=7, description="What to tell apart (workflow).")] = None,
    of: Annotated[
        list[Narrow] | None,
        Query(max_length=7, description="Only what has this name there: `model:gpt-5`. Of nothing: `key:`."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="At most so many rows.")] = 1_000,
    since: Annotated[str, Query(max_length=40, description="From this day on (UTC).")] = "",
    until: Annotated[str, Query(max_length=40, description="Up to this day.")] = "",
    as_csv: Annotated[bool, Query(alias="csv", description="As CSV.")] = False,
) -> Response:
    """Steps, time, calls, tokens and cost of ended executions, the most expensive first: of saved workflows that the
    caller may see now; admins see everything. Usage remains when an execution is deleted.
    """
    found = await session.operations.usage(by or ("workflow",), since=since, until=until, of=of or ())
    if as_csv:
        return Response(csv_of(found[:limit]), media_type=CSV)
    table: UsageTable = {"usage": found[:limit], "rows": len(found)}
    return JsonReply(table)


@router.get(
    "/api/budgets",
    verb=OperationVerbs.budgets,
    responses=answers(BudgetReport, "period-invalid"),
    summary="What executions may spend",
)
async def spendable(
    *,
    session: CallerSession,
    since: Annotated[str, Query(max_length=40, description="Of what ended from this day on (UTC).")] = "",
    until: Annotated[str, Query(max_length=40, description="Up to this day.")] = "",
) -> Response:
    """The budgets of saved workflows that the caller may see, by themselves or by the operator's limits, and how near
    their executions came. Each execution begins at nothing. What keys may pay for on a day: `GET /api/models/keys`.
    """
    report: BudgetReport = {"budgets": await session.operations.budgets(since=since, until=until)}
    return JsonReply(report)


def _is_scraper(server: ServerContext, shown: HTTPAuthorizationCredentials | None) -> bool:
    key = server.app.settings.resolved(server.app.settings.metrics.key)
    return key is not None and shown is not None and compare_digest(key.encode(), shown.credentials.encode())
