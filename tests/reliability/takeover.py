"""Two owners of one execution: the old one, presumed dead, continues. None of its rows may follow those of the new one.

The old owner is frozen at a random moment, like a machine that stands still, with all its pending decisions. The new
owner takes over, and then the old one continues where it was.

In every second pair of rounds, both are leaders of the store, one after the other: the old one has lost its lock
without notice (its file was deleted). The epoch of the new leader must refuse every kind of write of the old one.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Final

from pointsman import Pointsman, Workflow
from pointsman.errors import PointsmanError
from pointsman.executions.execution import OwnershipLost
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.store.api import Store
from pointsman.store.errors import LeaderSuperseded
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.testing.journals import row_of
from pointsman.tools.functions import tool
from pointsman.tools.tool import Tool
from pointsman.values import ExecutionId, JsonObject
from tests.reliability.findings import Finding
from tests.reliability.killing import wrong_in
from tests.reliability.small_time_steps import ticking
from tests.reliability.workload import FAN, INPUT

EFFECT_S: Final = 1.0
STEPS: Final = 6
PATIENT: Final[JsonObject] = {"limits": {"nodeTime": "10h"}}
"""Under load, virtual time runs far ahead of the threads of the stores."""
SHAPES: Final[tuple[JsonObject, ...]] = (
    {**FAN, "config": PATIENT},
    {
        "id": "row",
        "config": PATIENT,
        "nodes": [
            {"id": f"step{number}", "type": "tool", "config": {"tool": "charge", "parameters": {"what": f"{number}"}}}
            for number in range(STEPS)
        ],
        "edges": [{"source": f"step{number}", "target": f"step{number + 1}"} for number in range(STEPS - 1)],
    },
)


class Owner:
    """One app, which can be frozen."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.awake = asyncio.Event()
        self.awake.set()
        self.wrote: list[int] = []
        """Rows that were acknowledged to it."""

    @property
    def tools(self) -> list[Tool]:
        @tool
        async def charge(what: str) -> str:
            """Charge an account."""
            await asyncio.sleep(EFFECT_S * self.random.uniform(0.5, 2))
            await self.awake.wait()
            return what

        return [charge]

    def see(self, seen: Committed | Delta) -> None:
        if isinstance(seen, Committed):
            self.wrote.append(seen.row.seq)


async def examined(number: int, seed: int) -> list[str]:
    """Run one takeover and return the violations. A journal with rows of both owners may even fail to fold."""
    try:
        return await take_over(number, seed)
    except Exception as why:
        return [f"takeover {number}: {why!r}"]


async def finished(owner: Pointsman, execution: str) -> str:
    """Open the execution until it is settled. The old owner may be faster while the new one has appended nothing."""
    for _ in range(2 * STEPS):
        try:
            return await (await owner.open(execution)).settled()
        except OwnershipLost:
            continue
    return "taken over again and again"


async def take_over(number: int, seed: int) -> list[str]:
    """Run one takeover and return the violations."""
    random = Random(f"{seed}:{number}")
    old, new, clock = Owner(random), Owner(random), VirtualClock()
    keeps = number % 4 >= 2
    with tempfile.TemporaryDirectory() as name:
        store = f"sqlite:///{name}/store.db"
        async with (
            Pointsman(store, tools=old.tools, model="scripted", clock=clock) as before,
            Pointsman(store, tools=new.tools, model="scripted", clock=clock) as after,
            ticking(),
        ):
            before.feed.watch(old.see)
            after.feed.watch(new.see)
            lost = (await before.store.lead("old")).lost if keeps else None
            execution = await before.start(Workflow.of(SHAPES[number % 2]), INPUT)
            await asyncio.sleep(random.uniform(0, EFFECT_S * 3))
            old.awake.clear()
            await asyncio.sleep(EFFECT_S * 2)
            asleep_s = random.uniform(0, EFFECT_S * 4)
            asyncio.get_running_loop().call_later(asleep_s, old.awake.set)
            told, wrong = "", list[str]()
            if lost is not None:
                (Path(name) / "store.db-keeper").unlink()
                await after.store.lead("new")
            status = await finished(after, execution.id)
            old.awake.set()
            try:
                await execution.settled()
            except PointsmanError as why:
                told = why.code
            await asyncio.sleep(EFFECT_S * 10)
            if lost is not None:
                wrong += await writes_of(before.store)
                wrong += [] if lost.is_set() else ["the old keeper was not told that it is none any more"]
            rows = [row async for row in after.store.journal.read(execution.id)]
            wrong += await after.store.verify()
    if old.wrote and new.wrote and old.wrote[-1] > new.wrote[0]:
        wrong.append("a row of the old owner behind the first of the new one")
    wrong += [f"row {seq} was acknowledged to both" for seq in sorted({*old.wrote} & {*new.wrote})]
    wrong += wrong_in(rows, status)
    if told not in ("", "ownership-lost", "leader-superseded"):
        wrong.append(f"the old owner was told {told!r}")
    return [f"takeover {number}: {line}" for line in wrong]


async def writes_of(store: Store) -> list[str]:
    """Return the writes of a superseded leader that are not refused."""
    late = ExecutionId("exec-late")
    tries: dict[str, Callable[[], Awaitable[object]]] = {
        "a row": lambda: store.journal.append(late, row_of(1, "old")),
        "an effect": lambda: store.effects.record(late, "step:1", 1, "old"),
        "a memory": lambda: store.memory.put("long_term", "desk", "key", "old"),
        "a message": lambda: store.sessions.append("talk", ("old",), after=0),
        "an entry": lambda: store.entries.put("schedule", "key", "old"),
        "a content": lambda: store.blobs.put(b"old"),
        "a deletion": lambda: store.removal.remove(ExecutionId("exec-nobody"), at=0),
    }
    taken: list[str] = []
    for name, write in tries.items():
        try:
            await write()
            taken.append(f"the old keeper wrote {name} in the epoch of the new one")
        except LeaderSuperseded:
            continue
    return taken


def examine(size: int, seed: int) -> Finding:
    """Run `size` takeovers."""
    violations: list[str] = []
    for number in range(size):
        violations += run_virtually(examined(number, seed))
    return Finding(f"{size} takeovers, {len(violations)} violations", tuple(violations))
