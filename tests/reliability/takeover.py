"""Two owners of one execution: the old one, thought dead, goes on working. None of its rows may follow the new one's.

The old owner is stopped at a random moment of its work as a machine that stands still: everything it had decided stays
in its hands. The new one takes over, and the old one wakes up and goes on as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import tempfile
from random import Random
from typing import Final

from pointsman import Pointsman, Workflow
from pointsman.app.executions import TakenOver
from pointsman.engine.events import StepSucceeded
from pointsman.errors import PointsmanError
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.tools.functions import tool
from pointsman.tools.tool import Tool
from pointsman.values import JsonObject
from tests.reliability.findings import Finding
from tests.reliability.killing import wrong_in
from tests.reliability.ticking import ticking
from tests.reliability.workload import FAN, INPUT

EFFECT_S: Final = 1.0
STEPS: Final = 6
SHAPES: Final[tuple[JsonObject, ...]] = (
    FAN,
    {
        "id": "row",
        "nodes": [
            {"id": f"step{number}", "type": "tool", "config": {"tool": "charge", "parameters": {"what": f"{number}"}}}
            for number in range(STEPS)
        ],
        "edges": [{"source": f"step{number}", "target": f"step{number + 1}"} for number in range(STEPS - 1)],
    },
)


class Owner:
    """One installation. What it does is marked with its name; it can be made to stand still."""

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self.random = random
        self.awake = asyncio.Event()
        self.awake.set()

    @property
    def tools(self) -> list[Tool]:
        @tool
        async def charge(what: str) -> str:
            """Charge somebody."""
            await asyncio.sleep(EFFECT_S * self.random.uniform(0.5, 2))
            await self.awake.wait()
            return f"{self.name}: {what}"

        return [charge]


async def finished(owner: Pointsman, execution: str) -> str:
    """Take it up until it stands still. The old owner may be faster as long as the new one has appended nothing."""
    for _ in range(STEPS):
        try:
            return await (await owner.open(execution)).settled()
        except TakenOver:
            continue
    return "taken over again and again"


async def take_over(number: int, seed: int) -> list[str]:
    """One takeover; what must not be."""
    random = Random(f"{seed}:{number}")
    old, new, clock = Owner("old", random), Owner("new", random), VirtualClock()
    with tempfile.TemporaryDirectory() as name:
        store = f"sqlite:///{name}/store.db"
        async with (
            Pointsman(store, tools=old.tools, model="scripted", clock=clock) as before,
            Pointsman(store, tools=new.tools, model="scripted", clock=clock) as after,
            ticking(),
        ):
            execution = await before.start(Workflow.of(SHAPES[number % 2]), INPUT)
            await asyncio.sleep(random.uniform(0, EFFECT_S * 3))
            old.awake.clear()
            await asyncio.sleep(EFFECT_S * 2)
            asleep_s = random.uniform(0, EFFECT_S * 4)
            asyncio.get_running_loop().call_later(asleep_s, old.awake.set)
            told = ""
            status = await finished(after, execution.id)
            old.awake.set()
            try:
                await execution.settled()
            except PointsmanError as why:
                told = why.code
            await asyncio.sleep(EFFECT_S * 10)
            rows = [row async for row in after.store.journal.read(execution.id)]
            damage = await after.store.verify()
    events = [event for row in rows for event in row.events]
    done = [event for event in events if isinstance(event, StepSucceeded)]
    owners = [str(event.result).split(":")[0] for event in done if ":" in str(event.result)]
    wrong = list(damage)
    if "new" in owners and "old" in owners[owners.index("new") :]:
        wrong.append("a row of the old owner behind the first of the new one")
    wrong += wrong_in(rows, status)
    if told and told != "taken-over":
        wrong.append(f"the old owner was told {told!r}")
    return [f"takeover {number}: {line}" for line in wrong]


def examine(size: int, seed: int) -> Finding:
    """`size` takeovers."""
    violations: list[str] = []
    for number in range(size):
        violations += run_virtually(take_over(number, seed))
    return Finding(f"{size} takeovers, {len(violations)} violations", tuple(violations))
