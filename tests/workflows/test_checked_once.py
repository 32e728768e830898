"""A workflow is checked once for each state of the installation on which its check depends."""

from __future__ import annotations

import pytest

from pointsman.app import Workflow
from pointsman.definition.problems import WorkflowInvalid
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from pointsman.workflows import definitions
from pointsman.workflows.checking import CheckFacts, CheckResult, check_workflow
from tests.scenarios import installation, written

CALL: JsonObject = {"id": "a", "type": "tool", "config": {"tool": "add_one", "parameters": {"number": 1}}}


@tool
async def add_one(number: int) -> int:
    """Add one."""
    return number + 1


@tool(name="add_one")
async def add_to_text(text: str) -> str:
    """Add to a text."""
    return text


@tool
async def same_text(text: str) -> str:
    """Return the text."""
    return text


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the ids of the checked workflows."""
    found: list[str] = []

    def counted(source: Workflow, facts: CheckFacts) -> CheckResult:
        found.append(source.name)
        return check_workflow(source, facts)

    monkeypatch.setattr(definitions, "check_workflow", counted)
    return found


async def test_a_second_start_of_a_workflow_does_not_check_it_again(checks: list[str]) -> None:
    source = written({"id": "sum", "nodes": [CALL], "edges": []})
    async with installation(tools=(add_one,)) as app:
        for _ in range(3):
            execution = await app.start(source)
            assert await execution.settled() == "completed"
    assert len(checks) == 1


async def test_a_second_start_of_a_saved_workflow_does_not_check_it_again(checks: list[str]) -> None:
    async with installation(tools=(add_one,)) as app:
        await app.save(written({"id": "sum", "nodes": [CALL], "edges": []}))
        checks.clear()
        for _ in range(3):
            assert await (await app.start("sum")).settled() == "completed"
    assert len(checks) == 1


async def test_a_start_after_a_tool_has_changed_checks_the_workflow_again(checks: list[str]) -> None:
    source = written({"id": "sum", "nodes": [CALL], "edges": []})
    async with installation(tools=(add_one,)) as app:
        await (await app.start(source)).settled()
        app.context.tools.add_scripted(add_to_text)
        with pytest.raises(WorkflowInvalid, match="needs the parameter 'text'"):
            await app.start(source)
    assert len(checks) == 2


async def test_a_start_with_another_value_of_a_variable_uses_that_value(monkeypatch: pytest.MonkeyPatch) -> None:
    config: JsonObject = {"tool": "same_text", "parameters": {"text": "${AGENT_ID_A}"}}
    node: JsonObject = {"id": "say", "type": "tool", "config": config, "outputs": {"said": "result"}}
    source = written({"id": "names", "nodes": [node], "edges": []})
    async with installation(tools=(same_text,)) as app:
        outputs: list[Json] = []
        for value in ("one", "two"):
            monkeypatch.setenv("AGENT_ID_A", value)
            outputs.append(await (await app.start(source)).output())
    assert outputs == ["one", "two"]
