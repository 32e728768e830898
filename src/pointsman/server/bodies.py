"""Request bodies: size limits, and the cost check of JSON.

    request ─▶ caller and role ─▶ limit of the operation ─▶ read ─▶ JSON cost check ─▶ operation
               (`operation`)      (413 before it is read)           (400, in slices;
                                                                     decoded in a thread)

Until the operation raises the limit, it is `STRANGER_BYTES`. A body is read only when the operation awaits it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, cast

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from pointsman.auth.rate_limiter import TooManyRequests
from pointsman.json_meter import LESS, VALUES_MAX, DuplicateKey, JsonMeter, unique_object
from pointsman.server.middleware import READING, Refused
from pointsman.server.problems import is_json
from pointsman.values import Json
from pointsman.workflows.document_work import beside

BODY_BYTES_MAX: Final = 64_000_000
STRANGER_BYTES: Final = 64_000
"""Limit until the caller is authenticated."""
USUAL_BYTES: Final = 2_000_000
"""Limit of operations that are not in `BYTES_OF`, such as answers and control operations."""
DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""The limit of a workflow document."""
UNCHECKED_BYTES_MAX: Final = 32_000_000
"""Total bytes of bodies of unauthenticated requests that a server holds in memory at once."""
RETRY_S: Final = 5.0
STATE: Final = "body"

_DOCUMENTS: Final[tuple[str, ...]] = (
    "POST /api/workflows",
    "PUT /api/workflows/{id}",
    "PATCH /api/workflows/{id}",
    "POST /api/workflows/check",
    "POST /api/workflows/convert",
    "POST /api/workflows/generate",
    "POST /api/workflows/{id}/edit",
    "POST /api/workflows/{id}/try",
    "POST /api/workflows/{id}/dry-run",
    "POST /api/workflows/executions/{eid}/move",
    "POST /api/workflows/executions/{eid}/replay",
    "POST /api/workflows/executions/{eid}/steer",
    "POST /api/workflows/executions/{eid}/fork",
    "POST /api/webhooks/{path}",  # Upper bound: the settings may set a lower limit.
)
_ANY: Final[tuple[str, ...]] = (
    "POST /api/workflows/{id}/execute",
    "POST /api/workflows/{id}/execute/files",
    "POST /api/workflows/executions/import",
    "POST /v1/chat/completions",
    "POST /v1/responses",
)
"""Operations whose inputs may contain files."""
BYTES_OF: Final[Mapping[str, int]] = {
    **dict.fromkeys(_DOCUMENTS, DOCUMENT_BYTES),
    **dict.fromkeys(_ANY, BODY_BYTES_MAX),
}


def bytes_for(route: APIRoute, *, asks: bool) -> int:
    """Return the body limit of an operation in bytes. `asks`: whether it requires a caller."""
    usual = USUAL_BYTES if asks else STRANGER_BYTES
    return max(BYTES_OF.get(f"{method} {route.path_format}", usual) for method in route.methods or ("GET",))


class RequestBody:
    """ASGI `receive` of one request, with a size limit."""

    def __init__(self, scope: Scope, receive: Receive, most: int) -> None:
        """`most`: limit of the server, an upper bound for every operation."""
        self._headers = Headers(scope=scope)
        self._is_read_only = scope["method"] in READING
        self._receive = receive
        self._most = most
        self._limit = min(STRANGER_BYTES, most)
        self._read = 0
        self._is_complete = False
        self._ready: list[Message] = []

    def allow(self, limit: int) -> None:
        """Set the limit. Raises `Refused` if `Content-Length` exceeds it."""
        self._limit = min(limit, self._most)
        length = self._headers.get("content-length", "")
        if length.isdigit() and int(length) > self._limit:
            raise self._too_large()

    async def check_json(self) -> None:
        """Call `measure_json` if the media type of the body is JSON. Raises `Refused`."""
        if is_json(self._headers.get("content-type", "")):
            await self.measure_json()

    async def measure_json(self, values_max: int = VALUES_MAX, hint: str = LESS) -> bytes:
        """Read the body, check what decoding it as JSON would cost, and return it. Raises `Refused`."""
        if self._is_read_only:
            return b""
        chunks: list[bytes] = []
        while not self._is_complete:
            chunks.append((await self()).get("body", b""))
        body = b"".join(chunks)
        meter = JsonMeter(body, values_max)
        for _ in meter.slices():
            await asyncio.sleep(0)  # Lets other requests run.
        if meter.excess:
            raise _not_json(f"the body {meter.excess}", hint)
        self._ready.append({"type": "http.request", "body": body, "more_body": False})
        return body

    async def __call__(self) -> Message:
        if self._ready:
            return self._ready.pop()
        message = await self._receive()
        if message["type"] == "http.disconnect":
            if not self._is_complete and not self._is_read_only:
                raise _not_json("the body ended before it was complete", "Send the request again.")
            return message
        self._read += len(message.get("body", b""))
        if self._read > self._limit:
            raise self._too_large()
        self._is_complete = not message.get("more_body", False)
        return message

    def _too_large(self) -> Refused:
        return Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "body-too-large",
            f"the body has more than {self._limit} bytes",
            "Send the address of the data instead of the data.",
        )


def _not_json(detail: str, hint: str) -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, "body-invalid", detail, hint)


class JsonRequest(Request):
    """Request that rejects JSON objects with a duplicate key, since one of the values would be lost silently."""

    async def json(self) -> Json:
        """Decode the body. Raises `Refused` for a duplicate key, and ValueError for invalid JSON."""
        body = await self.body()
        try:
            return await beside(len(body), lambda: cast("Json", json.loads(body, object_pairs_hook=unique_object)))
        except DuplicateKey as why:
            raise _not_json(str(why), "Keep one of them.") from None


def body_of(scope: Scope) -> RequestBody:
    return cast("RequestBody", scope["state"][STATE])


class Unchecked:
    """Memory limit for bodies of unauthenticated requests of one server."""

    def __init__(self, most: int = UNCHECKED_BYTES_MAX) -> None:
        self._most = most
        self._held = 0

    async def read(self, receive: Receive) -> bytes:
        """Read a whole body, which the caller must `release`. Raises `TooManyRequests` above the total limit."""
        chunks, taken = list[bytes](), 0
        try:
            while True:
                message = await receive()
                chunk = message.get("body", b"")
                self._held += len(chunk)
                taken += len(chunk)
                if self._held > self._most:
                    raise TooManyRequests(
                        "too many requests arrive at the same time", hint="Send it again.", retry_after_s=RETRY_S
                    )
                chunks.append(chunk)
                if not message.get("more_body"):
                    return b"".join(chunks)
        except BaseException:
            self._held -= taken
            raise

    def release(self, body: bytes) -> None:
        self._held -= len(body)
