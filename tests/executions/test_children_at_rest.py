"""Random executions with sub-workflows: with any crash, all waiters are notified once everything is settled."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import pytest

from pointsman.engine.commands import Execute
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.reports import Start
from pointsman.errors import CallerError
from pointsman.executions.execution import Execution
from pointsman.store.memory import open_memory
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject
from tests.runtime.world import FIRST, Shelf, make_runtime, tool
from tests.scenarios import installation, written

SEEDS: Final = 60
DEPTH_MAX: Final = 3
PATIENCE_S: Final = 100_000.0
"""Virtual seconds: no timer here is longer, so a waiter that still waits would wait for ever."""
LEAVES: Final = ("ends", "fails", "asks", "sleeps", "works")


def leaf(kind: str) -> JsonObject:
    nodes: dict[str, JsonObject] = {
        "ends": tool("quick"),
        "fails": tool("broken"),
        "asks": {"id": "ask", "type": "human", "config": {"message": "Well?", "options": [{"value": "approve"}]}},
        "sleeps": {"id": "nap", "type": "wait", "config": {"duration": "90s"}},
        "works": tool("slow"),
    }
    return {"id": kind, "nodes": [nodes[kind]], "edges": []}


def family_of(random: Random) -> dict[str, JsonObject]:
    """Return documents by name; `root` calls some of the others in parallel, and these call others."""
    documents = {kind: leaf(kind) for kind in LEAVES}

    def calling(name: str, depth: int) -> str:
        nodes: list[Json] = [{"id": "fork", "type": "parallel", "config": {}}]
        edges: list[Json] = []
        for number in range(random.randint(1, 3)):
            deeper = depth < DEPTH_MAX and random.random() < 0.4
            called = calling(f"{name}{number}", depth + 1) if deeper else random.choice(LEAVES)
            nodes.append({"id": f"call{number}", "type": "workflow", "config": {"workflow": called}})
            edges.append({"source": "fork", "target": f"call{number}"})
        documents[name] = {"id": name, "nodes": nodes, "edges": edges}
        return name

    calling("root", 1)
    return documents


async def work(command: Execute) -> Json:
    await asyncio.sleep({"slow": 30.0}.get(command.step.node, 0.0))
    if command.step.node == "broken":
        raise CallerError("it is broken")
    return command.step.node


async def life(random: Random) -> tuple[str, int]:
    """Start an execution, crash now and then, answer all gates; return its final status and the number of answers."""
    shelf, store, clock = Shelf(**family_of(random)), await open_memory("memory:"), VirtualClock()
    runtime, _ = await make_runtime(shelf, work, store=store, clock=clock)
    handle = Execution(
        runtime, await runtime.start(FIRST, await shelf.pinned("root", {}), Start(input={}, definition="root"))
    )
    answered = 0
    while True:
        if random.random() < 0.6:
            for _ in range(random.randint(0, 12)):
                await asyncio.sleep(random.choice((0.0, 0.0, 10.0)))
            await runtime.close()
            runtime, _ = await make_runtime(shelf, work, store=store, clock=clock)
            handle = Execution(runtime, await runtime.open(FIRST))
        status = await asyncio.wait_for(handle.settled(), PATIENCE_S)
        if handle.state.ended:
            await handle.drained()
            await runtime.close()
            return status, answered
        gates = handle.gates
        assert gates, "it stands still, and nobody is asked"
        gate = random.choice(gates)
        await Execution(runtime, gate.driver).answer(gate.id, "approve")
        answered += 1


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_waiter_is_notified_when_an_execution_and_its_children_stand_still(seed: int) -> None:
    status, _ = run_virtually(life(Random(seed)))
    assert status in ("completed", "failed")


def test_executions_with_children_wait_for_people_and_fail() -> None:
    lives = [run_virtually(life(Random(seed))) for seed in range(20)]
    assert {status for status, _ in lives} == {"completed", "failed"}
    assert any(answered for _, answered in lives)


async def test_a_paused_execution_migrates_while_its_sub_workflow_waits() -> None:
    def parent(done: int) -> JsonObject:
        nodes: list[Json] = [
            {"id": "call", "type": "workflow", "config": {"workflow": "child"}},
            {"id": "end", "type": "transform", "config": {"set": {"done": str(done)}}},
        ]
        return {"id": "parent", "nodes": nodes, "edges": [{"source": "call", "target": "end"}]}

    ask: JsonObject = {"id": "ask", "type": "human", "config": {"message": "Go on?"}}
    async with installation() as app:
        await app.save(written({"id": "child", "nodes": [ask], "edges": []}))
        await app.save(written(parent(1)))
        begun = await app.start("parent")
        await begun.settled()
        await app.save(written(parent(2)))
        with pytest.raises(WrongStatus, match="has a step in progress") as refused:
            await app.move(begun.id, "parent")
        assert "pause the execution" in refused.value.hint
        await begun.pause()
        assert await app.move(begun.id, "parent") == []
        await begun.resume()
        (child,) = [one.execution for one in await app.executions() if one.workflow == "child"]
        await (await app.reach(child)).answer("ask", "approve")
        assert await begun.settled() == "completed"
        assert begun.state.root.data.root["done"] == 2
