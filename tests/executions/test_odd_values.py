"""Unusual and oversized values through every interface: they are read back exactly or refused with a code; nothing is
lost."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from pointsman import tool
from pointsman.app import Execution, Pointsman, Workflow
from pointsman.engine.decide.outputs import StateTooLarge
from pointsman.errors import CallerError
from pointsman.models.script import Script
from pointsman.settings import Settings
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script

STORES = pytest.mark.parametrize("kind", ["memory", "sqlite"])
DEEP = 64


def nested(levels: int) -> Json:
    value: Json = "bottom"
    for _ in range(levels):
        value = [value]
    return value


EXACT: dict[str, Json] = {
    "64 levels": nested(DEEP),
    "30 digits": 123456789012345678901234567890,
    "negative zero": -0.0,
    "the smallest number": 5e-324,
    "beyond the first plane": "𝔘\u0000\U0010ffff",
    "empty": [{}, [], "", None, False],
    "a key like a path": {"a.b[0]": {"": 1}},
}
UNSTORABLE: dict[str, Json] = {
    "not a number": math.nan,
    "infinity": {"deep": [math.inf]},
    "half a character": "half \ud800",
    "10 000 levels": nested(10_000),
}

given: list[Json] = []
"""The results of the tests' tool; each test sets them."""


@tool
def oracle() -> Json:
    """Return the given value."""
    return given[0]


def document(*nodes: JsonObject, **more: Json) -> Workflow:
    edges: list[Json] = [{"source": str(one["id"]), "target": str(two["id"])} for one, two in pairwise(nodes)]
    return Workflow.of({"id": "doors", "nodes": [*nodes], "edges": edges, **more})


ASK: JsonObject = {"id": "gate", "type": "human", "config": {"message": "?", "options": ["approve"], "form": {}}}
CALL: JsonObject = {"id": "call", "type": "tool", "config": {"tool": "oracle"}}
WAIT: JsonObject = {"id": "wait", "type": "wait", "config": {"event": "paid"}}


def kept(source: str) -> JsonObject:
    return {"id": "keep", "type": "transform", "config": {"set": {"value": source}}}


async def through_input(app: Pointsman, value: Json) -> Execution:
    return await app.start(document(kept("input.given")), {"given": value})


async def through_a_tool(app: Pointsman, value: Json) -> Execution:
    given[:] = [value]
    return await app.start(document(CALL, kept("nodes.call")))


async def through_a_gate(app: Pointsman, value: Json) -> Execution:
    execution = await app.start(document(ASK, kept("nodes.gate.data")))
    await execution.settled()
    await execution.answer("gate", "approve", value)
    return execution


async def through_a_signal(app: Pointsman, value: Json) -> Execution:
    execution = await app.start(document(WAIT, kept("nodes.wait.data ?? nodes.wait")))
    await execution.settled()
    await execution.signal("paid", value)
    return execution


async def through_memory(app: Pointsman, value: Json) -> Execution:
    await app.store.memory.put("shared", "shelf", "key", value)
    config: JsonObject = {"scope": "long_term", "namespace": "shelf", "operation": "get", "key": "key"}
    return await app.start(document({"id": "get", "type": "memory", "config": config}, kept("nodes.get")))


Door = Callable[[Pointsman, Json], Awaitable[Execution]]
DOORS = (through_input, through_a_tool, through_a_gate, through_a_signal, through_memory)


def opened(kind: str, path: Path) -> Pointsman:
    url = "memory:" if kind == "memory" else f"sqlite:///{path / 'store.db'}"
    return Pointsman(url, settings=Settings(), tools=[oracle], script=Script())


@STORES
@pytest.mark.parametrize("what", EXACT)
@pytest.mark.parametrize("door", DOORS)
async def test_unusual_values_are_returned_exactly(door: Door, what: str, kind: str, tmp_path: Path) -> None:
    value = EXACT[what]
    async with opened(kind, tmp_path) as app:
        execution = await door(app, value)
        assert await execution.settled() == "completed"
        seen = await app.view(execution.id)
        assert same(seen["state"], value)
    if kind == "sqlite":
        async with opened(kind, tmp_path) as app:
            assert same((await app.view(execution.id))["state"], value)
            assert await app.store.verify() == []


def same(state: Json, value: Json) -> bool:
    assert isinstance(state, dict)
    # As text, because 0.0 == -0.0 and 1 == True.
    return json.dumps(state["value"]) == json.dumps(value)


REFUSALS = ("not-json", "unstorable-value", "input-invalid", "answer-invalid", "tool-failed")


async def refusal(app: Pointsman, door: Door, value: Json) -> str:
    """Return the code of the refusal, or of the failure of the step that returned the value."""
    try:
        execution = await door(app, value)
    except CallerError as why:
        return why.code
    assert await execution.settled() == "failed"
    failure = execution.state.outcome.failure
    return "" if failure is None else failure.code


@STORES
@pytest.mark.parametrize("what", UNSTORABLE)
@pytest.mark.parametrize("door", DOORS)
async def test_a_value_that_cannot_be_restored_is_refused_without_other_losses(
    door: Door, what: str, kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as app:
        before = await app.start(document(kept("1")))
        assert await before.settled() == "completed"
        assert await refusal(app, door, UNSTORABLE[what]) in REFUSALS
        for one in await app.executions():
            await app.view(one.execution)
        assert await app.store.verify() == []


def small(*nodes: JsonObject, **config: Json) -> Workflow:
    return document(*nodes, config={"limits": {"stateSize": "1KB"}, **config})


BIG: JsonObject = {"old": 1, "text": "x" * 2_000}


@pytest.mark.integration
@pytest.mark.requirement("S1-99")
async def test_too_large_inputs_answers_and_events_are_refused_without_effect(tmp_path: Path) -> None:
    async with opened("sqlite", tmp_path) as app:
        with pytest.raises(StateTooLarge, match=r"the input has .* limit of the state, 1000; .*text \(2002 bytes\)"):
            await app.start(small(kept("1")), BIG)
        assert await app.executions() == []
        asked = await app.start(small(ASK, kept("nodes.gate.data")))
        await asked.settled()
        with pytest.raises(StateTooLarge, match="the answer"):
            await asked.answer("gate", "approve", BIG)
        waits = await app.start(small(WAIT, kept("nodes.wait.data")))
        await waits.settled()
        with pytest.raises(StateTooLarge, match="'paid'"):
            await waits.signal("paid", BIG)
    async with opened("sqlite", tmp_path) as app:
        again = await app.open(asked.id)
        await again.answer("gate", "approve", "small")
        assert await again.settled() == "completed"
        again = await app.open(waits.id)
        await again.signal("paid", {"n": 1})
        assert await again.settled() == "completed"


@pytest.mark.integration
async def test_an_unwritten_result_obeys_the_size_limit(tmp_path: Path) -> None:
    given[:] = ["x" * 2_000]
    async with opened("sqlite", tmp_path) as app:
        execution = await app.start(small(CALL))
        assert await execution.settled() == "failed"
        failure = execution.state.outcome.failure
        assert failure is not None
        assert failure.code == "state-too-large"


@pytest.mark.integration
async def test_answers_of_agents_obey_the_size_limit_with_the_conversation(tmp_path: Path) -> None:
    talk = small({"id": "say", "type": "agent", "config": {"prompt": "Say it"}}, conversational=True)
    script = parse_script("rules: [{node: say, text: " + "x" * 700 + "}]")
    async with Pointsman(f"sqlite:///{tmp_path / 'store.db'}", settings=Settings(), script=script) as app:
        execution = await app.start(talk, {"message": "y" * 200})
        assert await execution.settled() == "failed"
        failure = execution.state.outcome.failure
        assert failure is not None
        assert failure.code == "state-too-large"
        assert "messages (" in failure.message


NOTHING: JsonObject = {"id": "nothing", "type": "transform"}
OLD_START: JsonObject = {
    "id": "form",
    "nodes": [
        {
            "id": "start",
            "type": "start",
            "config": {"inputVariables": [{"name": "size", "type": "number", "default": 3}]},
        },
        {"id": "end", "type": "end", "config": {"outputMapping": {"size": "$.size"}}},
    ],
    "edges": [{"id": "e", "source": "start", "target": "end"}],
}
SIZE: JsonObject = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}
START: JsonObject = {"id": "start", "type": "start", "config": {"inputs": SIZE, "defaults": {"size": 4}}}


@pytest.mark.parametrize(
    ("flow", "size"),
    [
        (OLD_START, 3),
        ({"pointsman": 1, "id": "form", "input": SIZE, "output": {"size": "size"}, "nodes": [NOTHING], "edges": []}, 3),
        ({"pointsman": 1, "id": "form", "output": {"size": "size"}, "nodes": [START], "edges": []}, 4),
    ],
)
async def test_defaults_of_the_input_fill_missing_fields(flow: JsonObject, size: int) -> None:
    async with Pointsman("memory:", model="scripted") as app:
        assert await (await app.start(Workflow.of(flow), {})).output() == {"size": size}
        assert await (await app.start(Workflow.of(flow), {"size": 7})).output() == {"size": 7}


@pytest.mark.parametrize("default", [["a"], "many", {}])
async def test_a_default_that_its_own_field_refuses_is_an_error(default: Json) -> None:
    schema: JsonObject = {"type": "object", "properties": {"size": {"type": "integer", "default": default}}}
    flow: JsonObject = {"pointsman": 1, "id": "form", "input": schema, "nodes": [NOTHING], "edges": []}
    async with Pointsman("memory:", model="scripted") as app:
        found = await app.check(Workflow.of(flow))
    (problem,) = (one for one in found.problems if one.severity == "error")
    assert (problem.code, problem.pointer) == ("default-invalid", "/input/properties/size/default")


@pytest.mark.parametrize(
    "node",
    [
        {"type": "transform", "config": {"set": {"q": "1"}}},
        pytest.param({"type": "code", "config": {"source": "n + 1"}}, marks=pytest.mark.integration),
        {"type": "join"},
        {"type": "workflow", "config": {"workflow": "inner"}},
    ],
)
async def test_outputs_of_a_node_can_read_its_own_result(node: JsonObject) -> None:
    work: JsonObject = {
        "id": "work",
        "inputs": {"n": "n"},
        "outputs": {"mine": "nodes.work", "result": "result"},
        **node,
    }
    flow: JsonObject = {"pointsman": 1, "id": "outer", "input": {"type": "object", "properties": {"n": {}}}}
    flow |= {"nodes": [work], "edges": [], "output": {"mine": "mine", "result": "result"}}
    inner: JsonObject = {"pointsman": 1, "id": "inner", "output": {"x": "7"}, "nodes": [NOTHING], "edges": []}
    async with Pointsman("memory:", model="scripted") as app:
        await app.save(Workflow.of(inner))
        found = await (await app.start(Workflow.of(flow), {"n": 5})).output()
    assert isinstance(found, dict)
    assert found["mine"] == found["result"]


async def test_texts_of_the_list_of_executions_may_contain_nul_in_every_store(postgres_url: str) -> None:
    ask: JsonObject = {**ASK, "config": {"message": "?", "options": ["approve"], "approvers": {"groups": ["a\0b"]}}}
    wait: JsonObject = {"id": "wait", "type": "wait", "config": {"event": "{input.event}"}}
    for url in ("memory:", postgres_url):
        async with Pointsman(url, settings=Settings(), script=Script()) as app:
            gated = await app.start(document(ask), {})
            assert await gated.settled() == "waiting"
            waits = await app.start(document(wait), {"event": "a\0b"})
            assert await waits.settled() == "waiting"
            assert (await app.publish("a\0b", {})).delivered == (waits.id,)
            assert await waits.settled() == "completed"
