"""PostgreSQL crashes and restarts while executions run: nothing is lost, repeated or skipped, and no process is
restarted.

The server is stopped as by a power cut (`immediate`), stays down for a moment, and is started again. The same process
continues executions whose driver lost its journal.
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
from tests.reliability.effect_log import happened_in
from tests.reliability.findings import Finding
from tests.reliability.killing import wrong_in
from tests.reliability.servers import server
from tests.reliability.workload import INPUT, charging, script, workflow

EFFECT_S: Final = 0.03
AT_ONCE: Final = ("chain", "fan", "agent", "chain", "fan", "agent")
EFFECTS_MAX: Final = 15
"""The server crashes after at most this many of about thirty effects."""
AWAY_S: Final = (0.0, 0.5)
TRIES_MAX: Final = 200
"""A process retries this many times before the experiment reports it as stuck."""
TRY_AGAIN_S: Final = 0.1


class Load:
    """One process that continues during outages of the server."""

    def __init__(self, pointsman: Pointsman) -> None:
        self.pointsman = pointsman
        self.refusals: Counter[str] = Counter()
        self.finished: dict[str, str] = {}
        """Acknowledged executions -> their last status."""
        self.under_way = 0
        """Executions that a crash hit."""

    async def work(self, kind: str) -> None:
        """Start one execution and wait for its end. A refused call is retried in this process."""
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


async def more_effects(world: Path, effects: int) -> None:
    """Return when that many more effects have happened."""
    goal = happened_in(world).total() + effects
    for _ in range(TRIES_MAX):
        if happened_in(world).total() >= goal:
            return
        await asyncio.sleep(EFFECT_S)


async def restart(cluster: Cluster, times: int, seed: int) -> tuple[list[str], Load]:
    """Start executions continuously while the server crashes that many times."""
    random, violations = Random(seed), list[str]()
    with tempfile.TemporaryDirectory() as name:
        tools = [charging(Path(name) / "world", EFFECT_S)]
        async with Pointsman(cluster.url(schema="load"), tools=tools, script=script(), model="scripted") as pointsman:
            load = Load(pointsman)
            for _ in range(times):
                working = asyncio.gather(*(load.work(kind) for kind in AT_ONCE))
                await more_effects(Path(name) / "world", random.randint(2, EFFECTS_MAX))
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
    """Crash the server `size` times."""
    with server() as cluster:
        violations, load = asyncio.run(restart(cluster, size, seed))
    told = ", ".join(f"{times} {code}" for code, times in load.refusals.most_common(4)) or "nobody noticed"
    figure = f"{size} crashes under {load.under_way} running executions; refused meanwhile: {told}"
    return Finding(f"{figure}; {len(violations)} violations", tuple(violations))
