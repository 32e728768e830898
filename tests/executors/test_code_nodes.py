"""Code nodes and commands in executions: inputs, results, time limits, error edges, restarts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject, json_of
from tests.installation import HandClock, opened
from tests.sandboxes import needs_box, take_boxes_away

pytestmark = pytest.mark.integration

SETTINGS = Settings.model_validate({"sandbox": {"memory": "64MB"}})


def code(id: str, source: str, *, inputs: JsonObject | None = None, **more: Json) -> JsonObject:
    config: JsonObject = {"source": source} if inputs is None else {"source": source, "inputs": inputs}
    return {"id": id, "type": "code", "config": config, **more}


def chain(*nodes: Json, **more: Json) -> Workflow:
    ids = [node["id"] for node in nodes if isinstance(node, dict)]
    edges: list[Json] = [{"source": one, "target": next_} for one, next_ in pairwise(ids)]
    return Workflow.of({"id": "codes", "nodes": [*nodes], "edges": edges, **more})


async def view_of(workflow: Workflow, given: Json = None) -> JsonObject:
    async with Pointsman("memory:", settings=SETTINGS) as app:
        execution = await app.start(workflow, given)
        await execution.settled()
        return json_of(await app.view(execution.id))


async def output_of(workflow: Workflow, given: Json = None) -> Json:
    view = await view_of(workflow, given)
    assert view["status"] == "completed", view
    return view["output"]


async def error_of(workflow: Workflow, given: Json = None) -> JsonObject:
    view = await view_of(workflow, given)
    assert view["status"] == "failed", view
    errors = view["errors"]
    assert isinstance(errors, list)
    assert isinstance(errors[0], dict)
    return errors[0]


@needs_box
@pytest.mark.requirement("S1-08", "S1-144", "S1-162")
async def test_results_of_code_are_written_like_other_results() -> None:
    total = code("total", "sum(prices)", inputs={"prices": "input.prices"}, outputs={"sum": "result"})
    taxed = code("taxed", "{'net': sum, 'gross': round(sum * 1.19, 2)}", inputs={"sum": "sum"})
    workflow = chain(total, taxed, output={"gross": "nodes.taxed.gross", "net": "sum"})
    assert await output_of(workflow, {"prices": [10, 2.5]}) == {"gross": 14.88, "net": 12.5}


@needs_box
async def test_the_node_inputs_are_the_variables_by_default() -> None:
    node = code("shout", "word.upper() + mark", inputs=None)
    node["inputs"] = {"word": "input.word", "mark": "'!'"}
    assert await output_of(chain(node, output={"said": "nodes.shout"}), {"word": "hey"}) == {"said": "HEY!"}


@needs_box
async def test_each_branch_runs_code_with_its_own_data() -> None:
    nodes: list[Json] = [
        {"id": "each", "type": "parallel", "config": {"items": "input.numbers", "as": "number"}},
        code("square", "number * number", inputs={"number": "number"}),
        {"id": "all", "type": "join", "config": {"aggregate": "list"}},
    ]
    numbers: list[Json] = [*range(40)]
    squares: list[Json] = [n * n for n in range(40)]
    workflow = chain(*nodes, output={"squares": "nodes.all"})
    assert await output_of(workflow, {"numbers": numbers}) == {"squares": squares}


@needs_box
async def test_the_timeout_of_a_node_stops_its_code() -> None:
    node = code("loop", "while True:\n    pass", execution={"timeout": "200ms"})
    assert (await error_of(chain(node)))["code"] == "timeout"


@needs_box
async def test_failed_code_is_retried_when_its_node_has_retries() -> None:
    source = "import random\nif random.random() < 0.5:\n    raise ValueError('tails')\n'heads'"
    retrying: JsonObject = {"retries": 60, "retryDelay": "1ms", "retryOn": ["code-failed"]}
    assert await output_of(chain(code("toss", source, execution=retrying), output={"x": "nodes.toss"})) == {
        "x": "heads"
    }


@needs_box
async def test_an_error_edge_bypasses_code_that_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    take_boxes_away(monkeypatch)
    nodes: list[Json] = [code("sum", "1 + 1"), {"id": "plain", "type": "transform", "config": {"set": {"x": "0"}}}]
    way: JsonObject = {"source": "sum", "target": "plain", "condition": {"type": "error", "codes": ["sandbox-missing"]}}
    document: JsonObject = {"id": "round", "nodes": nodes, "edges": [way], "output": {"x": "x"}}
    assert await output_of(Workflow.of(document)) == {"x": 0}
    assert (await error_of(chain(code("sum", "1 + 1"))))["code"] == "sandbox-missing"


@needs_box
async def test_code_continues_after_a_restart_with_its_data(tmp_path: Path) -> None:
    clock = HandClock()
    gate: JsonObject = {"id": "gate", "type": "human", "config": {"message": "go on?", "options": ["approve"]}}
    first = code("first", "import random\nrandom.random()", outputs={"first": "result"})
    second = code("second", "first", inputs={"first": "first"})
    async with opened(tmp_path, clock, settings=SETTINGS) as app:
        execution = await app.start(chain(first, gate, second, output={"second": "nodes.second", "first": "first"}))
        await execution.settled()
        values = (await app.view(execution.id))["state"]
        assert isinstance(values, dict)
        before = values["first"]
        assert isinstance(before, float)
    async with opened(tmp_path, clock, settings=SETTINGS) as app:
        again = await app.open(execution.id)
        await again.answer("gate", "approve")
        assert await again.output() == {"second": before, "first": before}


@needs_box
@pytest.mark.requirement("S1-144")
async def test_an_interrupted_command_runs_again(tmp_path: Path) -> None:
    flag = tmp_path / "flags" / "ready"
    flag.parent.mkdir()
    wait: JsonObject = {
        "argv": ["/bin/sh", "-c", 'until [ -e "$0" ]; do :; done; echo "$1 came"', str(flag), "{who}"],
        "read": [str(flag.parent)],
    }
    settings = Settings.model_validate({"commands": {"wait_for": wait}})
    node: JsonObject = {
        "id": "wait",
        "type": "tool",
        "config": {"tool": "wait_for", "parameters": {"who": "{input.who}"}},
    }
    clock = HandClock()
    async with opened(tmp_path, clock, settings=settings) as app:
        execution = await app.start(chain(node, output={"said": "nodes.wait"}), {"who": "spring"})
        await execution.journal().__anext__()
    flag.touch()
    async with opened(tmp_path, clock, settings=settings) as app:
        again = await app.open(execution.id)
        await again.resume()
        assert await again.output() == {"said": "spring came"}
