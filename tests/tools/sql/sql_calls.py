"""The `sql` tool as a registry calls it."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.sql.queries import DatabaseDescription
from pointsman.tools.sql.tool import SqlTool
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject


def asking(url: str, **bounds: object) -> ToolRegistry:
    described = DatabaseDescription.model_validate({"url": url, **bounds})
    return ToolRegistry([SqlTool({"shop": described}, resolved=lambda text: text)], plugins=False)


async def asked(registry: ToolRegistry, query: str, *parameters: Json) -> JsonObject:
    arguments: JsonObject = {"query": query, "parameters": [*parameters]}
    return cast("JsonObject", await registry.call(ToolCall(id="1", name="sql", arguments=arguments), key="k"))


async def refusal(registry: ToolRegistry, query: str, *parameters: Json) -> Failure:
    with pytest.raises(ToolFailed) as caught:
        await asked(registry, query, *parameters)
    return caught.value.failure
