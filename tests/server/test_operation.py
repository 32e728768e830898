"""Operations: found by path without analysis, and analysed once, on their first use."""

from __future__ import annotations

from typing import cast

import pytest
from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient

from pointsman.server.application import ROUTERS, api
from pointsman.server.operation import ApiRoute, Operations


def two_operations() -> Operations:
    router = Operations(prefix="/things", tags=["tools"])

    async def read(name: str) -> dict[str, str]:
        """Read a thing."""
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
