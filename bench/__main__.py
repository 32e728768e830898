"""`python -m bench`: run every shape in a process of its own, in turns, and write what was found to RESULTS.md."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import msgspec

from bench.measure import Measured
from bench.profiling import Shares
from bench.report import Cell, Found, written_report
from bench.resume import Resumed
from bench.shapes import Shape, read_shapes
from bench.startup import startups
from tests.postgres import CONFIGURED, Cluster, binaries

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "bench" / "RESULTS.md"
PROFILED: Final = ("chain", "1000")
RESUMED: Final = (1000, 10_000, 100_000)
RESUMED_QUICK: Final = (1000,)
PROCESS_S_MAX: Final = 600

T = TypeVar("T")


def main() -> None:
    options = arguments()
    shapes = read_shapes()
    wanted = {name: shapes[name] for name in options.shapes} if options.shapes else shapes
    cells = [*cells_of(wanted, quick=options.quick)]
    repetitions = options.repeat or (1 if options.quick else 3)
    began = time.perf_counter()
    with a_server() as new_address:
        if new_address is None:
            cells = [cell for cell in cells if cell.store != "postgresql"]
        measured = in_turns(cells, repetitions, new_address)
    resumed = [ask("resume", [str(steps)], Resumed) for steps in (RESUMED_QUICK if options.quick else RESUMED)]
    profile = None if options.quick else ask("profiling", [*PROFILED], Shares)
    starts = startups(3 if options.quick else 7)
    found = Found(wanted, measured, resumed, starts, profile, repetitions, time.perf_counter() - began)
    report = written_report(found)
    if options.quick or options.shapes:
        print(report)
    else:
        RESULTS.write_text(report, encoding="utf-8")
        print(f"{RESULTS.relative_to(ROOT)} is written.")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("shapes", nargs="*", help="only these (names of files in bench/shapes); prints, writes nothing")
    parser.add_argument("--quick", action="store_true", help="a minute's impression: few sizes; prints, writes nothing")
    parser.add_argument("--repeat", type=int, metavar="N", help="measure each N times (3; with --quick 1)")
    return parser.parse_args()


def cells_of(shapes: dict[str, Shape], *, quick: bool) -> list[Cell]:
    return [
        Cell(name, store, size)
        for name, shape in shapes.items()
        for store, sizes in (shape.quick if quick else shape.sizes).items()
        for size in sizes
    ]


def in_turns(cells: list[Cell], repetitions: int, new_address: NewAddress | None = None) -> dict[Cell, list[Measured]]:
    """All cells once, then all again: what disturbs the machine for a while disturbs one turn of many."""
    found: defaultdict[Cell, list[Measured]] = defaultdict(list)
    for turn in range(repetitions):
        for cell in cells:
            where = [new_address()] if new_address is not None and cell.store == "postgresql" else []
            one = ask("measure", [cell.shape, str(cell.size), cell.store, *where], Measured)
            found[cell].append(one)
            print(f"{turn + 1}/{repetitions}  {cell.shape} {cell.store} {cell.size}: {one.cpu:.1f} µs", file=sys.stderr)
    return dict(found)


def ask(module: str, arguments: list[str], answer: type[T]) -> T:
    """What a module of this package prints in a process of its own."""
    command = [sys.executable, "-m", f"bench.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=PROCESS_S_MAX)
    return msgspec.json.decode(done.stdout, type=answer)


NewAddress: TypeAlias = Callable[[], str]
"""Of a schema where nothing is yet."""


@contextmanager
def a_server() -> Generator[NewAddress | None, None, None]:
    """None: there is none here, and nothing it could be made of."""
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
