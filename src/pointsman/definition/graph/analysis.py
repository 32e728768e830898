"""Analysis of a workflow's graph, shared by checker and compiler: scopes, joins, loop bodies, dominators.

    workflow ── link ──▶ Links ─┬─ map_scopes ──▶ scopes, joins      (forward walk)
                                ├─ map_loops ───▶ loop bodies        (backward walks, dominators)
                                └─ on demand ───▶ ancestors, dominance

It has no side effects and takes linear time up to logarithms; it never builds a table of all pairs, so that a chain of
100 000 nodes is no problem. Defects of the graph are `findings` with a code; the checker turns them into messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pointsman.definition.graph.links import EdgeRef, Links, link
from pointsman.definition.graph.loop_bodies import LoopShape, map_loops
from pointsman.definition.graph.scopes import ForkShape, Scope, ScopeFinding, map_scopes
from pointsman.definition.graph.walks import DominatorTree, dominator_tree, reach
from pointsman.definition.model.workflow import WorkflowDefinition


@dataclass(frozen=True)
class Graph:
    """Shape of a workflow. Nodes and edges are numbers: their positions in the document."""

    links: Links
    scopes: tuple[Scope | None, ...]
    """For each node the parallels open around it, outermost first; None if the node is unreachable."""
    forks: Mapping[int, ForkShape]
    """Parallel -> its branch edges and the edges taken when its branches have ended."""
    closes: Mapping[int, Scope]
    """Join -> the parallels it closes, outermost first. Joins of plain splits are not included."""
    join_of: Mapping[int, int]
    """Parallel -> the join that closes it."""
    loops: Mapping[int, LoopShape]
    findings: tuple[ScopeFinding, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return self.links.ids

    @property
    def index(self) -> Mapping[str, int]:
        return self.links.index

    @property
    def edges(self) -> tuple[EdgeRef, ...]:
        """The edges of the document at their positions, then the implied ones."""
        return self.links.edges

    @property
    def out(self) -> tuple[tuple[int, ...], ...]:
        """Edge numbers by source, without edges that are never taken."""
        return self.links.out

    @property
    def into(self) -> tuple[tuple[int, ...], ...]:
        """Edge numbers by target, without edges that are never taken."""
        return self.links.into

    @property
    def entry(self) -> int | None:
        return self.links.entry

    @cached_property
    def dominance(self) -> DominatorTree:
        """Dominator tree of the nodes. Its root is not a node: it has edges to the entry and the handlers."""
        return dominance_of(self.links)


def analyse(workflow: WorkflowDefinition) -> Graph:
    """Analyse a workflow. Never raises: a defective graph has findings, and the rest of it is still described."""
    links = link(workflow)
    mapped = map_scopes(links)
    trees: list[DominatorTree] = []

    def dominance() -> DominatorTree:
        if not trees:
            trees.append(dominance_of(links))
        return trees[0]

    looped = map_loops(links, dominance)
    graph = Graph(
        links=links,
        scopes=tuple(mapped.scopes),
        forks=mapped.forks,
        closes=mapped.closes,
        join_of=mapped.join_of,
        loops=looped.loops,
        findings=tuple(sorted({*mapped.findings, *looped.findings}, key=lambda one: (one.nodes, one.code, one.edges))),
    )
    if trees:
        graph.__dict__["dominance"] = trees[0]
    return graph


def ancestors(graph: Graph, node: int) -> frozenset[int]:
    """Return the nodes from which control can reach `node` without passing it. Walks backwards: cache the result."""
    return frozenset(reach(graph.links.sources, graph.links.sources(node), avoid=(node,)))


def dominance_of(links: Links) -> DominatorTree:
    """Return the dominator tree under a root that leads to the entry and the handlers."""
    root = len(links.ids)
    heads = tuple(dict.fromkeys((*(() if links.entry is None else (links.entry,)), *links.handlers)))
    successors = [*links.after, heads]
    predecessors = [*links.before]
    for head in heads:
        predecessors[head] = (*predecessors[head], root)
    return dominator_tree(successors, [*predecessors, ()], root)
