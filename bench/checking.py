"""`make bench-check`, or `python -m bench.checking [NODES,…] [SHAPE …]`: the cost of reading and checking a document.

For each shape and size of document: CPU time in microseconds per node or per edge, whichever are more, and the peak
memory of the check. Each document has a separate process without the garbage collector, because the worker processes of
a server collect between documents.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Final, NamedTuple

from pointsman.definition.problems import Problem
from pointsman.definition.reading.documents import BYTES_MAX, YAML_BYTES_MAX
from pointsman.dialects.detect import ReadDocument
from pointsman.dialects.shapes import DIALECTS
from pointsman.dialects.writers import yaml_text
from pointsman.values import JsonObject
from pointsman.workflows.checking import found_in, positioned_problems
from pointsman.workflows.conversion import converted
from pointsman.workflows.sources import Workflow
from tests.definition.check.test_cost import SHAPES, chain, full

NODES: Final = (5_000, 20_000, 100_000)
GOAL_US: Final = 100
SPELLED: Final = tuple(f"chain in {name}" for name in (*DIALECTS, "YAML"))


class Cost(NamedTuple):
    """The cost of one document."""

    parts: int
    """Nodes or edges, whichever are more."""
    read_us: float
    check_us: float
    """CPU time for each of them."""
    kilobytes: float
    """Peak memory for each of them, beside what the process had before."""


def problems_of(read: ReadDocument) -> tuple[Problem, ...]:
    """Check a document that has been read."""
    return positioned_problems(read, found_in(read)[1])


def cpu_us(work: Callable[[], object], per: int) -> float:
    """Return the CPU time of the work in microseconds, divided by `per`."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e6 / per


def parts_of(document: JsonObject) -> int:
    nodes, edges = document["nodes"], document["edges"]
    assert isinstance(nodes, list)
    assert isinstance(edges, list)
    return max(len(nodes), len(edges))


def source_of(shape: str, nodes: int) -> tuple[Workflow, int]:
    """The document, and how many nodes or edges it has."""
    if shape in SPELLED:
        name = shape.removeprefix("chain in ")
        if name == "YAML":
            return Workflow(yaml_text(chain(nodes))), nodes
        return Workflow(converted(Workflow(json.dumps(chain(nodes))), name).text, dialect=name), nodes
    document = full(nodes) if shape == "full graph" else SHAPES[shape](nodes)
    return Workflow(json.dumps(document)), max(parts_of(document), nodes)


def measure(shape: str, nodes: int) -> Cost | None:
    """None: a document of that size is refused."""
    gc.disable()
    problems_of(Workflow(json.dumps(chain(10))).read)  # What is imported or cached once does not count.
    source, parts = source_of(shape, nodes)
    if source.chars > (YAML_BYTES_MAX if shape.endswith("YAML") else BYTES_MAX):
        return None
    gc.collect()
    before = peak_kilobytes()
    read = cpu_us(lambda: source.read, parts)
    check = cpu_us(lambda: problems_of(source.read), parts)
    return Cost(parts, read, check, (peak_kilobytes() - before) / parts)


def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    sizes = tuple(map(int, first.split(","))) if first[:1].isdigit() else NODES
    only = sys.argv[2:] if first[:1].isdigit() else sys.argv[1:]
    print(f"µs for each node or edge (read + check); goal {GOAL_US}. kB: peak memory for each.")
    print(f"{'shape':32}" + "".join(f"{size:>32,}" for size in sizes))
    for shape in only or (*SHAPES, "full graph", *SPELLED):
        print(f"{shape:32}" + "".join(f"{shown(measured(shape, size)):>32}" for size in sizes), flush=True)


def measured(shape: str, nodes: int) -> Cost | None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, shape, nodes).result()


def shown(cost: Cost | None) -> str:
    if cost is None:
        return "too large"
    total = cost.read_us + cost.check_us
    late = "!" if total > GOAL_US else ""
    return f"{cost.read_us:.0f}+{cost.check_us:.0f}={total:.0f}{late} {cost.kilobytes:.1f} kB"


if __name__ == "__main__":
    main()
