"""An invalid body is refused with few problems, whatever its size."""

from __future__ import annotations

from typing import cast

import pytest
from pydantic import BaseModel, ValidationError

from pointsman.server.application import ROUTERS
from pointsman.server.schemas.requests import PROBLEMS_MAX
from pointsman.values import Json, JsonObject
from tests.server.conftest import Served

MANY = 20_000
PROBLEMS_OF_A_LIST_MAX = 2_100


def bodies() -> dict[str, type[BaseModel]]:
    """Return the models of all bodies, by name."""
    found: dict[str, type[BaseModel]] = {}
    for router in ROUTERS:
        for route in router.routes:
            field = getattr(route, "body_field", None)
            kinds = (
                []
                if field is None
                else [field.field_info.annotation, *getattr(field.field_info.annotation, "__args__", ())]
            )
            found |= {kind.__name__: kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)}
    return found


def problems_of(model: type[BaseModel], value: object) -> int:
    try:
        model.model_validate(value)
    except ValidationError as why:
        return why.error_count()
    return 0


@pytest.mark.parametrize("model", bodies().values(), ids=bodies())
def test_a_body_with_many_errors_reports_a_few_problems(model: type[BaseModel]) -> None:
    names = [one.alias or name for name, one in model.model_fields.items()]
    wrong: list[object] = [[object()] * MANY, {str(number): object() for number in range(MANY)}]
    for name in names:
        for value in wrong:
            assert problems_of(model, {name: value}) <= PROBLEMS_OF_A_LIST_MAX, name
    assert problems_of(model, {f"x{number}": 1 for number in range(MANY)}) <= PROBLEMS_MAX + len(names)


async def test_a_body_with_many_unknown_fields_gets_a_short_refusal(served: Served) -> None:
    body = cast("JsonObject", {f"x{number}": number for number in range(MANY)})
    reply = await served.client.post("/api/workflows/check", json={**body, "document": {}})
    assert reply.status_code == 422
    assert len(reply.json()["problems"]) == PROBLEMS_MAX


async def test_a_too_long_list_is_one_problem(served: Served) -> None:
    until: list[Json] = [*range(MANY)]
    await served.client.post("/api/workflows", json={"pointsman": 1, "id": "a", "nodes": [{"id": "n", "type": "end"}]})
    reply = await served.client.post("/api/workflows/a/try", json={"until": until})
    assert [one["code"] for one in reply.json()["problems"]] == ["too_long"]
