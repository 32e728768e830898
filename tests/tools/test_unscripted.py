"""Unregistered tools with the scripted model."""

from __future__ import annotations

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.scripted import UnscriptedTools
from pointsman.tools.tool import ToolFailed
from pointsman.values import JsonObject
from pointsman.workflows.tools import calculator

FINDER: JsonObject = {
    "id": "finder",
    "nodes": [{"id": "search", "type": "agent", "config": {"prompt": "Find it.", "tools": ["find_table"]}}],
    "edges": [],
}


async def test_an_unregistered_tool_is_offered_and_its_call_is_refused() -> None:
    tools = UnscriptedTools(ToolRegistry([calculator], plugins=False))
    assert tools.find("find_table") is not None
    with pytest.raises(ToolFailed) as caught:
        await tools.call(ToolCall(id="1", name="find_table", arguments={}), key="k")
    assert caught.value.failure.code == "tool-not-scripted"


async def test_a_tool_of_the_installation_is_still_called() -> None:
    tools = UnscriptedTools(ToolRegistry([calculator], plugins=False))
    assert await tools.call(ToolCall(id="1", name="calculator", arguments={"expression": "2 * 3"}), key="k") == 6


async def test_a_workflow_with_an_unregistered_tool_runs_with_the_scripted_model() -> None:
    async with Pointsman("memory:", model="scripted", settings=Settings()) as app:
        checked = await app.check(Workflow.of(FINDER))
        assert [(one.code, one.severity) for one in checked.problems] == [("unknown-tool", "warning")]
        execution = await app.start(Workflow.of(FINDER))
        assert await execution.settled() == "completed"


async def test_a_real_model_with_an_unregistered_tool_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Pointsman("memory:", model="openai:gpt-5", settings=Settings()) as app:
        checked = await app.check(Workflow.of(FINDER))
        found = {one.code: one.severity for one in checked.problems}
        assert found == {"unknown-tool": "error", "model-unusable": "warning"}
        monkeypatch.setenv("OPENAI_API_KEY", "for-tests")
        checked = await app.check(Workflow.of(FINDER))
        assert [(one.code, one.severity) for one in checked.problems] == [("unknown-tool", "error")]
