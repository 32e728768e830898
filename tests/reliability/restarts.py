"""PostgreSQL crashes and comes back while executions run: nothing is lost, doubled or left out, and nobody restarts us.

The server is stopped as by a power cut (`immediate`), stays away for a moment, and is started again. Executions whose
driver lost its journal meanwhile are taken up by the same process.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from pointsman import Pointsman
from pointsman.errors import PointsmanError
from pointsman.values import ExecutionId
from tests.postgres import Cluster
from tests.reliability.deeds import happened_in
from tests.reliability.findings import Finding
from tests.reliability.killing import wrong_in
from tests.reliability.servers import server
from tests.reliability.workload import INPUT, charging, script, workflow

EFFECT_S: Final = 0.03
AT_ONCE: Final = ("chain", "fan", "agent", "chain", "fan", "agent")
EFFECTS_MAX: Final = 15
"""The server crashes after so many effects at most, of about thirty."""
AWAY_S: Final = (0.0, 0.5)
TRIES_MAX: Final = 200
"""So often a process tries again before the experiment calls it stuck."""
TRY_AGAIN_S: Final = 0.1


class Load:
    """One process that goes on whatever the server does."""

    def __init__(self, pointsman: Pointsman) -> None:
        self.pointsman = pointsman
        self.refusals: Counter[str] = Counter()
        self.finished: dict[str, str] = {}
        """Acknowledged executions -> their last status."""
        self.under_way = 0
        """Executions that a crash hit."""

    async def work(self, kind: str) -> None:
        """Start one execution, and see it end. What is refused is tried again, in this same process."""
        name = ""
        for _ in range(TRIES_MAX):
            try:
                if not name:
                    name = (await self.pointsman.start(workflow(kind), INPUT)).id
                    self.finished[name] = "acknowledged"
                self.finished[name] = await (await self.pointsman.open(name)).settled()
                return
            except PointsmanError as why:
                self.refusals[why.code] += 1
                await asyncio.sleep(TRY_AGAIN_S)


async def grown(world: Path, effects: int) -> None:
    """Return when so many more effects have happened."""
    goal = happened_in(world).total() + effects
    for _ in range(TRIES_MAX):
        if happened_in(world).total() >= goal:
            return
        await asyncio.sleep(EFFECT_S)


async def restart(cluster: Cluster, times: int, seed: int) -> tuple[list[str], Load]:
    """Executions without end, and a server that crashes so many times under them."""
    random, violations = Random(seed), list[str]()
    with tempfile.TemporaryDirectory() as name:
        tools = [charging(Path(name) / "world", EFFECT_S)]
        async with Pointsman(cluster.url(schema="load"), tools=tools, script=script(), model="scripted") as pointsman:
            load = Load(pointsman)
            for _ in range(times):
                working = asyncio.gather(*(load.work(kind) for kind in AT_ONCE))
                await grown(Path(name) / "world", random.randint(2, EFFECTS_MAX))
                load.under_way += sum(status == "acknowledged" for status in load.finished.values())
                await asyncio.to_thread(cluster.stop)
                await asyncio.sleep(random.uniform(*AWAY_S))
                await asyncio.to_thread(cluster.start)
                await working
            for execution, status in load.finished.items():
                rows = [row async for row in pointsman.store.journal.read(ExecutionId(execution))]
                violations += [f"{execution}: {line}" for line in wrong_in(rows, status)]
            violations += await pointsman.store.verify()
    if not load.under_way:
        violations.append("no crash hit anything: nothing was shown")
    if len(load.finished) < times * len(AT_ONCE):
        violations.append(f"only {len(load.finished)} of {times * len(AT_ONCE)} executions could be started")
    return violations, load


def examine(size: int, seed: int) -> Finding:
    """`size` crashes of the server."""
    with server() as cluster:
        violations, load = asyncio.run(restart(cluster, size, seed))
    told = ", ".join(f"{times} {code}" for code, times in load.refusals.most_common(4)) or "nobody noticed"
    figure = f"{size} crashes under {load.under_way} running executions; refused meanwhile: {told}"
    return Finding(f"{figure}; {len(violations)} violations", tuple(violations))
