"""ASGI application: operations, error handlers, OpenAPI document. The caller opens and closes the installation."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from functools import cache, partial
from http import HTTPStatus
from typing import Final, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from pointsman import Pointsman, PointsmanError, __version__
from pointsman.auth.keys import KEYS
from pointsman.auth.oidc_login import provider_of, tokens_of
from pointsman.auth.people import LOGINS, PEOPLE
from pointsman.auth.rate_limiter import LoginThrottle, RateLimiter, StreamQuota
from pointsman.auth.redaction import redactor_for
from pointsman.operations.metrics import Measuring
from pointsman.operations.readiness import Lifecycle
from pointsman.server import pages, problems
from pointsman.server.bodies import BODY_BYTES_MAX
from pointsman.server.context import ContextMiddleware, ServerContext, note_refusal
from pointsman.server.mcp_transport import McpMiddleware
from pointsman.server.middleware.security import (
    OWN_NAMES,
    RequestObserver,
    Requests,
    SecurityMiddleware,
    counted,
    http_refusal,
)
from pointsman.server.openapi_document import document_of
from pointsman.server.operation import ApiRoute, RouteIndex, order_by_path
from pointsman.server.problems import JsonReply, validation_reply
from pointsman.server.routes import (
    access,
    agents,
    control,
    designing,
    executions,
    files,
    history,
    logins,
    memory,
    openai,
    operations,
    pipeline,
    responses,
    sessions,
    tools,
    triggers,
    workflows,
)
from pointsman.server.routes.openai import OpenAiErrorMiddleware
from pointsman.server.streaming.broker import SseBroker
from pointsman.server.streaming.sse import WIRE
from pointsman.values import JsonObject
from pointsman.workflows.document_work import DOCUMENTS

NOTHING_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


def methods_at(api: FastAPI, path: str) -> frozenset[str]:
    """Return the methods that the routes of a path accept."""
    found = {
        method
        for route in api.routes
        if isinstance(route, Route) and route not in pages.router.routes and _is_at(route, path)
        for method in route.methods or ()
    }
    return frozenset(found | {"GET"} if pages.is_there(path.removeprefix("/")) else found)


def answered_by_address(api: FastAPI, method: str, path: str, why: HTTPException) -> HTTPException:
    """Return a 404 for an unknown path or a 405 for a method that the path does not accept; other errors unchanged."""
    if why.status_code not in NOTHING_THERE:
        return why
    allowed = methods_at(api, path)
    if not allowed:
        return HTTPException(HTTPStatus.NOT_FOUND, "there is nothing at this address")
    if method in allowed:
        return why
    message = f"method {method[:20]!r} is not allowed at this address"
    return HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, message, {"allow": ", ".join(sorted(allowed))})


def _is_at(route: Route, path: str) -> bool:
    return route.is_at(path) if isinstance(route, ApiRoute) else bool(route.path_regex.match(path))


JOBS: Final = ("pointsman.app", "pointsman.authoring.tools")
"""Modules that define document jobs; worker processes import them."""
DESCRIPTION: Final = "Declarative agentic workflows over HTTP: save them, run them, follow executions and answer gates."
ROUTERS: Final = (
    executions.router,
    files.router,
    control.router,
    control.people,
    history.router,
    workflows.router,
    designing.router,
    designing.formulas_router,
    agents.router,
    tools.router,
    memory.router,
    sessions.router,
    triggers.router,
    triggers.notifications_router,
    pipeline.router,
    openai.router,
    responses.router,
    access.router,
    logins.router,
    operations.router,
    operations.reference_router,
    pages.router,
)
"""The order matters: pages match every remaining path, so they are last."""


def make_server_context(app: Pointsman, *, is_local: bool, lifecycle: Lifecycle | None = None) -> ServerContext:
    """Create the server context for an open installation."""
    app.context[DOCUMENTS].use_workers(app.settings.documents, JOBS)
    access = app.settings.access
    tokens = tokens_of(app.settings, app.clock)
    broker, measuring = SseBroker(app.context, WIRE), Measuring(app.context)
    measuring.gauge("pointsman_streams", "Open event streams.").set_function(lambda: broker.subscribers)
    return ServerContext(
        app=app,
        keys=app.context[KEYS],
        logins=app.context[LOGINS],
        tokens=tokens,
        provider=provider_of(app.settings, tokens),
        known_people=app.context[PEOPLE],
        audit=app.audit,
        rate_limiter=RateLimiter(
            app.clock,
            per_s=access.requests_per_s,
            burst=access.burst,
            says=f"makes more than {access.requests_per_s:g} requests per second",
        ),
        stream_quota=StreamQuota(access.streams),
        login_throttle=LoginThrottle(app.clock, wrong_per_minute=access.wrong_keys_per_minute),
        webhook_rate_limiter=RateLimiter(
            app.clock,
            per_s=access.webhook_calls_per_minute / 60,
            burst=access.webhook_calls_per_minute,
            says=f"calls webhooks more than {access.webhook_calls_per_minute} times per minute",
        ),
        broker=broker,
        measuring=measuring,
        redact=redactor_for(app.settings),
        is_local=is_local,
        lifecycle=Lifecycle() if lifecycle is None else lifecycle,
    )


def make_application(
    server: ServerContext, *observers: RequestObserver, names: Iterable[str] = (), body_bytes_max: int = BODY_BYTES_MAX
) -> ASGIApp:
    """Wrap the API into all middleware.

    `names`: host names that the server answers to; empty: every name, or the loopback names if the server is local.
    `observers` are called after every completed request.
    """
    extra_names = frozenset(name.lower() for name in names)
    own = OWN_NAMES | extra_names if server.is_local or extra_names else None
    attended = ContextMiddleware(McpMiddleware(api(), server), server, body_bytes_max=body_bytes_max)
    gate = SecurityMiddleware(attended, names=own)
    return Requests(OpenAiErrorMiddleware(gate), counted(server.measuring), *observers)


@cache
def api() -> FastAPI:
    """Return the FastAPI application; it does not depend on the server context. Cached, since creation is slow."""
    made = FastAPI(
        title="Pointsman",
        version=__version__,
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        telemetry={"tracing": False, "metrics": False, "logs": False},  # `operations.otel` exports executions.
        routes=[route for router in ROUTERS for route in router.routes],  # `include_router` analyses each again.
    )
    made.state.routers = ROUTERS
    order_by_path(one for router in ROUTERS for one in router.routes if isinstance(one, ApiRoute))
    made.router.middleware_stack = RouteIndex(made.router)
    made.add_exception_handler(PointsmanError, _refused)
    made.add_exception_handler(RequestValidationError, _validation_reply)
    made.add_exception_handler(HTTPException, _http)
    made.add_exception_handler(Exception, _unexpected)
    document = cache(partial(document_of, made))
    made.openapi = document
    return made


def openapi_document() -> JsonObject:
    """Return a copy of the document of `/api/openapi.json`, without a running server."""
    return deepcopy(api().openapi())


async def _refused(request: Request, why: Exception) -> JsonReply:
    refusal = cast("PointsmanError", why)
    await note_refusal(request, refusal.code)
    return problems.refusal(refusal)


async def _validation_reply(request: Request, why: Exception) -> JsonReply:
    await note_refusal(request, "request-invalid")
    return validation_reply(cast("RequestValidationError", why), request)


async def _http(request: Request, why: Exception) -> JsonReply:
    http_error = answered_by_address(request.app, request.method, request.scope["path"], cast("HTTPException", why))
    code, reply = http_refusal(http_error)
    await note_refusal(request, code)
    return reply


async def _unexpected(_: Request, why: Exception) -> JsonReply:
    """Answer an unexpected error without its message, which may contain secrets."""
    return problems.problem(
        problems.HTTPStatus.INTERNAL_SERVER_ERROR,
        "engine-bug",
        f"an unexpected {type(why).__name__}",
        hint="This is a bug in Pointsman. The server's log contains the details; please report it.",
    )
