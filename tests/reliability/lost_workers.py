"""Three workers on each engine, the busiest of which is killed while executions with effects are under way.

    server ─▶ PostgreSQL ◀─ 3 workers ◀─ Temporal, Restate          after a quarter of all calls: kill -9 of the busiest

Every execution must complete with the right output, and only calls in flight may begin again. The figure has the
hand-over: how long the executions of the lost worker were still until another one began their next call.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from tests.engine_servers import RESTATE, TEMPORAL, EngineServer, RestateServer, TemporalServer, running
from tests.postgres import Cluster
from tests.reliability.findings import Finding, NotHere
from tests.reliability.servers import server
from tests.scale.cluster import CHARGING, STEPS, Installation, installation

WORKERS: Final = 3
STILL_S_MAX: Final = 30.0
PAID: Final = "paid"


class Loss(NamedTuple):
    """What the loss of one worker did."""

    violations: list[str]
    repeated: int
    """Calls in flight that another worker began again."""
    hand_overs_s: list[float]
    """In rising order."""

    @property
    def figure(self) -> str:
        if not self.hand_overs_s:
            return "nothing was handed over"
        p50, p99 = (self.hand_overs_s[int(part * len(self.hand_overs_s))] for part in (0.5, 0.99))
        times = f"still for {p50:.1f} s (p50), {p99:.1f} s (p99)"
        return f"{len(self.hand_overs_s)} handed over, {times}, {self.repeated} calls in flight repeated"


def engines(folder: Path) -> list[EngineServer]:
    """Return the engines. Raises `NotHere` if one is not installed."""
    if TEMPORAL is None or RESTATE is None:
        raise NotHere("no engines are installed (tests/install-temporal, tests/install-restate)")
    return [TemporalServer(TEMPORAL, folder), RestateServer(RESTATE, folder)]


async def loss_on(engine: EngineServer, store: str, folder: Path, executions: int, program: str = CHARGING) -> Loss:
    """Kill the busiest worker while `executions` are under way. `program`: that of the workers."""
    with running(engine, folder) as process:
        async with installation(store, process, folder, workers=0) as one:
            for _ in range(WORKERS):
                await one.add_worker(at_a_time=executions, module=program)
            started = [await one.start("short") for _ in range(executions)]
            await one.until_calls(executions * STEPS // 4)
            lost, fell = one.busiest(), time.time()
            lost.send(signal.SIGKILL)
            in_flight = one.in_flight(lost)
            try:
                await one.completed(started)
            except (AssertionError, TimeoutError) as why:
                return Loss([f"{engine.name}: an execution did not complete: {why}"], 0, [])
            hand_overs = one.hand_overs_s(lost, fell)
            violations = [f"{engine.name}: {line}" for line in await wrong(one, started, in_flight)]
            if not hand_overs:
                violations.append(f"{engine.name}: the lost worker drove nothing that another one continued")
            keys = Counter(call.key for call in one.calls)
            return Loss(violations, sum(keys.values()) - len(keys), hand_overs)


async def wrong(one: Installation, started: list[str], in_flight: set[str]) -> list[str]:
    """Return outputs that are wrong, and calls that began too often or not at all."""
    found: list[str] = []
    for execution in started:
        output = (await one.request("GET", f"/executions/{execution}")).json()["output"]
        if output != PAID:
            found.append(f"the output of {execution} is {output!r}")
    begun = Counter(call.key for call in one.calls)
    if len(begun) != len(started) * STEPS:
        found.append(f"{len(begun)} of {len(started) * STEPS} steps have a key of their own")
    for key, times in begun.items():
        if times > (2 if key in in_flight else 1):
            found.append(f"{key} began {times} times; in flight: {key in in_flight}")
    return found


def examine(size: int, seed: int) -> Finding:
    """Lose a worker on each engine under `size` executions. The moment depends on the machine, not on `seed`."""
    found: dict[str, Loss] = {}
    with server() as cluster, tempfile.TemporaryDirectory() as folder:
        for engine in engines(Path(folder)):
            place = Path(folder) / engine.name
            place.mkdir()
            found[engine.name] = asyncio.run(loss_on(engine, store_of(cluster, engine), place, size))
    figure = "; ".join(f"{name}: {loss.figure}" for name, loss in found.items())
    late = [
        f"{name}: {loss.figure}" for name, loss in found.items() if max(loss.hand_overs_s, default=0.0) > STILL_S_MAX
    ]
    return Finding(figure, tuple(line for loss in found.values() for line in loss.violations), tuple(late))


def store_of(cluster: Cluster, engine: EngineServer) -> str:
    return cluster.url(schema=f"loss_{engine.name}")
