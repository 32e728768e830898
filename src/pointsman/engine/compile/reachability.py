"""Reachability queries that the engine makes at run time, only where several tokens meet. Answers are cached.

Paths stay inside the scope of the node: a path through the surrounding parallel would start outside the scope, or in
another instance of the parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.walks import NOWHERE, reach
from pointsman.engine.compile.edges import JUDGE, judge_of


def reaches_in(graph: Graph, nodes: frozenset[str]) -> Callable[[str], frozenset[str]]:
    """See `Plan.reaches`."""
    known: dict[str, frozenset[str]] = {}

    def reaches(node: str) -> frozenset[str]:
        found = known.get(node)
        if found is None:
            before = {graph.ids[one] for one in _before(graph, graph.index[node])}
            judges = {judge_of(one) for one in before if judge_of(one) in nodes}
            known[node] = found = frozenset(before | judges)
        return found

    return reaches


def after_in(graph: Graph) -> Callable[[Iterable[str]], frozenset[str]]:
    """See `Plan.after`."""

    def after(nodes: Iterable[str]) -> frozenset[str]:
        known = [one for one in nodes if one.removesuffix(JUDGE) in graph.index]
        behind = [target for one in known for target in graph.links.targets(_number(graph, one))]
        found = reach(graph.links.targets, behind)
        return frozenset(graph.ids[one] for one in found if one >= 0)

    return after


def leads_in(graph: Graph) -> Callable[[str, str, str], bool]:
    """See `Plan.leads`."""
    known: dict[tuple[int, int], set[int]] = {}

    def leads(source: str, target: str, without: str) -> bool:
        goal, closed = _number(graph, target), _number(graph, without) if without else NOWHERE
        found = known.get((goal, closed))
        if found is None:
            avoid = (closed, _fork(graph, goal))
            found = known[goal, closed] = reach(graph.links.sources, graph.links.sources(goal), avoid=avoid)
        return _number(graph, source) in found

    return leads


def meets_in(graph: Graph) -> Callable[[str, str], bool]:
    """See `Plan.meets`."""
    known: dict[tuple[str, str], bool] = {}

    def meets(source: str, node: str) -> bool:
        found = known.get((source, node))
        if found is None:
            goal = graph.index[node]
            here = graph.scopes[goal]
            behind = reach(graph.links.targets, graph.links.targets(_number(graph, source)), avoid=(goal,))
            beside = {one for one in behind if graph.scopes[one] == here}
            found = known[source, node] = beside <= _before(graph, goal)
        return found

    return meets


def _before(graph: Graph, node: int) -> set[int]:
    """Return the nodes from which a node can be reached; includes the node itself if it is on a cycle."""
    found = reach(graph.links.sources, graph.links.sources(node), avoid=(node, _fork(graph, node)))
    if any(one == node or one in found for one in graph.links.targets(node)):
        found.add(node)
    return found


def _fork(graph: Graph, node: int) -> int:
    around = graph.scopes[node]
    return around[-1] if around else NOWHERE


def _number(graph: Graph, node: str) -> int:
    """Return the position of a node; for a hidden judge, the position of the node in front of it."""
    found = graph.index.get(node)
    return graph.index[node.removesuffix(JUDGE)] if found is None else found
