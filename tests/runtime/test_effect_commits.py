"""The answer of a call is durable before the next call or with the row of the step: one commit per call, and only calls
in flight are repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from pointsman.engine.reports import Start
from pointsman.errors import Outage
from pointsman.ports import ModelReply, ModelRequest, Row
from pointsman.runtime.dependencies import Feed
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.store.errors import StoreFull
from pointsman.store.memory import MemoryEffects, MemoryJournal, MemoryStore
from pointsman.store.records import EffectRecord, Summary
from pointsman.tools.functions import tool
from pointsman.values import ExecutionId, Json, JsonObject
from tests.executors.stage import Stage
from tests.runtime.world import FIRST, Shelf

SCRIPT = """
rules:
  - {node: think, call: 1, toolCalls: [{name: pay, arguments: {what: rent}}, {name: pay, arguments: {what: gas}}]}
  - {node: think, call: 2, toolCalls: [{name: pay, arguments: {what: food}}]}
  - {node: think, text: all is paid}
"""
"""An agent that calls two tools in parallel, then one, and then answers: three requests and three calls."""
DOCUMENT: JsonObject = {
    "id": "paying",
    "nodes": [
        {"id": "first", "type": "tool", "config": {"tool": "pay", "parameters": {"what": "first"}}},
        {"id": "think", "type": "agent", "config": {"prompt": "Pay.", "model": "scripted", "tools": ["pay"]}},
        {"id": "last", "type": "tool", "config": {"tool": "pay", "parameters": {"what": "last"}}},
    ],
    "edges": [{"source": "first", "target": "think"}, {"source": "think", "target": "last"}],
}
CALLS = Counter({"first": 1, "rent": 1, "gas": 1, "food": 1, "last": 1, "think/1": 1, "think/2": 1, "think/3": 1})
AT_ONCE = {"rent", "gas"}
NEVER = 1_000_000


class Writes:
    """Counts the commits of a store. The process crashes at one of them, before or after it is durable."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.crash_at = NEVER
        self.after = False

    def begin(self, what: str) -> None:
        self.log.append(what)
        if not self.after:
            self._crash()

    def end(self) -> None:
        if self.after:
            self._crash()

    def _crash(self) -> None:
        if len(self.log) >= self.crash_at:
            raise StoreFull("the process has ended", hint="Start it again.")


class CountedJournal(MemoryJournal):
    def __init__(self, writes: Writes, summaries: dict[ExecutionId, Summary], effects: MemoryEffects) -> None:
        super().__init__(summaries, effects)
        self._writes = writes

    async def append(
        self,
        execution: ExecutionId,
        *rows: Row,
        summary: Summary | None = None,
        effects: Sequence[EffectRecord] = (),
    ) -> None:
        self._writes.begin("row" if not effects else f"row with {len(effects)} answer")
        await super().append(execution, *rows, summary=summary, effects=effects)
        self._writes.end()


class CountedEffects(MemoryEffects):
    def __init__(self, writes: Writes) -> None:
        super().__init__()
        self._writes = writes

    async def record(self, execution: ExecutionId, attempt: str, number: int, value: Json) -> None:
        self._writes.begin("answer")
        await super().record(execution, attempt, number, value)
        self._writes.end()


class World:
    """A store that outlives its processes, and the real calls."""

    def __init__(self) -> None:
        self.writes = Writes()
        self.store = MemoryStore()
        self.store.effects = CountedEffects(self.writes)
        self.store.journal = CountedJournal(self.writes, {}, self.store.effects)
        self.calls: Counter[str] = Counter()
        self.shelf = Shelf(paying=DOCUMENT)
        self.in_flight: set[str] = set()
        self.answer_chars = 0

    def process(self) -> LocalRuntime:
        @tool
        async def pay(what: str) -> str:
            """Pay."""
            self.calls[what] += 1
            return f"{what} is paid".ljust(self.answer_chars)

        stage = Stage(SCRIPT, pay)
        ask = stage.models.ask

        async def counted(request: ModelRequest, **more: object) -> ModelReply:
            self.calls[f"think/{request.hints['call']}"] += 1
            return await ask(request)

        stage.models.ask = counted
        return LocalRuntime(self.store, self.shelf, stage.executors, stage.clock, Feed())

    async def start(self) -> Driver:
        return await self.process().start(FIRST, self.shelf.plans["paying"], Start(input={}, definition="paying"))

    async def go_on(self) -> Driver:
        driver = await self.process().open(FIRST)
        await driver.until(lambda: driver.state.ended)
        return driver


async def test_each_call_costs_one_commit_and_a_tool_step_no_more() -> None:
    world = World()
    driver = await world.start()
    await driver.until(lambda: driver.state.ended)
    assert driver.state.status == "completed", driver.state.outcome.failure
    assert world.calls == CALLS
    assert world.writes.log == [
        "row",
        "row with 1 answer",
        *["answer"] * 5,  # Two requests and three tool calls; the third request has no calls.
        "row with 1 answer",
        "row with 1 answer",
    ]
    recorded = await world.store.effects.attempts(FIRST)
    assert recorded == ["first:1", "last:1", "think:1"]
    assert [*await world.store.effects.recorded(FIRST, "think:1")] == [1, 2, 3, 4, 5, 6]


async def test_a_large_answer_is_durable_before_the_row_because_both_would_be_encoded_at_once() -> None:
    world = World()
    world.answer_chars = 200_000
    driver = await world.start()
    await driver.until(lambda: driver.state.ended)
    assert driver.state.status == "completed", driver.state.outcome.failure
    assert world.writes.log[:3] == ["row", "answer", "row"]


@pytest.mark.parametrize("after", [False, True], ids=["before-commit", "after-commit"])
@pytest.mark.parametrize("crash_at", range(2, 10))
async def test_a_crash_repeats_only_the_calls_in_flight(crash_at: int, *, after: bool) -> None:
    world = World()
    world.writes.crash_at, world.writes.after = crash_at, after
    driver = await world.start()
    with pytest.raises(Outage):
        await driver.until(lambda: driver.state.ended)
    await driver.drained()
    done = +world.calls
    world.writes.crash_at = NEVER
    again = await world.go_on()
    assert again.state.status == "completed", again.state.outcome.failure
    repeated = world.calls - CALLS
    assert all(count == 1 for count in repeated.values()), "a crash repeats a call once"
    assert set(repeated) <= set(done)
    if after:
        assert set(repeated) <= AT_ONCE, "only a call beside the one whose answer is durable"
        assert len(repeated) <= 1
    else:
        assert repeated, "the answer was lost"
        assert len(repeated) == 1 or set(repeated) == AT_ONCE
