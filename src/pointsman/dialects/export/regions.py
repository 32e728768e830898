"""Nested groups of the nodes inside parallels and loops, for diagrams and BPMN's sub-processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pointsman.definition.graph.analysis import Graph


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
    kept: dict[int, Literal["parallel", "loop"]] = {}
    for owner in sorted(members, key=lambda one: (-len(members[one]), one)):
        inside = members[owner]
        if not inside or owner in inside or (wanted is not None and owner not in wanted):
            continue
        # A region is nested if its owner and all its nodes are in exactly the same regions so far.
        if len({around[node] for node in (*inside, owner)}) == 1:
            kept[owner] = kinds[owner]
            for node in inside:
                around[node] = (*around[node], owner)
    return Regions(kept, tuple(around))
