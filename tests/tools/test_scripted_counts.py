"""Uses of scripted answers with `times` are counted for the execution: across processes and in forks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pointsman import Pointsman, Workflow
from pointsman.executions.execution import Execution
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script

TOOLS = "tools: {fetch: {results: [{result: first, times: 1}, {result: later}]}}"
MODEL = "rules: [{text: first, times: 1}, {text: later}]"
LIST = "rules: [{answers: [{text: first}, {text: later}]}]"
SETTINGS = Settings(model="scripted", delays=False)


def tool(id: str) -> JsonObject:
    return {"id": id, "type": "tool", "config": {"tool": "fetch", "parameters": {}}, "outputs": {id: "result"}}


def agent(id: str) -> JsonObject:
    return {"id": id, "type": "agent", "config": {"prompt": "Fetch."}, "outputs": {id: "result"}}


GATE: JsonObject = {"id": "gate", "type": "human", "config": {"message": "Continue?"}}

KINDS = pytest.mark.parametrize(
    ("script", "work"), [(TOOLS, tool), (MODEL, agent), (LIST, agent)], ids=["tool", "rule", "answers"]
)


def chain(*nodes: JsonObject) -> Workflow:
    edges: list[Json] = [{"source": nodes[n]["id"], "target": nodes[n + 1]["id"]} for n in range(len(nodes) - 1)]
    return Workflow.parse(json.dumps({"pointsman": 1, "id": "flow", "nodes": [*nodes], "edges": edges}))


async def results(execution: Execution) -> list[Json]:
    """Answer its gate, and return the state fields `one`, `two` and `three` that exist."""
    if await execution.settled() == "waiting":
        await execution.answer("gate", "approve")
    assert await execution.settled() == "completed"
    data = (await execution.view())["state"]
    assert isinstance(data, dict)
    return [data[name] for name in ("one", "two", "three") if name in data]


@KINDS
@pytest.mark.integration
async def test_times_continues_to_count_after_a_resume_in_another_process(
    script: str, work: Callable[[str], JsonObject], tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with Pointsman(store, settings=SETTINGS, script=parse_script(script)) as app:
        execution = await app.start(chain(work("one"), GATE, work("two")))
        assert await execution.settled() == "waiting"
    async with Pointsman(store, settings=SETTINGS) as app:
        assert await results(await app.open(execution.id)) == ["first", "later"]


@KINDS
async def test_each_execution_counts_separately(script: str, work: Callable[[str], JsonObject]) -> None:
    async with Pointsman("memory:", settings=SETTINGS, script=parse_script(script)) as app:
        for _ in range(2):
            assert await results(await app.start(chain(work("one"), work("two")))) == ["first", "later"]


@KINDS
async def test_a_fork_continues_to_count_after_its_row(script: str, work: Callable[[str], JsonObject]) -> None:
    async with Pointsman("memory:", settings=SETTINGS, script=parse_script(script)) as app:
        origin = await app.start(chain(work("one"), GATE, work("two")))
        assert await origin.settled() == "waiting"
        assert await results(await app.fork(origin.id)) == ["first", "later"]


@KINDS
async def test_a_fork_does_not_count_what_happened_after_its_row(
    script: str, work: Callable[[str], JsonObject]
) -> None:
    async with Pointsman("memory:", settings=SETTINGS, script=parse_script(script)) as app:
        origin = await app.start(chain(GATE, work("one"), work("two")))
        assert await results(origin) == ["first", "later"]
        before_gate = await app.fork(origin.id, at=1)
        assert await results(before_gate) == ["first", "later"]
        before_two = await app.fork(origin.id, before="two")
        assert await results(before_two) == ["first", "later"]


@KINDS
async def test_a_fork_of_a_fork_continues_to_count(script: str, work: Callable[[str], JsonObject]) -> None:
    async with Pointsman("memory:", settings=SETTINGS, script=parse_script(script)) as app:
        origin = await app.start(chain(work("one"), GATE, work("two"), work("three")))
        assert await results(origin) == ["first", "later", "later"]
        copy = await app.fork(origin.id, before="three")
        assert await copy.settled() == "completed"
        assert await results(await app.fork(copy.id, before="two")) == ["first", "later", "later"]


async def test_parallel_branches_use_a_limited_result_once() -> None:
    fan: JsonObject = {"id": "fan", "type": "parallel", "config": {"items": "{{ [1, 2, 3, 4] }}"}}
    nodes: list[Json] = [fan, {**tool("one"), "outputs": {}}, {"id": "join", "type": "join"}]
    edges: list[Json] = [{"source": "fan", "target": "one"}, {"source": "one", "target": "join"}]
    flow = {"pointsman": 1, "id": "flow", "nodes": nodes, "edges": edges}
    async with Pointsman("memory:", settings=SETTINGS, script=parse_script(TOOLS)) as app:
        execution = await app.start(Workflow.parse(json.dumps(flow)))
        assert await execution.settled() == "completed"
        text = json.dumps(await execution.output())
    assert text.count('"first"') == 1, text
