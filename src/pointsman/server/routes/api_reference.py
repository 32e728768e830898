"""API reference: the page of the web app's build, and the OpenAPI document that it shows."""

from __future__ import annotations

import json
from functools import cache

from fastapi import APIRouter, FastAPI, Request, Response

from pointsman.server.pages import api_page

router = APIRouter(include_in_schema=False)


@router.get("/api/docs")
async def reference() -> Response:
    """Show the parameters, responses and errors of each operation. Needs no key, like the document."""
    return api_page()


@router.get("/api/openapi.json")
async def document(request: Request) -> Response:
    """Return the OpenAPI document. Needs no key."""
    return Response(_document(request.app), media_type="application/json")


@cache
def _document(api: FastAPI) -> bytes:
    return json.dumps(api.openapi(), ensure_ascii=False, separators=(",", ":")).encode()
