"""Open parallels around each node, the join that closes each parallel, and the bodies of loops.

    parallel ──▶ a ──▶ join ──▶ z        scopes: a (parallel,)   join ()   z ()
        └──────▶ b ────▲                 closes: join → (parallel,)

Control carries its open parallels along: a parallel adds itself on the way to its branches; a join removes the
innermost one (with `of`: that one and everything inside it). A node reached with two different sets of open parallels
is a finding; the first set is used for the rest of the walk, so that one mistake gives one finding.

Bodies of loops: an edge leads into the body if it is marked so, or if its target leads back to the loop without passing
a strict dominator of the loop (an outer loop is one, so a route out through it is not a round). The body is the nodes
on such routes. An edge marked `break` leaves the innermost loop around it, even if its target leads back to the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from pointsman.definition.graph.links import EdgeRef, Links
from pointsman.definition.graph.walks import DominatorTree, reach
from pointsman.definition.model.control import JoinConfig, LoopConfig, ParallelConfig

SCOPE_DEPTH_MAX: Final = 64
"""Maximum number of parallels open around one node."""

NO_EDGE: Final = -1

Scope: TypeAlias = tuple[int, ...]
"""Open parallels, outermost first."""


class ScopeFinding(NamedTuple):
    """A defect in the shape of the graph. Nodes and edges by number, the one to point at first."""

    code: str
    nodes: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()


class ForkShape(NamedTuple):
    """Edges of a parallel: those that start its branches, and those that a scope takes when its branches have ended."""

    starts: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(slots=True)
class ScopeMap:
    """Result of the walk."""

    scopes: list[Scope | None]
    forks: Mapping[int, ForkShape]
    closes: dict[int, Scope] = field(default_factory=dict[int, Scope])
    join_of: dict[int, int] = field(default_factory=dict[int, int])
    findings: list[ScopeFinding] = field(default_factory=list[ScopeFinding])


def map_scopes(links: Links) -> ScopeMap:
    """Walk from the entry, then from each handler that is still unreached."""
    scope_map = ScopeMap(scopes=[None] * len(links.ids), forks=_forks(links))
    met = _Arrivals([None] * len(links.ids), [NO_EDGE] * len(links.ids), {})
    roots = () if links.entry is None else (links.entry,)
    for root in (*roots, *links.handlers):
        if scope_map.scopes[root] is None:
            _walk(links, scope_map, root, met)
    for node, others in met.others.items():
        first = met.first[node]
        assert first is not None
        _compare(links, scope_map, node, {first: met.edge[node], **others})
    _several_joins(scope_map)
    return scope_map


class _Arrivals(NamedTuple):
    """The open parallels with which each node was reached: first time, the edge of that time, and all that differed."""

    first: list[Scope | None]
    edge: list[int]
    others: dict[int, dict[Scope, int]]


def _forks(links: Links) -> dict[int, ForkShape]:
    forks: dict[int, ForkShape] = {}
    for position, node in enumerate(links.nodes):
        if not isinstance(node.config, ParallelConfig):
            continue
        edge_numbers = tuple(edge for edge in links.out[position] if links.edges[edge].kind != "error")
        first_nodes = {links.index[branch] for branch in node.config.branches or () if branch in links.index}
        starts = (
            tuple(edge for edge in edge_numbers if links.edges[edge].target in first_nodes)
            if first_nodes
            else edge_numbers
        )
        first = frozenset(starts)
        forks[position] = ForkShape(starts, tuple(edge for edge in edge_numbers if edge not in first))
    return forks


def _walk(links: Links, scope_map: ScopeMap, root: int, met: _Arrivals) -> None:
    """Give every node reached from `root` the scope of its first arrival, and record the scopes of later ones."""
    scopes, edges = scope_map.scopes, links.edges
    scopes[root] = met.first[root] = ()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        scope = scopes[node]
        assert scope is not None
        inner = _opened(scope_map, node, scope) if node in scope_map.forks else scope
        for number in links.out[node]:
            edge = edges[number]
            target = edge.target
            if target < 0:
                continue
            carried = scope if edge.kind == "error" else inner
            if met.first[target] is None:
                met.first[target], met.edge[target] = carried, number
                scopes[target] = _entered(links, scope_map, edge, carried) if carried else carried
                waiting.append(target)
            elif met.first[target] != carried:
                met.others.setdefault(target, {}).setdefault(carried, number)


def _opened(scope_map: ScopeMap, node: int, scope: Scope) -> Scope:
    """Return the scope of a parallel's branches."""
    if len(scope) < SCOPE_DEPTH_MAX:
        return (*scope, node)
    scope_map.findings.append(ScopeFinding("too-nested", (node,)))
    return scope


def _entered(links: Links, scope_map: ScopeMap, edge: EdgeRef, carried: Scope) -> Scope:
    """Return the scope of a node entered with these parallels open: without the ones it closes, if it is a join."""
    config = links.nodes[edge.target].config
    if not isinstance(config, JoinConfig):
        return carried
    depth = len(carried) - 1
    if config.of is not None:
        opener = links.index.get(config.of, -1)
        if opener not in carried:
            scope_map.findings.append(ScopeFinding("join-of-not-open", (edge.target,), (edge.number,)))
            return carried
        depth = carried.index(opener)
    scope_map.closes[edge.target] = carried[depth:]
    for opener in carried[depth:]:
        scope_map.join_of.setdefault(opener, edge.target)
    return carried[:depth]


def _compare(links: Links, scope_map: ScopeMap, node: int, scopes: Mapping[Scope, int]) -> None:
    """Report a node reached with different parallels open. An `end` may be: it ends whatever branch reaches it."""
    if links.nodes[node].type == "end":
        scope_map.scopes[node] = _shared(tuple(scopes))
        return
    first, *others = scopes
    for other in others:
        outer, inner = sorted((first, other), key=len)
        leaks = inner[: len(outer)] == outer and all(opener in scope_map.join_of for opener in inner[len(outer) :])
        code = "scope-leak" if leaks and node not in scope_map.closes else "scope-mismatch"
        edges = tuple(edge for edge in (scopes[other], scopes[first]) if edge != NO_EDGE)
        scope_map.findings.append(ScopeFinding(code, (node, *inner[len(_shared((outer, inner))) :]), edges))


def _shared(scopes: tuple[Scope, ...]) -> Scope:
    """Return the outer part that all scopes have in common."""
    depth = 0
    for level in zip(*scopes, strict=False):
        if len(set(level)) > 1:
            break
        depth += 1
    return scopes[0][:depth]


def _several_joins(scope_map: ScopeMap) -> None:
    """Report parallels with several joins: a parallel must count its branches at one."""
    closers: dict[int, list[int]] = {}
    for join, openers in scope_map.closes.items():
        for opener in openers:
            closers.setdefault(opener, []).append(join)
    scope_map.findings.extend(
        ScopeFinding("several-joins", (sorted(joins)[1], opener, *sorted(joins)))
        for opener, joins in closers.items()
        if len(joins) > 1
    )


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
    loop_map = LoopMap()
    breaks = frozenset(edge.number for edge in links.edges if edge.mark == "break")
    returning: dict[int, set[int]] = {}
    visits_left = BODY_VISITS_MAX + BODY_VISITS_PER_NODE_MAX * len(links.nodes)
    for node, one in enumerate(links.nodes):
        if not isinstance(one.config, LoopConfig):
            continue
        back = returning[node] = _returning(links, node, dominance())
        visits_left -= len(back)
        if visits_left < 0:
            loop_map.findings.append(ScopeFinding("loops-too-complex", (node,)))
            break
        loop_map.loops[node] = _shape(links, node, back, breaks)
    left_by = _left_by(links, loop_map.loops, breaks)
    for node, leaving in left_by.items():
        if leaving != breaks:  # an edge that breaks another loop may still lead through the body of this one
            loop_map.loops[node] = _shape(links, node, returning[node], leaving)
    for node, shape in loop_map.loops.items():
        loop_map.findings.extend(_objections(links, node, shape, returning[node]))
    return loop_map


def _returning(links: Links, node: int, tree: DominatorTree) -> set[int]:
    """Return the nodes from which control returns to a loop without passing a strict dominator of it."""
    first, last, here = tree.first, tree.last, tree.first[node]
    nodes, waiting = {node}, [node]
    while waiting:
        for source in links.before[waiting.pop()]:
            if source not in nodes and not 0 <= first[source] < here <= last[source]:
                nodes.add(source)
                waiting.append(source)
    return nodes


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
    edge_numbers = [links.edges[number] for number in links.out[node] if links.edges[number].kind != "error"]
    body_edges = [edge for edge in edge_numbers if edge.mark == "body" or edge.implied == "body"]
    config = links.nodes[node].config
    if not body_edges and isinstance(config, LoopConfig) and config.body:
        body_edges = [edge for edge in edge_numbers if edge.target >= 0 and links.ids[edge.target] == config.body[0]]
    if not body_edges:
        body_edges = [edge for edge in edge_numbers if edge.mark is None and edge.target in returning]
    firsts = [edge.target for edge in body_edges if edge.target >= 0 and edge.target != node]

    def staying(one: int) -> list[int]:
        return [links.edges[number].target for number in links.out[one] if number not in leaving]

    inside = reach(staying if leaving else links.targets, firsts, avoid=(node,), within=returning)
    numbers = {edge.number for edge in body_edges}
    return LoopShape(
        body_edges=tuple(edge.number for edge in body_edges),
        body=frozenset(inside),
        exit_edges=tuple(edge.number for edge in edge_numbers if edge.number not in numbers),
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
