"""python -m tests.reliability.victim STORE WORLD LOAD COUNT DIES: resumes unfinished executions, starts more, answers.

It prints one line for each event after it is true: `started ID`, `answered ID`, `ended ID STATUS`, and `over` when
COUNT executions have been started and all are finished. Then it exits; usually it is killed before, or dies at the
moment when effect number DIES has happened (0: never).
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final, cast

from pointsman import Pointsman
from pointsman.executions.execution import Execution
from pointsman.store.records import ExecutionQuery
from tests.reliability.workload import AT_ONCE, EFFECT_S, INPUT, OF, Load, charging, script, workflow

UNFINISHED: Final = frozenset({"pending", "running", "waiting"})
EVERYTHING: Final = 1_000_000


def say(line: str) -> None:
    """Print in one unbuffered write, so that the line is delivered even if this process dies now."""
    os.write(1, f"{line}\n".encode())


class Victim:
    """One process under load."""

    def __init__(self, pointsman: Pointsman, load: Load, count: int) -> None:
        self.pointsman = pointsman
        self.load: Load = load
        self.count = count
        self.places = asyncio.Semaphore(AT_ONCE[load])

    async def run(self) -> None:
        known = await self.pointsman.executions(ExecutionQuery(limit=EVERYTHING))
        unfinished = [one.execution for one in known if one.status in UNFINISHED]
        say("ready")
        async with asyncio.TaskGroup() as group:
            for execution in unfinished:
                await self.places.acquire()
                group.create_task(self.finish(await self.pointsman.open(execution)))
            for number in range(len(known), self.count):
                await self.places.acquire()
                kinds = OF[self.load]
                execution = await self.pointsman.start(workflow(kinds[number % len(kinds)]), INPUT)
                say(f"started {execution.id}")
                group.create_task(self.finish(execution))
        say("over")

    async def finish(self, execution: Execution) -> None:
        try:
            while (status := await execution.settled()) == "waiting":
                await execution.answer("ask", "yes", by="somebody")
                say(f"answered {execution.id}")
            say(f"ended {execution.id} {status}")
        finally:
            self.places.release()


async def live(words: list[str]) -> None:
    """Arguments: STORE WORLD LOAD COUNT DIES."""
    store, world, load, count = words[0], Path(words[1]), cast("Load", words[2]), int(words[3])
    tools = [charging(world, EFFECT_S[load], dies_after=int(words[4]))]
    async with Pointsman(store, tools=tools, script=script(), model="scripted") as pointsman:
        await Victim(pointsman, load, count).run()


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1:]))
