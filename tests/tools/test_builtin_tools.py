"""Built-in tools: those with outside access are off until the settings allow them, and name the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.engine.reports import ToolCall
from pointsman.models.script import Script
from pointsman.settings import Settings
from pointsman.tools.functions import tool
from pointsman.tools.tool import Tool, ToolFailed
from pointsman.values import Json, JsonObject
from pointsman.workflows.tool_verbs import list_tools

OFF: JsonObject = {
    "id": "off",
    "nodes": [{"id": "ask", "type": "tool", "config": {"tool": "sql", "parameters": {"query": "SELECT 1"}}}],
    "edges": [],
}


def installed(*tools: Tool, **settings: object) -> Pointsman:
    return Pointsman("memory:", settings=Settings.model_validate(settings), tools=tools)


async def test_a_disabled_tool_is_listed_with_the_setting_that_enables_it() -> None:
    async with installed() as app:
        listed = {one["name"]: one for one in await list_tools(app.context)}
    assert listed["calculator"]["enabled"] is True
    assert (listed["sql"]["enabled"], listed["sql"]["origin"]) == (False, "builtin")
    assert "[sql.NAME]" in str(listed["sql"]["off"])


async def test_the_check_refuses_a_disabled_tool() -> None:
    checked = await installed().check(Workflow.of(OFF))
    (problem,) = [one for one in checked.problems if one.severity == "error"]
    assert (problem.code, problem.pointer) == ("tool-disabled", "/nodes/0/config/tool")
    assert "[sql.NAME]" in problem.hint


async def test_a_call_of_a_disabled_tool_is_a_typed_failure() -> None:
    with pytest.raises(ToolFailed) as caught:
        await installed().tools.call(ToolCall(id="1", name="sql", arguments={"query": "SELECT 1"}), key="k")
    assert (caught.value.failure.code, caught.value.failure.retryable) == ("tool-disabled", False)


@pytest.mark.integration
async def test_a_database_in_the_settings_enables_sql(tmp_path: Path) -> None:
    import sqlite3

    sqlite3.connect(tmp_path / "shop.db").close()
    async with installed(sql={"shop": {"url": f"sqlite:///{tmp_path}/shop.db"}}) as app:
        execution = await app.start(Workflow.of(OFF))
        assert await execution.output() == {"columns": ["1"], "rows": [[1]]}


async def test_other_tools_of_the_name_take_precedence_over_a_built_in_one() -> None:
    @tool(name="sql")
    async def own(query: str) -> str:
        """Mine."""
        return f"mine: {query}"

    async with installed(own) as app:
        assert await (await app.start(Workflow.of(OFF))).output() == "mine: SELECT 1"
    script = Script(tools={"sql": {"result": "scripted"}})
    async with Pointsman("memory:", settings=Settings(), script=script) as app:
        assert await (await app.start(Workflow.of(OFF))).output() == "scripted"
        assert app.tools.origin("sql") == "scripted"


@pytest.mark.parametrize(
    ("execution", "condition", "severity"),
    [
        ({}, None, "error"),
        ({"errorHandler": "continue"}, None, "note"),
        ({"errorHandler": "fail"}, None, "error"),
        ({}, {"type": "error"}, "note"),
        ({}, {"type": "error", "codes": ["tool-disabled"]}, "note"),
        ({}, {"type": "error", "codes": ["mail-refused"]}, "error"),
        ({}, {"type": "default"}, "error"),
    ],
)
async def test_a_disabled_tool_with_a_fallback_is_only_a_note(
    execution: JsonObject, condition: Json, severity: str
) -> None:
    node: JsonObject = {"id": "a", "type": "tool", "config": {"tool": "send_email"}, "execution": execution}
    edges: list[Json] = [] if condition is None else [{"source": "a", "target": "b", "condition": condition}]
    document: JsonObject = {"id": "off", "nodes": [node, {"id": "b", "type": "end"}], "edges": edges}
    checked = await Pointsman("memory:").check(Workflow.of(document))
    assert [one.severity for one in checked.problems if one.code == "tool-disabled"] == [severity]
