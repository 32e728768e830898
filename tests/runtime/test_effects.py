"""A repeated attempt gets the recorded answers of its own paid calls from the store, and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ResumeRequested, Start, WorkDone, WorkFailed
from pointsman.engine.steps import Step
from pointsman.ports import EffectKind, ExecutionPort, Executor
from pointsman.runtime.dependencies import Feed, SystemClock
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.store.api import Store
from pointsman.store.sqlite import open_sqlite
from pointsman.values import Json
from tests.runtime.world import FIRST, Shelf, chain

pytestmark = pytest.mark.integration


class PaidWork:
    """Requests some effects in order, and hangs before those that are not allowed yet."""

    def __init__(self, *asks: tuple[EffectKind, str], hangs_at: int | None = None) -> None:
        self.asks = asks
        self.hangs_at = hangs_at
        self.paid: list[tuple[int, str, str]] = []
        self.hangs = asyncio.Event()

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """A result depends only on the definition and the input."""
        return None

    async def has(self, need: str) -> bool:
        return True

    def executor_for(self, command: Execute) -> Executor:
        return self

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> WorkDone | WorkFailed:
        answers: list[Json] = []
        for number, (kind, request) in enumerate(self.asks, start=1):
            known = run.effects.recorded(number, kind=kind, request=request)
            if known is None:
                if number == self.hangs_at:
                    self.hangs.set()
                    await asyncio.Event().wait()
                known = f"{request}!"
                self.paid.append((number, kind, request))
                await run.effects.record(number, kind, known, request=request)
            answers.append(known)
        return WorkDone(step=command.step, attempt=command.attempt, result=answers)


def runtime_over(store: Store, paying: PaidWork, durability: str = "step") -> tuple[LocalRuntime, Shelf]:
    shelf = Shelf(one=chain("a", config={"durability": durability}))
    return LocalRuntime(store, shelf, paying, SystemClock(), Feed()), shelf


async def broken_off(address: str, *asks: tuple[EffectKind, str], durability: str = "step") -> None:
    """Run an attempt whose process ends after all effects but the last."""
    store = await open_sqlite(address)
    paying = PaidWork(*asks, hangs_at=len(asks))
    runtime, shelf = runtime_over(store, paying, durability)
    await runtime.start(FIRST, shelf.plans["one"], Start(input={}, definition="one"))
    await paying.hangs.wait()
    await runtime.close()
    await store.close()


async def taken_up(address: str, paying: PaidWork, durability: str = "step") -> Driver:
    store = await open_sqlite(address)
    runtime, _ = runtime_over(store, paying, durability)
    driver = await runtime.open(FIRST)
    await driver.until(lambda: driver.state.ended)
    await store.close()
    return driver


async def test_a_recorded_call_is_not_paid_again_after_a_crash(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    await broken_off(address, ("model", "one"), ("tool", "two"), ("model", "three"))
    paying = PaidWork(("model", "one"), ("tool", "two"), ("model", "three"))
    driver = await taken_up(address, paying)
    assert paying.paid == [(3, "model", "three")]
    assert driver.state.outcome.output == ["one!", "two!", "three!"]


@pytest.mark.parametrize(("kind", "request_"), [("tool", "one"), ("model", "other")])
async def test_a_recorded_answer_is_not_used_for_another_request(
    kind: EffectKind, request_: str, tmp_path: Path
) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    await broken_off(address, ("model", "one"), ("model", "two"))
    paying = PaidWork((kind, request_), ("model", "two"))
    driver = await taken_up(address, paying)
    assert driver.state.outcome.failure is not None
    assert (driver.state.outcome.failure.code, paying.paid) == ("effect-mismatch", [])


async def test_with_lossy_durability_another_request_is_sent(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    await broken_off(address, ("model", "one"), ("model", "two"), durability="async")
    paying = PaidWork(("model", "other"), ("model", "two"))
    driver = await taken_up(address, paying, durability="async")
    assert (driver.state.status, driver.state.outcome.output) == ("completed", ["other!", "two!"])


async def test_a_limit_during_an_attempt_does_not_repeat_paid_calls(tmp_path: Path) -> None:
    store = await open_sqlite(f"sqlite:///{tmp_path}/store.db")
    paying = PaidWork(("model", "one"), ("model", "two"), hangs_at=2)
    shelf = Shelf(one=chain("a", config={"limits": {"executionTime": "50ms"}}))
    runtime = LocalRuntime(store, shelf, paying, SystemClock(), Feed())
    driver = await runtime.start(FIRST, shelf.plans["one"], Start(input={}, definition="one"))
    await driver.until(lambda: driver.state.status == "interrupted")
    await driver.drained()
    paying.hangs_at = None
    await driver.deliver(ResumeRequested(limits={"executionTime": 60.0}))
    await driver.until(lambda: driver.state.ended)
    assert [number for number, _, _ in paying.paid] == [1, 2]
    await store.close()


async def test_the_late_result_of_a_cancelled_or_superseded_attempt_is_refused(tmp_path: Path) -> None:
    store = await open_sqlite(f"sqlite:///{tmp_path}/store.db")
    paying = PaidWork(("model", "one"), hangs_at=1)
    runtime, shelf = runtime_over(store, paying)
    driver = await runtime.start(FIRST, shelf.plans["one"], Start(input={}, definition="one"))
    await paying.hangs.wait()
    for stale in (WorkDone(step=Step("a"), attempt=0, result="late"), WorkDone(step=Step("b"), attempt=1)):
        assert await driver.deliver(stale) == ()
    assert await runtime.journal.last(FIRST) == 1
    await runtime.close()
    await store.close()
