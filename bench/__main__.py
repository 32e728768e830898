"""`python -m bench`: measure every shape in a separate process, in turns, and write RESULTS.md."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from bench.engine_alone import EngineFigures
from bench.meter import Sample
from bench.profiling import Shares
from bench.report import ENGINE_ALONE, ReportFigures, written_report
from bench.resume import ResumeFigures
from bench.shapes import Shape, read_shapes
from bench.startup import startups
from bench.turns import OURS, ROOT, Cell, answer_of, in_turns, model_servers
from tests.postgres import CONFIGURED, Cluster, binaries

RESULTS: Final = ROOT / "bench" / "RESULTS.md"
PROFILED: Final = ("chain", "1000")
RESUMED: Final = (1000, 10_000, 100_000)
RESUMED_QUICK: Final = (1000,)
REST: Final = {"start": (1, 10), "get": (1, 10), "list": (1,), "stream": (1,)}
"""Clients at once, by operation."""
SERVED: Final = "pointsman serve"
SIZE_QUICK_MAX: Final = 1000
SIZE_MAX: Final = 100_000

T = TypeVar("T")


def main() -> None:
    options = arguments()
    shapes = read_shapes()
    wanted = {name: shapes[name] for name in options.shapes} if options.shapes else shapes
    cells = [*public_cells(wanted, quick=options.quick), *engine_cells(wanted, quick=options.quick)]
    if not options.shapes:
        cells += [Cell(SERVED, name, "sqlite", clients) for name, sizes in REST.items() for clients in sizes]
    cells = [cell for cell in cells if cell.size <= options.size_max]
    repetitions = options.repeat or (1 if options.quick else 3)
    began = time.perf_counter()
    with a_server() as new_address, model_servers(cells) as models:
        if new_address is None:
            cells = [cell for cell in cells if cell.store != "postgresql"]
        measured = in_turns(cells, repetitions, lambda cell: measure(cell, models, new_address))
    resumed = [ask("resume", [str(steps)], ResumeFigures) for steps in (RESUMED_QUICK if options.quick else RESUMED)]
    profile = None if options.quick else ask("profiling", [*PROFILED], Shares)
    starts = startups(3 if options.quick else 7)
    public = {cell: [one for one in runs if isinstance(one, Sample)] for cell, runs in measured.items()}
    engine = {cell: [one for one in runs if isinstance(one, EngineFigures)] for cell, runs in measured.items()}
    found = ReportFigures(
        shapes=wanted,
        public={cell: runs for cell, runs in public.items() if cell.contender == OURS},
        rest={cell: runs for cell, runs in public.items() if cell.contender == SERVED},
        engine={cell: runs for cell, runs in engine.items() if cell.contender == ENGINE_ALONE},
        resumed=resumed,
        startups=starts,
        profile=profile,
        repetitions=repetitions,
        seconds=time.perf_counter() - began,
    )
    report = written_report(found)
    if options.quick or options.shapes:
        print(report)
    else:
        RESULTS.write_text(report, encoding="utf-8")
        print(f"{RESULTS.relative_to(ROOT)} is written.")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("shapes", nargs="*", help="only these (names of files in bench/shapes); prints, writes nothing")
    parser.add_argument("--quick", action="store_true", help="few sizes, once; prints, writes nothing")
    parser.add_argument("--size-max", type=int, default=SIZE_MAX, metavar="N", help="leave out larger sizes")
    parser.add_argument("--repeat", type=int, metavar="N", help="measure each N times (3; with --quick 1)")
    return parser.parse_args()


def public_cells(shapes: Mapping[str, Shape], *, quick: bool) -> list[Cell]:
    return [
        Cell(OURS, name, store, size)
        for name, shape in shapes.items()
        for store, sizes in shape.public.items()
        for size in sizes
        if not quick or size <= SIZE_QUICK_MAX
    ]


def engine_cells(shapes: Mapping[str, Shape], *, quick: bool) -> list[Cell]:
    return [
        Cell(ENGINE_ALONE, name, store, size)
        for name, shape in shapes.items()
        for store, sizes in (shape.quick if quick else shape.sizes).items()
        for size in sizes
    ]


def measure(cell: Cell, models: Mapping[int, str], new_address: NewAddress | None) -> Sample | EngineFigures:
    arguments = [cell.shape, str(cell.size), cell.store]
    if cell.contender == SERVED:
        return ask("rest", arguments, Sample)
    if cell.contender == OURS:
        return ask("public", [*arguments, *([models[cell.size]] if cell.shape == "agent" else [])], Sample)
    database = [new_address()] if new_address is not None and cell.store == "postgresql" else []
    return ask("engine_alone", [*arguments, *database], EngineFigures)


def ask(module: str, arguments: list[str], answer: type[T]) -> T:
    """Return the answer of a module of this package, which runs in a separate process."""
    return answer_of([sys.executable, "-m", f"bench.{module}", *arguments], answer)


NewAddress: TypeAlias = Callable[[], str]
"""Returns the address of an empty schema."""


@contextmanager
def a_server() -> Generator[NewAddress | None, None, None]:
    """Run PostgreSQL. None: it is not installed here."""
    numbers = count(1)
    if configured := os.environ.get(CONFIGURED):
        sign = "&" if "?" in configured else "?"
        yield lambda: f"{configured}{sign}schema=bench_{os.getpid()}_{next(numbers)}"
        return
    if binaries() is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-pg-"))
    cluster = Cluster(folder)
    cluster.make()
    try:
        yield lambda: cluster.url(schema=f"bench_{next(numbers)}")
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
