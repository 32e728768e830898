"""`python -m bench.growth`: growth curves of a server, over real sockets; writes GROWTH.md and its plots.

Each point is a fresh `pointsman serve` on a new store: executions that wait at gates, agents that stream concurrently
from a model server, subscribers of one execution, schedules.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.model_server import running
from bench.plots import lines
from bench.report import environment
from bench.serving import COUNT, GATE, ONE, Line, Server, begun, path_of, server, serving, streamed
from bench.turns import ROOT, table
from pointsman import Pointsman, Workflow
from pointsman.settings import Settings

PAGE: Final = ROOT / "bench" / "GROWTH.md"
PLOTS: Final = ROOT / "bench" / "plots"
AT_ONCE: Final = 200
"""Starts of one batch: they share commits."""
IDLE_S: Final = 5.0
CALM: Final = 0.02
"""Part of a processor that a settled server takes at most."""
SETTLES_S_MAX: Final = 120.0
WORDS: Final = 40
WORD_MS: Final = 50
SPEAK: Final = """\
pointsman: 1
id: speak
entry: hold
nodes:
  - {id: hold, type: wait, config: {event: go}}
  - {id: say, type: agent, config: {model: "bench:words", prompt: "Speak."}}
edges: [{source: hold, target: say}]
"""


class Curve(NamedTuple):
    """A quantity that grows, and the figures at each of its sizes."""

    name: str
    title: str
    about: str
    figures: tuple[str, ...]
    points: list[tuple[int, tuple[float, ...]]]


async def in_batches(count: int, deed: Callable[[int], Awaitable[object]]) -> None:
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(deed(number) for number in range(first, min(first + AT_ONCE, count))))


async def park(folder: str, count: int) -> None:
    """Start that many executions and leave them at their gates."""
    async with Pointsman(f"sqlite:///{folder}/store.db", settings=Settings(model="scripted")) as app:
        workflow = Workflow.parse(GATE)

        async def one(number: int) -> None:
            execution = await app.start(workflow, {})
            assert await execution.settled() == "waiting"

        await in_batches(count, one)


def store_mb(folder: str) -> float:
    return sum(path.stat().st_size for path in Path(folder).glob("store.db*")) / 1e6


def idle(one: Server) -> tuple[float, float]:
    """CPU in ms per second of a server without requests, and its resident size in MB, once its leader has read what
    happened without one: the search index of a store that only the Python API wrote."""
    began = time.monotonic()
    while cpu_share(one) > CALM and time.monotonic() - began < SETTLES_S_MAX:
        pass
    return 1000 * cpu_share(one), one.kb() / 1024


def cpu_share(one: Server) -> float:
    """Return the part of a processor that a server takes during the next `IDLE_S`."""
    before = one.cpu_s()
    time.sleep(IDLE_S)
    return (one.cpu_s() - before) / IDLE_S


def gates(count: int) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(park(folder, count))
        size, began = store_mb(folder), time.perf_counter()
        with serving(folder) as one:
            ready = time.perf_counter() - began
            cpu, mb = idle(one)
            return size, one.cold_s, ready, mb, cpu


async def speak(one: Server, count: int) -> tuple[float, ...]:
    """Let that many agents stream concurrently, each to a subscriber."""
    line = await Line.open(one.port)
    executions = [await begun(line, "speak") for _ in range(count)]
    subscribers: list[Line] = []
    for execution in executions:
        subscribers.append(await Line.open(one.port))
        await subscribers[-1].events(execution)
        await subscribers[-1].event()
    peak, events = one.kb(), 0

    async def listen(subscriber: Line) -> None:
        nonlocal peak, events
        while data := await subscriber.reader.read(65_536):
            events += data.count(b"\nevent: ")
            peak = max(peak, one.kb())

    listening = [asyncio.create_task(listen(each)) for each in subscribers]
    cpu, began = one.cpu_s(), time.perf_counter()
    for execution in executions:
        await line.ask("POST", f"{path_of(execution)}/signals", {"name": "go"})
    await asyncio.gather(*listening)
    wall, spent = time.perf_counter() - began, one.cpu_s() - cpu
    for each in (line, *subscribers):
        each.writer.close()
    return 1000 * spent / count, 1e6 * spent / events, wall, peak / 1024


async def warm_and_speak(one: Server, count: int) -> tuple[float, ...]:
    line = await Line.open(one.port)
    await line.ask("POST", "/api/workflows", SPEAK)
    line.writer.close()
    await speak(one, 1)  # The first agent loads the client of its provider.
    return await speak(one, count)


def agents(count: int) -> tuple[float, ...]:
    with running(rounds=0, words=WORDS, word_ms=WORD_MS) as address:
        settings = f'[providers.bench]\nbase_url = "{address}"\nkeys = ["key"]\n'
        with server(settings=settings) as one:
            return asyncio.run(warm_and_speak(one, count))


async def subscribe(one: Server, count: int) -> tuple[float, ...]:
    line = await Line.open(one.port)
    await line.ask("POST", "/api/workflows", COUNT)
    line.writer.close()
    found = await streamed(one, count)
    return found.cpu_us, found.last_ms, one.kb() / 1024


def subscribers(count: int) -> tuple[float, ...]:
    with server() as one:
        return asyncio.run(subscribe(one, count))


async def plan(folder: str, count: int) -> None:
    """Save that many schedules of one workflow, due in an hour."""
    async with Pointsman(f"sqlite:///{folder}/store.db", settings=Settings(model="scripted")) as app:
        await app.save(Workflow.parse(ONE))
        await in_batches(count, lambda number: app.schedule("one", id=f"plan-{number}", every=3600.0))


def schedules(count: int) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(plan(folder, count))
        with serving(folder) as one:
            cpu, mb = idle(one)
            return one.cold_s, mb, cpu


CURVES: Final = {
    "gates": (
        gates,
        Curve(
            "gates",
            "Executions parked at gates",
            "The store on the disk; a server that starts on it, until it serves; its resident size and its CPU while "
            "nobody asks.",
            ("store MB", "start CPU s", "start wall s", "server MB", "idle CPU ms/s"),
            [],
        ),
        (1, 1_000, 10_000),
    ),
    "agents": (
        agents,
        Curve(
            "agents",
            "Agents that stream at once",
            f"Each streams {WORDS} words from a model server, one each {WORD_MS} ms "
            f"({WORDS * WORD_MS / 1000:.0f} s at best), to a subscriber of its own.",
            ("CPU ms per agent", "CPU µs per event", "wall s", "peak MB"),
            [],
        ),
        (1, 10, 100, 300),
    ),
    "subscribers": (
        subscribers,
        Curve(
            "subscribers",
            "Subscribers of one execution",
            "60 steps, streamed to each subscriber (SSE); until the last one has received the end.",
            ("CPU µs per event and subscriber", "wall ms", "server MB"),
            [],
        ),
        (1, 10, 50, 500),
    ),
    "schedules": (
        schedules,
        Curve(
            "schedules",
            "Schedules",
            "A server that starts on them, and its CPU while none is due.",
            ("start CPU s", "server MB", "idle CPU ms/s"),
            [],
        ),
        (1, 100, 1_000),
    ),
}
QUICK_MAX: Final = 10


def section(curve: Curve) -> str:
    rows = [[f"{size:,}", *(f"{value:,.2f}" for value in values)] for size, values in curve.points]
    drawn = f"\n\n![{curve.title}](plots/growth-{curve.name}.svg)"
    return f"## {curve.title}\n\n{curve.about}\n\n{table([curve.name, *curve.figures], rows)}{drawn}"


def page(curves: Sequence[Curve], seconds: float) -> str:
    opening = f"""# Growth

Each point is one fresh `pointsman serve` on SQLite with the default durability; CPU is that of the server, read from
/proc. `make bench-growth` writes this page.

{environment(1, seconds)}"""
    return "\n\n".join([opening, *(section(curve) for curve in curves)]) + "\n"


def drawing(curve: Curve) -> str:
    series = {
        figure: [(float(size), values[at]) for size, values in curve.points] for at, figure in enumerate(curve.figures)
    }
    shown = {name: points for name, points in series.items() if any(y > 0 for _, y in points)}
    return lines(curve.title, curve.name, "units in the legend", shown)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("curves", nargs="*", help=f"only these ({', '.join(CURVES)}); prints, writes nothing")
    parser.add_argument("--quick", action="store_true", help="small sizes; prints, writes nothing")
    parser.add_argument("--size-max", type=int, default=10_000, metavar="N", help="leave out larger sizes")
    options = parser.parse_args()
    began, curves = time.perf_counter(), list[Curve]()
    for name, (measure, curve, sizes) in CURVES.items():
        if options.curves and name not in options.curves:
            continue
        curves.append(curve)
        for size in sizes:
            if size <= (QUICK_MAX if options.quick else options.size_max):
                curve.points.append((size, measure(size)))
                print(f"{name} {size}: {curve.points[-1][1]}", file=sys.stderr)
    report = page(curves, time.perf_counter() - began)
    if options.quick or options.curves:
        print(report)
        return
    PLOTS.mkdir(exist_ok=True)
    for curve in curves:
        (PLOTS / f"growth-{curve.name}.svg").write_text(drawing(curve), encoding="utf-8")
    PAGE.write_text(report, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written.")


if __name__ == "__main__":
    main()
