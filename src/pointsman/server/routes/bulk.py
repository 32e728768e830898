"""Many executions at once: one verb for all that fit."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import Field

from pointsman.app.access.seeing import sees
from pointsman.app.bulk import Which, each, fitting, told_view
from pointsman.server.desk import AtDesk
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers
from pointsman.server.routes.parameters import Operator
from pointsman.server.samples import EXECUTION_ID
from pointsman.server.shapes import Answer, Body, sample
from pointsman.server.shown import Status

router = APIRouter(prefix="/api/workflows/executions", tags=["executions"])


class BulkBody(Body):
    """A verb, and which executions are meant: what is absent does not narrow."""

    model_config = sample(verb="cancel", workflow="letter", statuses=["waiting"], dryRun=True)
    verb: Literal["cancel", "pause", "resume", "retry", "delete"]
    workflow: str | None = Field(default=None, max_length=300)
    statuses: list[Status] = Field(default_factory=list[Status], max_length=20)
    session_id: str | None = Field(default=None, max_length=200)
    parent: str | None = Field(default=None, max_length=100, description="Only its sub-workflows.")
    since: float | None = Field(default=None, ge=0, le=1e11, description="Started at or after: unix seconds.")
    until: float | None = Field(default=None, ge=0, le=1e11, description="Started before: unix seconds.")
    dry_run: bool = Field(default=False, description="Only tell which are meant.")


class ToldAnswer(Answer):
    """What became of one of them."""

    execution_id: str
    status: str = Field(description="Afterwards; `deleted`, or `refused`; of a dry run: as it is.")
    error: str | None


class BulkAnswer(Answer):
    """What became of each."""

    model_config = sample(executions=[{"executionId": EXECUTION_ID, "status": "cancelled", "error": None}])
    executions: list[ToldAnswer]


@router.post("/bulk", responses=answers(BulkAnswer, body=True), summary="Act on many executions")
async def bulk(desk: AtDesk, caller: Operator, body: BulkBody) -> Response:
    """Those that the caller sees and for which the verb means something. One that refuses does not stop the others.
    Deleting is for admins."""
    if body.verb == "delete":
        caller.must_have("admin", "delete data")
    which = Which(body.workflow, frozenset(body.statuses), body.session_id, body.parent, body.since, body.until)
    found = [one for one in await fitting(desk.app, body.verb, which) if await sees(desk.app, caller, one)]
    if body.dry_run:
        return JsonReply(
            {"executions": [{"executionId": one.execution, "status": one.status, "error": None} for one in found]}
        )
    told = await each(desk.app, body.verb, found, by=caller.name)
    return JsonReply({"executions": [told_view(one) for one in told]})
