"""What operators watch: measures for Prometheus."""

from __future__ import annotations

from hmac import compare_digest
from typing import Annotated, Final

from fastapi import APIRouter, Header, Query, Request, Response, Security
from fastapi.security.http import HTTPAuthorizationCredentials
from pydantic import Field

from pointsman.app.access.seeing import visible
from pointsman.app.library import UnknownWorkflow
from pointsman.app.observing.history import Dimension, History
from pointsman.app.observing.measures import OPEN, TEXT
from pointsman.app.observing.tables import csv_of
from pointsman.server.desk import BEARER, COOKIE, Asking, AtDesk, Desk, caller_of
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import Described, answers, refusals, text_answer
from pointsman.server.shapes import Answer, sample

router = APIRouter(tags=["operations"])

EXAMPLE: Final = 'pointsman_executions_ended_total{workflow="news",status="completed"} 12\n'


class UsageRow(Answer):
    """What was taken and paid for there. What it tells apart (`day`, `workflow` …) are fields too."""

    steps: int
    retries: int
    failures: int
    cached: int
    seconds: float
    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_usd: float | None = Field(description="As far as prices are known.")
    unpriced_calls: int = Field(description="Calls of models whose price nobody knows.")


class UsageAnswer(Answer):
    """A table, the dearest row first."""

    model_config = sample(
        usage=[
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
            }
        ]
    )
    usage: list[UsageRow]


CSV: Final = "text/csv; charset=utf-8; header=present"
USAGE: Final[Described] = answers(UsageAnswer, "period-invalid") | {
    200: {
        "model": UsageAnswer,
        "description": "As JSON, or with `csv` as a table.",
        "content": {CSV: {"schema": {"type": "string"}, "example": "workflow,steps,costUsd\r\nletter,12,0.04\r\n"}},
    }
}


@router.get(
    "/metrics",
    responses=text_answer(TEXT, EXAMPLE) | refusals(503),
    response_class=Response,
    summary="Measures for Prometheus",
)
async def metrics(
    request: Request,
    desk: AtDesk,
    shown: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)] = None,
    accept: Annotated[str | None, Header(max_length=1000, description="OpenMetrics, where it is wanted.")] = None,
) -> Response:
    """In the text format of Prometheus, or as OpenMetrics where `Accept` wants it. For the key of the setting
    `metrics`, and for admins: names of workflows are among the labels, of all groups.
    """
    if not _is_scraper(desk, shown):
        caller = await caller_of(request, desk, shown, request.cookies.get(COOKIE))
        caller.must_have("admin", "read the measures of this server")
    openly = "application/openmetrics-text" in (accept or "")
    return Response(await desk.measuring.text(openly=openly), media_type=OPEN if openly else TEXT)


@router.get("/api/usage", responses=USAGE, summary="What executions cost")
async def usage(
    *,
    desk: AtDesk,
    caller: Asking,
    by: Annotated[list[Dimension] | None, Query(max_length=5, description="What to tell apart (workflow).")] = None,
    since: Annotated[str, Query(max_length=40, description="From this day on (UTC).")] = "",
    until: Annotated[str, Query(max_length=40, description="Up to this day.")] = "",
    as_csv: Annotated[bool, Query(alias="csv", description="As CSV.")] = False,
) -> Response:
    """Steps, time, calls, tokens and cost of what has ended, the dearest first: of saved workflows that the caller may
    see now; admins see everything. What was spent stays here when an execution is deleted.
    """

    async def sees(workflow: str, revision: int) -> bool:
        try:
            return revision > 0 and await visible(desk.app, caller, f"{workflow}@{revision}")
        except UnknownWorkflow:
            return False

    found = await History(desk.app).usage(
        by or ("workflow",), since=since, until=until, sees=None if caller.role == "admin" else sees
    )
    if as_csv:
        return Response(csv_of(found), media_type=CSV)
    return JsonReply({"usage": [*found]})


def _is_scraper(desk: Desk, shown: HTTPAuthorizationCredentials | None) -> bool:
    key = desk.app.settings.resolved(desk.app.settings.metrics.key)
    return key is not None and shown is not None and compare_digest(key.encode(), shown.credentials.encode())
