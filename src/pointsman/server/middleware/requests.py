"""Outermost middleware: gives each request an id; times, counts and logs it when it is answered.

    request ─▶ id (the client's, if valid) ─▶ security middleware, operations ─▶ counted by operation, logged

The log has caller, method, path and status, but neither queries nor bodies, which may contain secrets.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointsman.operations.logs import LogThrottle, say
from pointsman.operations.metrics import Measuring
from pointsman.values import JsonObject

ID: Final = "x-request-id"
GOOD_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
PATH_CHARS_MAX: Final = 200
SERVER_ERRORS: Final = 500
LOOKED_AFTER: Final = frozenset({"/health", "/ready", "/metrics"})
SECRET_PATHS: Final = frozenset({"/api/webhooks/{path}", "/api/webhooks/{path:path}"})
CLIENT_LEFT: Final = 499
"""Logged status if the client disconnected before the answer."""
STRANGERS: Final = LogThrottle(each=200, period_s=60.0)
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


Heard: TypeAlias = Callable[[RequestRecord], None]


class Requests:
    """ASGI middleware that calls each of `heard` after every request."""

    def __init__(self, app: ASGIApp, *heard: Heard) -> None:
        self._app = app
        self._heard = heard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        brought = Headers(scope=scope).get(ID, "")
        name = brought if GOOD_ID.fullmatch(brought) else secrets.token_hex(8)
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
            for heard in self._heard:
                heard(answered)


def counted(measures: Measuring) -> Heard:
    """Return a callback that counts requests by path template, so that ids do not become labels."""
    labels = ("method", "operation", "status")
    requests = measures.counter("pointsman_http_requests", "Requests that were answered.", *labels)
    seconds = measures.histogram("pointsman_http_request_seconds", "Duration until the last byte.", "operation")

    def heard(one: RequestRecord) -> None:
        method = one.method if one.method in METHODS else "other"
        operation = one.operation or "none"
        requests.labels(method, operation, str(one.status)).inc()
        if not operation.endswith("/stream"):
            seconds.labels(operation).observe(one.seconds)

    return heard


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def logged(one: RequestRecord) -> None:
    """Log a request; successful health checks and scrapes only at debug level."""
    if one.status >= SERVER_ERRORS:
        weight = logging.ERROR
    else:
        weight = logging.DEBUG if one.operation in LOOKED_AFTER else logging.INFO
    fields: JsonObject = {
        "requestId": one.id,
        "method": one.method[:PATH_CHARS_MAX],
        # The address of a webhook contains its secret.
        "path": one.operation if one.operation in SECRET_PATHS else one.path[:PATH_CHARS_MAX],
        "status": one.status,
        "ms": round(one.seconds * 1000, 1),
        "caller": one.caller or None,
    }
    if one.caller:
        say(weight, "http.request", fields)
    else:
        STRANGERS.say(weight, "http.request", fields, kind=str(one.status))
