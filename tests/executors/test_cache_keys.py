"""A cached answer is used only if the same model and the same tools would answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.tools.functions import tool
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import Script, parse_script

pytestmark = pytest.mark.integration

CACHED: JsonObject = {"cache": "long_term"}
SAYS: JsonObject = {"id": "n", "type": "agent", "config": {"prompt": "Hi."}, "execution": CACHED}
LOOKS: JsonObject = {"id": "n", "type": "tool", "config": {"tool": "look", "parameters": {}}, "execution": CACHED}
ASKS: JsonObject = {"id": "n", "type": "agent", "config": {"prompt": "Hi.", "tools": ["look"]}, "execution": CACHED}
CALLS: Script = parse_script("rules: [{toolCalls: [{name: look}], times: 1}, {text: done}]")


def flow(node: JsonObject, **more: Json) -> Workflow:
    return Workflow.parse(json.dumps({"pointsman": 1, "id": "flow", "nodes": [node], **more}))


def look(answer: str) -> Tool:
    if answer == "first":

        @tool(name="look")
        def first() -> str:
            """Look."""
            return "first"

        return first

    @tool(name="look")
    def second() -> str:
        """Look."""
        return "second"

    return second


async def is_cached(
    store: Path,
    node: JsonObject,
    *,
    settings: JsonObject | None = None,
    model: str | None = None,
    script: Script | None = None,
    tools: Sequence[Tool] = (),
    **more: Json,
) -> bool:
    """Return whether the step of one more execution in the store has a cached answer."""
    known = Settings.model_validate({"delays": False, **(settings or {})})
    url = f"sqlite:///{store}/store.db"
    async with Pointsman(url, settings=known, model=model, script=script, tools=tools) as app:
        execution = await app.start(flow(node, **more))
        assert await execution.settled() == "completed"
        _, events = await app.state_and_events(execution.id)
    (done,) = [event for event in events if event["kind"] == "step_succeeded"]
    return done.get("cached") is True


PURPOSES: JsonObject = {"models": {"generation": "scripted:one"}}


@pytest.mark.parametrize(
    "other",
    [
        {"models": {"generation": "scripted:two"}},
        {**PURPOSES, "fallback": ["scripted:two"]},
        {**PURPOSES, "temperatures": {"generation": 0.9}},
        {"model": "scripted:two"},
    ],
)
async def test_a_cached_answer_of_the_default_model_is_not_used_for_another_model(
    tmp_path: Path, other: JsonObject
) -> None:
    assert not await is_cached(tmp_path, SAYS, settings=PURPOSES)
    assert await is_cached(tmp_path, SAYS, settings=PURPOSES)
    assert not await is_cached(tmp_path, SAYS, settings=other)


async def test_a_cached_answer_of_one_start_option_is_not_used_for_another(tmp_path: Path) -> None:
    assert not await is_cached(tmp_path, SAYS, model="scripted:one")
    assert await is_cached(tmp_path, SAYS, model="scripted:one")
    assert not await is_cached(tmp_path, SAYS, model="scripted:two")


async def test_a_cached_tool_result_is_not_used_for_another_tool_of_its_name(tmp_path: Path) -> None:
    made_up = parse_script("tools: {look: {result: made up}}")
    assert not await is_cached(tmp_path, LOOKS, tools=[look("first")])
    assert await is_cached(tmp_path, LOOKS, tools=[look("first")])
    assert not await is_cached(tmp_path, LOOKS, tools=[look("second")])
    assert not await is_cached(tmp_path, LOOKS, script=made_up)


async def test_a_cached_agent_answer_is_not_used_with_another_tool_of_the_same_name(tmp_path: Path) -> None:
    assert not await is_cached(tmp_path, ASKS, script=CALLS, tools=[look("first")])
    assert await is_cached(tmp_path, ASKS, script=CALLS, tools=[look("first")])
    assert not await is_cached(tmp_path, ASKS, script=CALLS, tools=[look("second")])


async def test_a_tool_node_stays_cached_when_the_default_model_changes(tmp_path: Path) -> None:
    assert not await is_cached(tmp_path, LOOKS, tools=[look("first")], settings=PURPOSES)
    assert await is_cached(tmp_path, LOOKS, tools=[look("first")], settings={"models": {"generation": "scripted:two"}})
