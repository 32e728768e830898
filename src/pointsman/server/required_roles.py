"""Required roles of operations, read from the same dependencies that the server enforces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from pointsman.auth.callers import ROLES, Role
from pointsman.auth.verbs import VerbRule
from pointsman.server.context import RunsVerb, caller_of

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


def demands_of(route: APIRoute) -> list[RunsVerb]:
    """Return the role requirements of an operation."""
    return [call for call in _calls(route.dependant) if isinstance(call, RunsVerb)]


def verb_of(route: APIRoute) -> VerbRule | None:
    """Return the rule of the verb that an operation calls; None: it calls none."""
    return next((call.rule for call in _calls(route.dependant) if isinstance(call, RunsVerb)), None)


def asks_for_key(route: APIRoute) -> bool:
    """Return whether an operation requires an authenticated caller."""
    return caller_of in _calls(route.dependant)


def _calls(dependant: Dependant) -> Iterator[object]:
    for one in dependant.dependencies:
        yield one.call
        yield from _calls(one)
