"""Bulk operation: one action on all matching executions."""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Any, Final, Literal

from fastapi import Request, Response
from pydantic import Field, model_validator

from pointsman.executions.bulk import Which, told_view
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.idempotency import once
from pointsman.server.routes.parameters import Key
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import Answer, Body, given, ruled, sample
from pointsman.server.schemas.responses import Status

router = Operations(prefix="/api/workflows/executions", tags=["executions"])

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
    statuses: list[Status] = Field(default_factory=list[Status], max_length=20)
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


class ToldAnswer(Answer):
    """What became of one of them."""

    execution_id: str
    status: str = Field(description="Afterwards; `deleted`, or `refused`; of a dry run: as it is.")
    error: str | None


class BulkAnswer(Answer):
    """What became of each."""

    model_config = sample(executions=[{"executionId": EXECUTION_ID, "status": "cancelled", "error": None}])
    executions: list[ToldAnswer]


@router.post(
    "/bulk",
    verb=ExecutionVerbs.bulk,
    responses=answers(BulkAnswer, "key-reused", "key-in-use", body=True),
    summary="Act on many executions",
)
async def bulk(session: CallerSession, request: Request, body: BulkBody, key: Key = None) -> Response:
    """Those that the caller sees and for which the verb means something. One that refuses does not stop the others.
    Deleting is for admins."""
    which = Which(body.workflow, frozenset(body.statuses), body.session_id, body.parent, body.since, body.until)

    async def work() -> Response:
        found = await session.executions.bulk(
            body.verb,
            None if body.executions else which,
            executions=body.executions,
            dry_run=body.dry_run,
        )
        return JsonReply({"executions": [told_view(one) for one in found]})

    return await once(session.acting, request, key, work)
