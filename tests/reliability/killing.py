"""kill -9 of a process under load, many times: nothing acknowledged is lost, and nothing recorded is paid twice.

    victim ──▶ store      rows and recorded effects
       ├─────▶ world      one line per effect that really happened
       └─────▶ pipe       its acknowledgements: starts, answers, ends

After every kill the store is read as it is. An effect that it has recorded must never happen again. An effect that it
has not recorded was in flight when the process died; it happens exactly once more, with the same key, because its
answer is lost. No effect may have begun after an effect that is not recorded.

Kills alternate: at the moment when an effect has happened and is not yet known, and at random moments.
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
from tests.quick_starts import quick_starts
from tests.reliability.effect_log import Deed, deeds_in, happened_in, in_flight_of, wrong_repeats
from tests.reliability.findings import Finding
from tests.reliability.servers import server
from tests.reliability.victim import EVERYTHING
from tests.reliability.workload import EFFECT_S, KINDS, Load

ROOT: Final = Path(__file__).parents[2]
EFFECTS_PER_LIFE_MAX: Final = 8
"""A victim dies within its first effects, at most this many. They are counted and not timed, because machines
differ."""
DEATHS_IN_RECOVERY: Final = 0.1
"""Share of victims that die while they recover the executions of the previous one."""
PER_KILL: Final[dict[Load, int]] = {"sequential": 3, "parallel": 4}
"""Number of executions started per kill: always more than a victim can finish."""
LIFE_S_MAX: Final = 20.0
"""A victim without effects is killed after this time."""
LAST_S: Final = 120.0
SESSIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pointsman'"
VICTIM: Final = ("tests.reliability.victim",)


@dataclass
class Acknowledged:
    """Acknowledgements of victims before they died."""

    started: set[str] = field(default_factory=set[str])
    answered: set[str] = field(default_factory=set[str])
    ended: dict[str, str] = field(default_factory=dict[str, str])

    def record(self, line: str) -> None:
        match line.split():
            case ["started", execution]:
                self.started.add(execution)
            case ["answered", execution]:
                self.answered.add(execution)
            case ["ended", execution, status]:
                self.ended[execution] = status
            case _:
                pass


class KillExperiment:
    """One store, one log of effects, and the sequence of victims."""

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
        """`gone`: returns whether a dead process has no more effects, not even through requests that it sent to a
        server."""
        self.store, self.world, self.count = store, world, count
        self.load: Load = load
        self.victim = victim
        self.gone = gone
        self.told = Acknowledged()
        self.recorded: set[str] = set()
        """Effects that the store had recorded at a kill."""
        self.in_flight_counts: Counter[str] = Counter()
        """Number of times that an effect had happened and was in flight when its process died."""
        self.violations: list[str] = []
        self._life = 0

    def _victim(self, *, dies_after: int = 0) -> subprocess.Popen[str]:
        paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        words = [self.store, self.world, self.load, str(self.count), str(dies_after)]
        with quick_starts():
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
        """Run one victim until it reports `ready`, then for a number of effects, then for some seconds."""
        with self._victim() as victim:
            assert victim.stdout is not None
            self._hear_until(victim, "ready")
            goal, patience = self.happened.total() + effects, time.monotonic() + LIFE_S_MAX
            while self.happened.total() < goal and victim.poll() is None and time.monotonic() < patience:
                time.sleep(0.001)
            time.sleep(seconds)
            victim.send_signal(signal.SIGKILL)
            self._read_last_output(victim)

    def run_until_effect(self, effects: int) -> None:
        """Run one victim that dies at its effect of that number; kill it if it has fewer effects."""
        with self._victim(dies_after=effects) as victim:
            patience = threading.Timer(LIFE_S_MAX, victim.kill)
            patience.start()
            try:
                self._read_last_output(victim)
            finally:
                patience.cancel()

    def _read_last_output(self, victim: subprocess.Popen[str]) -> None:
        """Read the last output of a victim; return when it has no more effects."""
        assert victim.stdout is not None
        for line in victim.stdout:
            self.told.record(line)
        victim.wait()
        patience = time.monotonic() + LIFE_S_MAX
        while not self.gone() and time.monotonic() < patience:
            time.sleep(0.01)

    def finish(self) -> None:
        """Run the last victim without killing it."""
        with self._victim() as victim:
            self._hear_until(victim, "over")
            if victim.wait(timeout=LAST_S) != 0:
                self.violations.append(f"the last process ended with {victim.returncode}")

    def _hear_until(self, victim: subprocess.Popen[str], word: str) -> None:
        assert victim.stdout is not None
        for line in victim.stdout:
            self.told.record(line)
            if line.strip() == word:
                return
        self.violations.append(f"a process ended by itself with {victim.wait(timeout=LAST_S)}")

    @property
    def happened(self) -> Counter[str]:
        """Return the number of times each effect happened, by idempotency key."""
        return happened_in(self.world)

    async def look(self) -> None:
        """Read the store as the kill left it."""
        deeds = deeds_in(self.world)
        mine = [deed for deed in deeds if deed.life == self._life and deed.verb == "happened"]
        self.violations += [
            f"{key}: twice in one life" for key, times in Counter(d.key for d in mine).items() if times > 1
        ]
        flying = in_flight_of(deeds, self._life)
        store = await open_store(self.store)
        try:
            self.violations += [f"after a kill: {line}" for line in await store.verify()]
            known = {one.execution for one in await store.executions.list(ExecutionQuery(limit=EVERYTHING))}
            self.violations += [f"{one}: acknowledged and lost" for one in sorted(self.told.started - known)]
            for deed in mine:
                if await is_recorded(store, deed):
                    self.recorded.add(deed.key)
                elif deed.key in flying:
                    self.in_flight_counts[deed.key] += 1
                else:
                    self.violations.append(f"{deed.key}: not recorded, and the execution went on behind it")
        finally:
            await store.close()

    async def end(self) -> None:
        """Finish all started executions and check that every effect happened once."""
        self.count = len(self.told.started)
        await asyncio.to_thread(self.finish)
        happened = self.happened
        self.violations += wrong_repeats(happened, self.in_flight_counts, self.recorded)
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
    """Return whether the store will answer the effect from now on: its step is settled, or the effect is recorded."""
    name = ExecutionId(deed.execution)
    async for row in store.journal.read(name):
        if any(isinstance(event, StepSucceeded) and str(event.step) == deed.step for event in row.events):
            return True
    return deed.number in await store.effects.recorded(name, f"{deed.step}:1")


def wrong_in(rows: list[Row], status: str) -> list[str]:
    """Return violations in the rows of a finished execution."""
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


async def run_kills(experiment: KillExperiment, kills: int, seed: int) -> None:
    """Run and kill victims, then check the result."""
    random = Random(f"{seed}:{experiment.load}")
    for number in range(kills):
        effects = random.randint(1, EFFECTS_PER_LIFE_MAX)
        if number % 2 == 0:
            await asyncio.to_thread(experiment.run_until_effect, effects)
        else:
            effects = 0 if random.random() < DEATHS_IN_RECOVERY else effects
            await asyncio.to_thread(experiment.kill_in, effects, random.uniform(0, EFFECT_S[experiment.load]))
        await experiment.look()
    await experiment.end()
    if not experiment.in_flight_counts:
        experiment.violations.append("nothing was in flight when a process died: nothing was shown")


async def examine_both_loads(siege_for: Callable[[Load, int], KillExperiment], kills: int, seed: int) -> Finding:
    """Use half of the kills on one execution at a time, half on many."""
    violations, figures = list[str](), list[str]()
    loads: tuple[Load, ...] = ("sequential", "parallel")
    count = max(1, kills // 2)
    for load in loads:
        experiment = siege_for(load, count * PER_KILL[load])
        await run_kills(experiment, count, seed)
        violations += [f"{load}: {line}" for line in experiment.violations]
        effects, in_flight_counts = len(experiment.happened), experiment.in_flight_counts.total()
        figures.append(f"{load}: {effects} effects, {in_flight_counts} done once more that were in flight")
    return Finding(f"{kills} kills, {len(violations)} violations; {'; '.join(figures)}", tuple(violations))


def on_sqlite(size: int, seed: int) -> Finding:
    """Kill processes on an SQLite file `size` times."""
    with tempfile.TemporaryDirectory() as name:

        def siege_for(load: Load, count: int) -> KillExperiment:
            return KillExperiment(f"sqlite:///{name}/{load}.db", Path(name) / f"{load}.log", load, count)

        return asyncio.run(examine_both_loads(siege_for, size, seed))


def on_postgres(size: int, seed: int) -> Finding:
    """Kill processes on a PostgreSQL server of this experiment `size` times."""
    with server() as cluster, tempfile.TemporaryDirectory() as name:

        def siege_for(load: Load, count: int) -> KillExperiment:
            # The server may still process the last statement of a dead process.
            def gone() -> bool:
                return cluster.value(SESSIONS) == "0"

            return KillExperiment(cluster.url(schema=load), Path(name) / f"{load}.log", load, count, gone=gone)

        return asyncio.run(examine_both_loads(siege_for, size, seed))
