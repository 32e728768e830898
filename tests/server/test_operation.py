"""Operations are found by path without analysis, and analysed once, on first use."""

from __future__ import annotations

from typing import cast

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Match, Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from pointsman.server.application import ROUTERS, api
from pointsman.server.operation import ApiRoute, Operations, RouteIndex


def two_operations() -> Operations:
    router = Operations(prefix="/things", tags=["tools"])

    async def read(name: str) -> dict[str, str]:
        """Read an object."""
        return {"name": name}

    router.get("/{name}")(read)
    router.delete("/{name}")(read)
    return router


def is_analysed(route: ApiRoute) -> bool:
    return "dependant" in vars(route)


def test_an_operation_is_analysed_on_its_first_use_and_only_once() -> None:
    read, delete = cast("list[ApiRoute]", two_operations().routes)
    assert (read.path_format, read.methods, read.is_at("/things/lamp")) == ("/things/{name}", {"GET"}, True)
    assert not is_analysed(read)
    first = read.dependant
    assert is_analysed(read)
    assert read.dependant is first
    assert read.unique_id == "tools_read"
    assert not is_analysed(delete)


def test_an_attribute_that_a_route_lacks_is_an_attribute_error() -> None:
    read, _ = cast("list[ApiRoute]", two_operations().routes)
    assert not hasattr(read, "nothing")
    with pytest.raises(AttributeError, match="nothing"):
        _ = read.nothing


def test_the_application_serves_the_operations_of_its_routers_themselves() -> None:
    routers: tuple[APIRouter, ...] = ROUTERS
    assert isinstance(api(), FastAPI)
    assert [id(route) for route in api().routes] == [id(route) for router in routers for route in router.routes]


def test_an_address_without_an_operation_causes_no_analysis() -> None:
    router = two_operations()
    reply = TestClient(FastAPI(routes=router.routes)).get("/elsewhere")
    assert reply.status_code == 404
    assert not any(is_analysed(route) for route in cast("list[ApiRoute]", router.routes))


@pytest.mark.parametrize(
    ("address", "operation"),
    [
        ("GET /api/workflows/executions/exec-1", "/api/workflows/executions/{eid}"),
        ("GET /api/workflows/executions/stream", "/api/workflows/executions/stream"),
        ("GET /api/workflows/letter", "/api/workflows/{id}"),
        ("DELETE /api/schedules/team/nightly", "/api/schedules/{sid:path}"),
        ("POST /v1/responses", "/v1/responses"),
        ("GET /health", "/health"),
    ],
)
async def test_a_request_reaches_the_operation_that_the_list_of_all_routes_has_for_it(
    address: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[str] = []
    tried: list[str] = []

    async def handle(route: Route, _: Scope, __: Receive, ___: Send) -> None:
        reached.append(route.path)

    def matches(route: ApiRoute, scope: Scope) -> tuple[Match, Scope]:
        tried.append(route.path)
        return found(route, scope)

    found = ApiRoute.matches
    monkeypatch.setattr(ApiRoute, "handle", handle)
    monkeypatch.setattr(ApiRoute, "matches", matches)
    method, _, path = address.partition(" ")
    scope: Scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
    await RouteIndex(api().router)(scope, nothing, ignored)
    by_index = len(tried)
    await api().router.app(scope, nothing, ignored)
    assert reached == [operation, operation]
    assert by_index <= len(tried) - by_index


async def test_a_request_tries_no_routes_of_other_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def matches(route: APIRoute, _: Scope) -> tuple[Match, Scope]:
        tried.append(route.path)
        return Match.NONE, {}

    async def left(_: Scope, __: Receive, ___: Send) -> None:
        others = [path for path in tried if path.startswith("/api/") and not path.startswith("/api/memory")]
        assert not others

    router = APIRouter(routes=api().routes)
    index = RouteIndex(router)
    monkeypatch.setattr(APIRoute, "matches", matches)
    monkeypatch.setattr(router, "app", left)
    await index({"type": "http", "method": "GET", "path": "/api/memory/user/value"}, nothing, ignored)
    assert tried


async def nothing() -> Message:
    return {"type": "http.request"}


async def ignored(_: Message) -> None:
    """Send nothing."""


async def test_the_values_of_a_request_are_not_dependencies_of_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI analyses each dependency again for every request."""
    read = next(route for route in api().routes if isinstance(route, ApiRoute) and route.name == "read")
    solved: list[int] = []

    def handler(route: APIRoute) -> object:
        solved.append(len(route.dependant.dependencies))
        return inner(route)

    inner = APIRoute.get_route_handler
    monkeypatch.setattr(APIRoute, "get_route_handler", handler)
    read.get_route_handler()
    assert solved == [0]
    assert len(read.dependant.dependencies) > 1
