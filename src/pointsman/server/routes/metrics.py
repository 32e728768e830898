"""Prometheus metrics, usage tables and budgets."""

from __future__ import annotations

from hmac import compare_digest
from typing import Annotated, Final, Literal

from fastapi import Header, Query, Request, Response, Security
from fastapi.security.http import HTTPAuthorizationCredentials
from pydantic import Field

from pointsman.executions.usage_rollup import Dimension, UsageRollup
from pointsman.operations.budgets import budgets
from pointsman.operations.csv_tables import csv_of
from pointsman.operations.metrics import OPEN, TEXT
from pointsman.operations.usage_rights import narrowed, told_to
from pointsman.server.context import BEARER, COOKIE, CurrentCaller, CurrentServer, ServerContext, caller_of
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.response_docs import Described, answers, refusals, text_answer
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, sample

router = Operations(tags=["operations"])

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
    scripted_calls: int = Field(description="Calls of the scripted model, which costs nothing.")


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
                "scriptedCalls": 0,
            }
        ],
        rows=1,
    )
    usage: list[UsageRow]
    rows: int = Field(description="How many there are; `limit` of them are told.")


class BudgetRow(Answer):
    """What one execution of a workflow may spend, and how near those came that it had."""

    workflow: str
    measure: Literal["costUsd", "tokens", "modelCalls", "toolCalls"]
    most: float
    set_by: Literal["workflow", "operator"]
    policy: Literal["warn", "pause", "stop"] = Field(description="What happens when it is spent.")
    warn_at: float = Field(description="The share that is spent when a warning is due.")
    executions: int = Field(description="Those that ended in this time, and those that have not ended.")
    near: int = Field(description="How many of them came near it.")
    over: int = Field(description="How many spent it, or more.")
    highest: float = Field(description="The most that one of them spent, with its sub-workflows.")
    left: float = Field(description="What the dearest had left.")
    dearest: str | None = Field(description="Which one that is.")


class BudgetsAnswer(Answer):
    """The nearest to its end first."""

    model_config = sample(
        budgets=[
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
    )
    budgets: list[BudgetRow]


Narrow = Annotated[str, Field(max_length=400)]
CSV: Final = "text/csv; charset=utf-8; header=present"
USAGE: Final[Described] = answers(UsageAnswer, "period-invalid", "usage-unknown") | {
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
    desk: CurrentServer,
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
    desk: CurrentServer,
    caller: CurrentCaller,
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
    """Steps, time, calls, tokens and cost of what has ended, the dearest first: of saved workflows that the caller may
    see now; admins see everything. What was spent stays here when an execution is deleted.
    """

    found = await UsageRollup(desk.app.context).usage(
        by or ("workflow",), since=since, until=until, of=narrowed(of or ()), sees=told_to(desk.app.context, caller)
    )
    if as_csv:
        return Response(csv_of(found[:limit]), media_type=CSV)
    return JsonReply({"usage": [*found[:limit]], "rows": len(found)})


@router.get("/api/budgets", responses=answers(BudgetsAnswer, "period-invalid"), summary="What executions may spend")
async def spendable(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    since: Annotated[str, Query(max_length=40, description="Of what ended from this day on (UTC).")] = "",
    until: Annotated[str, Query(max_length=40, description="Up to this day.")] = "",
) -> Response:
    """The budgets of saved workflows that the caller may see, by themselves or by the operator's limits, and how near
    their executions came. Each execution begins at nothing. What keys may pay for on a day: `GET /api/models/keys`.
    """
    found = await budgets(desk.app.context, since=since, until=until, sees=told_to(desk.app.context, caller))
    return JsonReply({"budgets": [*found]})


def _is_scraper(desk: ServerContext, shown: HTTPAuthorizationCredentials | None) -> bool:
    key = desk.app.settings.resolved(desk.app.settings.metrics.key)
    return key is not None and shown is not None and compare_digest(key.encode(), shown.credentials.encode())
