"""The audit log, for admins."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from pointsman.app.access.callers import Caller
from pointsman.server.desk import AtDesk, Must
from pointsman.server.replies import JsonReply
from pointsman.server.routes.answers import answers
from pointsman.server.routes.parameters import Limit
from pointsman.server.shapes import Answer, sample
from pointsman.values import JsonObject

router = APIRouter(tags=["access"])

Admin = Annotated[Caller, Depends(Must("admin", "read the audit log"))]
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
    desk: AtDesk,
    caller: Admin,
    who: Annotated[str | None, Query(max_length=200, description="Only what this caller asked for.")] = None,
    what: Annotated[str | None, Query(max_length=200, description="Only operations with this in them.")] = None,
    before: Annotated[
        str | None, Query(max_length=20, pattern="^[0-9]+$", description="`next` of the page before.")
    ] = None,
    limit: Limit = 50,
) -> Response:
    """Every change that was asked for, newest first. A page may hold some more than `limit`, or fewer."""
    deeds, following = await desk.audit.page(who=who, what=what, before=before, limit=limit)
    return JsonReply({"deeds": [*deeds], "next": following})
