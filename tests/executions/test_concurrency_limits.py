"""Concurrency limits of a workflow, and its queue; in one process and in several."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path

import pytest

from pointsman import Pointsman, PointsmanError, Workflow
from pointsman.executions.concurrency_limits import Group
from pointsman.executions.execution import Execution
from pointsman.executions.opening import CONCURRENCY
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import Json, JsonObject


def asking(policy: str, most: int = 1, key: str | None = None) -> Workflow:
    """Return a workflow that waits for a person and so keeps its slot."""
    rule: JsonObject = {"max": most, "policy": policy}
    if key is not None:
        rule["key"] = key
    document: JsonObject = {
        "id": "asking",
        "input": {"type": "object"},
        "concurrency": rule,
        "nodes": [{"id": "ask", "type": "human", "config": {"message": "?", "options": [{"value": "yes"}]}}],
        "edges": [],
    }
    return Workflow.parse(json.dumps(document))


@dataclass(frozen=True)
class Stage:
    """A store that several apps open, in sequence or concurrently. An app of a server uses real time."""

    store: str
    virtual: bool

    def opened(self) -> Pointsman:
        return Pointsman(self.store, clock=VirtualClock() if self.virtual else None)

    def play(self, scene: Coroutine[object, object, None]) -> None:
        if self.virtual:
            run_virtually(scene)
        else:
            asyncio.run(scene)


@pytest.fixture(params=["sqlite", "postgres"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    if request.param == "memory":
        return Stage("memory:", virtual=True)
    if request.param == "sqlite":
        return Stage(f"sqlite:///{tmp_path}/places.db", virtual=True)
    return Stage(request.getfixturevalue("postgres_url"), virtual=False)


async def passed(execution: Execution) -> str:
    """Answer its gate once it is open; return the final status."""
    await execution.settled()
    await execution.answer("ask", "yes")
    return await execution.settled()


@pytest.mark.parametrize("stage", ["memory", "sqlite", "postgres"], indirect=True)
def test_executions_over_the_limit_wait_in_their_order(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.opened() as app:
            first, second, third = [await app.start(asking("queue")) for _ in range(3)]
            assert [one.status for one in (first, second, third)] == ["waiting", "pending", "pending"]
            assert await passed(first) == "completed"
            await second.settled()
            assert (second.status, third.status) == ("waiting", "pending")
            assert await passed(second) == "completed"
            assert await passed(third) == "completed"

    stage.play(scene())


def test_a_pending_execution_starts_in_the_process_that_sees_a_free_place(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.opened() as one:
            first = await one.start(asking("queue"))
            async with stage.opened() as other:
                second = await other.start(asking("queue"))
                assert second.status == "pending"
                assert await passed(first) == "completed"
                seen = await one.view(second.id)
                assert seen["status"] in ("pending", "waiting")
        async with stage.opened() as later:
            assert await passed(await later.open(second.id)) == "completed"

    stage.play(scene())


def test_a_pending_execution_survives_every_process(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.opened() as app:
            first, second = [await app.start(asking("queue"), {"n": n}) for n in range(2)]
        async with stage.opened() as app:
            assert (await app.open(second.id)).status == "pending"
            await (await app.open(first.id)).cancel()
            again = await app.open(second.id)
            await again.settled()
            assert (again.status, again.state.setup.input) == ("waiting", {"n": 1})
            assert (await app.replay(again.id)).differences == []

    stage.play(scene())


def test_an_execution_over_the_limit_is_refused_without_details_of_others(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.opened() as app:
            first = await app.start(asking("skip"))
            with pytest.raises(PointsmanError, match="has reached its limit") as refused:
                await app.start(asking("skip"))
            assert refused.value.code == "concurrency-limit-reached"
            assert first.id not in f"{refused.value} {refused.value.hint}"
            assert len(await app.executions()) == 1, "nothing was started"
            assert await passed(first) == "completed"
            assert (await app.start(asking("skip"))).status == "waiting"

    stage.play(scene())


def test_an_execution_that_progressed_in_another_process_is_still_replaced(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.opened() as app, stage.opened() as other:
            first = await app.start(asking("replace"))
            await first.settled()
            await other.reach(first.id)
            await first.signal("news")
            second = await other.start(asking("replace"))
            assert (await second.settled(), (await other.view(first.id))["status"]) == ("waiting", "cancelled")

    stage.play(scene())


def test_a_closed_app_does_not_read_the_queue() -> None:
    """An execution that ends while the app closes does not start a task that reads the closed store."""

    async def scene() -> None:
        async with Pointsman("memory:", clock=VirtualClock()) as app:
            limits = app.context[CONCURRENCY]
        limits.look(Group("asking", 1))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtually(scene())


def test_a_new_execution_replaces_the_oldest(stage: Stage) -> None:
    async def scene() -> None:
        async with stage.opened() as app:
            first, second, third = [await app.start(asking("replace", most=2)) for _ in range(3)]
            for one in (second, third):
                await one.settled()
            assert [one.status for one in (first, second, third)] == ["cancelled", "waiting", "waiting"]

    stage.play(scene())


def test_a_limit_with_a_key_counts_each_value_separately() -> None:
    async def scene() -> None:
        async with Pointsman("memory:", clock=VirtualClock()) as app:
            inputs: list[Json] = [{"who": "ada"}, {"who": "bob"}, {"who": "ada"}]
            started = [await app.start(asking("queue", key="input.who"), one) for one in inputs]
            assert [one.status for one in started] == ["waiting", "waiting", "pending"]

    run_virtually(scene())


def test_the_limit_holds_for_concurrent_starts_in_several_processes(stage: Stage) -> None:
    async def scene() -> None:
        async with (
            stage.opened() as one,
            stage.opened() as other,
        ):
            apps = [one, other] * 5
            started = await asyncio.gather(*(app.start(asking("skip", most=3)) for app in apps), return_exceptions=True)
            running = [found for found in started if isinstance(found, Execution)]
            refused = [found for found in started if isinstance(found, PointsmanError)]
            assert (len(running), len(refused)) == (3, 7)
            assert {error.code for error in refused} == {"concurrency-limit-reached"}

    stage.play(scene())


def test_one_key_starts_once_and_returns_the_existing_execution(stage: Stage) -> None:
    async def scene() -> None:
        plain = Workflow.parse(json.dumps({**json.loads(asking("queue").document.text), "concurrency": None}))
        async with stage.opened() as app:
            several = await asyncio.gather(*(app.start(plain, {"n": 1}, key="order-7") for _ in range(4)))
            assert len({one.id for one in several}) == 1
            other = await app.start(plain, {"n": 1}, key="order-8")
            assert other.id != several[0].id
        async with stage.opened() as app:
            again = await app.start(plain, {"n": 1}, key="order-7")
            assert (again.id, len(await app.executions())) == (several[0].id, 2)
            with pytest.raises(PointsmanError) as refused:
                await app.start(plain, {"n": 2}, key="order-7")
            assert refused.value.code == "key-reused"

    stage.play(scene())
