"""Nodes that several tokens may pass one after the other, so that a visit counter cannot distinguish their visits.

    trigger: each ──▶ a ──▶ b ──▶ merge            every arrival passes separately until a merge

    split ─┬─▶ main ─▶ back to split               the next round starts while side branches of earlier rounds still
           └─▶ side ─▶ b                           run; a counter would number the fastest one first

The steps of such nodes carry the lineage of their token.
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
    """Sets of nodes with concurrent visits, by position of the node."""

    threaded: frozenset[int]
    """Nodes whose steps carry their lineage."""
    apart: frozenset[int]
    """Nodes behind `trigger: each`. Arrivals of one visit are also never combined with those of another visit."""


def passes_separately(node: Node) -> bool:
    """Return whether every arrival starts the node. True for a tool executor: it serves each caller separately, because
    merging arrivals would lose calls.
    """
    return node.trigger == "each" or node.type == "tool_executor"


def separate(graph: Graph) -> Separate:
    """Find the nodes with concurrent visits, in time linear in the size of the graph."""
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
            waiting.append(join)  # the join closes each of its parallels separately
        waiting += [target for target in graph.links.targets(node) if not _merges(graph, target)]
    return frozenset(found)


def _merges(graph: Graph, node: int) -> bool:
    return node in graph.closes or (len(graph.into[node]) > 1 and not passes_separately(graph.links.nodes[node]))


def _beside_cycles(graph: Graph) -> list[int]:
    """Return the first nodes outside each cycle that can split.

    The rounds of a loop node are not such cycles: each round waits for its whole body.
    """
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
    """Return whether several edges of a node may be taken at once."""
    node = graph.links.nodes[position]
    kinds = [graph.edges[edge].kind for edge in graph.out[position]]
    several = sum(kind not in ("error", "default") for kind in kinds) > 1 or kinds.count("error") > 1
    return several and routing_of(node) == "all" and not isinstance(node.config, LoopConfig | ParallelConfig)
