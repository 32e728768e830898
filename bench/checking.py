"""`python -m bench.checking [NODES] [SHAPE …]`: what reading, checking, drawing and converting cost for each node.

CPU time of this process, with the garbage collector as in the worker processes of a server: between documents.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Final

from pointsman.dialects.checking import checked
from pointsman.dialects.shapes import DIALECTS
from pointsman.values import JsonObject
from pointsman.workflows.conversion import TARGETS, converted, yaml_text
from pointsman.workflows.sources import Workflow
from tests.definition.check.test_cost import SHAPES, chain, full

NODES: Final = 5_000
GOAL_US: Final = 100


def cpu_us(work: Callable[[], object], per: int) -> float:
    """CPU time in microseconds for each of so many."""
    gc.collect()
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1e6 / per


def parts_of(document: JsonObject) -> int:
    """Nodes or edges, whichever are more."""
    nodes, edges = document["nodes"], document["edges"]
    assert isinstance(nodes, list)
    assert isinstance(edges, list)
    return max(len(nodes), len(edges))


def show(name: str, parts: int, *costs: float) -> None:
    late = "  over the goal" if costs[0] + costs[-1] * (len(costs) > 1) > GOAL_US else ""
    print(f"{name:40} {parts:8} {' '.join(f'{cost:8.1f}' for cost in costs)}{late}", flush=True)


def check_shapes(nodes: int, only: list[str]) -> None:
    shapes = {**SHAPES, "full graph": full}
    print(f"{'shape':40} {'parts':>8} {'read':>8} {'check':>8}   µs for each node or edge; goal {GOAL_US} together")
    for name, make in shapes.items():
        if not only or name in only:
            check_shape(name, make(nodes), nodes)


def check_shape(name: str, document: JsonObject, nodes: int) -> None:
    parts, source = max(parts_of(document), nodes), Workflow(json.dumps(document))
    show(name, parts, cpu_us(lambda: source.read, parts), cpu_us(lambda: checked(source.read), parts))


def write_and_read(nodes: int) -> None:
    source = Workflow(json.dumps(chain(nodes)))
    _ = source.read
    print(f"\n{'dialect of a chain':40} {'parts':>8} {'write':>8} {'read':>8} {'check':>8}")
    for target in TARGETS:
        write = cpu_us(lambda target=target: converted(source, target), nodes)
        if target not in DIALECTS:
            show(target, nodes, write)
            continue
        other = Workflow(converted(source, target).text, dialect=target)
        read = cpu_us(lambda other=other: other.read, nodes)
        show(target, nodes, write, read, cpu_us(lambda other=other: checked(other.read), nodes))
    text = Workflow(yaml_text(chain(nodes)))
    show("YAML", nodes, cpu_us(lambda: text.read, nodes), cpu_us(lambda: checked(text.read), nodes))


def main() -> None:
    gc.disable()
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    checked(Workflow(json.dumps(chain(10))).read)  # What is imported or cached once does not count.
    check_shapes(nodes, sys.argv[2:])
    if not sys.argv[2:]:
        write_and_read(nodes)


if __name__ == "__main__":
    main()
