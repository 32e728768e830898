"""`python -m bench.instructions`: machine instructions per call of a node function, recorded in instructions.json.

Valgrind counts the instructions of a process, so neither the speed nor the load of the machine matters. Each cell is
counted in two processes that differ only in the number of runs; start-up and warm-up cancel out.

    python -m bench.instructions SHAPE SIZE STORE RUNS     the counted process
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bench.meter import CALLS, Place
from bench.public import cases
from bench.turns import ROOT, table
from pointsman.version import VERSION

RECORDS: Final = ROOT / "bench" / "instructions.json"
CELLS: Final = (
    ("chain", 100, "memory"),
    ("cycle", 100, "memory"),
    ("fan-out", 100, "memory"),
    ("at-once", 10, "memory"),
    ("chain", 100, "sqlite-async"),
)
"""Shape, size and store. A store that waits for the disk would make the count depend on the disk."""
RUNS: Final = (1, 3)
COUNT: Final = re.compile(r"I\s+refs:\s+([\d,]+)")
VALGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


async def perform(shape: str, size: int, store: str, runs: int) -> int:
    """Run a shape once to warm up, then `runs` times. Return the calls of node functions in one run."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with cases()[shape](size, Place(store, Path(folder), "")) as run:
            await run()
            calls = CALLS.count
            for _ in range(runs):
                await run()
    return calls


def counted(shape: str, size: int, store: str, runs: int) -> tuple[int, int]:
    """Return the instructions of a whole process, and its calls of node functions in one run."""
    command = [*VALGRIND, sys.executable, "-m", "bench.instructions", shape, str(size), store, str(runs)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    found = COUNT.search(done.stderr)
    assert found is not None, done.stderr
    return int(found[1].replace(",", "")), int(done.stdout)


def instructions(shape: str, size: int, store: str) -> int:
    """Return the instructions per call of a node function."""
    (few, calls), (many, _) = (counted(shape, size, store, runs) for runs in RUNS)
    return round((many - few) / (RUNS[1] - RUNS[0]) / calls)


def report(records: dict[str, dict[str, int]]) -> str:
    names = list(dict.fromkeys(name for record in records.values() for name in record))
    rows = [[name, *(f"{record.get(name, 0):,}" for record in records.values())] for name in names]
    return table(["instructions per call", *records], rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("counted", nargs="*", help="SHAPE SIZE STORE RUNS: perform only this, without counting")
    options = parser.parse_args()
    if options.counted:
        shape, size, store, runs = options.counted
        print(asyncio.run(perform(shape, int(size), store, int(runs))))
        return
    if shutil.which(VALGRIND[0]) is None:
        sys.exit("valgrind is not installed (Debian, Ubuntu: apt-get install valgrind)")
    text = RECORDS.read_text(encoding="utf-8") if RECORDS.exists() else "{}"
    records = msgspec.json.decode(text, type=dict[str, dict[str, int]])
    found: dict[str, int] = {}
    for shape, size, store in CELLS:
        found[f"{shape} {size}, {store}"] = instructions(shape, size, store)
        print(f"{shape} {size} {store}: {found[f'{shape} {size}, {store}']:,}", file=sys.stderr)
    records[VERSION] = found
    RECORDS.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")
    print(report(records))


if __name__ == "__main__":
    main()
