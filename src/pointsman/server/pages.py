"""Web app: static files, served without a key; the app loads its data from the API, with a key.

Every page address returns `index.html`; the app does its own routing. Files in `assets/` have content hashes in their
names and are cached permanently by browsers; all others are revalidated each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import HTMLResponse, Response

from pointsman.server.operation import LazyRoute

router = APIRouter(include_in_schema=False, route_class=LazyRoute)

BUILT: Final = Path(__file__).parent / "static"
POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Allows scripts only from files of the app, and inline styles, which the text editor component needs."""
HEADERS: Final[Mapping[str, str]] = {"content-security-policy": POLICY}
PAGES: Final = frozenset(
    {
        "",
        "agents",
        "audit",
        "chat",
        "executions",
        "inbox",
        "keys",
        "login",
        "memory",
        "models",
        "notifications",
        "people",
        "schedules",
        "secrets",
        "settings",
        "tools",
        "usage",
        "webhooks",
        "workflows",
    }
)
"""First path segments of pages. Any other path that is neither a file nor an operation gets a 404: a problem document
for programs, the page of the app for browsers."""
PROGRAMS: Final = frozenset({"api", "v1", "mcp", "assets"})
"""First path segments that get no 404 page, only a problem document."""
MISSING: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Pointsman</title>
<h1>The web app is not built</h1>
<p>The server runs; <a href="/api/openapi.json">/api/openapi.json</a> describes its API.</p>
<p>To build the app and the API reference: install Node 20 or newer, then <code>make ui</code> in a checkout, and start
the server again. Releases on the package index contain both.</p>
"""


def is_built() -> bool:
    return (BUILT / "index.html").is_file()


def is_page(address: str) -> bool:
    """Return whether the address is safe as a redirect target: a page of this app in every browser's interpretation."""
    path = address.partition("?")[0]
    plain = address.isascii() and address.isprintable() and not {"\\", " "}.intersection(address)
    return plain and path.startswith("/") and path.split("/")[1] in PAGES - {"", "login"} and ".." not in path


def is_there(path: str) -> bool:
    """Return whether the app has a page or a file at this path, given without its leading slash."""
    return _is_shown(path) or (is_built() and _is_file(path))


@router.get("/{path:path}")
async def page(request: Request, path: str) -> Response:
    """A file of the app, or the app itself."""
    if not is_built():
        if not _is_shown(path):
            raise HTTPException(404)
        return HTMLResponse(MISSING, status_code=200 if path == "" else 404, headers=dict(HEADERS))
    if _is_file(path):
        return _file(path)
    if _is_shown(path):
        return _file("index.html")
    if path.split("/")[0] in PROGRAMS or "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return _file("index.html", status=404)


def api_page() -> Response:
    """Return the API reference, or what to do if it is not built."""
    return _file("api.html") if is_built() else HTMLResponse(MISSING, status_code=404, headers=dict(HEADERS))


def _is_shown(path: str) -> bool:
    parts = path.split("/")
    return parts[0] in PAGES and not {".", ".."}.intersection(parts)


def _is_file(path: str) -> bool:
    return path in built_files(BUILT, (BUILT / "index.html").stat().st_mtime_ns)


@lru_cache(maxsize=1)
def built_files(folder: Path, built: int) -> frozenset[str]:
    """Return the paths of all files of a build, listed once; a path outside the folder is never among them."""
    return frozenset(one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())


@lru_cache(maxsize=512)
def built_file(path: Path, built: int) -> bytes:
    """Return the content of a file, shared by all responses, so that slow clients do not multiply memory."""
    return path.read_bytes()


def _file(name: str, *, status: int = 200) -> Response:
    kind, _ = guess_type(name)
    kept = "public, max-age=31536000, immutable" if name.startswith("assets/") else "no-cache"
    return Response(
        built_file(BUILT / name, (BUILT / "index.html").stat().st_mtime_ns),
        status_code=status,
        media_type={"text/javascript": "text/javascript; charset=utf-8"}.get(kind or "", kind),
        headers={**HEADERS, "cache-control": kept},
    )
