"""kill -9 of a process under load, again and again: nothing acknowledged is lost, nothing recorded is paid twice.

    victim ──▶ store      rows and recorded effects
       ├─────▶ world      one line per effect that really happened
       └─────▶ pipe       what it acknowledged: starts, answers, ends

After every kill the store is read as it lies there. What it then holds as recorded must never happen again; what
happened and is not recorded may, and is counted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from pointsman.engine.events import StepPassed, StepStarted, StepSucceeded
from pointsman.engine.life_events import ExecutionCompleted
from pointsman.engine.wait_events import GateClosed
from pointsman.journal.records import ExecutionQuery
from pointsman.journal.store import Store, open_store
from pointsman.ports import Row
from pointsman.values import ExecutionId
from tests.reliability.findings import Finding
from tests.reliability.servers import server
from tests.reliability.victim import EVERYTHING
from tests.reliability.workload import EFFECT_S, KINDS, Load

ROOT: Final = Path(__file__).parents[2]
EFFECTS_PER_LIFE_MAX: Final = 8
"""A victim dies somewhere in its first so many effects: counted, not timed, for machines are fast and slow."""
STILLBORN: Final = 0.1
"""The share of victims that die while they take up what the one before left."""
PER_KILL: Final[dict[Load, int]] = {"sequential": 3, "parallel": 4}
"""Executions started, per kill: always more than a victim can finish."""
LIFE_S_MAX: Final = 20.0
"""A victim that does nothing dies all the same."""
LAST_S: Final = 120.0
REPEATS_PER_KILL: Final[dict[Load, float]] = {"sequential": 0.1, "parallel": 0.3}
CHANCE: Final = 2
"""So many repeated effects more than the rate allows may be chance where kills are few."""
VICTIM: Final = ("tests.reliability.victim",)


@dataclass
class Told:
    """What victims acknowledged before they died."""

    started: set[str] = field(default_factory=set[str])
    answered: set[str] = field(default_factory=set[str])
    ended: dict[str, str] = field(default_factory=dict[str, str])

    def hear(self, line: str) -> None:
        match line.split():
            case ["started", execution]:
                self.started.add(execution)
            case ["answered", execution]:
                self.answered.add(execution)
            case ["ended", execution, status]:
                self.ended[execution] = status
            case _:
                pass


class Siege:
    """One store, one world, and the victims that come and go."""

    def __init__(self, store: str, world: Path, load: Load, count: int, *, victim: tuple[str, ...] = VICTIM) -> None:
        self.store, self.world, self.load, self.count = store, world, load, count
        self.victim = victim
        self.told = Told()
        self.recorded: dict[str, int] = {}
        """Effects that a store held as recorded after a kill -> how often they had happened by then."""
        self.violations: list[str] = []

    def _victim(self) -> subprocess.Popen[str]:
        paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        return subprocess.Popen(
            [sys.executable, "-m", *self.victim, self.store, self.world, self.load, str(self.count)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
        )

    def kill_in(self, effects: int, seconds: float) -> None:
        """One life: until it says `ready`, then so many effects, then so long."""
        with self._victim() as victim:
            assert victim.stdout is not None
            self._hear_until(victim, "ready")
            goal, patience = self.happened.total() + effects, time.monotonic() + LIFE_S_MAX
            while self.happened.total() < goal and victim.poll() is None and time.monotonic() < patience:
                time.sleep(0.001)
            time.sleep(seconds)
            victim.send_signal(signal.SIGKILL)
            for line in victim.stdout:
                self.told.hear(line)

    def finish(self) -> None:
        """The last victim is spared."""
        with self._victim() as victim:
            self._hear_until(victim, "over")
            if victim.wait(timeout=LAST_S) != 0:
                self.violations.append(f"the last process ended with {victim.returncode}")

    def _hear_until(self, victim: subprocess.Popen[str], word: str) -> None:
        assert victim.stdout is not None
        for line in victim.stdout:
            self.told.hear(line)
            if line.strip() == word:
                return
        self.violations.append(f"a process ended by itself with {victim.wait(timeout=LAST_S)}")

    @property
    def happened(self) -> Counter[str]:
        """Effects by idempotency key."""
        lines = self.world.read_text().splitlines() if self.world.exists() else []
        return Counter(line.split()[0] for line in lines)

    async def look(self) -> None:
        """Read the store as a kill has left it."""
        happened = self.happened
        store = await open_store(self.store)
        try:
            self.violations += [f"after a kill: {line}" for line in await store.verify()]
            known = {one.execution for one in await store.executions.list(ExecutionQuery(limit=EVERYTHING))}
            self.violations += [f"{one}: acknowledged and lost" for one in sorted(self.told.started - known)]
            for key in happened:
                if key not in self.recorded and await is_recorded(store, key):
                    self.recorded[key] = happened[key]
        finally:
            await store.close()

    async def end(self) -> None:
        """Let everything finish that was started, and judge: all of it was done, once."""
        self.count = len(self.told.started)
        await asyncio.to_thread(self.finish)
        happened = self.happened
        for key, times in self.recorded.items():
            if happened[key] > times:
                self.violations.append(f"{key}: recorded, and paid again")
        store = await open_store(self.store)
        try:
            for one in await store.executions.list(ExecutionQuery(limit=EVERYTHING)):
                rows = [row async for row in store.journal.read(one.execution)]
                effects = sum(key.startswith(f"{one.execution}:") for key in happened)
                if effects != KINDS[one.workflow].effects:
                    self.violations.append(f"{one.execution}: {effects} effects in all")
                self.violations += [f"{one.execution}: {line}" for line in wrong_in(rows, one.status)]
                answered = any(isinstance(event, GateClosed) for row in rows for event in row.events)
                if one.execution in self.told.answered and not answered:
                    self.violations.append(f"{one.execution}: answered, and the answer is lost")
        finally:
            await store.close()


async def is_recorded(store: Store, key: str) -> bool:
    """Whether the store answers the effect of that key from now on: its step is settled, or the effect is kept."""
    execution, _, rest = key.partition(":")
    step, number, _ = rest.rsplit(":", 2)
    name = ExecutionId(execution)
    async for row in store.journal.read(name):
        if any(isinstance(event, StepSucceeded) and str(event.step) == step for event in row.events):
            return True
    return int(number) in await store.effects.recorded(name, f"{step}:1")


def wrong_in(rows: list[Row], status: str) -> list[str]:
    """What must not be in the rows of a finished execution."""
    events = [event for row in rows for event in row.events]
    begun = Counter(event.step for event in events if isinstance(event, StepStarted | StepPassed))
    done = Counter(event.step for event in events if isinstance(event, StepSucceeded))
    wrong = [f"{step} began {times} times" for step, times in begun.items() if times > 1]
    wrong += [f"{step} succeeded {times} times" for step, times in done.items() if times > 1]
    if status != "completed" or not any(isinstance(event, ExecutionCompleted) for event in events):
        wrong.append(f"it is {status}")
    if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
        wrong.append("its rows have gaps")
    return wrong


async def besiege(store: str, world: Path, load: Load, kills: int, seed: int) -> tuple[Siege, int]:
    """So many lives and deaths, then the judgement. Also: how many effects were repeated."""
    random = Random(f"{seed}:{load}")
    siege = Siege(store, world, load, kills * PER_KILL[load])
    for _ in range(kills):
        effects = 0 if random.random() < STILLBORN else random.randint(1, EFFECTS_PER_LIFE_MAX)
        await asyncio.to_thread(siege.kill_in, effects, random.uniform(0, EFFECT_S[load]))
        await siege.look()
    await siege.end()
    return siege, sum(times - 1 for times in siege.happened.values())


async def examine_store(address: Callable[[Load], str], directory: Path, kills: int, seed: int) -> Finding:
    """Half of the kills hit one execution at a time, half hit many."""
    violations, figures = list[str](), list[str]()
    loads: tuple[Load, ...] = ("sequential", "parallel")
    for load in loads:
        count = max(1, kills // 2)
        siege, repeats = await besiege(address(load), directory / f"{load}.log", load, count, seed)
        violations += [f"{load}: {line}" for line in siege.violations]
        if repeats > REPEATS_PER_KILL[load] * count + CHANCE:
            violations.append(f"{load}: {repeats} effects that were not recorded were repeated in {count} kills")
        total = sum(siege.happened.values())
        figures.append(f"{load}: {repeats / count:.2f} of {total} effects repeated per kill")
    return Finding(f"{kills} kills, {len(violations)} violations; {'; '.join(figures)}", tuple(violations))


def on_sqlite(size: int, seed: int) -> Finding:
    """`size` kills of processes on an SQLite file."""
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(examine_store(lambda load: f"sqlite:///{name}/{load}.db", Path(name), size, seed))


def on_postgres(size: int, seed: int) -> Finding:
    """`size` kills of processes on a PostgreSQL server of this experiment's own."""
    with server() as cluster, tempfile.TemporaryDirectory() as name:
        return asyncio.run(examine_store(lambda load: cluster.url(schema=load), Path(name), size, seed))
