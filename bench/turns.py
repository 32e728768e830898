"""Measure cells in fresh processes, all cells in turns: noise of the machine then disturbs one turn of many."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from bench.meter import Sample
from bench.model_server import running

ROOT: Final = Path(__file__).parents[1]
PROCESS_S_MAX: Final = 900
OURS: Final = "Pointsman"
T = TypeVar("T")


class Cell(NamedTuple):
    """One thing to measure: a shape of one size in one store, as one contender runs it."""

    contender: str
    shape: str
    store: str
    size: int


Measurements: TypeAlias = dict[Cell, list[Sample]]
"""One sample per repetition."""


def answer_of(command: Sequence[str], answer: type[T]) -> T:
    """Run a program at the root of the project and decode what it prints."""
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, timeout=PROCESS_S_MAX)
    return msgspec.json.decode(done.stdout, type=answer)


def in_turns(cells: Sequence[Cell], repetitions: int, ask: Callable[[Cell], T]) -> dict[Cell, list[T]]:
    """Measure all cells once, then all again."""
    found: defaultdict[Cell, list[T]] = defaultdict(list)
    for turn in range(repetitions):
        for cell in cells:
            found[cell].append(ask(cell))
            print(f"{turn + 1}/{repetitions}  {' '.join(map(str, cell))}: {found[cell][-1]}", file=sys.stderr)
    return dict(found)


@contextmanager
def model_servers(cells: Sequence[Cell]) -> Generator[dict[int, str]]:
    """Run one model server for each number of rounds. Returns their addresses."""
    with ExitStack() as stack:
        sizes = sorted({cell.size for cell in cells if cell.shape == "agent"})
        yield {size: stack.enter_context(running(rounds=size)) for size in sizes}


def spread(values: Sequence[float], digits: int = 1) -> str:
    """The median, and in brackets the least and the greatest."""
    found = sorted(values)
    if len(found) == 1:
        return f"{found[0]:,.{digits}f}"
    return f"{median(found):,.{digits}f} ({found[0]:,.{digits}f}–{found[-1]:,.{digits}f})"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
