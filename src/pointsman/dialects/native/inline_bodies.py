"""Flattening of nested nodes: inline loop bodies, loop containers, and inline branches of a parallel.

A body is a chain: its nodes in the order of the edges between them, else in listed order. This module creates the edges
within the chain, into it and back out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final

from pointsman.definition.problems import pointer_to
from pointsman.dialects.foreign_fields import list_of, object_of
from pointsman.dialects.native.context import ImportNotes
from pointsman.values import Json, JsonObject

INLINE_DEPTH_MAX: Final = 32


@dataclass(slots=True)
class InlineNode:
    """A node of the author's document, nested or not."""

    node: JsonObject
    pointer: str
    parent: str | None = None


@dataclass(slots=True)
class Flat:
    """All nodes on one level, and the edges that replace the nesting."""

    nodes: list[InlineNode] = field(default_factory=list[InlineNode])
    edges: list[tuple[JsonObject, str]] = field(default_factory=list[tuple[JsonObject, str]])
    """(edge, corresponding pointer in the author's document)."""
    leaves_from: dict[str, str] = field(default_factory=dict[str, str])
    """Parallels with inline branches -> the join that was added behind them."""


def flatten(document: JsonObject, notes: ImportNotes) -> Flat:
    """Return every node of the document on one level. The author's objects are copied before they change."""
    flat = Flat()
    taken = {str(object_of(node).get("id")) for node in list_of(document.get("nodes"))}
    for index, node in enumerate(list_of(document.get("nodes"))):
        _unfold(InlineNode(object_of(node), pointer_to("nodes", index)), flat, taken, notes, depth=0)
    _containers(flat, list_of(document.get("edges")))
    return flat


def _unfold(found: InlineNode, flat: Flat, taken: set[str], notes: ImportNotes, *, depth: int) -> None:
    config = object_of(found.node.get("config"))
    flat.nodes.append(found)
    if depth == INLINE_DEPTH_MAX:
        return
    body, branches = config.get("body"), config.get("branches")
    if found.node.get("type") == "loop" and _has_nodes(body):
        where = found.pointer + pointer_to("config", "body")
        ids = _inline(list_of(body), where, found, flat, taken, notes, depth=depth)
        found.node = {**found.node, "config": {**config, "body": [*ids]}}
        _chain(str(found.node.get("id")), ids, [], where, flat)
    elif _has_nodes([object_of(branch).get("nodes") for branch in list_of(branches)]):
        _branches(found, flat, taken, notes, depth=depth)


def _has_nodes(value: Json) -> bool:
    """Return whether a list holds inline nodes; a list of texts names nodes defined elsewhere."""
    return any(isinstance(entry, dict | list) for entry in list_of(value))


def _inline(
    nodes: list[Json], where: str, holder: InlineNode, flat: Flat, taken: set[str], notes: ImportNotes, *, depth: int
) -> list[str]:
    ids: list[str] = []
    for index, entry in enumerate(nodes):
        pointer = where + pointer_to(index)
        if isinstance(entry, str):
            ids.append(entry)
            continue
        node = object_of(entry)
        wanted = str(node.get("id") or f"{holder.node.get('id')}.{index + 1}")
        name = wanted
        while name in taken:
            name = f"{holder.node.get('id')}.{name}"
        if name != wanted:
            hint = "Give every node an id of its own."
            notes.warn(
                "renamed-node", pointer, f"the inner node {wanted!r} is called {name!r}, as its id is taken", hint=hint
            )
        taken.add(name)
        ids.append(name)
        _unfold(InlineNode({**node, "id": name}, pointer), flat, taken, notes, depth=depth + 1)
    return ids


def _chain(holder: str, ids: list[str], edges: list[Json], where: str, flat: Flat) -> None:
    """Add edges into the body, through it and back. `edges` are the author's own edges within the body."""
    inner = [(str(object_of(edge).get("source")), str(object_of(edge).get("target"))) for edge in edges]
    entered = {target for _, target in inner}
    left = {source for source, _ in inner}
    for before, after in pairwise(ids):
        if after not in entered:
            flat.edges.append(({"source": before, "target": after}, where))
            left.add(before)
    if ids:
        flat.edges.append(({"source": holder, "target": ids[0], "mark": "body"}, where))
    for last in (node for node in ids if node not in left):
        flat.edges.append(({"source": last, "target": holder, "mark": "continue"}, where))


def _branches(found: InlineNode, flat: Flat, taken: set[str], notes: ImportNotes, *, depth: int) -> None:
    """Add a join behind inline branches; the parallel's outgoing edges then start at the join."""
    config = object_of(found.node.get("config"))
    parallel = str(found.node.get("id"))
    join = f"{parallel}.join"
    firsts: list[Json] = []
    for number, branch in enumerate(list_of(config.get("branches"))):
        where = found.pointer + pointer_to("config", "branches", number, "nodes")
        ids = _inline(list_of(object_of(branch).get("nodes")), where, found, flat, taken, notes, depth=depth)
        for before, after in pairwise(ids):
            flat.edges.append(({"source": before, "target": after}, where))
        if ids:
            firsts.append(ids[0])
            flat.edges.append(({"source": parallel, "target": ids[0]}, where))
            flat.edges.append(({"source": ids[-1], "target": join}, where))
    closing: JsonObject = {"id": join, "type": "join", "config": {"aggregate": "object"}}
    kept = {key: value for key, value in config.items() if key not in ("branches", "outputVariable")}
    if isinstance(config.get("outputVariable"), str):
        closing["outputs"] = {str(config["outputVariable"]): "result"}
    found.node = {**found.node, "config": {**kept, "branches": firsts}}
    flat.nodes.append(InlineNode(closing, found.pointer))
    flat.leaves_from[parallel] = join


def _containers(flat: Flat, edges: list[Json]) -> None:
    """Make the nodes whose `parentId` names a loop the body of that loop."""
    children: dict[str, list[InlineNode]] = {}
    for found in flat.nodes:
        parent = found.node.get("parentId")
        if isinstance(parent, str):
            children.setdefault(parent, []).append(found)
    loops = {str(found.node.get("id")): found for found in flat.nodes if found.node.get("type") == "loop"}
    for parent, inside in children.items():
        loop = loops.get(parent)
        if loop is None:
            continue
        members = {str(found.node.get("id")) for found in inside}
        own = [edge for edge in edges if _ends(edge) <= members]
        ids = _in_order([str(found.node.get("id")) for found in inside], own)
        loop.node = {**loop.node, "config": {**object_of(loop.node.get("config")), "body": [*ids]}}
        _chain(parent, ids, own, loop.pointer, flat)


def _ends(edge: Json) -> set[str]:
    return {str(object_of(edge).get("source")), str(object_of(edge).get("target"))}


def _in_order(ids: list[str], edges: list[Json]) -> list[str]:
    """Sort ids by the edges between them, else in listed order; nodes that a cycle blocks come last."""
    number = {node: index for index, node in enumerate(ids)}
    pairs = {(str(object_of(edge).get("source")), str(object_of(edge).get("target"))) for edge in edges}
    waiting = dict.fromkeys(ids, 0)
    followers: dict[str, list[str]] = {node: [] for node in ids}
    for source, target in pairs:
        if source != target:
            waiting[target] += 1
            followers[source].append(target)
    ready = [number[node] for node in ids if waiting[node] == 0]
    heapify(ready)
    ordered: list[str] = []
    while ready:
        node = ids[heappop(ready)]
        ordered.append(node)
        for follower in followers[node]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, number[follower])
    return ordered + [node for node in ids if waiting[node] > 0]
