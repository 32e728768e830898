"""How often a result of a scripted tool was used is counted for the execution, across processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script

SCRIPT = "tools: {fetch: {results: [{result: first, times: 1}, {result: later}]}}"
SETTINGS = Settings(delays=False)


def tool(id: str) -> JsonObject:
    return {"id": id, "type": "tool", "config": {"tool": "fetch", "parameters": {}}, "outputs": {id: "result"}}


GATE: JsonObject = {"id": "gate", "type": "human", "config": {"message": "Go on?"}}


def chain(*nodes: JsonObject) -> Workflow:
    edges: list[Json] = [{"source": nodes[n]["id"], "target": nodes[n + 1]["id"]} for n in range(len(nodes) - 1)]
    return Workflow.parse(json.dumps({"pointsman": 1, "id": "flow", "nodes": [*nodes], "edges": edges}))


@pytest.mark.integration
async def test_times_continues_to_count_after_a_resume_in_another_process(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with Pointsman(store, settings=SETTINGS, script=parse_script(SCRIPT)) as app:
        execution = await app.start(chain(tool("one"), GATE, tool("two")))
        assert await execution.settled() == "waiting"
    async with Pointsman(store, settings=SETTINGS) as app:
        taken = await app.open(execution.id)
        await taken.answer("gate", "approve")
        assert await taken.settled() == "completed"
        data = (await taken.view())["state"]
    assert isinstance(data, dict)
    assert (data["one"], data["two"]) == ("first", "later")


async def test_each_execution_counts_for_itself() -> None:
    async with Pointsman("memory:", settings=SETTINGS, script=parse_script(SCRIPT)) as app:
        for _ in range(2):
            execution = await app.start(chain(tool("one"), tool("two")))
            await execution.settled()
            data = (await execution.view())["state"]
            assert isinstance(data, dict)
            assert (data["one"], data["two"]) == ("first", "later")
