"""Many people answer one gate at once; answers, cancellations and deadlines race: exactly one wins, the others are
refused.

Two apps share the store, like two processes. Virtual time lets a gate's deadline coincide with the answers.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Final

from pointsman import Pointsman, Workflow
from pointsman.engine.events.waits import GateClosed
from pointsman.errors import PointsmanError
from pointsman.executions.execution import Execution, OwnershipLost
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.values import JsonObject
from tests.reliability.findings import Finding
from tests.reliability.small_time_steps import ticking

PEOPLE: Final = 20
TIMEOUT_S: Final = 60
TOO_LATE: Final = frozenset({"gate-closed"})
"""Codes for late answers in the process that drives the execution."""
TOO_LATE_ELSEWHERE: Final = TOO_LATE | {"journal-moved", "driver-lost", "ownership-lost"}
"""Codes for late answers in another process, which must read the execution again."""
GATE: Final[JsonObject] = {
    "id": "gate",
    "config": {"humanInLoop": "approval_gates"},
    "nodes": [
        {
            "id": "ask",
            "type": "human",
            "config": {
                "message": "?",
                "options": [{"value": f"option{number}"} for number in range(PEOPLE)],
                "timeout": f"{TIMEOUT_S}s",
                "onTimeout": "option0",
            },
        }
    ],
    "edges": [],
}


class Race:
    """One gate, and all callers who try to close it."""

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.random = Random(f"{seed}:{number}")
        self.told: Counter[str] = Counter()

    async def answer(self, execution: Execution, person: int) -> None:
        try:
            await execution.answer("ask", f"option{person}", by=f"person{person}")
        except PointsmanError as why:
            self.told[why.code] += 1
        else:
            self.told["taken"] += 1

    async def run(self, here: Pointsman, there: Pointsman) -> list[str]:
        """Run the race and return the violations."""
        execution = await here.start(Workflow.of(GATE), {})
        await execution.settled()
        other = await there.reach(execution.id) if self.number % 3 == 0 else execution
        people = [execution] * (PEOPLE // 2) + [other] * (PEOPLE // 2)
        runners = [self.answer(one, person) for person, one in enumerate(people)]
        self.random.shuffle(runners)
        if self.number % 4 == 3:
            await asyncio.sleep(TIMEOUT_S)  # The deadline takes part in the race.
        if self.number % 4 == 2:
            await asyncio.gather(*runners[:5], self.cancel(execution), *runners[5:])
        else:
            await asyncio.gather(*runners)
        return await self.judge(here, execution, elsewhere=other is not execution)

    async def cancel(self, execution: Execution) -> None:
        try:
            await execution.cancel()
        except PointsmanError as why:
            self.told[why.code] += 1

    async def judge(self, here: Pointsman, execution: Execution, *, elsewhere: bool) -> list[str]:
        with suppress(OwnershipLost):
            await execution.settled()
        state, _ = await here.state_and_events(execution.id)
        rows = [row async for row in here.store.journal.read(execution.id)]
        closed = [event for row in rows for event in row.events if isinstance(event, GateClosed)]
        wrong: list[str] = []
        if not state.ended:
            wrong.append(f"it is {state.status}")
        if len(closed) > 1 or (not closed and state.status != "cancelled"):
            wrong.append(f"the gate was closed {len(closed)} times")
        if self.told["taken"] > 1:
            wrong.append(f"{self.told['taken']} people were told that their answer counts")
        if self.told["taken"] == 1 and not (closed and closed[0].by.startswith("person")):
            wrong.append("somebody was told that the answer counts, and it does not")
        legal = {"taken", "wrong-status", *(TOO_LATE_ELSEWHERE if elsewhere else TOO_LATE)}
        wrong += [f"{times} were told {code!r}" for code, times in self.told.items() if code not in legal]
        return [f"gate {self.number}: {line}" for line in wrong]


async def race(count: int, seed: int) -> tuple[list[str], Counter[str]]:
    violations, told = list[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        store, clock = f"sqlite:///{name}/store.db", VirtualClock()
        async with Pointsman(store, clock=clock) as here, Pointsman(store, clock=clock) as there, ticking():
            for number in range(count):
                one = Race(number, seed)
                violations += await one.run(here, there)
                told += one.told
    return violations, told


def examine(size: int, seed: int) -> Finding:
    """Run races for `size` gates."""
    violations, told = run_virtually(race(size, seed))
    counts = ", ".join(f"{times} {code}" for code, times in sorted(told.items()))
    return Finding(f"{size} gates × {PEOPLE} people: {counts}; {len(violations)} violations", tuple(violations))
