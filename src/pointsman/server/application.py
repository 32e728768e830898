"""ASGI application: operations, error handlers, OpenAPI document. The caller opens and closes the installation.

The OpenAPI document has short operation ids, the schema of errors, and examples of all bodies, copied from the
models (`examples=[…]`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

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
from pointsman.server.context import BEARER, LOGIN, ContextMiddleware, ServerContext, note_refusal
from pointsman.server.mcp_transport import McpMiddleware
from pointsman.server.middleware import (
    OWN_NAMES,
    READING,
    RequestObserver,
    Requests,
    SecurityMiddleware,
    counted,
    http_refusal,
)
from pointsman.server.operation import ApiRoute, RouteIndex, asks_for_key, described, order_by_path
from pointsman.server.problems import JsonReply, validation_reply
from pointsman.server.routes import (
    access,
    agents,
    comments,
    control,
    designing,
    evaluations,
    executions,
    files,
    folders,
    history,
    logins,
    memory,
    models,
    openai,
    operations,
    pipeline,
    publications,
    responses,
    sessions,
    settings,
    templates,
    tool_connections,
    tools,
    triggers,
    workflows,
)
from pointsman.server.routes.openai import OpenAiErrorMiddleware, with_openai_errors
from pointsman.server.schemas.answers import refusal_of, refusals, view_schemas, with_code
from pointsman.server.schemas.requests import without_null_marks
from pointsman.server.streaming.broker import SseBroker
from pointsman.server.streaming.sse import WIRE
from pointsman.values import JsonObject
from pointsman.workflows.document_work import DOCUMENTS

CREDENTIALS: Final = (BEARER, LOGIN)
METHODS: Final = ("get", "put", "post", "delete", "patch")
TAGS: Final = {
    "workflows": "Saved workflows: save, check, compare and run them.",
    "executions": "Executions: list, read, follow, control and compare them.",
    "files": "Input files, artifacts, and export and import of executions.",
    "folders": "Folders of saved workflows, and who sees what lies in them.",
    "sessions": "Conversations.",
    "agents": "Reusable agents that many workflows can name.",
    "tools": "Tools and models.",
    "memory": "Memory of workflows and agents, by owner.",
    "templates": "Workflows that ship with the product, to try offline and to copy.",
    "comments": "Comments of people on workflows and executions, and mentions of the caller.",
    "evaluations": "Datasets, and runs of a workflow over their cases.",
    "triggers": "Schedules, webhooks and events, which start executions.",
    "notifications": "Notices to external addresses.",
    "publications": "Forms by which people without an account start workflows.",
    "people": "Open gates that wait for people.",
    "pipeline": "The pipeline: from a command to a document.",
    "access": "Keys, logins, roles, sharing, secrets and the audit log.",
    "openai": "Workflows as models, in the protocol and with the errors of OpenAI.",
    "operations": "Health, metrics, settings, usage and backups of the server.",
}
BEFORE: Final[dict[int, str]] = {
    400: "host-invalid",
    403: "origin-refused",
    408: "request-too-slow",
    414: "address-too-long",
    431: "head-too-large",
    503: "too-many-connections",
}
"""Error codes of refusals before routing, which every operation may answer, by status."""
Described = dict[str, Any]  # A part of the document; its type is recursive, and FastAPI uses the same.


def document_of(api: FastAPI) -> Described:
    """Build the document. Missing examples and descriptions raise no error; a test reports them."""
    made = get_openapi(
        title=api.title,
        version=api.version,
        description=api.description,
        routes=api.routes,
        license_info=api.license_info,
        tags=[{"name": name, "description": description} for name, description in TAGS.items()],
        servers=[{"url": "/", "description": "This server."}],
    )
    schemas = cast("dict[str, Described]", made.setdefault("components", {}).setdefault("schemas", {}))
    schemas.update(view_schemas())
    made["components"]["securitySchemes"] = {
        scheme.scheme_name: scheme.model.model_dump(mode="json", by_alias=True, exclude_none=True)
        for scheme in CREDENTIALS
    }
    made["components"]["responses"] = {code: refusal_of(code) for code in BEFORE.values()}
    made = cast("Described", without_null_marks(made))
    schemas = cast("dict[str, Described]", made["components"]["schemas"])
    for route in described(api.state.routers):
        for method in route.methods or ():
            _announce(made["paths"][route.path_format][method.lower()], route, method)
    for operation in operations_of(made):
        for content in _contents(operation):
            _exemplify(content, schemas)
    return made


def operations_of(document: Described) -> Iterator[Described]:
    """Iterate over all operations, in the order of the document."""
    for methods in cast("dict[str, dict[str, Described]]", document["paths"]).values():
        yield from (methods[method] for method in METHODS if method in methods)


def _announce(operation: Described, route: APIRoute, method: str) -> None:
    """Complete the errors of an operation: add those of the middleware, remove the impossible ones."""
    if asks_for_key(route):
        operation["security"] = [{scheme.scheme_name: []} for scheme in CREDENTIALS]
    for parameter in operation.get("parameters", ()):
        _drop_null(parameter["schema"])
    responses = cast("dict[str, Described]", operation["responses"])
    for status, code in BEFORE.items():
        documented = responses.get(str(status))
        if documented is None and status not in (400, 403):
            description = refusal_of(code)["description"]
            responses[str(status)] = {"$ref": f"#/components/responses/{code}", "description": description}
            continue
        responses[str(status)] = _announced(
            route, status, with_code(documented or refusals(status)[status], status, code)
        )
    if method not in READING:
        for status in (413, 507):
            responses.setdefault(str(status), _announced(route, status, refusals(status)[status]))
    if not operation.get("parameters") and "requestBody" not in operation:
        responses.pop("422", None)
    if route.body_field is None:  # It parses the raw body itself, or ignores it.
        responses.pop("415", None)
    operation["responses"] = dict(sorted(responses.items()))


def _announced(route: APIRoute, status: int, refusal: Described) -> Described:
    """Return a refusal in the format of the operation: a problem document, or an error of OpenAI."""
    shown = with_openai_errors({status: refusal})[status] if "openai" in route.tags else refusal
    return cast("Described", without_null_marks(shown))


def _drop_null(schema: Described) -> None:
    """Remove null from the schema of a parameter: an optional parameter is absent, never null."""
    options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        del schema["anyOf"]
        schema.update(options[0])
    elif options:
        schema["anyOf"] = options


def _contents(operation: Described) -> Iterator[Described]:
    """Iterate over the contents of the request body and the responses of an operation."""
    for part in (operation.get("requestBody", {}), *operation["responses"].values()):
        yield from cast("dict[str, Described]", cast("Described", part).get("content", {})).values()


def _exemplify(content: Described, schemas: dict[str, Described]) -> None:
    """Copy the example of the schema to a content without one."""
    if "example" in content or "examples" in content:
        return
    schema: Described = content["schema"]
    options: list[Described] = [schema, *schema.get("anyOf", ())]
    for option in options:
        component = schemas.get(str(option.get("$ref", "")).rpartition("/")[2])
        shown = (component or option).get("examples")
        if shown:
            content["example"] = shown[0]
            return


NOTHING_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


def methods_at(api: FastAPI, path: str) -> frozenset[str]:
    """Return the methods that the routes of a path accept."""
    methods = {
        method
        for route in api.routes
        if isinstance(route, Route) and route not in pages.router.routes and _is_at(route, path)
        for method in route.methods or ()
    }
    return frozenset(methods | {"GET"} if pages.is_there(path.removeprefix("/")) else methods)


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
    templates.router,
    comments.router,
    evaluations.router,
    agents.router,
    tools.router,
    settings.router,
    tool_connections.router,
    models.router,
    memory.router,
    sessions.router,
    triggers.router,
    triggers.notifications_router,
    triggers.links_router,
    folders.router,
    publications.router,
    publications.frames_router,
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


def mounted_application(app: Pointsman, *, is_local: bool = False) -> ASGIApp:
    """Return the HTTP API of an open app, to mount into another ASGI application under any path.

    `is_local`: callers without a key are administrators, as for a server on the loopback interface.
    """
    application = make_application(make_server_context(app, is_local=is_local))

    async def without_prefix(scope: Scope, receive: Receive, send: Send) -> None:
        prefix = str(scope.get("root_path", ""))
        path = str(scope.get("path", ""))
        if prefix and path.startswith(prefix):
            own = path.removeprefix(prefix) or "/"
            scope = {**scope, "path": own, "raw_path": quote(own).encode(), "root_path": ""}
        await application(scope, receive, send)

    return without_prefix


@cache
def api() -> FastAPI:
    """Return the FastAPI application; it does not depend on the server context. Cached, since creation is slow."""
    api = FastAPI(
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
    api.state.routers = ROUTERS
    order_by_path(route for router in ROUTERS for route in router.routes if isinstance(route, ApiRoute))
    api.router.middleware_stack = RouteIndex(api.router)
    api.add_exception_handler(PointsmanError, _refused)
    api.add_exception_handler(RequestValidationError, _validation_reply)
    api.add_exception_handler(HTTPException, _http)
    api.add_exception_handler(Exception, _unexpected)
    document = cache(partial(document_of, api))
    api.openapi = document
    return api


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
