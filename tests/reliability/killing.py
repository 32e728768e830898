"""kill -9 of a process under load, again and again: nothing acknowledged is lost, nothing recorded is paid twice.

    victim ──▶ store      rows and recorded effects
       ├─────▶ world      one line per effect that really happened
       └─────▶ pipe       what it acknowledged: starts, answers, ends

After every kill the store is read as it lies there. What it then holds as recorded must never happen again. What it
does not hold was in flight when the process died, and happens once more, under the same key: exactly once, for its
answer is lost. Behind an effect that is not recorded nothing may have begun.

In turns one dies on the spot, when an effect has happened and nobody can know of it, and one is killed at any moment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from pointsman.engine.events.lifecycle import ExecutionCompleted
from pointsman.engine.events.steps import InstantStepCompleted, StepStarted, StepSucceeded
from pointsman.engine.events.waits import GateClosed
from pointsman.ports import Row
from pointsman.store.api import Store, open_store
from pointsman.store.records import ExecutionQuery
from pointsman.values import ExecutionId
from tests.reliability.deeds import Deed, deeds_in, flights_of, happened_in, wrong_repeats
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
SESSIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pointsman'"
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

    def __init__(
        self,
        store: str,
        world: Path,
        load: Load,
        count: int,
        *,
        victim: tuple[str, ...] = VICTIM,
        gone: Callable[[], bool] = lambda: True,
    ) -> None:
        """`gone`: whether nothing more comes of a process that died, not even from a server that was asked."""
        self.store, self.world, self.count = store, world, count
        self.load: Load = load
        self.victim = victim
        self.gone = gone
        self.told = Told()
        self.recorded: set[str] = set()
        """Effects that a store held as recorded after a kill."""
        self.flown: Counter[str] = Counter()
        """How often an effect had happened, and was in flight, when its process died."""
        self.violations: list[str] = []
        self._life = 0

    def _victim(self, *, dies_after: int = 0) -> subprocess.Popen[str]:
        paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        words = [self.store, self.world, self.load, str(self.count), str(dies_after)]
        victim = subprocess.Popen(
            [sys.executable, "-m", *self.victim, *words],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
        )
        self._life = victim.pid
        return victim

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
            self._bury(victim)

    def let_die(self, effects: int) -> None:
        """One life, which ends with that effect; or by our hand, where there are not so many."""
        with self._victim(dies_after=effects) as victim:
            patience = threading.Timer(LIFE_S_MAX, victim.kill)
            patience.start()
            try:
                self._bury(victim)
            finally:
                patience.cancel()

    def _bury(self, victim: subprocess.Popen[str]) -> None:
        """Hear its last words; return when nothing more comes of it."""
        assert victim.stdout is not None
        for line in victim.stdout:
            self.told.hear(line)
        victim.wait()
        patience = time.monotonic() + LIFE_S_MAX
        while not self.gone() and time.monotonic() < patience:
            time.sleep(0.01)

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
        return happened_in(self.world)

    async def look(self) -> None:
        """Read the store as a kill has left it."""
        deeds = deeds_in(self.world)
        mine = [deed for deed in deeds if deed.life == self._life and deed.verb == "happened"]
        self.violations += [
            f"{key}: twice in one life" for key, times in Counter(d.key for d in mine).items() if times > 1
        ]
        flying = flights_of(deeds, self._life)
        store = await open_store(self.store)
        try:
            self.violations += [f"after a kill: {line}" for line in await store.verify()]
            known = {one.execution for one in await store.executions.list(ExecutionQuery(limit=EVERYTHING))}
            self.violations += [f"{one}: acknowledged and lost" for one in sorted(self.told.started - known)]
            for deed in mine:
                if await is_recorded(store, deed):
                    self.recorded.add(deed.key)
                elif deed.key in flying:
                    self.flown[deed.key] += 1
                else:
                    self.violations.append(f"{deed.key}: not recorded, and the execution went on behind it")
        finally:
            await store.close()

    async def end(self) -> None:
        """Let everything finish that was started, and judge: all of it was done, once."""
        self.count = len(self.told.started)
        await asyncio.to_thread(self.finish)
        happened = self.happened
        self.violations += wrong_repeats(happened, self.flown, self.recorded)
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


async def is_recorded(store: Store, deed: Deed) -> bool:
    """Whether the store answers the effect from now on: its step is settled, or the effect is kept."""
    name = ExecutionId(deed.execution)
    async for row in store.journal.read(name):
        if any(isinstance(event, StepSucceeded) and str(event.step) == deed.step for event in row.events):
            return True
    return deed.number in await store.effects.recorded(name, f"{deed.step}:1")


def wrong_in(rows: list[Row], status: str) -> list[str]:
    """What must not be in the rows of a finished execution."""
    events = [event for row in rows for event in row.events]
    begun = Counter(event.step for event in events if isinstance(event, StepStarted | InstantStepCompleted))
    done = Counter(event.step for event in events if isinstance(event, StepSucceeded))
    wrong = [f"{step} began {times} times" for step, times in begun.items() if times > 1]
    wrong += [f"{step} succeeded {times} times" for step, times in done.items() if times > 1]
    if status != "completed" or not any(isinstance(event, ExecutionCompleted) for event in events):
        wrong.append(f"it is {status}")
    if [row.seq for row in rows] != list(range(1, len(rows) + 1)):
        wrong.append("its rows have gaps")
    return wrong


async def besiege(siege: Siege, kills: int, seed: int) -> None:
    """So many lives and deaths, then the judgement."""
    random = Random(f"{seed}:{siege.load}")
    for number in range(kills):
        effects = random.randint(1, EFFECTS_PER_LIFE_MAX)
        if number % 2 == 0:
            await asyncio.to_thread(siege.let_die, effects)
        else:
            effects = 0 if random.random() < STILLBORN else effects
            await asyncio.to_thread(siege.kill_in, effects, random.uniform(0, EFFECT_S[siege.load]))
        await siege.look()
    await siege.end()
    if not siege.flown:
        siege.violations.append("nothing was in flight when a process died: nothing was shown")


async def examine_stores(siege_for: Callable[[Load, int], Siege], kills: int, seed: int) -> Finding:
    """Half of the kills hit one execution at a time, half hit many."""
    violations, figures = list[str](), list[str]()
    loads: tuple[Load, ...] = ("sequential", "parallel")
    count = max(1, kills // 2)
    for load in loads:
        siege = siege_for(load, count * PER_KILL[load])
        await besiege(siege, count, seed)
        violations += [f"{load}: {line}" for line in siege.violations]
        effects, flown = len(siege.happened), siege.flown.total()
        figures.append(f"{load}: {effects} effects, {flown} done once more that were in flight")
    return Finding(f"{kills} kills, {len(violations)} violations; {'; '.join(figures)}", tuple(violations))


def on_sqlite(size: int, seed: int) -> Finding:
    """`size` kills of processes on an SQLite file."""
    with tempfile.TemporaryDirectory() as name:

        def siege_for(load: Load, count: int) -> Siege:
            return Siege(f"sqlite:///{name}/{load}.db", Path(name) / f"{load}.log", load, count)

        return asyncio.run(examine_stores(siege_for, size, seed))


def on_postgres(size: int, seed: int) -> Finding:
    """`size` kills of processes on a PostgreSQL server of this experiment's own."""
    with server() as cluster, tempfile.TemporaryDirectory() as name:

        def siege_for(load: Load, count: int) -> Siege:
            # The server may still be busy with what a process asked before it died.
            def gone() -> bool:
                return cluster.value(SESSIONS) == "0"

            return Siege(cluster.url(schema=load), Path(name) / f"{load}.log", load, count, gone=gone)

        return asyncio.run(examine_stores(siege_for, size, seed))
