"""Middleware: ids and logs of requests, checks of `Host` and `Origin`, and security headers of responses.

A server without keys listens on loopback only, but any web page in a browser on this machine can call it. The server
therefore answers only to its own names (against DNS rebinding), and refuses changes by pages of other origins.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointsman.operations.logs import LogThrottle, log_event
from pointsman.operations.metrics import Measuring
from pointsman.server.problems import JsonReply, problem
from pointsman.values import JsonObject

ID: Final = "x-request-id"
GOOD_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
PATH_CHARS_MAX: Final = 200
SERVER_ERRORS: Final = 500
LOOKED_AFTER: Final = frozenset({"/health", "/ready", "/metrics"})
SECRET_PATHS: Final = frozenset(
    {"/api/webhooks/{path}", "/api/webhooks/{path:path}", "/form/{token}", "/embed/{token}"}
    | {"/api/published/{token}", "/api/published/{token}/runs", "/api/published/{token}/runs/{run}"}
)
CLIENT_LEFT: Final = 499
"""Logged status if the client disconnected before the answer."""
UNAUTHENTICATED: Final = LogThrottle(each=200, period_s=60.0)
"""Limits the log lines of requests without a caller: 200 per status and minute."""


class RequestRecord(NamedTuple):
    """Completed request, as it is counted and logged."""

    id: str
    method: str
    path: str
    operation: str
    """Path template of the route; empty: no route matched."""
    status: int
    seconds: float
    caller: str


RequestObserver: TypeAlias = Callable[[RequestRecord], None]


class Requests:
    """ASGI middleware that calls each of `observers` after every request."""

    def __init__(self, app: ASGIApp, *observers: RequestObserver) -> None:
        self._app = app
        self._observers = observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        header = Headers(scope=scope).get(ID, "")
        name = header if GOOD_ID.fullmatch(header) else secrets.token_hex(8)
        begin, status = time.perf_counter(), CLIENT_LEFT
        state = scope.setdefault("state", {})
        state["request_id"] = name

        async def named_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[ID] = name
            await send(message)

        try:
            await self._app(scope, receive, named_send)
        finally:
            route = scope.get("route")
            took = time.perf_counter() - begin
            operation, caller = getattr(route, "path", ""), state.get("caller", "")
            answered = RequestRecord(name, scope["method"], scope["path"], operation, status, took, caller)
            for observer in self._observers:
                observer(answered)


def counted(measures: Measuring) -> RequestObserver:
    """Return a callback that counts requests by path template, so that ids do not become labels."""
    labels = ("method", "operation", "status")
    requests = measures.counter("pointsman_http_requests", "Requests that were answered.", *labels)
    seconds = measures.histogram("pointsman_http_request_seconds", "Duration until the last byte.", "operation")
    # As few as there are series; `labels` would check and lock for each request.
    count_of = cache(requests.labels)
    seconds_of = cache(seconds.labels)

    def observer(record: RequestRecord) -> None:
        method = record.method if record.method in METHODS else "other"
        operation = record.operation or "none"
        count_of(method, operation, str(record.status)).inc()
        if not operation.endswith("/stream"):
            seconds_of(operation).observe(record.seconds)

    return observer


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def logged(record: RequestRecord) -> None:
    """Log a request; successful health checks and scrapes only at debug level."""
    if record.status >= SERVER_ERRORS:
        weight = logging.ERROR
    else:
        weight = logging.DEBUG if record.operation in LOOKED_AFTER else logging.INFO
    fields: JsonObject = {
        "requestId": record.id,
        "method": record.method[:PATH_CHARS_MAX],
        # The addresses of webhooks and of published forms contain secrets.
        "path": record.operation if record.operation in SECRET_PATHS else record.path[:PATH_CHARS_MAX],
        "status": record.status,
        "ms": round(record.seconds * 1000, 1),
        "caller": record.caller or None,
    }
    if record.caller:
        log_event(weight, "http.request", fields)
    else:
        UNAUTHENTICATED.say(weight, "http.request", fields, kind=str(record.status))


OWN_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
"""Accepts no userinfo, path, spaces or non-ASCII letters."""
PORT_MAX: Final = 65_535
PORT: Final = re.compile(r":[0-9]+$")
USUAL_PORTS: Final[Mapping[str, str]] = {"http": ":80", "https": ":443"}
PART_BYTES: Final = 65_536
"""Largest part of a response body that is written at once, in bytes."""
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY: Final = b"content-security-policy"
FRAMES: Final = b"x-frame-options"
FRAMED: Final = b"frame-ancestors http"
"""In the policy of a page that other sites may contain in a frame."""
SAFE: Final[tuple[tuple[bytes, bytes], ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Default headers, for data; pages set their own content security policy."""
SAYS: Final[Mapping[int, str]] = {404: "not-found", 405: "method-refused", 415: "media-type-refused"}
"""Error codes of HTTP exceptions of the framework, by status; `body-invalid` for the others."""
HINTS: Final[Mapping[int, str]] = {
    404: "/api/docs lists every address.",
    405: "The header `Allow` names the methods that it takes.",
}


class Refused(HTTPException):
    """Error of a request whose rest is not read."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, hint: str) -> None:
        # Closing the connection avoids waiting for the rest of the body.
        super().__init__(status, detail, headers={"connection": "close"})
        self.code, self.hint = code, hint


def refused(why: Refused) -> JsonReply:
    """Return the problem document of the error."""
    return problem(
        HTTPStatus(why.status_code), why.code, str(why.detail), hint=why.hint, headers=dict(why.headers or {})
    )


def http_refusal(why: HTTPException) -> tuple[str, JsonReply]:
    """Return the code and the problem document of an HTTP exception, also of one that the framework raised."""
    if isinstance(why, Refused):
        return why.code, refused(why)
    status = HTTPStatus(why.status_code)
    code = SAYS.get(status, "body-invalid")
    message = "the body cannot be read" if status == HTTPStatus.BAD_REQUEST else str(why.detail)
    return code, problem(status, code, message, hint=HINTS.get(status, ""), headers=dict(why.headers or {}))


class SecurityMiddleware:
    """ASGI middleware that refuses foreign hosts and origins, adds headers, and splits large bodies."""

    def __init__(self, app: ASGIApp, *, names: frozenset[str] | None = None) -> None:
        """`names`: host names that the server answers to; None: all."""
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                names = {name for name, _ in headers}
                if any(name == POLICY and FRAMED in value for name, value in headers):
                    names.add(FRAMES)  # The older header would forbid every frame.
                message["headers"] = headers + [pair for pair in SAFE if pair[0] not in names]
            for part in _parts_of(message):
                await send(part)

        try:
            self._check(str(scope["method"]), Headers(scope=scope))
        except Refused as why:
            await refused(why)(scope, receive, guarded_send)
        else:
            await self._app(scope, receive, guarded_send)

    def _check(self, method: str, headers: Headers) -> None:
        host = _host_of(headers)
        if self._names is not None and PORT.sub("", host).strip("[]") not in self._names:
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "origin-refused",
                f"this server is not configured for the host name {host[:100]!r}",
                "Use localhost. To serve other machines, create a key and set `names` under [server] in the settings.",
            )
        if method not in READING:
            self._check_origin(headers, host)

    def _check_origin(self, headers: Headers, host: str) -> None:
        """Accept a change only from a program or a page of this server. Raises `Refused`."""
        origins, site = headers.getlist("origin"), headers.get("sec-fetch-site", "none")
        if any(_authority_of(origin) != host for origin in origins) or site not in ("none", "same-origin"):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "origin-refused",
                f"pages of {(origins[0] if origins else 'elsewhere')[:100]!r} are not allowed to change "
                "anything on this server",
                "Send the request from a program, or from a page of this server.",
            )


def _host_of(headers: Headers) -> str:
    """Return the `Host` header (name and port) in lower case. Raises `Refused` if it is missing or invalid."""
    hosts = headers.getlist("host")
    if len(hosts) == 1 and (match := HOST.fullmatch(hosts[0])) and int(match[1] or 0) <= PORT_MAX:
        return hosts[0].lower()
    raise Refused(
        HTTPStatus.BAD_REQUEST,
        "host-invalid",
        f"the header `Host` is {', '.join(hosts)[:100]!r}" if hosts else "the header `Host` is missing",
        "Send one `Host` header: the name or address of the server, and its port unless it is the default one.",
    )


def _authority_of(origin: str) -> str:
    """Return the authority of an origin in the form of `Host`; empty: the origin is opaque or invalid."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    return parts.netloc.lower().removesuffix(USUAL_PORTS.get(parts.scheme, ""))


def _parts_of(message: Message) -> Iterator[Message]:
    """Split a large body into parts, so that a slow client does not make the server buffer all of it."""
    body = message.get("body", b"")
    if message["type"] != "http.response.body" or len(body) <= PART_BYTES:
        yield message
        return
    last = (len(body) - 1) // PART_BYTES * PART_BYTES
    for begin in range(0, last, PART_BYTES):
        yield {**message, "body": body[begin : begin + PART_BYTES], "more_body": True}
    yield {**message, "body": body[last:]}
