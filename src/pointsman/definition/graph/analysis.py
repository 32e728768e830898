"""Analysis of a workflow's graph, shared by checker and compiler: scopes, joins, loop bodies, dominators.

    workflow ── link ──▶ Links ─┬─ map_scopes ──▶ scopes, joins      (forward walk)
                                ├─ map_loops ───▶ loop bodies        (backward walks, dominators)
                                └─ on demand ───▶ dominance

It has no side effects and takes linear time up to logarithms; it never builds a table of all pairs, so that a chain of
100 000 nodes is no problem. Defects of the graph are `findings` with a code; the checker turns them into messages.

Regions, for pictures, are the nodes between a parallel and its join, and the body of each loop:

    parallel ──▶ [ a ──▶ b ] ──▶ join        members a, b
    loop ──▶ [ a ──▶ b ] ──▶ loop            members a, b

A region is named after the node that opens it, which is outside. Regions are side by side or one inside the other; a
region that would overlap another only in part is left out (the checker reports the cause). Also drafts are described:
parts that the entry does not reach yet have regions too.

`concurrent` finds the steps that may run at once: regions after a split, and branches of a parallel.

    split ─┬─ a ─┬─ merge ─ z        classes after the split: {a}, {b}; `merge` and `z` come after both
           └─ b ─┘

After a split two nodes may run at once if there are routes to them that share no node. In the dominator tree of the
region they are then below different children of the split; that child is their class. In a parallel every branch has
its own copy of each node: there the class of a node is the branch edge from which it can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final, Literal

from typing_extensions import TypedDict

from pointsman.definition.graph.links import EdgeRef, Links, link
from pointsman.definition.graph.scopes import ForkShape, LoopShape, Scope, ScopeFinding, map_loops, map_scopes
from pointsman.definition.graph.walks import DominatorTree, dominator_tree, reach
from pointsman.definition.model.workflow import WorkflowDefinition


@dataclass(frozen=True, slots=True)
class Regions:
    """Regions of a graph. Nodes are numbers: positions in the document."""

    kinds: Mapping[int, Literal["parallel", "loop"]]
    """Owner of a region -> its kind. Regions that overlap others without nesting are omitted."""
    around: tuple[tuple[int, ...], ...]
    """For each node the owners of its regions, outermost first. An owner is not in its own region."""

    def inside(self, node: int, owner: int) -> bool:
        return owner in self.around[node]


def regions_of(graph: Graph, *, owners: Iterable[int] | None = None) -> Regions:
    """Return the nested regions of a graph. `owners` limits them to those of some nodes."""
    wanted = None if owners is None else frozenset(owners)
    members: dict[int, set[int]] = {}
    kinds: dict[int, Literal["parallel", "loop"]] = {}
    for node, scope in enumerate(graph.scopes):
        for owner in scope or ():
            members.setdefault(owner, set()).add(node)
            kinds[owner] = "parallel"
    for owner, shape in graph.loops.items():
        members[owner] = set(shape.body) - {owner}
        kinds[owner] = "loop"
    around: list[tuple[int, ...]] = [() for _ in graph.ids]
    selected: dict[int, Literal["parallel", "loop"]] = {}
    for owner in sorted(members, key=lambda one: (-len(members[one]), one)):
        inside = members[owner]
        if not inside or owner in inside or (wanted is not None and owner not in wanted):
            continue
        # A region is nested if its owner and all its nodes are in exactly the same regions so far.
        if len({around[node] for node in (*inside, owner)}) == 1:
            selected[owner] = kinds[owner]
            for node in inside:
                around[node] = (*around[node], owner)
    return Regions(selected, tuple(around))


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


def dominance_of(links: Links) -> DominatorTree:
    """Return the dominator tree under a root that leads to the entry and the handlers."""
    root = len(links.ids)
    heads = tuple(dict.fromkeys((*(() if links.entry is None else (links.entry,)), *links.handlers)))
    successors = [*links.after, heads]
    predecessors = [*links.before]
    for head in heads:
        predecessors[head] = (*predecessors[head], root)
    return dominator_tree(successors, [*predecessors, ()], root)


RegionKind = Literal["parallel", "loop"]


class RegionView(TypedDict):
    """The nodes inside a parallel or a loop."""

    id: str
    """The parallel or the loop."""
    kind: RegionKind
    members: list[str]
    """All nodes inside, also those of regions inside, in the order of the document."""
    parent: str | None
    """The region around it."""


class ImpliedEdgeView(TypedDict):
    """An edge that the document implies: to a named branch, or along the listed body of a loop."""

    source: str
    target: str


class GraphView(TypedDict):
    """The parts of a picture of a workflow beside its nodes and edges."""

    regions: list[RegionView]
    implied: list[ImpliedEdgeView]


def graph_view(workflow: WorkflowDefinition) -> GraphView:
    """Return regions and implied edges. Takes time linear in the graph; never raises."""
    links = link(workflow)
    implied = [edge for edge in links.edges if edge.implied in ("branch", "body")]
    return {
        "regions": _regions(links),
        "implied": [{"source": links.ids[edge.source], "target": links.ids[edge.target]} for edge in implied],
    }


def _regions(links: Links) -> list[RegionView]:
    """Nest the regions: larger ones first, so that each finds the innermost region that its members have in common."""
    inside = {**_parallel_bodies(links), **_loop_bodies(links)}
    innermost: dict[int, int] = {}
    regions: list[RegionView] = []
    for opener in sorted(inside, key=lambda node: (-len(inside[node][1]), node)):
        kind, members = inside[opener]
        around = {innermost.get(member) for member in members}
        if opener in members or len(around) != 1:
            continue
        (parent,) = around
        if parent is not None and innermost.get(opener) != parent:
            continue
        innermost |= dict.fromkeys(members, opener)
        regions.append(
            {
                "id": links.ids[opener],
                "kind": kind,
                "members": [links.ids[member] for member in sorted(members)],
                "parent": None if parent is None else links.ids[parent],
            }
        )
    return regions


def _parallel_bodies(links: Links) -> Mapping[int, tuple[RegionKind, set[int]]]:
    nodes = range(len(links.ids))
    mapped = map_scopes(replace(links, handlers=(*links.handlers, *_heads(links), *nodes)))
    bodies: dict[int, set[int]] = {}
    for node, scope in enumerate(mapped.scopes):
        for opener in scope or ():
            if opener != node:
                bodies.setdefault(opener, set()).add(node)
    return {opener: ("parallel", members) for opener, members in bodies.items()}


def _loop_bodies(links: Links) -> Mapping[int, tuple[RegionKind, set[int]]]:
    rooted = replace(links, handlers=(*links.handlers, *_heads(links)))
    loops = map_loops(rooted, lambda: dominance_of(rooted)).loops
    return {node: ("loop", {*shape.body}) for node, shape in loops.items() if shape.body}


def _heads(links: Links) -> tuple[int, ...]:
    """Return the nodes without incoming edges: the beginnings of parts that the entry does not reach."""
    return tuple(node for node, sources in enumerate(links.before) if not sources)


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
    for node, edge_numbers in enumerate(graph.out):
        if graph.scopes[node] is None or left < 0:
            continue
        if node in graph.forks:
            region = _branches(graph, node, always, repeated=repeated(node))
        else:
            pairs = 0
            for pairs, (one, two) in enumerate(combinations(edge_numbers, 2), 1):
                if together(one, two) or pairs > left:
                    break
            else:
                left -= pairs
                continue
            left -= pairs
            if left < 0:
                break
            region = _split_region(graph, node, after.of(node), always)
        left -= sum(max(1, len(graph.out[inside])) for inside in region.branch)
        regions.append(region)
    return Concurrent(tuple(regions), left >= 0)


def _branches(graph: Graph, opener: int, always: Callable[[int], bool], *, repeated: bool) -> Region:
    """Propagate the number of each branch edge; a node reached by two of them gets MANY. Linear."""
    closer = graph.join_of.get(opener, opener)
    result: dict[int, int] = {}
    waiting: list[tuple[int, int]] = [
        (graph.edges[edge_number].target, edge_number) for edge_number in graph.forks[opener].starts
    ]
    while waiting:
        node, branch = waiting.pop()
        if node < 0 or node in (closer, opener) or opener not in (graph.scopes[node] or ()):
            continue
        earlier = result.get(node)
        if earlier in (branch, MANY):
            continue
        result[node] = branch if earlier is None else MANY
        waiting.extend((target, result[node]) for target in graph.links.targets(node))
    sure = [
        graph.edges[edge_number].target
        for edge_number in graph.forks[opener].starts
        if graph.edges[edge_number].kind == "plain"
    ]
    return Region(
        opener, scoped=True, repeated=repeated, branch=result, certain=_certain(graph, sure, set(result), always)
    )


def _split_region(graph: Graph, split: int, end: int | None, always: Callable[[int], bool]) -> Region:
    """Build the dominator classes of the nodes between a split and the node where all its routes meet again."""
    stop = [split] if end is None else [split, end]
    inside = sorted(reach(graph.links.targets, graph.links.targets(split), avoid=stop))
    number = {node: place for place, node in enumerate(inside, start=1)}
    heads = sorted({number[target] for target in graph.links.targets(split) if target in number})
    after = [heads, *([number[one] for one in graph.links.targets(node) if one in number] for node in inside)]
    before = [
        [],
        *(
            [number.get(source, 0) for source in graph.links.sources(node) if source in number or source == split]
            for node in inside
        ),
    ]
    tree = dominator_tree(after, before, 0)
    classes: dict[int, int] = {}
    for place in sorted(range(1, len(after)), key=lambda one: tree.first[one]):
        above = tree.immediate[place]
        classes[place] = place if above == 0 else classes[above]
    sure = [graph.edges[edge_number].target for edge_number in graph.out[split] if always(edge_number)]
    return Region(
        split,
        scoped=False,
        repeated=False,
        branch={node: inside[classes[number[node]] - 1] for node in inside},
        certain=_certain(graph, sure, set(inside), always),
    )


def _certain(graph: Graph, starts: list[int], inside: set[int], always: Callable[[int], bool]) -> frozenset[int]:
    def onwards(node: int) -> Iterator[int]:
        return (
            graph.edges[edge_number].target
            for edge_number in graph.out[node]
            if graph.edges[edge_number].target in inside and always(edge_number)
        )

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
