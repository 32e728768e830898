"""Operations of the API: the caller is authenticated before any of the body is read.

head ─▶ key or login ─▶ role ─▶ limit of the body ─▶ body ─▶ parameters ─▶ the operation
        401, 403, 429           413                  400     422
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from typing import Any, Final, TypeAlias

from fastapi import APIRouter, Depends, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.routing import Match, Route, Router, compile_path
from starlette.types import Receive, Scope, Send

from pointsman.auth.callers import ROLES, Role
from pointsman.auth.verbs import VerbRule, rule_of
from pointsman.server.bodies import JsonRequest, body_of, bytes_for
from pointsman.server.context import (
    RULE,
    VerbDependency,
    current_caller,
    current_server,
    current_session,
    open_session,
)

PARAMETER: Final = re.compile(r"\{[^}]*\}")


class LazyRoute(APIRoute):
    """Route that FastAPI analyses on its first use: the analysis of all operations would take a sixth of the start of a
    server."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **declared: Any) -> None:
        """Set what finds the route; `declared` are the other arguments of `APIRoute`."""
        self._declared: Callable[[], None] | None = partial(super().__init__, path, endpoint, **declared)
        self.path, self.endpoint = path, endpoint
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = {*declared["methods"]}
        self.include_in_schema = declared["include_in_schema"]

    def __getattr__(self, name: str) -> Any:
        """Analyse the operation when an attribute is missing: it is one that `APIRoute` sets."""
        analyse = vars(self).get("_declared")
        if analyse is None:
            raise AttributeError(name, name=name, obj=self)
        self._declared = None
        analyse()
        return getattr(self, name)


class ApiRoute(LazyRoute):
    """Route of one operation. A URL that matches two path templates belongs to the more specific one, whatever the
    method: `executions` is not the id of a workflow."""

    rivals: tuple[ApiRoute, ...] = ()
    """Operations with more specific path templates that may match the same URL."""

    def is_at(self, address: str) -> bool:
        """Return whether this path belongs to the operation."""
        return bool(self.path_regex.match(address)) and not any(
            rival.path_regex.match(address) for rival in self.rivals
        )

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match != Match.NONE and not self.is_at(scope["path"]):
            return Match.NONE, {}
        return match, child

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that authenticates the caller and checks role and body before the operation runs.

        The handler raises `NotSignedIn`, `NotAllowed`, `TooManyRequests`, `Refused`, and what the operation raises.
        """
        asks, demands, rule = asks_for_key(self), demands_of(self), verb_of(self)
        declared = self.dependant
        self.dependant = _with_request_values(declared)
        answer = super().get_route_handler()
        self.dependant = declared
        limit = bytes_for(self, asks=asks)

        async def admit(request: Request) -> Response:
            if rule is not None:
                request.scope["state"][RULE] = rule
            if asks:
                caller = await open_session(request)
                for demand in demands:
                    caller.must_have(demand.role, demand.what)
            body = body_of(request.scope)
            body.allow(limit)
            if asks or self.body_field is not None:
                await body.check_json()
            return await answer(JsonRequest(request.scope, request.receive))

        return admit


def _with_request_values(declared: Dependant) -> Dependant:
    """Return the dependencies of an operation, without those that need only the request. The operation gets their
    values here: FastAPI would analyse each of them again for every request."""
    fields = [
        dependency
        for dependency in declared.dependencies
        if isinstance(dependency.call, VerbDependency) or dependency.call in OF_REQUEST
    ]
    dependencies = [(field.name, field.call) for field in fields if field.name is not None and field.call is not None]
    operation, name = declared.call, declared.request_param_name or "_request"
    assert operation is not None, "an operation has a function"

    @wraps(operation)
    async def call(**values: Any) -> Any:
        request = values[name] if declared.request_param_name else values.pop(name)
        for one, value_of in dependencies:
            values[one] = await value_of(request)
        return await operation(**values)

    others = [dependency for dependency in declared.dependencies if dependency not in fields]
    return replace(declared, call=call, request_param_name=name, dependencies=others)


def order_by_path(operations: Iterable[ApiRoute]) -> None:
    """Set the `rivals` of each operation."""
    operations_before = [*operations]
    samples = {one.path_format: PARAMETER.sub("x", one.path_format) for one in operations_before}
    for one in operations_before:
        one.rivals = tuple(
            other
            for other in operations_before
            if other.path_format != one.path_format
            and one.path_regex.match(samples[other.path_format])
            and not other.path_regex.match(samples[one.path_format])
        )


class RouteIndex:
    """ASGI application in front of a router: looks up the routes of a request by its method and the first parts of its
    path, instead of trying all routes. Requests that no route accepts are left to the router."""

    def __init__(self, router: Router) -> None:
        self._router = router
        routes = [(route, _keys_of(route)) for route in router.routes if isinstance(route, Route)]
        self._found: Mapping[RouteKey, Sequence[Route]] = {
            key: [route for route, own in routes if not own or key in own] for _, keys in routes for key in keys
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for route in self._found.get((scope["method"], *_first_parts(scope["path"])), ()):
                match, child = route.matches(scope)
                if match is Match.FULL:
                    scope.update(child)
                    await route.handle(scope, receive, send)
                    return
        await self._router.app(scope, receive, send)


RouteKey: TypeAlias = tuple[str, ...]
"""Method and first parts of the path."""
LITERAL_PARTS: Final = 2


def _keys_of(route: Route) -> list[RouteKey]:
    """Return the keys of the requests that a route may accept. Empty: the first parts of its path are not fixed."""
    parts = _first_parts(route.path_format)
    fixed = len(parts) == LITERAL_PARTS and not any("{" in part for part in parts)
    return [(method, *parts) for method in route.methods or ()] if fixed else []


def _first_parts(path: str) -> list[str]:
    return path.split("/", LITERAL_PARTS + 1)[1 : LITERAL_PARTS + 1]


def operation_id(route: APIRoute) -> str:
    """Return `tag_verb`, the method name in generated clients."""
    tag = str(route.tags[0]) if route.tags else "api"
    return f"{tag}_{route.name.strip('_')}"


Verb = Callable[..., Coroutine[Any, Any, Any]]


class Operations(APIRouter):
    """Router whose routes are instances of `ApiRoute`.

    An operation that calls a verb names it: `@router.post("/cancel", verb=ExecutionVerbs.cancel)`. Its role check and
    its documented role are those of the verb.
    """

    def __init__(self, *, prefix: str = "", tags: list[str] | None = None) -> None:
        super().__init__(
            prefix=prefix, tags=[*(tags or ())], route_class=ApiRoute, generate_unique_id_function=operation_id
        )

    def get(self, path: str, *, verb: Verb | None = None, **options: Any) -> Callable[[Verb], Verb]:
        return super().get(path, **_for_verb(verb, options))

    def put(self, path: str, *, verb: Verb | None = None, **options: Any) -> Callable[[Verb], Verb]:
        return super().put(path, **_for_verb(verb, options))

    def post(self, path: str, *, verb: Verb | None = None, **options: Any) -> Callable[[Verb], Verb]:
        return super().post(path, **_for_verb(verb, options))

    def delete(self, path: str, *, verb: Verb | None = None, **options: Any) -> Callable[[Verb], Verb]:
        return super().delete(path, **_for_verb(verb, options))

    def patch(self, path: str, *, verb: Verb | None = None, **options: Any) -> Callable[[Verb], Verb]:
        return super().patch(path, **_for_verb(verb, options))


def _for_verb(verb: Verb | None, options: dict[str, Any]) -> dict[str, Any]:
    if verb is None:
        return options
    return {**options, "dependencies": [*options.get("dependencies", ()), Depends(VerbDependency(rule_of(verb)))]}


ASK_THEMSELVES: Final[dict[str, Role]] = {"/metrics": "admin"}
"""Roles that operations check themselves: a scraper may send the key of the setting `metrics` instead."""


def described(routers: Iterable[APIRouter]) -> Iterator[APIRoute]:
    """Iterate over the operations in the OpenAPI document."""
    for route in (route for router in routers for route in router.routes):
        if isinstance(route, APIRoute) and route.include_in_schema:
            yield route


def least_of(route: APIRoute) -> Role | None:
    """Return the lowest sufficient role; None: no key is needed, or the operation authenticates by itself."""
    roles: list[Role] = [demand.role for demand in demands_of(route)]
    if roles:
        return sorted(roles, key=ROLES.index)[-1]
    return "viewer" if asks_for_key(route) else ASK_THEMSELVES.get(route.path)


def demands_of(route: APIRoute) -> list[VerbDependency]:
    """Return the role requirements of an operation."""
    return [call for call in _calls(route.dependant) if isinstance(call, VerbDependency)]


def verb_of(route: APIRoute) -> VerbRule | None:
    """Return the rule of the verb that an operation calls; None: it calls none."""
    return next((call.rule for call in _calls(route.dependant) if isinstance(call, VerbDependency)), None)


def asks_for_key(route: APIRoute) -> bool:
    """Return whether an operation requires an authenticated caller."""
    return any(call in KNOW_CALLER or isinstance(call, VerbDependency) for call in _calls(route.dependant))


KNOW_CALLER: Final[tuple[object, ...]] = (current_caller, current_session)
"""Dependencies that need an authenticated caller."""
OF_REQUEST: Final[tuple[object, ...]] = (current_server, *KNOW_CALLER)
"""Dependencies that need only the request."""


def _calls(dependant: Dependant) -> Iterator[object]:
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _calls(dependency)
