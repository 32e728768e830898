"""Which steps may run at once: regions behind a split, and branches of a parallel.

    split ─┬─ a ─┬─ merge ─ z        classes behind the split: {a}, {b}; `merge` and `z` come after both
           └─ b ─┘

Behind a split two nodes may run at once if there are two ways to them that share no node. In the dominator tree of
the region they then hang below different children of the split; that child is their class. In a parallel every branch
has its own copy of each node: what counts is from which branch edges a node can be reached.
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
"""Nodes and edges looked at for all regions together: of a graph of nothing but open splits, the square of its size."""

MANY: Final = -1
"""The branch of a node that several branches lead to."""


@dataclass(frozen=True, slots=True)
class Region:
    """What may run at once behind one node."""

    opener: int
    scoped: bool
    """A parallel: every branch has a scope of its own, and nothing is ordered between branches."""
    repeated: bool
    """A parallel over items: each branch runs many times at once."""
    branch: Mapping[int, int]
    """Node -> its class or branch edge; nodes of different classes may run at once. MANY is at odds with itself."""
    certain: frozenset[int]
    """Nodes that run whenever the opener does."""


@dataclass(frozen=True, slots=True)
class Concurrent:
    regions: tuple[Region, ...]
    complete: bool
    """False where the graph was too large to look at every region."""


def concurrent(
    graph: Graph,
    *,
    always: Callable[[int], bool],
    together: Callable[[int, int], bool],
    repeated: Callable[[int], bool],
) -> Concurrent:
    """All regions. `always` and `together` know edges by number, `repeated` knows parallels over items."""
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
    """One number per branch edge is carried along; where two meet it becomes MANY. Linear."""
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
    """Dominator classes of what lies between a split and the node where all its ways meet again."""
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
    """Where all ways from a node meet again; computed when first asked."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._found: list[int] | None = None

    def of(self, node: int) -> int | None:
        """None where some way ends before meeting the others, or the meeting lets every arrival pass by itself."""
        if self._found is None:
            self._found = _postdominators(self._graph)
        meeting = self._found[node]
        count = len(self._graph.ids)
        while 0 <= meeting < count and self._graph.links.nodes[meeting].trigger == "each":
            meeting = self._found[meeting]
        return meeting if 0 <= meeting < count else None


def _postdominators(graph: Graph) -> list[int]:
    """Dominators of the graph read backwards from all its ends."""
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
