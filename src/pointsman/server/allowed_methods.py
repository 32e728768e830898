"""Which methods an address takes: the framework asks one route at a time, and an address is several of them.

nothing there ─▶ 404      something there, for other methods ─▶ 405, and `Allow` names them all
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.routing import Route

from pointsman.server import pages
from pointsman.server.operation import Operation

NOTHING_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


def methods_at(api: FastAPI, path: str) -> frozenset[str]:
    """What may be asked of an address, by any route."""
    routes = [*api.routes, *(route for router in api.state.routers for route in router.routes)]
    found = {
        method
        for route in routes
        if isinstance(route, Route) and route not in pages.router.routes and _is_at(route, path)
        for method in route.methods or ()
    }
    return frozenset(found | {"GET"} if pages.is_there(path.removeprefix("/")) else found)


def answered_by_address(api: FastAPI, method: str, path: str, why: HTTPException) -> HTTPException:
    """The same, where the framework found no operation: whether it is the address or the method that there is not."""
    if why.status_code not in NOTHING_THERE:
        return why
    allowed = methods_at(api, path)
    if not allowed:
        return HTTPException(HTTPStatus.NOT_FOUND, "there is nothing at this address")
    if method in allowed:
        return why
    said = f"this address does not take {method[:20]!r}"
    return HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, said, {"allow": ", ".join(sorted(allowed))})


def _is_at(route: Route, path: str) -> bool:
    return route.is_at(path) if isinstance(route, Operation) else bool(route.path_regex.match(path))
