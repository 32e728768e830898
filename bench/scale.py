"""`python -m bench.scale`: what an engine adds to the cost of an execution, and what a cluster does; writes SCALE.md.

Every part is a process: a server, workers, Temporal or Restate, PostgreSQL. CPU is that of the processes, from /proc.
`pointsman serve` without an engine on the same PostgreSQL is measured in the same rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple
from uuid import uuid4

import psycopg

from bench.report import environment
from bench.turns import ROOT, table
from pointsman.executions.usage_rollup import CURSOR
from pointsman.store.postgres.connections import address_of
from pointsman.values import JsonObject
from tests.engine_servers import RESTATE, TEMPORAL, EngineProcess, RestateServer, TemporalServer, running
from tests.postgres import Cluster, own_cluster
from tests.scale.cluster import Installation, chain, installation
from tests.server.processes import ServerProcess

PAGE: Final = ROOT / "bench" / "SCALE.md"
SHORT: Final = 5
LONG: Final = 45
CALLS: Final = {"short": chain("short", SHORT, seconds=0.0), "long": chain("long", LONG, seconds=0.0)}
SLOW: Final = chain("slow", SHORT, seconds=1.0)
HANDED: Final = chain("handed", 40)
GATE: Final[JsonObject] = {
    "pointsman": 1,
    "id": "gate",
    "nodes": [
        {"id": "work", "type": "tool", "config": {"tool": "charge", "parameters": {"seconds": 0.0}}},
        {"id": "ask", "type": "human", "config": {"message": "Go on?"}},
    ],
    "edges": [{"source": "work", "target": "ask"}],
}
"""Calls a tool, so that a worker has driven it, and waits for a person."""
WORKERS: Final = (1, 2, 4)
AT_ONCE: Final = 16
ALONE: Final = 4
"""A quarter of the executions also run one after another."""
IDLE_S: Final = 20.0
SETTLES_S: Final = 5.0
WAITS_S: Final = 3600.0
TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and its ended children; 0 if it has ended: its parent has counted it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def rss_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def pids_of(servers: Iterable[ServerProcess]) -> list[int]:
    """Return the ids of those processes that run."""
    processes = [one.process for one in servers]
    return [one.pid for one in processes if one is not None and one.returncode is None]


def children(pid: int) -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(place.read_text().rpartition(")")[2].split()[1]) == pid:
                yield int(place.parent.name)
        except OSError:
            continue


class Spent(NamedTuple):
    """CPU seconds of the parts of an installation."""

    pointsman: float
    engine: float
    postgres: float

    def since(self, before: Spent) -> Spent:
        return Spent(*(now - then for now, then in zip(self, before, strict=True)))

    def times(self, number: float) -> Spent:
        return Spent(*(number * part for part in self))


class Bench:
    """One installation, with what it spends."""

    def __init__(self, one: Installation, store: str, cluster: Cluster) -> None:
        self.one = one
        address = address_of(store)
        self._database = psycopg.connect(address.within(address.schema), autocommit=True)
        self._idle = Spent(0.0, 0.0, 0.0)
        self._postmaster = int((cluster.folder / "data" / "postmaster.pid").read_text().partition("\n")[0])

    def close(self) -> None:
        self._database.close()

    def servers(self) -> list[int]:
        return pids_of(self.one.servers)

    def workers(self) -> list[int]:
        return pids_of(worker.server for worker in self.one.workers)

    def spent(self) -> Spent:
        engine = self.one.engine.process.pid if self.one.engine is not None and self.one.engine.process else 0
        pointsman, postgres = (*self.servers(), *self.workers()), (self._postmaster, *children(self._postmaster))
        return Spent(sum(map(cpu_s, pointsman)), cpu_s(engine) if engine else 0.0, sum(map(cpu_s, postgres)))

    def count(self, *statuses: str) -> int:
        query = "SELECT count(*) FROM summaries WHERE status = ANY(%s)"
        row = self._database.execute(query, ([*statuses],)).fetchone()
        return 0 if row is None else int(row[0])

    async def until(self, number: int, *statuses: str) -> None:
        async with asyncio.timeout(WAITS_S):
            while await asyncio.to_thread(self.count, *statuses) < number:  # noqa: ASYNC110 - processes change it
                await asyncio.sleep(0.1)

    async def indexed(self, at: float) -> None:
        """Wait until the server has indexed all executions that were there at this time (unix seconds)."""
        query = "SELECT convert_from(value, 'UTF8')::float FROM entries WHERE kind = %s AND key = %s"
        async with asyncio.timeout(WAITS_S):
            while True:
                row = await asyncio.to_thread(lambda: self._database.execute(query, CURSOR).fetchone())
                if row is not None and row[0] > at:
                    return
                await asyncio.sleep(1.0)

    async def start(self, workflow: str, number: int) -> list[str]:
        return await several(number, lambda _: self.one.start(workflow))

    async def run(self, workflow: str, number: int) -> tuple[float, Spent]:
        """Run executions to their ends; return the wall time, and the CPU of all parts beyond that of idling."""
        ended, before, began = self.count("completed"), self.spent(), time.monotonic()
        await self.start(workflow, number)
        await self.until(ended + number, "completed")
        wall = time.monotonic() - began
        return wall, self.spent().since(before).since(self._idle.times(wall))

    async def idle(self, seconds: float) -> Spent:
        """Return the CPU per second of all parts while nothing runs, and use it for `run`."""
        before = self.spent()
        await asyncio.sleep(seconds)
        self._idle = self.spent().since(before).times(1 / seconds)
        return self._idle


async def several(number: int, do: Callable[[int], Awaitable[str]]) -> list[str]:
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(index: int) -> str:
        async with limit:
            return await do(index)

    return await asyncio.gather(*map(one, range(number)))


class Round(NamedTuple):
    """The figures of one installation in one round."""

    alone: Spent
    """CPU seconds of a step while no other execution runs: each row is written by itself."""
    step: Spent
    """CPU seconds of a step among many: rows that are ready at the same time are written together."""
    execution: Spent
    """CPU seconds of an execution without its steps."""
    rate: dict[int, float]
    """Executions of five calls per second, by the number of workers."""
    rate_slow: dict[int, float]
    """The same with calls that take a second."""


async def measure(bench: Bench, executions: int) -> Round:
    for document in (*CALLS.values(), SLOW):
        await bench.one.save(document)
    await bench.run("short", 5)  # Warms up.
    await bench.idle(SETTLES_S)
    await bench.idle(SETTLES_S)
    alone = [await one_by_one(bench, workflow, max(1, executions // ALONE)) for workflow in CALLS]
    _, short = await bench.run("short", executions)
    _, long = await bench.run("long", executions)
    step = per_step(short.times(1 / executions), long.times(1 / executions))
    execution = Spent(*(few / executions - SHORT * one for few, one in zip(short, step, strict=True)))
    rates, slow = dict[int, float](), dict[int, float]()
    for workers in WORKERS if bench.one.engine is not None else WORKERS[:1]:
        while bench.one.engine is not None and len(bench.one.workers) < workers:
            await bench.one.add_worker(at_a_time=200)
        wall, _ = await bench.run("short", 2 * executions)
        rates[workers] = 2 * executions / wall
        wall, _ = await bench.run("slow", 4 * executions)
        slow[workers] = 4 * executions / wall
    return Round(per_step(*alone), step, execution, rates, slow)


async def one_by_one(bench: Bench, workflow: str, number: int) -> Spent:
    """Run executions one after another. Return what one of them cost."""
    spent = [(await bench.run(workflow, 1))[1] for _ in range(number)]
    return Spent(*map(sum, zip(*spent, strict=True))).times(1 / number)


def per_step(short: Spent, long: Spent) -> Spent:
    """Return the cost of a step, by the difference between the costs of an execution of each length."""
    return long.since(short).times(1 / (LONG - SHORT))


class HandOver(NamedTuple):
    """How long executions were still, in seconds, in rising order."""

    killed: list[float]
    stopped: list[float]


async def hand_over(bench: Bench, executions: int) -> HandOver:
    one = bench.one
    await one.save(HANDED)
    found: list[list[float]] = []
    for sign in (signal.SIGKILL, signal.SIGTERM):
        before, ended = len(one.calls), bench.count("completed")
        await bench.start("handed", executions)
        await one.until_calls(before + 3 * executions)
        lost, fell = one.busiest(), time.time()
        lost.send(sign)
        await bench.until(ended + executions, "completed")
        found.append(one.hand_overs_s(lost, fell))
        one.workers.remove(lost)
        await one.add_worker(at_a_time=200)
    return HandOver(*found)


class Parked(NamedTuple):
    """Executions that wait for a person."""

    number: int
    parking_s: float
    idle: Spent
    """CPU seconds per second."""
    server_mb: float
    worker_mb: float
    """0 without an engine: the server drives."""
    engine_mb: float
    answering_s: float


async def park(bench: Bench, number: int) -> Parked:
    await bench.one.save(GATE)
    began = time.monotonic()
    started = await bench.start("gate", number)
    await bench.until(number, "waiting")
    parking_s = time.monotonic() - began
    await asyncio.sleep(IDLE_S)  # Releases are stored.
    await bench.indexed(time.time())
    idle = await bench.idle(IDLE_S)
    engine = bench.one.engine.process if bench.one.engine is not None else None
    server_mb, worker_mb = (sum(map(rss_mb, pids)) for pids in (bench.servers(), bench.workers()))
    engine_mb = rss_mb(engine.pid) if engine is not None else 0.0
    began = time.monotonic()

    bench.one.client.timeout = WAITS_S  # On a busy machine an answer takes long; none is lost.

    async def answer(index: int) -> str:
        body = {"gateId": "ask", "action": "approve"}
        reply = await bench.one.request("POST", f"/executions/{started[index]}/respond", body)
        assert reply.status_code in (200, 202), reply.text
        return started[index]

    await several(number, answer)
    await bench.until(number, "completed")
    return Parked(number, parking_s, idle, server_mb, worker_mb, engine_mb, time.monotonic() - began)


@contextmanager
def engine_of(name: str, folder: Path) -> Generator[EngineProcess | None]:
    """Run an engine; None: the server drives everything itself."""
    programs = {"temporal": (TEMPORAL, TemporalServer), "restate": (RESTATE, RestateServer)}
    if name not in programs:
        yield None
        return
    program, kind = programs[name]
    if program is None:
        raise SystemExit(f"{name} is not installed: tests/install-{name}")
    with running(kind(program, folder), folder) as process:
        yield process


@asynccontextmanager
async def installed(name: str, cluster: Cluster, *, workers: int) -> AsyncGenerator[Bench, None]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        store = cluster.url(schema=f"bench_{uuid4().hex}")
        with engine_of(name, place) as engine:
            needed = 0 if engine is None else workers
            async with installation(store, engine, place, workers=needed, at_a_time=200, flows=()) as one:
                bench = Bench(one, store, cluster)
                with closing(bench):
                    yield bench


class Figures(NamedTuple):
    """All figures of a run, by the name of the engine."""

    rounds: dict[str, list[Round]]
    hand_overs: dict[str, HandOver]
    parked: list[tuple[str, Parked]]


async def run(engines: Sequence[str], given: argparse.Namespace, cluster: Cluster) -> Figures:
    found = Figures({name: [] for name in engines}, {}, [])
    for number in range(given.rounds):
        for name in engines:
            async with installed(name, cluster, workers=1) as bench:
                found.rounds[name].append(await measure(bench, given.executions))
            note(f"round {number + 1}: {name} {found.rounds[name][-1]}")
    for name in engines:
        if given.handed and name != LOCAL:
            async with installed(name, cluster, workers=3) as bench:
                found.hand_overs[name] = await hand_over(bench, given.handed)
            note(f"hand-over: {name} {found.hand_overs[name]}")
    for name in engines:
        for parked in given.parked:
            async with installed(name, cluster, workers=1) as bench:
                found.parked.append((name, await park(bench, parked)))
            note(f"parked: {found.parked[-1]}")
    return found


LOCAL: Final = "none"
ENGINES: Final = (LOCAL, "temporal", "restate")


def note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f}"


def share(values: Sequence[float], part: float) -> str:
    return f"{values[min(len(values) - 1, int(part * len(values)))]:.1f}" if values else "–"


def page(found: Figures, given: argparse.Namespace, seconds: float) -> str:
    """Return the page."""
    costs: list[list[str]] = []
    measured = {name: rounds for name, rounds in found.rounds.items() if rounds}
    for name, rounds in measured.items():
        steps = [Spent(*map(median, zip(*(getattr(one, part) for one in rounds), strict=True))) for part in PARTS]
        costs.append([name, *(ms(value) for spent in steps for value in spent)])
    rates = [
        [
            name,
            *(f"{median(one.rate[n] for one in rounds):.1f}" if n in rounds[0].rate else "–" for n in WORKERS),
            *(
                f"{median(one.rate_slow[n] for one in rounds):.1f}" if n in rounds[0].rate_slow else "–"
                for n in WORKERS
            ),
        ]
        for name, rounds in measured.items()
    ]
    handed = [
        [name, str(len(values)), how, share(values, 0.5), share(values, 0.99)]
        for name, one in found.hand_overs.items()
        for how, values in (("SIGKILL", one.killed), ("SIGTERM", one.stopped))
    ]
    parked = [
        [
            name,
            f"{one.number:,}",
            f"{one.number / one.parking_s:.0f}",
            *(f"{1000 * part:.1f}" for part in one.idle),
            *(f"{size:.0f}" for size in (one.server_mb, one.worker_mb, one.engine_mb)),
            f"{one.number / one.answering_s:.0f}",
        ]
        for name, one in found.parked
    ]
    return TEXT.format(
        environment=environment(given.rounds, seconds),
        executions=given.executions,
        costs=table(COSTS, costs),
        rates=table(RATES, rates),
        handed=table(HANDED_OVER, handed),
        parked=table(PARKED, parked),
    )


PARTS: Final = ("alone", "step", "execution")
COSTS: Final = (
    "engine",
    "step alone: Pointsman",
    "engine",
    "PostgreSQL",
    "step among many: Pointsman",
    "engine",
    "PostgreSQL",
    "execution: Pointsman",
    "engine",
    "PostgreSQL",
)
RATES: Final = ("engine", "0 s, 1 worker", "2", "4", "1 s, 1 worker", "2", "4")
HANDED_OVER: Final = ("engine", "executions", "lost by", "p50 s", "p99 s")
PARKED: Final = (
    "engine",
    "gates",
    "parked per s",
    "idle: Pointsman",
    "engine",
    "PostgreSQL",
    "server MB",
    "worker MB",
    "engine MB",
    "answered per s",
)
TEXT: Final = """# Scale

What an engine adds to an execution, and what a cluster does: `pointsman serve`, workers, the engine and PostgreSQL as
processes of one machine with two processors, which they share. *none* is `pointsman serve` without an engine on the
same PostgreSQL, in the same rounds. `make bench-scale` writes this page. The servers of the engines are those for
development: Temporal on SQLite, Restate with four partitions.

{environment}

## CPU of a step and of an execution

ms of CPU, by the difference between executions of 5 and of 45 calls of a tool that returns at once and writes a line
to a file, without the CPU of idling; medians over the rounds, {executions} executions of each kind in each.
*Alone*: one execution after another. *Among many*: 16 clients start them. Rows that are ready at the same time share a
commit, and executions begin later on an engine, so that fewer run at a time: compare the cost of a step alone.
*Execution* is what remains without steps: the request, the claim, the dispatch and the end.

{costs}

## Throughput

Executions of five calls per second, with calls that take 0 s and 1 s (as those of a model do), started by 16 clients.
With calls of 0 s the two processors are the bound, and more workers add nothing on one machine.

{rates}

## Hand-over

How long the executions of the busiest of three workers were still: after SIGKILL until another one begins the next call
(its claims end after 12 s), and after SIGTERM until another one begins the next call.

{handed}

## Parked executions

Executions that have called a tool and wait for a person. Idle CPU in ms per second, after they were indexed for the
search.

{parked}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", nargs="*", default=[*ENGINES], choices=ENGINES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--executions", type=int, default=40)
    parser.add_argument("--handed", type=int, default=60, help="executions of a hand-over; 0: leave it out")
    parser.add_argument(
        "--parked", type=int, nargs="*", default=[10_000], help="numbers of executions that wait; none: leave it out"
    )
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    began = time.monotonic()
    for cluster in own_cluster():
        found = asyncio.run(run(given.engines, given, cluster))
        given.out.write_text(page(found, given, time.monotonic() - began), encoding="utf-8")


if __name__ == "__main__":
    main()
