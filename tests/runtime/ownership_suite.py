"""Conformance suite of ownerships: what an execution does wherever it is driven, with the same journal.

Each scenario sends its requests to one app, the front; this or another one drives the executions. `journals` are the
journals of what it started, without times, seeds and ids: those of every ownership are equal.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec
import pytest

from pointsman import Pointsman, Workflow, tool
from pointsman.client.events import PublicEvent
from pointsman.errors import PointsmanError
from pointsman.executions.execution import Execution
from pointsman.runtime import local
from pointsman.store.records import ExecutionQuery
from pointsman.tools.tool import Tool
from pointsman.values import ExecutionId, Json, JsonObject
from tests.patience import PATIENCE_S

VOLATILE: Final = frozenset({"at", "seed", "by", "key", "options", "definition", "ms", "parent"})
"""Fields whose values depend on the time, the process, or random numbers."""
ID: Final = re.compile(r"exec-[0-9a-z]{26}")


class Work:
    """Tools with effects, which count their calls by the idempotency key."""

    def __init__(self) -> None:
        self.calls = Counter[str]()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.is_broken = False

    @property
    def tools(self) -> list[Tool]:
        @tool
        async def charge(text: str = "") -> str:
            """Charge a card."""
            self.calls["charge"] += 1
            return f"paid {text}".strip()

        @tool
        async def slow() -> str:
            """Charge a card, and take as long as the test wants."""
            self.calls["slow"] += 1
            self.begun.set()
            await self.go_on.wait()
            return "paid"

        @tool
        async def fragile() -> str:
            """Charge a card, unless it is broken."""
            self.calls["fragile"] += 1
            if self.is_broken:
                raise ValueError("the card reader is broken")
            return "paid"

        return [charge, slow, fragile]


def flow(name: str, *nodes: JsonObject) -> Workflow:
    """Return a workflow whose nodes follow one another."""
    edges: list[Json] = [{"source": one["id"], "target": then["id"]} for one, then in pairwise(nodes)]
    return Workflow.of({"pointsman": 1, "id": name, "nodes": [*nodes], "edges": edges})


def call(name: str, of: str = "charge") -> JsonObject:
    return {"id": name, "type": "tool", "config": {"tool": of}}


GATE: Final[JsonObject] = {"id": "ask", "type": "human", "config": {"message": "Go on?"}}
GATED: Final = flow("gated", call("before"), GATE, call("after"))


async def ended(execution: Execution, status: str = "completed") -> None:
    assert await asyncio.wait_for(execution.settled(), PATIENCE_S) == status


async def waits(execution: Execution) -> None:
    """Wait until only a person or an event continues an execution."""
    await ended(execution, "waiting")


async def completes_steps(app: Pointsman, work: Work) -> None:
    execution = await app.start(flow("chain", call("one"), call("two"), call("three")))
    assert await asyncio.wait_for(execution.output(), PATIENCE_S) == "paid"
    assert work.calls == {"charge": 3}


async def answers_a_gate(app: Pointsman, work: Work) -> None:
    execution = await app.start(GATED)
    await waits(execution)
    with pytest.raises(PointsmanError) as refused:
        await execution.answer("nothing", "approve")
    assert refused.value.code == "no-such-gate"
    await execution.answer("ask", "approve", key="one")
    await execution.answer("ask", "approve", key="one")
    await ended(execution)
    assert work.calls == {"charge": 2}


async def fires_timers(app: Pointsman, work: Work) -> None:
    """One timer is near, the other so far that an idle execution is released before."""
    near: JsonObject = {"id": "near", "type": "wait", "config": {"duration": "50ms"}}
    far: JsonObject = {"id": "far", "type": "wait", "config": {"duration": f"{1.5 * local.REST_S:g}s"}}
    await ended(await app.start(flow("timers", near, call("between"), far, call("after"))))
    assert work.calls == {"charge": 2}


async def receives_signals(app: Pointsman, work: Work) -> None:
    waiting: JsonObject = {"id": "wait", "type": "wait", "config": {"event": {"name": "news"}}}
    execution = await app.start(flow("listens", waiting, call("after")))
    await waits(execution)
    await execution.signal("news", {"number": 7}, key="one")
    await ended(execution)
    assert work.calls == {"charge": 1}


async def delivers_events_of_other_executions(app: Pointsman, work: Work) -> None:
    waiting: JsonObject = {"id": "wait", "type": "wait", "config": {"event": "paid"}}
    execution = await app.start(flow("listens", waiting, call("after")))
    await waits(execution)
    sends: JsonObject = {"id": "send", "type": "emit", "config": {"event": "paid", "data": {"number": 7}}}
    await ended(await app.start(flow("sends", sends)))
    await ended(execution)
    assert work.calls == {"charge": 1}


async def cancels_a_running_step(app: Pointsman, work: Work) -> None:
    execution = await app.start(flow("slow", call("work", "slow"), call("after")))
    await asyncio.wait_for(work.begun.wait(), PATIENCE_S)
    await execution.cancel(reason="enough")
    await ended(execution, "cancelled")
    assert work.calls == {"slow": 1}


async def cancels_what_waits(app: Pointsman, work: Work) -> None:
    execution = await app.start(GATED)
    await waits(execution)
    await execution.cancel()
    await ended(execution, "cancelled")
    assert work.calls == {"charge": 1}


async def pauses_and_resumes(app: Pointsman, work: Work) -> None:
    execution = await app.start(flow("slow", call("work", "slow"), call("after")))
    await asyncio.wait_for(work.begun.wait(), PATIENCE_S)
    await execution.pause()
    work.go_on.set()
    await ended(execution, "paused")
    await until(lambda: has_done(execution, "work"))
    assert work.calls == {"slow": 1}
    await execution.resume()
    await ended(execution)
    assert work.calls == {"slow": 1, "charge": 1}


async def retries_a_failed_step(app: Pointsman, work: Work) -> None:
    work.is_broken = True
    execution = await app.start(flow("fragile", call("before"), call("work", "fragile"), call("after")))
    await ended(execution, "failed")
    failed = work.calls["fragile"]
    work.is_broken = False
    await execution.retry()
    await ended(execution)
    assert work.calls == {"charge": 2, "fragile": failed + 1}


async def runs_sub_workflows(app: Pointsman, work: Work) -> None:
    await app.save(GATED)
    below: JsonObject = {"id": "below", "type": "workflow", "config": {"workflow": "gated"}}
    execution = await app.start(flow("above", call("first"), below, call("last")))
    await waits(execution)
    await until(lambda: has_gate(app, execution.id))
    (gate,) = execution.gates
    await execution.asking(gate).answer("ask", "approve")
    await ended(execution)
    assert work.calls == {"charge": 4}


async def forks(app: Pointsman, work: Work) -> None:
    execution = await app.start(GATED)
    await waits(execution)
    copy = await app.fork(execution.id)
    await waits(copy)
    for one in (copy, execution):
        await one.answer("ask", "approve")
        await ended(one)
    assert work.calls == {"charge": 3}


def graph(name: str, nodes: Sequence[JsonObject], *edges: tuple[str, str], **more: Json) -> Workflow:
    """Return a workflow. An edge is `source, target`, or `source:mark, target`."""
    ends = [(*source.partition(":"), target) for source, target in edges]
    drawn: list[Json] = [{"source": at, "target": to, **({"mark": mark} if mark else {})} for at, _, mark, to in ends]
    return Workflow.of({"pointsman": 1, "id": name, "nodes": [*nodes], "edges": drawn, **more})


async def fans_out_and_joins(app: Pointsman, work: Work) -> None:
    each: JsonObject = {"id": "each", "type": "parallel", "config": {"items": "[1, 2, 3]", "maxParallel": 1}}
    nodes: list[JsonObject] = [each, call("pay"), {"id": "all", "type": "join"}, call("after")]
    execution = await app.start(graph("fans", nodes, ("each", "pay"), ("pay", "all"), ("all", "after")))
    await ended(execution)
    assert work.calls == {"charge": 4}


async def repeats_a_loop_and_chooses_a_branch(app: Pointsman, work: Work) -> None:
    nodes: list[JsonObject] = [
        {"id": "again", "type": "loop", "config": {"until": "n > 2", "maxIterations": 5}},
        {"id": "count", "type": "transform", "config": {"set": {"n": "n + 1"}}},
        {"id": "decide", "type": "decision", "config": {"expression": "n > 2"}},
        call("yes"),
        call("no", "fragile"),
    ]
    edges: list[Json] = [
        {"source": "again", "target": "count", "mark": "body"},
        {"source": "count", "target": "again"},
        {"source": "again", "target": "decide", "mark": "exit"},
        {"source": "decide", "target": "yes", "condition": {"type": "label", "label": "true"}},
        {"source": "decide", "target": "no", "condition": {"type": "label", "label": "false"}},
    ]
    document: JsonObject = {"pointsman": 1, "id": "loops", "entry": "again", "state": {"n": {"default": 0}}}
    await ended(await app.start(Workflow.of({**document, "nodes": [*nodes], "edges": edges})))
    assert work.calls == {"charge": 1}


async def undoes_steps(app: Pointsman, work: Work) -> None:
    work.is_broken = True
    booked: JsonObject = {**call("book"), "compensate": "undo"}
    nodes = [booked, call("work", "fragile"), call("undo")]
    execution = await app.start(graph("undoes", nodes, ("book", "work")))
    await ended(execution, "failed")
    assert work.calls["charge"] == 2


def tag_of(event: PublicEvent) -> str:
    return str(type(event).__struct_config__.tag)


async def stores_nothing_without_persistence(app: Pointsman, work: Work) -> None:
    execution = await app.start(graph("passing", [call("one")], config={"persistence": "none"}))
    await ended(execution)
    assert work.calls == {"charge": 1}
    if app.store.shared:  # A store in memory needs no second one.
        assert await journals(app) == []


async def streams_its_events(app: Pointsman, work: Work) -> None:
    """Whoever follows from the start receives what a reader finds afterwards."""
    execution = await app.start(flow("streamed", call("work", "slow"), GATE, call("after")))
    await asyncio.wait_for(work.begun.wait(), PATIENCE_S)
    followed: list[str] = []

    async def follow() -> None:
        followed.extend([tag_of(event) async for event in execution.events()])

    following = asyncio.create_task(follow())
    work.go_on.set()
    await waits(execution)
    await execution.answer("ask", "approve")
    await ended(execution)
    await asyncio.wait_for(following, PATIENCE_S)
    assert followed
    assert followed == [tag_of(event) async for event in execution.events(follow=False)][: len(followed)]


Scenario: TypeAlias = Callable[[Pointsman, Work], Awaitable[None]]
SCENARIOS: Final[Sequence[Scenario]] = (
    completes_steps,
    answers_a_gate,
    fires_timers,
    receives_signals,
    delivers_events_of_other_executions,
    cancels_a_running_step,
    cancels_what_waits,
    pauses_and_resumes,
    retries_a_failed_step,
    runs_sub_workflows,
    forks,
    fans_out_and_joins,
    repeats_a_loop_and_chooses_a_branch,
    undoes_steps,
    streams_its_events,
)


async def has_done(execution: Execution, node: str) -> bool:
    return node in str((await execution.view()).get("path"))


async def has_gate(app: Pointsman, execution: ExecutionId) -> bool:
    return bool((await app.open(execution)).gates)


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - another app changes it
            await asyncio.sleep(0.02)


async def journals(app: Pointsman) -> list[list[Json]]:
    """Return the events of all executions of a store, in the order of their starts, row by row."""
    found = await app.store.executions.list(ExecutionQuery(limit=100))
    return sorted([await journal(app, one.execution) for one in found], key=str)


async def journal(app: Pointsman, execution: ExecutionId) -> list[Json]:
    return [plain(msgspec.to_builtins(row.events)) async for row in app.store.journal.read(execution)]


def plain(value: Json) -> Json:
    """Return a value without the fields that differ between two runs."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in VOLATILE}
    if isinstance(value, str):
        return ID.sub("exec", value)
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
