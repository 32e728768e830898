"""Operations of the API: the caller is authenticated before any of the body is read.

head ─▶ key or login ─▶ role ─▶ limit of the body ─▶ body ─▶ parameters ─▶ the operation
        401, 403, 429           413                  400     422
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from pointsman.server.bodies import JsonRequest, body_of, bytes_for
from pointsman.server.context import BEARER, LOGIN, caller_of, desk_of
from pointsman.server.required_roles import asks_for_key, demands_of

PARAMETER: Final = re.compile(r"\{[^}]*\}")


class ApiRoute(APIRoute):
    """Route of one operation. A URL that matches two path templates belongs to the more specific one, whatever the
    method: `executions` is not the id of a workflow."""

    rivals: tuple[ApiRoute, ...] = ()
    """Operations with more specific path templates that may match the same URL."""

    def is_at(self, address: str) -> bool:
        """Return whether this path belongs to the operation."""
        return bool(self.path_regex.match(address)) and not any(one.path_regex.match(address) for one in self.rivals)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found, child = super().matches(scope)
        if found != Match.NONE and not self.is_at(scope["path"]):
            return Match.NONE, {}
        return found, child

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that authenticates the caller and checks role and body before the operation runs.

        The handler raises `NotSignedIn`, `NotAllowed`, `TooManyRequests`, `Refused`, and what the operation raises.
        """
        answer = super().get_route_handler()
        asks, demands = asks_for_key(self), demands_of(self)
        limit = bytes_for(self, asks=asks)

        async def admit(request: Request) -> Response:
            if asks:
                caller = await caller_of(request, desk_of(request), await BEARER(request), await LOGIN(request))
                for demand in demands:
                    caller.must_have(demand.role, demand.what)
            body = body_of(request.scope)
            body.allow(limit)
            if asks or self.body_field is not None:
                await body.check_json()
            return await answer(JsonRequest(request.scope, request.receive))

        return admit


def order_by_path(operations: Iterable[ApiRoute]) -> None:
    """Set the `rivals` of each operation."""
    known = [*operations]
    samples = {one.path_format: PARAMETER.sub("x", one.path_format) for one in known}
    for one in known:
        one.rivals = tuple(
            other
            for other in known
            if other.path_format != one.path_format
            and one.path_regex.match(samples[other.path_format])
            and not other.path_regex.match(samples[one.path_format])
        )


class Operations(APIRouter):
    """Router whose routes are instances of `ApiRoute`."""

    def __init__(self, *, prefix: str = "", tags: list[str] | None = None) -> None:
        super().__init__(prefix=prefix, tags=[*(tags or ())], route_class=ApiRoute)
