"""Regions of a workflow's graph, for pictures: the nodes between a parallel and its join, and the body of each loop.

    parallel ──▶ [ a ──▶ b ] ──▶ join        members a, b
    loop ──▶ [ a ──▶ b ] ──▶ loop            members a, b

A region is named after the node that opens it, which is outside. Regions are side by side or one inside the other; a
region that would overlap another only in part is left out (the checker reports the cause). Also drafts are described:
parts that the entry does not reach yet have regions too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from typing_extensions import TypedDict

from pointsman.definition.graph.analysis import dominance_of
from pointsman.definition.graph.links import Links, link
from pointsman.definition.graph.loop_bodies import map_loops
from pointsman.definition.graph.scopes import map_scopes
from pointsman.definition.model.workflow import WorkflowDefinition

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
    """What a picture of a workflow shows beside its nodes and edges."""

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
    found: list[RegionView] = []
    for opener in sorted(inside, key=lambda node: (-len(inside[node][1]), node)):
        kind, members = inside[opener]
        around = {innermost.get(member) for member in members}
        if opener in members or len(around) != 1:
            continue
        (parent,) = around
        if parent is not None and innermost.get(opener) != parent:
            continue
        innermost |= dict.fromkeys(members, opener)
        found.append(
            {
                "id": links.ids[opener],
                "kind": kind,
                "members": [links.ids[member] for member in sorted(members)],
                "parent": None if parent is None else links.ids[parent],
            }
        )
    return found


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
