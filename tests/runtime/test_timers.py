"""Timers that fire while the disk writes another row: none is lost, and no running work is cancelled."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from pointsman.engine.commands import Execute
from pointsman.engine.reports import Start
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject
from tests.runtime.world import FIRST, LazyLedger, Shelf, make_runtime, tool


def wait(name: str, duration: str) -> JsonObject:
    return {"id": name, "type": "wait", "config": {"duration": duration}}


async def status_after(document: JsonObject) -> str:
    """Return the final status on a slow disk, where each tool takes 12 ms."""

    async def work(command: Execute) -> Json:
        await asyncio.sleep(0.012)
        return command.step.node

    shelf = Shelf(it=document)
    runtime, _ = await make_runtime(shelf, work, clock=VirtualClock())
    runtime.journal = LazyLedger(runtime.store.journal)
    driver = await runtime.start(FIRST, shelf.plans["it"], Start(input={}, definition="it"))
    async with asyncio.timeout(60):
        await driver.until(lambda: driver.state.ended)
    return driver.state.status


def test_a_wait_that_ends_before_it_is_stored_is_followed_by_the_next() -> None:
    names = ["one", "two", "three"]
    edges: list[Json] = [{"source": a, "target": b} for a, b in pairwise(names)]
    document: JsonObject = {"id": "waits", "nodes": [wait(name, "1ms") for name in names], "edges": edges}
    assert run_virtually(status_after(document)) == "completed"


def test_an_earlier_timer_does_not_cancel_a_firing_one() -> None:
    """The long wait fires while the result of the tool is written; then a nearer timer is set."""
    nodes: list[Json] = [{"id": "p", "type": "parallel"}, tool("t"), wait("near", "5ms"), wait("long", "25ms")]
    edges: list[Json] = [
        {"source": "p", "target": "t"},
        {"source": "t", "target": "near"},
        {"source": "p", "target": "long"},
        {"source": "long", "target": "after"},
    ]
    document: JsonObject = {"id": "two", "nodes": [*nodes, wait("after", "60ms")], "edges": edges}
    assert run_virtually(status_after(document)) == "completed"
