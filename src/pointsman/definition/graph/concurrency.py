"""Steps that may run at once: regions after a split, and branches of a parallel.

    split ─┬─ a ─┬─ merge ─ z        classes after the split: {a}, {b}; `merge` and `z` come after both
           └─ b ─┘

After a split two nodes may run at once if there are routes to them that share no node. In the dominator tree of the
region they are then below different children of the split; that child is their class. In a parallel every branch has
its own copy of each node: there the class of a node is the branch edge from which it can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.graph.walks import dominator_tree, reach

VISITS_MAX: Final = 30_000
VISITS_PER_NODE_MAX: Final = 5
"""Nodes and edges visited for all regions together. A graph of open splits alone would need the square of its size."""

MANY: Final = -1
"""Branch of a node that several branches lead to."""


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that may run at once after one node."""

    opener: int
    scoped: bool
    """True for a parallel: every branch has a scope of its own, and nothing is ordered between branches."""
    repeated: bool
    """True for a parallel over items: each branch runs many times at once."""
    branch: Mapping[int, int]
    """Node -> its class or branch edge. Nodes of different
    classes may run at once; a node with MANY also with itself."""
    certain: frozenset[int]
    """Nodes that run whenever the opener does."""


@dataclass(frozen=True, slots=True)
class Concurrent:
    regions: tuple[Region, ...]
    complete: bool
    """False if the graph was too large to visit every region."""


def concurrent(
    graph: Graph,
    *,
    always: Callable[[int], bool],
    together: Callable[[int, int], bool],
    repeated: Callable[[int], bool],
) -> Concurrent:
    """Return all regions. `always` and `together` take edge numbers, `repeated` takes the number of a parallel."""
    regions: list[Region] = []
    left = VISITS_MAX + VISITS_PER_NODE_MAX * max(len(graph.ids), len(graph.edges))
    after = _Postdominators(graph)
    for node, ways in enumerate(graph.out):
        if graph.scopes[node] is None or left < 0:
            continue
        if node in graph.forks:
            region = _branches(graph, node, always, repeated=repeated(node))
        else:
            pairs = 0
            for pairs, (one, two) in enumerate(combinations(ways, 2), 1):
                if together(one, two) or pairs > left:
                    break
            else:
                left -= pairs
                continue
            left -= pairs
            if left < 0:
                break
            region = _behind(graph, node, after.of(node), always)
        left -= sum(max(1, len(graph.out[inside])) for inside in region.branch)
        regions.append(region)
    return Concurrent(tuple(regions), left >= 0)


def _branches(graph: Graph, opener: int, always: Callable[[int], bool], *, repeated: bool) -> Region:
    """Propagate the number of each branch edge; a node reached by two of them gets MANY. Linear."""
    closer = graph.join_of.get(opener, opener)
    found: dict[int, int] = {}
    waiting: list[tuple[int, int]] = [(graph.edges[way].target, way) for way in graph.forks[opener].starts]
    while waiting:
        node, branch = waiting.pop()
        if node < 0 or node in (closer, opener) or opener not in (graph.scopes[node] or ()):
            continue
        known = found.get(node)
        if known in (branch, MANY):
            continue
        found[node] = branch if known is None else MANY
        waiting.extend((target, found[node]) for target in graph.links.targets(node))
    sure = [graph.edges[way].target for way in graph.forks[opener].starts if graph.edges[way].kind == "plain"]
    return Region(
        opener, scoped=True, repeated=repeated, branch=found, certain=_certain(graph, sure, set(found), always)
    )


def _behind(graph: Graph, split: int, end: int | None, always: Callable[[int], bool]) -> Region:
    """Build the dominator classes of the nodes between a split and the node where all its routes meet again."""
    stop = [split] if end is None else [split, end]
    inside = sorted(reach(graph.links.targets, graph.links.targets(split), avoid=stop))
    number = {node: place for place, node in enumerate(inside, start=1)}
    heads = sorted({number[target] for target in graph.links.targets(split) if target in number})
    after = [heads, *([number[one] for one in graph.links.targets(node) if one in number] for node in inside)]
    before = [
        [],
        *(
            [number.get(one, 0) for one in graph.links.sources(node) if one in number or one == split]
            for node in inside
        ),
    ]
    tree = dominator_tree(after, before, 0)
    classes: dict[int, int] = {}
    for place in sorted(range(1, len(after)), key=lambda one: tree.first[one]):
        above = tree.immediate[place]
        classes[place] = place if above == 0 else classes[above]
    sure = [graph.edges[way].target for way in graph.out[split] if always(way)]
    return Region(
        split,
        scoped=False,
        repeated=False,
        branch={node: inside[classes[number[node]] - 1] for node in inside},
        certain=_certain(graph, sure, set(inside), always),
    )


def _certain(graph: Graph, starts: list[int], inside: set[int], always: Callable[[int], bool]) -> frozenset[int]:
    def onwards(node: int) -> Iterator[int]:
        return (graph.edges[way].target for way in graph.out[node] if graph.edges[way].target in inside and always(way))

    return frozenset(reach(onwards, (start for start in starts if start in inside)))


class _Postdominators:
    """The node where all routes from a node meet again; computed on first use."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._found: list[int] | None = None

    def of(self, node: int) -> int | None:
        """Return the meeting node; None if a route ends before
        meeting the others. Nodes with trigger `each` do not count."""
        if self._found is None:
            self._found = _postdominators(self._graph)
        meeting = self._found[node]
        count = len(self._graph.ids)
        while 0 <= meeting < count and self._graph.links.nodes[meeting].trigger == "each":
            meeting = self._found[meeting]
        return meeting if 0 <= meeting < count else None


def _postdominators(graph: Graph) -> list[int]:
    """Return the immediate dominators of the reversed graph, starting from all its ends."""
    count = len(graph.ids)
    after = [sorted(set(graph.links.targets(node))) for node in range(count)]
    ends = [node for node in range(count) if not after[node] or any(graph.edges[w].target < 0 for w in graph.out[node])]
    before: list[list[int]] = [[] for _ in range(count + 1)]
    for node, targets in enumerate(after):
        for target in targets:
            before[target].append(node)
    before[count] = ends
    for end in ends:
        after[end] = [*after[end], count]
    return dominator_tree(before, [*after, []], count).immediate
