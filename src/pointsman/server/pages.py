"""Web app and documentation: static files, served without a key; the app loads its data from the API, with a key.

The build leaves compressed copies beside its files (`.br`, `.gz`); a client gets the best that it accepts, and the
server compresses nothing itself.

Every address of a page of the app returns `index.html`; the app does its own routing. Below `/docs/` is the
documentation site, with its own index in each folder. Files in `assets/` have content hashes in their names and are
cached permanently by browsers; all others are revalidated each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pointsman.server.operation import LazyRoute

router = APIRouter(include_in_schema=False, route_class=LazyRoute)

BUILT: Final = Path(__file__).parent / "static"
DOCUMENTATION: Final = Path(__file__).parent / "documentation"
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
OPENAPI: Final = "/api/openapi.json"
PAGES: Final = frozenset(
    {
        "",
        "agents",
        "answer",
        "audit",
        "chat",
        "connected",
        "evaluations",
        "executions",
        "inbox",
        "keys",
        "login",
        "memory",
        "models",
        "notifications",
        "people",
        "playground",
        "schedules",
        "secrets",
        "settings",
        "talk",
        "templates",
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
TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".yaml": "text/plain; charset=utf-8",
    ".py": "text/plain; charset=utf-8",
}
"""Suffix -> media type, where the browser shall show a text that it would store otherwise."""
MISSING: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Pointsman</title>
<h1>The web app is not built</h1>
<p>The server runs; <a href="/api/openapi.json">/api/openapi.json</a> describes its API.</p>
<p>To build the app and the API reference: install Node 20 or newer, then <code>make ui</code> in a checkout, and start
the server again. Releases on the package index contain both.</p>
"""


NO_DOCUMENTATION_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Pointsman</title>
<h1>The documentation has no page at this address</h1>
<p><a href="/docs/">Start page of the documentation</a></p>
"""
DOCUMENTATION_MISSING: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Pointsman</title>
<h1>The documentation is not built</h1>
<p>Run <code>make docs</code> in a checkout, and start the server again; or read the folder <code>docs</code>. Releases
on the package index contain this site.</p>
"""


ENCODINGS: Final = {"br": ".br", "gzip": ".gz"}
"""Content encoding -> suffix of the compressed copy of a file, best first."""


def is_built() -> bool:
    return (BUILT / "index.html").is_file()


def is_page(address: str) -> bool:
    """Return whether the address is safe as a redirect target: a page of this app in every browser's interpretation."""
    path = address.partition("?")[0]
    plain = address.isascii() and address.isprintable() and not {"\\", " "}.intersection(address)
    return plain and path.startswith("/") and path.split("/")[1] in PAGES - {"", "answer", "login"} and ".." not in path


def is_there(path: str) -> bool:
    """Return whether a page or a file is at this path, given without its leading slash."""
    if path == "openapi.json" or path.split("/")[0] == "docs":
        return True
    return _is_shown(path) or (is_built() and path in built_files(BUILT, _built_at(BUILT)))


@router.get("/connected/{name}")
async def connected(request: Request) -> Response:
    """The page to which a service sends the browser after the login of a credential."""
    return app_page(request)


@router.get("/{path:path}")
async def page(request: Request, path: str) -> Response:
    """A file of the app or of the documentation, or the app itself."""
    if path == "openapi.json":
        return RedirectResponse(OPENAPI)
    if path == "docs" or path.startswith("docs/"):
        return documentation_page(request, path.removeprefix("docs"))
    if not is_built():
        if not _is_shown(path):
            raise HTTPException(404)
        return HTMLResponse(MISSING, status_code=200 if path == "" else 404, headers=dict(HEADERS))
    if path in built_files(BUILT, _built_at(BUILT)) and not path.endswith((".br", ".gz")):
        return _file(request, BUILT, path, HEADERS)
    if _is_shown(path):
        return _file(request, BUILT, "index.html", HEADERS)
    if path.split("/")[0] in PROGRAMS or "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(404)
    return _file(request, BUILT, "index.html", HEADERS, status=404)


def app_page(request: Request, *, policy: str = POLICY, status: int = 200) -> Response:
    """Return the app for a page that has a route of its own."""
    if not is_built():
        return HTMLResponse(MISSING, status_code=404, headers=dict(HEADERS))
    return _file(request, BUILT, "index.html", {"content-security-policy": policy}, status=status)


def api_page(request: Request) -> Response:
    """Return the API reference, or what to do if it is not built."""
    if is_built():
        return _file(request, BUILT, "api.html", HEADERS)
    return HTMLResponse(MISSING, status_code=404, headers=dict(HEADERS))


def documentation_page(request: Request, path: str) -> Response:
    """Return a file of the documentation site; a folder's index for the folder, which must end with a slash, so that
    relative links lead to the right pages."""
    if not (DOCUMENTATION / "index.html").is_file():
        return HTMLResponse(DOCUMENTATION_MISSING, status_code=404, headers=dict(HEADERS))
    built = _built_at(DOCUMENTATION)
    name = path.removeprefix("/")
    name += "index.html" if name.endswith("/") or not name else ""
    files = built_files(DOCUMENTATION, built)
    if not path or f"{name}/index.html" in files:
        return RedirectResponse(f"/docs{path}/")
    if name not in files:
        return HTMLResponse(NO_DOCUMENTATION_PAGE, status_code=404, headers=dict(HEADERS))
    return _file(request, DOCUMENTATION, name, documentation_headers(built))


@lru_cache(maxsize=1)
def documentation_headers(built: int) -> Mapping[str, str]:
    """Return the headers of all pages of the documentation, whose inline scripts are named by their hashes."""
    hashes = (DOCUMENTATION / "script-hashes.txt").read_text("utf-8").split()
    scripts = " ".join(["script-src 'self'", *(f"'sha256-{one}'" for one in hashes)])
    return {"content-security-policy": POLICY.replace("script-src 'self'", scripts)}


def _is_shown(path: str) -> bool:
    parts = path.split("/")
    return parts[0] in PAGES and not {".", ".."}.intersection(parts)


def _built_at(folder: Path) -> int:
    return (folder / "index.html").stat().st_mtime_ns


@lru_cache(maxsize=2)
def built_files(folder: Path, built: int) -> frozenset[str]:
    """Return the paths of all files of a build, listed once; a path outside the folder is never among them."""
    return frozenset(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


@lru_cache(maxsize=512)
def built_file(path: Path, built: int) -> bytes:
    """Return the content of a file, shared by all responses, so that slow clients do not multiply memory."""
    return path.read_bytes()


def _file(request: Request, folder: Path, name: str, headers: Mapping[str, str], *, status: int = 200) -> Response:
    kind, _ = guess_type(name)
    caching = "public, max-age=31536000, immutable" if name.startswith("assets/") else "no-cache"
    built = _built_at(folder)
    encoding = _encoding(request, folder, name, built)
    path = folder / f"{name}{ENCODINGS.get(encoding, '')}"
    etag = built_etag(path, built)
    sent = {**headers, "cache-control": caching, "vary": "accept-encoding", "etag": etag}
    if status == 200 and etag in (one.strip() for one in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=sent)
    if encoding:
        sent["content-encoding"] = encoding
    media_type = TYPES.get(Path(name).suffix, kind)
    return Response(built_file(path, built), status_code=status, media_type=media_type, headers=sent)


def _encoding(request: Request, folder: Path, name: str, built: int) -> str:
    """Return the best encoding that the client accepts and the build has; empty: none."""
    files = built_files(folder, built)
    accepted = accepted_encodings(request.headers.get("accept-encoding", ""))
    return next((one for one, end in ENCODINGS.items() if one in accepted and f"{name}{end}" in files), "")


def accepted_encodings(header: str) -> frozenset[str]:
    """Return the codings of an `Accept-Encoding` header, without those of weight 0."""
    accepted: set[str] = set()
    for one in header.lower().split(","):
        coding, _, weight = one.partition(";")
        if weight.replace(" ", "").rstrip("0").rstrip(".") not in ("q=", "q=0"):
            accepted.add(coding.strip())
    return frozenset(accepted)


@lru_cache(maxsize=512)
def built_etag(path: Path, built: int) -> str:
    """Return the ETag of a file in one encoding."""
    return f'"{sha256(built_file(path, built)).hexdigest()[:24]}"'
