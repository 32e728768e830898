"""Bodies of loop nodes: the edges that lead into a round, the nodes inside, and the edges that leave.

An edge leads into the body if it is marked so, or if its target leads back to the loop without passing a strict
dominator of the loop (an outer loop is one, so a route out through it is not a round). The body is the nodes on such
routes. An edge marked `break` leaves the innermost loop around it, even if its target leads back to the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pointsman.definition.graph.links import Links
from pointsman.definition.graph.scopes import ScopeFinding
from pointsman.definition.graph.walks import DominatorTree, reach
from pointsman.definition.model.control import LoopConfig

BODY_VISITS_MAX: Final = 100_000
BODY_VISITS_PER_NODE_MAX: Final = 10
"""Nodes visited for all loops together. Entangled loops could otherwise cost the square of the graph."""


@dataclass(frozen=True, slots=True)
class LoopShape:
    """Edges and body of a loop, by number. `back_edges` end a
    round: they come from the body, or from the loop itself."""

    body_edges: tuple[int, ...]
    body: frozenset[int]
    exit_edges: tuple[int, ...]
    back_edges: tuple[int, ...]


@dataclass(slots=True)
class LoopMap:
    loops: dict[int, LoopShape] = field(default_factory=dict[int, LoopShape])
    findings: list[ScopeFinding] = field(default_factory=list[ScopeFinding])


def map_loops(links: Links, dominance: Callable[[], DominatorTree]) -> LoopMap:
    """Find the body of every loop. `dominance` is called only if there is a loop node."""
    found = LoopMap()
    breaks = frozenset(edge.number for edge in links.edges if edge.mark == "break")
    returning: dict[int, set[int]] = {}
    visits_left = BODY_VISITS_MAX + BODY_VISITS_PER_NODE_MAX * len(links.nodes)
    for node, one in enumerate(links.nodes):
        if not isinstance(one.config, LoopConfig):
            continue
        back = returning[node] = _returning(links, node, dominance())
        visits_left -= len(back)
        if visits_left < 0:
            found.findings.append(ScopeFinding("loops-too-complex", (node,)))
            break
        found.loops[node] = _shape(links, node, back, breaks)
    left_by = _left_by(links, found.loops, breaks)
    for node, leaving in left_by.items():
        if leaving != breaks:  # an edge that breaks another loop may still lead through the body of this one
            found.loops[node] = _shape(links, node, returning[node], leaving)
    for node, shape in found.loops.items():
        found.findings.extend(_objections(links, node, shape, returning[node]))
    return found


def _returning(links: Links, node: int, tree: DominatorTree) -> set[int]:
    """Return the nodes from which control returns to a loop without passing a strict dominator of it."""
    first, last, here = tree.first, tree.last, tree.first[node]
    found, waiting = {node}, [node]
    while waiting:
        for source in links.before[waiting.pop()]:
            if source not in found and not 0 <= first[source] < here <= last[source]:
                found.add(source)
                waiting.append(source)
    return found


def _left_by(links: Links, loops: Mapping[int, LoopShape], breaks: frozenset[int]) -> dict[int, frozenset[int]]:
    """Return for each loop the edges that break it: the marked ones of which it is the innermost enclosing loop."""
    if not breaks:
        return {}
    innermost: dict[int, int] = {}
    for loop in sorted(loops, key=lambda node: -len(loops[node].body)):
        innermost |= dict.fromkeys(loops[loop].body, loop)
    leaving: dict[int, set[int]] = {node: set() for node in loops}
    for number in breaks:
        loop = innermost.get(links.edges[number].source)
        if loop is not None:
            leaving[loop].add(number)
    return {node: frozenset(edges) for node, edges in leaving.items()}


def _shape(links: Links, node: int, returning: set[int], leaving: frozenset[int]) -> LoopShape:
    """Describe one loop. `leaving`: edges that lead out of the body, whatever their target."""
    ways = [links.edges[number] for number in links.out[node] if links.edges[number].kind != "error"]
    body_edges = [edge for edge in ways if edge.mark == "body" or edge.implied == "body"]
    config = links.nodes[node].config
    if not body_edges and isinstance(config, LoopConfig) and config.body:
        body_edges = [edge for edge in ways if edge.target >= 0 and links.ids[edge.target] == config.body[0]]
    if not body_edges:
        body_edges = [edge for edge in ways if edge.mark is None and edge.target in returning]
    firsts = [edge.target for edge in body_edges if edge.target >= 0 and edge.target != node]

    def staying(one: int) -> list[int]:
        return [links.edges[number].target for number in links.out[one] if number not in leaving]

    inside = reach(staying if leaving else links.targets, firsts, avoid=(node,), within=returning)
    numbers = {edge.number for edge in body_edges}
    return LoopShape(
        body_edges=tuple(edge.number for edge in body_edges),
        body=frozenset(inside),
        exit_edges=tuple(edge.number for edge in ways if edge.number not in numbers),
        back_edges=tuple(
            number for number in links.into[node] if links.edges[number].source in inside or number in numbers
        ),
    )


def _objections(links: Links, node: int, shape: LoopShape, returning: set[int]) -> Iterator[ScopeFinding]:
    if not shape.body_edges:
        yield ScopeFinding("loop-body-ambiguous", (node,))
    for number in shape.exit_edges:
        if links.edges[number].target in shape.body:
            yield ScopeFinding("loop-body-ambiguous", (node, links.edges[number].target), (number,))
    for number in shape.body_edges:
        target = links.edges[number].target
        if target >= 0 and target != node and target not in returning:
            yield ScopeFinding("loop-never-returns", (node, target), (number,))
    for inner in sorted(shape.body):
        for number in links.into[inner]:
            source = links.edges[number].source
            if source >= 0 and source != node and source not in shape.body:
                yield ScopeFinding("loop-entered-sideways", (node, inner, source), (number,))
