"""Operations of the API: who asks is found out before anything of the body is read.

head ─▶ key or login ─▶ role ─▶ limit of the body ─▶ body ─▶ parameters ─▶ the operation
        401, 403, 429           413                  400     422
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from pointsman.server.bodies import body_of, bytes_for
from pointsman.server.desk import BEARER, LOGIN, caller_of, desk_of
from pointsman.server.rights import asks_for_key, demands_of


class Operation(APIRoute):
    """One operation."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Raises `NotSignedIn`, `NotAllowed`, `TooManyRequests`, `Refused`, and what the operation raises."""
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
            return await answer(request)

        return admit


class Operations(APIRouter):
    """A router whose routes are operations."""

    def __init__(self, *, prefix: str = "", tags: list[str] | None = None) -> None:
        super().__init__(prefix=prefix, tags=[*(tags or ())], route_class=Operation)
