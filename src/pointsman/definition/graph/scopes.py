"""Open parallels around each node, and the join that closes each parallel.

    parallel ──▶ a ──▶ join ──▶ z        scopes: a (parallel,)   join ()   z ()
        └──────▶ b ────▲                 closes: join → (parallel,)

Control carries its open parallels along: a parallel adds itself on the way to its branches; a join removes the
innermost one (with `of`: that one and everything inside it). A node reached with two different sets of open parallels
is a finding; the first set is used for the rest of the walk, so that one mistake gives one finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from pointsman.definition.graph.links import EdgeRef, Links
from pointsman.definition.model.control import JoinConfig, ParallelConfig

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
    found = ScopeMap(scopes=[None] * len(links.ids), forks=_forks(links))
    met = _Arrivals([None] * len(links.ids), [NO_EDGE] * len(links.ids), {})
    roots = () if links.entry is None else (links.entry,)
    for root in (*roots, *links.handlers):
        if found.scopes[root] is None:
            _walk(links, found, root, met)
    for node, others in met.others.items():
        first = met.first[node]
        assert first is not None
        _compare(links, found, node, {first: met.edge[node], **others})
    _several_joins(found)
    return found


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
        ways = tuple(edge for edge in links.out[position] if links.edges[edge].kind != "error")
        named = {links.index[branch] for branch in node.config.branches or () if branch in links.index}
        starts = tuple(edge for edge in ways if links.edges[edge].target in named) if named else ways
        first = frozenset(starts)
        forks[position] = ForkShape(starts, tuple(edge for edge in ways if edge not in first))
    return forks


def _walk(links: Links, found: ScopeMap, root: int, met: _Arrivals) -> None:
    """Give every node reached from `root` the scope of its first arrival, and record the scopes of later ones."""
    scopes, edges = found.scopes, links.edges
    scopes[root] = met.first[root] = ()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        scope = scopes[node]
        assert scope is not None
        inner = _opened(found, node, scope) if node in found.forks else scope
        for number in links.out[node]:
            edge = edges[number]
            target = edge.target
            if target < 0:
                continue
            carried = scope if edge.kind == "error" else inner
            if met.first[target] is None:
                met.first[target], met.edge[target] = carried, number
                scopes[target] = _entered(links, found, edge, carried) if carried else carried
                waiting.append(target)
            elif met.first[target] != carried:
                met.others.setdefault(target, {}).setdefault(carried, number)


def _opened(found: ScopeMap, node: int, scope: Scope) -> Scope:
    """Return the scope of a parallel's branches."""
    if len(scope) < SCOPE_DEPTH_MAX:
        return (*scope, node)
    found.findings.append(ScopeFinding("too-nested", (node,)))
    return scope


def _entered(links: Links, found: ScopeMap, edge: EdgeRef, carried: Scope) -> Scope:
    """Return the scope of a node entered with these parallels open: without the ones it closes, if it is a join."""
    config = links.nodes[edge.target].config
    if not isinstance(config, JoinConfig):
        return carried
    depth = len(carried) - 1
    if config.of is not None:
        opener = links.index.get(config.of, -1)
        if opener not in carried:
            found.findings.append(ScopeFinding("join-of-not-open", (edge.target,), (edge.number,)))
            return carried
        depth = carried.index(opener)
    found.closes[edge.target] = carried[depth:]
    for opener in carried[depth:]:
        found.join_of.setdefault(opener, edge.target)
    return carried[:depth]


def _compare(links: Links, found: ScopeMap, node: int, scopes: Mapping[Scope, int]) -> None:
    """Report a node reached with different parallels open. An `end` may be: it ends whatever branch reaches it."""
    if links.nodes[node].type == "end":
        found.scopes[node] = _shared(tuple(scopes))
        return
    first, *others = scopes
    for other in others:
        outer, inner = sorted((first, other), key=len)
        leaks = inner[: len(outer)] == outer and all(opener in found.join_of for opener in inner[len(outer) :])
        code = "scope-leak" if leaks and node not in found.closes else "scope-mismatch"
        edges = tuple(edge for edge in (scopes[other], scopes[first]) if edge != NO_EDGE)
        found.findings.append(ScopeFinding(code, (node, *inner[len(_shared((outer, inner))) :]), edges))


def _shared(scopes: tuple[Scope, ...]) -> Scope:
    """Return the outer part that all scopes have in common."""
    depth = 0
    for level in zip(*scopes, strict=False):
        if len(set(level)) > 1:
            break
        depth += 1
    return scopes[0][:depth]


def _several_joins(found: ScopeMap) -> None:
    """Report parallels with several joins: a parallel must count its branches at one."""
    closers: dict[int, list[int]] = {}
    for join, openers in found.closes.items():
        for opener in openers:
            closers.setdefault(opener, []).append(join)
    found.findings.extend(
        ScopeFinding("several-joins", (sorted(joins)[1], opener, *sorted(joins)))
        for opener, joins in closers.items()
        if len(joins) > 1
    )
