"""Nodes that several tokens may pass at once, one after the other: their visits cannot be told apart by counting.

    trigger: each ──▶ a ──▶ b ──▶ merge            every arrival passes on its own, until they are merged

    split ─┬─▶ main ─▶ back to split               rounds go on while the side lines of earlier ones still run, and
           └─▶ side ─▶ b                           the faster would be counted first

The steps of such nodes carry the thread of their token.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.links import routing_of
from pointsman.definition.graph.walks import cycles
from pointsman.definition.model.control import LoopConfig, ParallelConfig
from pointsman.definition.model.nodes import Node


@dataclass(frozen=True, slots=True)
class Separate:
    """Nodes by position."""

    threaded: frozenset[int]
    """Their steps carry their thread."""
    apart: frozenset[int]
    """Behind `trigger: each`: also the ways of one visit are never taken for those of another."""


def passes_separately(node: Node) -> bool:
    """Every arrival starts it. A tool executor serves each caller on its own: merged, calls would be lost."""
    return node.trigger == "each" or node.type == "tool_executor"


def separate(graph: Graph) -> Separate:
    """Linear in the size of the graph."""
    each = [n for n, node in enumerate(graph.links.nodes) if passes_separately(node) and len(graph.into[n]) > 1]
    apart = _until_merged(graph, each)
    return Separate(apart | _until_merged(graph, _beside_cycles(graph)), apart)


def _until_merged(graph: Graph, starts: Iterable[int]) -> frozenset[int]:
    found: set[int] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        join = graph.join_of.get(node)
        if join is not None and graph.closes[join][0] == node:
            waiting.append(join)  # it closes each of the openings by itself
        waiting += [target for target in graph.links.targets(node) if not _merges(graph, target)]
    return frozenset(found)


def _merges(graph: Graph, node: int) -> bool:
    return node in graph.closes or (len(graph.into[node]) > 1 and not passes_separately(graph.links.nodes[node]))


def _beside_cycles(graph: Graph) -> list[int]:
    """Where control leaves a cycle in which it may split. Rounds of a loop node wait for all of its body: no cycles."""
    ends_round = {edge for loop in graph.loops.values() for edge in loop.back_edges}
    ways = [
        [graph.edges[edge].target for edge in out if edge not in ends_round and graph.edges[edge].target >= 0]
        for out in graph.out
    ]
    found: list[int] = []
    for cycle in cycles(ways):
        inside = set(cycle)
        if any(_splits(graph, node) for node in cycle):
            found += [to for node in cycle for to in ways[node] if to not in inside and not _merges(graph, to)]
    return found


def _splits(graph: Graph, position: int) -> bool:
    """Whether several edges may be taken at once."""
    node = graph.links.nodes[position]
    kinds = [graph.edges[edge].kind for edge in graph.out[position]]
    several = sum(kind not in ("error", "default") for kind in kinds) > 1 or kinds.count("error") > 1
    return several and routing_of(node) == "all" and not isinstance(node.config, LoopConfig | ParallelConfig)
