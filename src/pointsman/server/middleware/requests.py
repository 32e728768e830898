"""Requests, from outside: each has an id, is timed, counted and logged when it is answered.

    request ─▶ id (its own, where it brings a good one) ─▶ gate, operations ─▶ counted by operation, logged

What is logged is who asked for what and what came of it. Queries and bodies are not: they may hold anything.
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
from pointsman.operations.metrics import Measures
from pointsman.values import JsonObject

ID: Final = "x-request-id"
GOOD_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
PATH_CHARS_MAX: Final = 200
SERVER_ERRORS: Final = 500
LOOKED_AFTER: Final = frozenset({"/health", "/ready", "/metrics"})
SECRET_PATHS: Final = frozenset({"/api/webhooks/{path}", "/api/webhooks/{path:path}"})
CLIENT_LEFT: Final = 499
"""It went before it was answered."""
STRANGERS: Final = LogThrottle(each=200, period_s=60.0)
"""Requests that showed no key: of each status so many lines in a minute."""


class RequestRecord(NamedTuple):
    """A request that is over."""

    id: str
    method: str
    path: str
    operation: str
    """The path as it is declared; empty: nothing is there."""
    status: int
    seconds: float
    caller: str


Heard: TypeAlias = Callable[[RequestRecord], None]


class Requests:
    """An ASGI application around another one."""

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


def counted(measures: Measures) -> Heard:
    """Counts requests by operation: paths as they are declared, so that ids make no labels."""
    labels = ("method", "operation", "status")
    requests = measures.counter("pointsman_http_requests", "Requests that were answered.", *labels)
    seconds = measures.histogram(
        "pointsman_http_request_seconds", "Requests: how long until the last byte.", "operation"
    )

    def heard(one: RequestRecord) -> None:
        method = one.method if one.method in METHODS else "other"
        operation = one.operation or "none"
        requests.add(1, method, operation, str(one.status))
        if not operation.endswith("/stream"):
            seconds.observe(one.seconds, operation)

    return heard


METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def logged(one: RequestRecord) -> None:
    """Logs a request: quietly those that look after the server all day long."""
    if one.status >= SERVER_ERRORS:
        weight = logging.ERROR
    else:
        weight = logging.DEBUG if one.operation in LOOKED_AFTER else logging.INFO
    fields: JsonObject = {
        "requestId": one.id,
        "method": one.method[:PATH_CHARS_MAX],
        # What stands in the address of a webhook opens it.
        "path": one.operation if one.operation in SECRET_PATHS else one.path[:PATH_CHARS_MAX],
        "status": one.status,
        "ms": round(one.seconds * 1000, 1),
        "caller": one.caller or None,
    }
    if one.caller:
        say(weight, "http.request", fields)
    else:
        STRANGERS.say(weight, "http.request", fields, kind=str(one.status))
