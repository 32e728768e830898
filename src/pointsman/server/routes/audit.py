"""Operations on the audit log, for admins: pages, export, and verification of its hash chain."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from pointsman.auth.callers import Caller
from pointsman.server.context import CurrentServer, RequireRole
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Limit
from pointsman.server.routes.response_docs import answers, refusals, text_answer
from pointsman.server.schemas.requests import Answer, sample
from pointsman.values import JsonObject

router = Operations(tags=["access"])

Admin = Annotated[Caller, Depends(RequireRole("admin", "read the audit log"))]
DEED: Final[JsonObject] = {
    "id": "17.0",
    "at": 1_763_700_000.0,
    "who": "ada",
    "entrance": "key",
    "what": "PUT /api/workflows/{id}",
    "target": "id=letter",
    "origin": "192.0.2.7",
    "refused": None,
}

LINES: Final = "application/jsonl"
LINE: Final = '{"row":1,"hash":"9f86d081884c7d65","deeds":[{"who":"ada","what":"PUT /api/workflows/{id}"}]}\n'


class DeedAnswer(Answer):
    """A change that somebody asked for."""

    model_config = sample(**DEED)
    id: str
    at: float
    who: str
    entrance: str = Field(description="How they were let in.")
    what: str = Field(description="The operation.")
    target: str = Field(description="What it was done to, as the address names it.")
    origin: str = Field(description="The address it came from.")
    refused: str | None = Field(description="The code it was refused with; null: it was not.")


class AuditPage(Answer):
    """Deeds, newest first."""

    model_config = sample(deeds=[DEED], next=None)
    deeds: list[DeedAnswer]
    next: str | None = Field(description="The `before` of the next page; null: this was the last.")


@router.get("/api/audit", responses=answers(AuditPage), summary="Read the audit log")
async def read_audit(
    *,
    desk: CurrentServer,
    caller: Admin,
    who: Annotated[str | None, Query(max_length=200, description="Only what this caller asked for.")] = None,
    what: Annotated[str | None, Query(max_length=200, description="With this in the operation or target.")] = None,
    since: Annotated[float | None, Query(ge=0, le=1e11, description="Not before this moment (Unix seconds).")] = None,
    until: Annotated[float | None, Query(ge=0, le=1e11, description="Not after it.")] = None,
    before: Annotated[
        str | None, Query(max_length=20, pattern="^[0-9]+$", description="`next` of the page before.")
    ] = None,
    limit: Limit = 50,
) -> Response:
    """Every change that was asked for, newest first. A page may hold some more than `limit`, or fewer."""
    deeds, following = await desk.audit.page(who=who, what=what, since=since, until=until, before=before, limit=limit)
    return JsonReply({"deeds": [*deeds], "next": following})


class AuditState(Answer):
    """The chain of the audit log."""

    model_config = sample(rows=17, hash="9f86d081884c7d65", damage=[])
    rows: int = Field(description="How many rows it has; a row holds the deeds of one moment.")
    hash: str = Field(description="Of the last row. Kept elsewhere it shows whether the end was cut off.")
    damage: list[str] = Field(description="Every contradiction, one sentence each.")


@router.get("/api/audit/state", responses=answers(AuditState), summary="Check the audit log")
async def audit_state(desk: CurrentServer, caller: Admin) -> Response:
    """Whether each row is what was written, behind the row it was written behind. Reads the whole log."""
    return JsonReply(await desk.audit.state())


@router.get(
    "/api/audit/export",
    responses=text_answer(LINES, LINE) | refusals(),
    response_class=Response,
    summary="Export the audit log",
)
async def export_audit(desk: CurrentServer, caller: Admin) -> Response:
    """All rows, oldest first, a JSON object in a line each, with the hashes that chain them."""
    headers = {"content-disposition": 'attachment; filename="audit.jsonl"', "cache-control": "no-store"}
    return StreamingResponse(desk.audit.lines(), media_type=LINES, headers=headers)
