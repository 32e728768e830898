"""Operations on the audit log, for admins: pages, export, and verification of its hash chain."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from pointsman.auth.administration import AccessVerbs
from pointsman.auth.audit import AuditEntryView, AuditPage, AuditState
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import Limit
from pointsman.server.routes.response_docs import answers, refusals, text_answer
from pointsman.server.schemas.views import example

router = Operations(tags=["access"])

ENTRY: Final[AuditEntryView] = {
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


example(AuditEntryView, ENTRY)
example(AuditPage, {"deeds": [ENTRY], "next": None})
example(AuditState, {"rows": 17, "hash": "9f86d081884c7d65", "damage": []})


@router.get("/api/audit", verb=AccessVerbs.audit_entries, responses=answers(AuditPage), summary="Read the audit log")
async def read_audit(
    *,
    session: CallerSession,
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
    entries, following = await session.access.audit_entries(
        who=who, what=what, since=since, until=until, before=before, limit=limit
    )
    page: AuditPage = {"deeds": entries, "next": following}
    return JsonReply(page)


@router.get(
    "/api/audit/state", verb=AccessVerbs.audit_state, responses=answers(AuditState), summary="Check the audit log"
)
async def audit_state(session: CallerSession) -> Response:
    """Whether each row is what was written, behind the row it was written behind. Reads the whole log."""
    return JsonReply(await session.access.audit_state())


@router.get(
    "/api/audit/export",
    verb=AccessVerbs.export_audit,
    responses=text_answer(LINES, LINE) | refusals(),
    response_class=Response,
    summary="Export the audit log",
)
async def export_audit(session: CallerSession) -> Response:
    """All rows, oldest first, a JSON object in a line each, with the hashes that chain them."""
    headers = {"content-disposition": 'attachment; filename="audit.jsonl"', "cache-control": "no-store"}
    return StreamingResponse(await session.access.export_audit(), media_type=LINES, headers=headers)
