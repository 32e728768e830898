"""Bodies: how much of one is read, and what is read as JSON.

    request ─▶ caller and role ─▶ limit of the operation ─▶ read ─▶ JSON: its cost ─▶ operation
               (`operation`)      (413 before it is read)           (400, in slices;
                                                                     decoded in a thread)

Until its operation raises the limit, a request may have a body of `STRANGER_BYTES`. What is not awaited is not read.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, cast

from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from pointsman.auth.rate_limiter import TooManyRequests
from pointsman.json_meter import LESS, VALUES_MAX, JsonMeter
from pointsman.server.middleware.security import READING, Refused
from pointsman.server.problems import is_json
from pointsman.values import Json, JsonObject
from pointsman.workflows.document_work import beside

BODY_BYTES_MAX: Final = 64_000_000
STRANGER_BYTES: Final = 64_000
"""Without a key."""
USUAL_BYTES: Final = 2_000_000
"""Of answers, control verbs and whatever else is not in the table."""
DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""As much as a workflow may have."""
UNCHECKED_BYTES_MAX: Final = 32_000_000
"""Bodies that a server holds in memory at once of requests that show no key."""
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
    "POST /api/webhooks/{path}",  # At most: the settings may say less.
)
_ANY: Final[tuple[str, ...]] = (
    "POST /api/workflows/{id}/execute",
    "POST /api/workflows/{id}/execute/files",
    "POST /api/workflows/executions/import",
    "POST /v1/chat/completions",
    "POST /v1/responses",
)
"""Their inputs hold files."""
BYTES_OF: Final[Mapping[str, int]] = {
    **dict.fromkeys(_DOCUMENTS, DOCUMENT_BYTES),
    **dict.fromkeys(_ANY, BODY_BYTES_MAX),
}


def bytes_for(route: APIRoute, *, asks: bool) -> int:
    """How large a body an operation takes. `asks`: for a key."""
    usual = USUAL_BYTES if asks else STRANGER_BYTES
    return max(BYTES_OF.get(f"{method} {route.path_format}", usual) for method in route.methods or ("GET",))


class RequestBody:
    """The ASGI `receive` of one request, within a limit."""

    def __init__(self, scope: Scope, receive: Receive, most: int) -> None:
        """`most`: the server's own limit, whatever an operation takes."""
        self._headers = Headers(scope=scope)
        self._is_read_only = scope["method"] in READING
        self._receive = receive
        self._most = most
        self._limit = min(STRANGER_BYTES, most)
        self._read = 0
        self._is_complete = False
        self._ready: list[Message] = []

    def allow(self, limit: int) -> None:
        """Set the limit. Raises `Refused` where the body says that it is larger."""
        self._limit = min(limit, self._most)
        length = self._headers.get("content-length", "")
        if length.isdigit() and int(length) > self._limit:
            raise self._too_large()

    async def check_json(self) -> None:
        """Read the body if it is JSON, and check what reading it as such would cost. Raises `Refused`."""
        if is_json(self._headers.get("content-type", "")):
            await self.measure_json()

    async def measure_json(self, values_max: int = VALUES_MAX, hint: str = LESS) -> None:
        """Read the body, and check what reading it as JSON would cost. Raises `Refused`."""
        if self._is_read_only:
            return
        chunks: list[bytes] = []
        while not self._is_complete:
            chunks.append((await self()).get("body", b""))
        body = b"".join(chunks)
        meter = JsonMeter(body, values_max)
        for _ in meter.slices():
            await asyncio.sleep(0)  # Others are served meanwhile.
        if meter.excess:
            raise _not_json(f"the body {meter.excess}", hint)
        self._ready.append({"type": "http.request", "body": body, "more_body": False})

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
            "Send where the data are, instead of the data.",
        )


def _not_json(detail: str, hint: str) -> Refused:
    return Refused(HTTPStatus.BAD_REQUEST, "body-invalid", detail, hint)


class JsonRequest(Request):
    """A request whose JSON has no key twice in one object: one of the two values would be lost without a word."""

    async def json(self) -> Json:
        """Raises `Refused`, and ValueError for what is no JSON."""
        body = await self.body()
        return await beside(len(body), lambda: cast("Json", json.loads(body, object_pairs_hook=_object)))


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _not_json(f"the key {twice[:100]!r} is there twice in one object", "Keep one of them.")
    return made


def body_of(scope: Scope) -> RequestBody:
    return cast("RequestBody", scope["state"][STATE])


class Unchecked:
    """How many bytes a server holds of bodies whose senders are not known yet."""

    def __init__(self, most: int = UNCHECKED_BYTES_MAX) -> None:
        self._most = most
        self._held = 0

    async def read(self, receive: Receive) -> bytes:
        """A whole body; the caller must `release` it. Raises `TooManyRequests` where others fill the memory."""
        chunks, taken = list[bytes](), 0
        try:
            while True:
                message = await receive()
                chunk = message.get("body", b"")
                self._held += len(chunk)
                taken += len(chunk)
                if self._held > self._most:
                    raise TooManyRequests(
                        "too many calls arrive at the same time", hint="Send it again.", retry_after_s=RETRY_S
                    )
                chunks.append(chunk)
                if not message.get("more_body"):
                    return b"".join(chunks)
        except BaseException:
            self._held -= taken
            raise

    def release(self, body: bytes) -> None:
        self._held -= len(body)
