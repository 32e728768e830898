"""Waiting executions are in the store alone and continue by themselves: across restarts, in any worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.store.errors import LeaderExists
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import JsonObject, json_of
from tests.runtime.test_leader import flow

pytestmark = pytest.mark.integration

SET: JsonObject = {"id": "note", "type": "transform", "config": {"set": {"noted": "result"}}}
WORK: JsonObject = {
    "id": "keep",
    "type": "memory",
    "config": {"scope": "execution", "operation": "set", "key": "paid", "value": "yes"},
}
HEARD: JsonObject = {"id": "note", "type": "transform", "config": {"set": {"noted": "nodes.hear.n"}}}
HEARS = flow({"id": "hear", "type": "wait", "config": {"event": "paid"}}, HEARD, WORK, name="hears")
NAPS = flow({"id": "nap", "type": "wait", "config": {"duration": "30m"}}, SET, name="naps")
TELLS = flow({"id": "tell", "type": "emit", "config": {"event": "paid", "data": {"n": 7}}}, name="tells")


async def ended(app: Pointsman, execution: str) -> JsonObject:
    """Return its view after its end; virtual time advances meanwhile."""
    for _ in range(500):
        view = json_of(await app.view(execution))
        if view["status"] not in ("running", "waiting"):
            return view
        await app.clock.sleep_until(app.clock.now() + 30)
    raise AssertionError(f"{execution} never ended")


@pytest.mark.requirement("S1-157", "S1-158")
def test_a_timer_from_before_a_restart_fires_in_the_leader(tmp_path: Path) -> None:
    async def story() -> None:
        store = f"sqlite:///{tmp_path}/store.db"
        async with Pointsman(store, clock=VirtualClock()) as app:
            begun = await app.start(Workflow.of(NAPS), {})
            name, due = begun.id, begun.state.setup.started_at + 1800
        async with Pointsman(store, clock=VirtualClock()) as app, app.leading():
            view = await ended(app, name)
            assert (view["status"], app.clock.now() >= due) == ("completed", True)
            while name in app.runtime.drivers:  # The writing thread is not part of virtual time.
                await asyncio.to_thread(lambda: None)

    run_virtually(story())


def test_an_event_of_one_process_wakes_an_execution_that_another_evicted(tmp_path: Path) -> None:
    async def story() -> None:
        store = f"sqlite:///{tmp_path}/store.db"
        async with Pointsman(store) as app:
            hears = await app.start(Workflow.of(HEARS), {})
            assert await hears.settled() == "waiting"
        async with Pointsman(store) as app:
            tells = await app.start(Workflow.of(TELLS), {})
            assert await tells.settled() == "completed"
            assert (await app.view(hears.id))["status"] == "running", "it heard; nobody has gone on with it"
        async with Pointsman(store) as app, app.leading() as keeper:
            await keeper.recover()
            view = await app.view(hears.id)
            while view["status"] == "running":
                await keeper.look()
                view = await app.view(hears.id)
            assert (view["status"], view["state"]) == ("completed", {"noted": 7})

    asyncio.run(story())


def test_a_store_has_one_leader_and_others_stand_by(tmp_path: Path) -> None:
    async def story() -> None:
        store = f"sqlite:///{tmp_path}/store.db"
        async with Pointsman(store) as first, Pointsman(store) as second:
            async with first.leading():
                with pytest.raises(LeaderExists):
                    async with second.leading():
                        pass
                stands_by = asyncio.create_task(second.leading(wait=True).__aenter__())
                await asyncio.sleep(0.05)
                assert not stands_by.done()
            await stands_by
            assert stands_by.done()

    asyncio.run(story())


def test_an_execution_held_by_a_caller_can_be_evicted_and_answered(tmp_path: Path) -> None:
    gate: JsonObject = {"id": "ask", "type": "human", "config": {"message": "Well?", "actions": ["approve"]}}

    async def story() -> None:
        store = f"sqlite:///{tmp_path}/store.db"
        async with Pointsman(store) as app, app.leading() as keeper:
            held = await app.start(Workflow.of(flow(gate, SET, name="asks")), {})
            assert await held.settled() == "waiting"
            await keeper.passivate_idle()
            assert app.runtime.drivers == {}
            await held.answer("ask", "approve")
            assert await held.settled() == "completed"

    asyncio.run(story())
