"""A stopped step affects no other work."""

from __future__ import annotations

import asyncio

from pointsman.engine.commands import Execute
from pointsman.engine.reports import ResumeRequested, Start
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject
from tests.runtime.world import FIRST, Shelf, chain, make_runtime, tool

RACERS = [tool(name) for name in "abc"]
OUT: list[Json] = [{"source": "p", "target": name} for name in "abc"]
IN: list[Json] = [{"source": name, "target": "j"} for name in "abc"]
JOIN: JsonObject = {"id": "j", "type": "join", "config": {"wait": "any", "cancelRest": True}}
RACE: JsonObject = {"id": "race", "nodes": [{"id": "p", "type": "parallel"}, *RACERS, JOIN], "edges": OUT + IN}


async def test_work_stopped_before_its_start_does_not_start() -> None:
    shelf = Shelf(it=RACE)
    runtime, doing = await make_runtime(shelf)
    driver = await runtime.start(FIRST, shelf.plans["it"], Start(input={}, definition="it"))
    await driver.until(lambda: driver.state.ended)
    await driver.drained()
    assert [one.step.node for one in doing.asked] == ["a"]


def test_a_step_resumed_while_its_stopped_attempt_ends_is_executed() -> None:
    """The end of a sandbox or a connection takes time; users do not wait for it."""
    hands: list[str] = []

    async def work(command: Execute) -> Json:
        if hands:
            await asyncio.sleep(1)
            return "done"
        hands.append("first")
        try:
            return await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.5)

    async def story() -> None:
        shelf = Shelf(it=chain("a", config={"limits": {"executionTime": "1s"}}))
        runtime, doing = await make_runtime(shelf, work, clock=VirtualClock())
        driver = await runtime.start(FIRST, shelf.plans["it"], Start(input={}, definition="it"))
        await driver.until(lambda: driver.state.status == "interrupted")
        await driver.deliver(ResumeRequested(limits={"executionTime": 60.0}))
        await driver.until(lambda: driver.state.ended)
        assert (driver.state.status, len(doing.asked)) == ("completed", 2)

    run_virtually(story())
