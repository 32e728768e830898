"""Which role an operation takes: read off the operation itself, which is what the server goes by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from pointsman.auth.callers import ROLES, Role
from pointsman.server.context import Must, caller_of

ASK_THEMSELVES: Final[dict[str, Role]] = {"/metrics": "admin"}
"""A scraper is let in without a key where the settings say so."""


def described(routers: Iterable[APIRouter]) -> Iterator[APIRoute]:
    """The operations of the API, without what is only there for browsers."""
    for route in (route for router in routers for route in router.routes):
        if isinstance(route, APIRoute) and route.include_in_schema:
            yield route


def least_of(route: APIRoute) -> Role | None:
    """The least role that it takes; None: it asks nobody, or looks for itself."""
    roles: list[Role] = [demand.role for demand in demands_of(route)]
    if roles:
        return sorted(roles, key=ROLES.index)[-1]
    return "viewer" if asks_for_key(route) else ASK_THEMSELVES.get(route.path)


def demands_of(route: APIRoute) -> list[Must]:
    """The roles that it demands of its caller."""
    return [call for call in _calls(route.dependant) if isinstance(call, Must)]


def asks_for_key(route: APIRoute) -> bool:
    """Whether it is for known callers only."""
    return caller_of in _calls(route.dependant)


def _calls(dependant: Dependant) -> Iterator[object]:
    for one in dependant.dependencies:
        yield one.call
        yield from _calls(one)
