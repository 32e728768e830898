"""API reference as an HTML page, and the OpenAPI document."""

from __future__ import annotations

import json
from functools import cache

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.responses import HTMLResponse

from pointsman.server.api_reference import POLICY, page_of

router = APIRouter(include_in_schema=False)


@router.get("/api/docs")
async def manual(request: Request) -> Response:
    """What each operation takes, answers and refuses. Needs no key, as the document it is made of."""
    return HTMLResponse(_page(request.app), headers={"content-security-policy": POLICY, "cache-control": "no-cache"})


@router.get("/api/openapi.json")
async def document(request: Request) -> Response:
    """The document itself. Needs no key."""
    return Response(_document(request.app), media_type="application/json")


@cache
def _page(api: FastAPI) -> bytes:
    return page_of(api.openapi()).encode()


@cache
def _document(api: FastAPI) -> bytes:
    return json.dumps(api.openapi(), ensure_ascii=False, separators=(",", ":")).encode()
