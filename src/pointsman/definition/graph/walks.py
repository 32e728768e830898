"""Algorithms for graphs of numbered nodes: reachability, strongly connected components, dominators. None is recursive.

`neighbours[n]` lists the nodes one edge away from n. All take linear time except dominators, which take n log n.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Neighbours: TypeAlias = Sequence[Sequence[int]]

Part: TypeAlias = list[int]
"""Nodes of a strongly connected component in ascending order."""

NOWHERE: Final = -1
"""Dominator of the root and of unreachable nodes."""


def reach(
    neighbours: Callable[[int], Iterable[int]],
    roots: Iterable[int],
    *,
    avoid: Iterable[int] = (),
    within: Container[int] | None = None,
) -> set[int]:
    """Return the roots and everything reachable from them without entering `avoid` or leaving `within`."""
    closed = set(avoid)
    waiting = [root for root in dict.fromkeys(roots) if root not in closed]
    seen = {*waiting, *closed}
    while waiting:
        for node in neighbours(waiting.pop()):
            if node not in seen and (within is None or node in within):
                seen.add(node)
                waiting.append(node)
    return seen - closed if closed else seen


def components(neighbours: Neighbours) -> list[Part]:
    """Return the strongly connected components (Tarjan), each sorted. A component comes after all those it leads to."""
    count = len(neighbours)
    order, low = [0] * count, [0] * count
    on_stack = bytearray(count)
    stack: list[int] = []
    parts: list[Part] = []
    clock = 0
    for root in range(count):
        if order[root]:
            continue
        work: list[tuple[int, int]] = [(root, 0)]
        while work:
            node, position = work.pop()
            if position == 0:
                clock += 1
                order[node] = low[node] = clock
                stack.append(node)
                on_stack[node] = 1
            inner = neighbours[node]
            if position:
                low[node] = min(low[node], low[inner[position - 1]]) if on_stack[inner[position - 1]] else low[node]
            while position < len(inner):
                target = inner[position]
                position += 1
                if not order[target]:
                    work += ((node, position), (target, 0))
                    break
                if on_stack[target]:
                    low[node] = min(low[node], order[target])
            else:
                if low[node] == order[node]:
                    parts.append(_unwind(stack, on_stack, node))
    return parts


def cycles(neighbours: Neighbours) -> list[Part]:
    """Return the strongly connected components that contain a cycle."""
    return [part for part in components(neighbours) if len(part) > 1 or part[0] in neighbours[part[0]]]


def _unwind(stack: list[int], on_stack: bytearray, root: int) -> Part:
    part: list[int] = []
    while True:
        node = stack.pop()
        on_stack[node] = 0
        part.append(node)
        if node == root:
            return sorted(part)


@dataclass(frozen=True, slots=True)
class DominatorTree:
    """Dominator tree. `immediate[n]` is NOWHERE for the root and for nodes that the root does not reach."""

    root: int
    immediate: list[int]
    first: list[int]
    last: list[int]
    """Preorder numbers in the tree: the subtree of a node has the numbers from its `first` to its `last`."""

    def dominates(self, node: int, other: int) -> bool:
        """Return whether every route to `other` passes `node`. A node dominates itself."""
        return node == other or 0 <= self.first[node] < self.first[other] <= self.last[node]

    def children(self) -> list[list[int]]:
        inner: list[list[int]] = [[] for _ in self.immediate]
        for node, above in enumerate(self.immediate):
            if above >= 0:
                inner[above].append(node)
        return inner


def dominator_tree(successors: Neighbours, predecessors: Neighbours, root: int) -> DominatorTree:
    """Return the tree of immediate dominators, numbered so that queries take O(1)."""
    immediate = dominators(successors, predecessors, root)
    tree = DominatorTree(root, immediate, [NOWHERE] * len(immediate), [NOWHERE] * len(immediate))
    children = tree.children()
    clock = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node < 0:
            tree.last[~node] = clock - 1
            continue
        tree.first[node] = clock
        clock += 1
        waiting.append(~node)
        waiting.extend(children[node])
    return tree


def dominators(successors: Neighbours, predecessors: Neighbours, root: int) -> list[int]:
    """Return the immediate dominator of each node (Lengauer-Tarjan with path compression)."""
    order, parent, number = _depth_first(successors, root)
    count = len(order)
    semi = list(range(count))
    best = list(range(count))
    ancestor = [NOWHERE] * count
    immediate = [0] * count
    buckets: list[list[int]] = [[] for _ in range(count)]

    for node in range(count - 1, 0, -1):
        for before in predecessors[order[node]]:
            if (origin := number[before]) >= 0:
                semi[node] = min(semi[node], semi[_best(origin, ancestor, best, semi)])
        buckets[semi[node]].append(node)
        above = parent[node]
        ancestor[node] = above
        for inner in buckets[above]:
            chosen = _best(inner, ancestor, best, semi)
            immediate[inner] = chosen if semi[chosen] < semi[inner] else above
        buckets[above] = []

    dominator_of = [NOWHERE] * len(successors)
    for node in range(1, count):
        if immediate[node] != semi[node]:
            immediate[node] = immediate[immediate[node]]
        dominator_of[order[node]] = order[immediate[node]]
    return dominator_of


def _depth_first(successors: Neighbours, root: int) -> tuple[list[int], list[int], list[int]]:
    """Return the nodes in preorder; the parent of each as a
    preorder number; and the preorder number of each node, or -1."""
    number = [NOWHERE] * len(successors)
    order: list[int] = []
    parent: list[int] = []
    waiting: list[tuple[int, int]] = [(root, 0)]
    while waiting:
        node, above = waiting.pop()
        if number[node] >= 0:
            continue
        number[node] = len(order)
        order.append(node)
        parent.append(above)
        here = number[node]
        waiting.extend((target, here) for target in reversed(successors[node]) if number[target] < 0)
    return order, parent, number


def _best(node: int, ancestor: list[int], best: list[int], semi: list[int]) -> int:
    """Return the node of least semidominator on the route to the root, and compress that route."""
    if ancestor[node] == NOWHERE:
        return node
    path: list[int] = []
    here = node
    while ancestor[ancestor[here]] != NOWHERE:
        path.append(here)
        here = ancestor[here]
    for inner in reversed(path):
        above = ancestor[inner]
        if semi[best[above]] < semi[best[inner]]:
            best[inner] = best[above]
        ancestor[inner] = ancestor[above]
    return best[node]
