"""Events reach waiting executions and start workflows, once each, also after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from pointsman.app import Workflow
from pointsman.auth.subjects import DefinitionMissing, InputInvalid
from pointsman.engine.decide.lifecycle import WrongStatus
from pointsman.engine.plan import Plan
from pointsman.engine.reports import EventReceived
from pointsman.executions.inputs import EventTooLarge
from pointsman.values import Json, JsonObject
from tests.installation import HandClock, listening, noting, opened

pytestmark = pytest.mark.integration


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


async def test_an_event_reaches_all_waiting_executions_even_those_evicted_before_a_restart(
    tmp_path: Path, clock: HandClock
) -> None:
    async with opened(tmp_path, clock) as app:
        parked = [await app.start(listening()) for _ in range(3)]
        other = await app.start(listening(event="sent"))
        for one in (*parked, other):
            assert await one.settled() == "waiting"
        ids = {one.id for one in parked}
    async with opened(tmp_path, clock) as app:
        published = await app.publish("paid", {"amount": 5})
        assert set(published.delivered) == ids
        assert (published.started, published.undelivered) == ((), ())
        views = [await app.view(id) for id in ids]
        assert [view["status"] for view in views] == ["completed"] * 3
        assert [view["output"] for view in views] == [{"got": {"amount": 5}}] * 3
        assert (await app.view(other.id))["status"] == "waiting"


async def test_an_event_wakes_only_executions_whose_match_is_true(tmp_path: Path, clock: HandClock) -> None:
    async with opened(tmp_path, clock) as app:
        mine = await app.start(listening(match="event.order == input.order"), {"order": 7})
        other = await app.start(listening(match="event.order == input.order"), {"order": 8})
        for one in (mine, other):
            await one.settled()
        rows = await other.rows()
        published = await app.publish("paid", {"order": 7})
        assert (mine.status, other.status) == ("completed", "waiting")
        assert published.delivered == (mine.id,)
        assert await other.rows() == rows, "who does not take it has no row of it"


async def test_an_execution_that_does_not_match_an_event_is_not_loaded_and_takes_the_next(
    tmp_path: Path, clock: HandClock
) -> None:
    async with opened(tmp_path, clock) as app:
        parked = [await app.start(listening(match="event.order == input.order"), {"order": n}) for n in (1, 2, 3)]
        for one in parked:
            await one.settled()
        lengths = [len(await one.rows()) for one in parked]
    async with opened(tmp_path, clock) as app:
        assert (await app.publish("paid", {"order": 9})).delivered == ()
        assert (await app.publish("paid", {"order": 2}, key="k")).delivered == (parked[1].id,)
        assert set(app.runtime.drivers) <= {parked[1].id}
    async with opened(tmp_path, clock) as app:
        views = [await app.view(one.id) for one in parked]
        assert [view["status"] for view in views] == ["waiting", "completed", "waiting"]
        again = [len([row async for row in app.store.journal.read(one.id)]) for one in parked]
        assert (again[0], again[2]) == (lengths[0], lengths[2])
        assert (await app.publish("paid", {"order": 2}, key="k")).delivered == (), "who took it knows the key"
        assert (await app.publish("paid", {"order": 3}, key="k")).delivered == (parked[2].id,)


async def test_an_event_published_again_after_a_crash_is_consumed_once(tmp_path: Path, clock: HandClock) -> None:
    async with opened(tmp_path, clock) as app:
        first, second = [await app.start(listening(match="event.n == 1")) for _ in range(2)]
        for one in (first, second):
            await one.settled()
        driver = await app.runtime.open(first.id)
        await driver.deliver(EventReceived(name="paid", data={"n": 1}, key="order-1"))
        rows = len(await first.rows())
    async with opened(tmp_path, clock) as app:
        assert (await app.publish("paid", {"n": 1}, key="order-1")).delivered == (second.id,)
        assert len([row async for row in app.store.journal.read(first.id)]) == rows


async def test_a_match_that_cannot_be_evaluated_fails_its_step_and_is_reported(
    tmp_path: Path, clock: HandClock
) -> None:
    async with opened(tmp_path, clock) as app:
        broken = await app.start(listening(match="event.n > 3"))
        await broken.settled()
        assert (await app.publish("paid", {"n": {}})).delivered == (broken.id,)
        assert await broken.settled() == "failed"


async def test_an_event_published_again_with_its_key_has_no_effect(tmp_path: Path, clock: HandClock) -> None:
    triggers: list[Json] = [{"id": "on", "type": "event", "event": "go"}]
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=triggers))
        waits = await app.start(listening("two", event="go"))
        await waits.settled()
        first = await app.publish("go", {"n": 1}, key="delivery-1")
    async with opened(tmp_path, clock) as app:
        again = await app.publish("go", {"n": 1}, key="delivery-1")
        assert (again.delivered, again.started) == ((), first.started)
        assert len(await app.executions()) == 2


async def test_an_event_starts_the_workflows_that_it_triggers(tmp_path: Path, clock: HandClock) -> None:
    trigger: Json = {
        "id": "big",
        "type": "event",
        "event": "paid",
        "match": "event.amount > 3",
        "inputs": {"sum": "event.amount * 2"},
        "initialData": {"from": "shop"},
    }
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[trigger]))
    async with opened(tmp_path, clock) as app:
        assert (await app.publish("paid", {"amount": 1})).started == ()
        (started,) = (await app.publish("paid", {"amount": 5})).started
        assert (await app.open(started)).state.setup.input == {"sum": 10, "from": "shop"}
        failed = await app.publish("paid", {"amount": {}})
        assert [one.who for one in failed.undelivered] == ["report/big"]
        await app.save(noting(triggers=[]))
        assert (await app.publish("paid", {"amount": 5})).started == ()


async def test_a_recipients_failure_does_not_affect_other_recipients_of_an_event(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit: Json = {"id": "tell", "type": "emit", "config": {"event": "paid", "data": {"text": "{{input.text}}"}}}
    telling = Workflow.of({"id": "telling", "nodes": [emit], "edges": []})
    async with opened(tmp_path, clock) as app:
        narrow = await app.start(listening("narrow", config={"limits": {"stateSize": "1KB"}}))
        first = await app.start(listening())
        for one in (narrow, first):
            await one.settled()
        emits = await app.start(telling, {"text": "x" * 2000})
        assert await emits.settled() == "completed"
        await emits.drained()
        assert (narrow.status, first.status) == ("waiting", "completed")
    async with opened(tmp_path, clock) as app:
        parked = [(await app.start(listening())).id for _ in range(2)]
    async with opened(tmp_path, clock) as app:
        pinned = app.library.pinned

        async def gone(definition: str, options: JsonObject) -> Plan:
            monkeypatch.setattr(app.library, "pinned", pinned)
            raise DefinitionMissing("it is not there")

        monkeypatch.setattr(app.library, "pinned", gone)
        published = await app.publish("paid", {"amount": 5})
        assert [len(published.delivered), len(published.undelivered)] == [2, 1]
        assert {*published.delivered, *(one.who for one in published.undelivered)} == {narrow.id, *parked}


async def test_a_signal_is_buffered_over_a_restart_for_a_later_wait(tmp_path: Path, clock: HandClock) -> None:
    nodes: list[Json] = [
        {"id": "gate", "type": "human", "config": {"message": "?", "options": ["approve"]}},
        {"id": "wait", "type": "wait", "config": {"event": "paid"}},
    ]
    edges: list[Json] = [{"source": "gate", "target": "wait"}]
    source = Workflow.of({"id": "later", "nodes": nodes, "edges": edges, "output": {"got": "nodes.wait.data"}})
    async with opened(tmp_path, clock) as app:
        execution = await app.start(source)
        await execution.settled()
        assert await execution.signal("paid", {"n": 5}, key="k") == "kept"
        assert await execution.signal("paid", {"n": 5}, key="k") == "known"
    async with opened(tmp_path, clock) as app:
        execution = await app.open(execution.id)
        assert await execution.signal("paid", {"n": 5}, key="k") == "known"
        await execution.answer("gate", "approve")
        assert await execution.settled() == "completed"
        assert execution.state.outcome.output == {"got": {"n": 5}}
        with pytest.raises(WrongStatus):
            await execution.signal("paid", {"n": 6})


async def test_a_too_large_event_is_refused(tmp_path: Path, clock: HandClock) -> None:
    async with opened(tmp_path, clock) as app:
        with pytest.raises(EventTooLarge):
            await app.publish("paid", "x" * 1_000_001)
        execution = await app.start(listening())
        with pytest.raises(EventTooLarge):
            await execution.signal("paid", "x" * 1_000_001)
        assert await execution.settled() == "waiting"


@pytest.mark.parametrize("name", ["", "x" * 201, "\ud800"])
async def test_an_event_with_an_invalid_name_is_refused(name: str, tmp_path: Path, clock: HandClock) -> None:
    async with opened(tmp_path, clock) as app:
        execution = await app.start(listening())
        for told in (app.publish(name, 1), execution.signal(name, 1)):
            with pytest.raises(InputInvalid):
                await told
        assert await execution.settled() == "waiting"


async def test_an_emitted_event_starts_workflows_once(tmp_path: Path, clock: HandClock) -> None:
    nodes: list[Json] = [{"id": "tell", "type": "emit", "config": {"event": "paid", "data": {"n": "{{input.n}}"}}}]
    async with opened(tmp_path, clock) as app:
        await app.save(noting(triggers=[{"id": "on", "type": "event", "event": "paid"}]))
        emits = await app.start(Workflow.of({"id": "shop", "nodes": nodes, "edges": []}), {"n": 3})
        await emits.settled()
        await emits.drained()
        started = [one for one in await app.executions() if one.workflow == "report"]
        assert len(started) == 1
        assert (await app.open(started[0].execution)).state.setup.input == {"n": 3}
