"""Placement of nodes: behind another node, onto an edge, into a loop or parallel; and removal from there.

a ──▶ b      on a->b:  a ──▶ n ──▶ b        within a loop:      its iterations end with n
             bridged:  a ─────────▶ b       within a parallel:  n is a branch, for which its join waits
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pointsman.authoring.draft import Draft
from pointsman.authoring.operations import OperationRefused
from pointsman.definition.graph.analysis import Graph, analyse
from pointsman.definition.model.nodes import TYPE_ALIASES
from pointsman.values import Json, JsonObject

FIXED: Final = ("start", "end", "loop", "parallel", "join")
"""Types whose edges determine the structure around them, or where an execution begins and ends."""
LISTS: Final = ("branches", "body")
"""Lists of nodes in the configuration of loops and parallels."""


def put_on(draft: Draft, node: str, edge: JsonObject) -> None:
    """Insert the node into an edge: the edge leads to the node, and a new edge to the former target."""
    onward: JsonObject = {"source": node, "target": edge["target"]}
    if "targetHandle" in edge:
        onward["targetHandle"] = edge.pop("targetHandle")
    if edge.get("mark") == "continue":
        onward["mark"] = edge.pop("mark")
    edge["target"] = node
    draft.connect(onward, behind=edge)


def put_after(draft: Draft, node: str, after: str) -> None:
    """Insert the node between `after` and its successors. After a loop or parallel: behind its end."""
    kind = type_of(draft.node(after))
    ways = [edge for edge in draft.ways_from(after) if not is_condition(edge, "error")]
    mark: JsonObject = {}
    if kind in ("loop", "parallel"):
        graph = analyse(draft.workflow())
        number = graph.index[after]
        if kind == "parallel" and number in graph.join_of:
            put_after(draft, node, graph.ids[graph.join_of[number]])
            return
        ways = _ways_out(draft, graph, number)
        mark = {"mark": "exit"} if kind == "loop" else {}
    if len(ways) == 1:
        put_on(draft, node, ways[0])
        return
    if any("condition" in edge or "label" in edge for edge in ways):
        raise OperationRefused(
            f"{after!r} is left by {len(ways)} edges with conditions", hint="Say `on` which of them the node comes."
        )
    for edge in ways:
        edge["source"] = node
    draft.connect({"source": after, "target": node, **mark}, behind=ways[0] if ways else None)


def put_within(draft: Draft, node: str, around: str) -> None:
    """Insert the node at the end of a loop's body, or as a branch of a parallel."""
    kind = type_of(draft.node(around))
    if kind not in ("loop", "parallel"):
        raise OperationRefused(f"{around!r} is a {kind}: nothing is within it", hint="Name a loop or a parallel.")
    config = draft.node(around).get("config")
    listed = config.get("body" if kind == "loop" else "branches") if isinstance(config, dict) else None
    if isinstance(listed, list):
        listed.append(node)
        if kind == "loop":
            return  # Listed nodes run in order and return to the loop.
    graph = analyse(_without(draft, node).workflow())
    if kind == "parallel":
        _branch(draft, graph, node, around)
    else:
        _end_rounds(draft, graph, node, around)


def _without(draft: Draft, node: str) -> Draft:
    """Return the draft without the node, because lists that already name it would falsify the analysis."""
    nodes: list[Json] = [one for one in draft.nodes if not isinstance(one, dict) or one.get("id") != node]
    return Draft({**draft.document, "nodes": nodes})


def _branch(draft: Draft, graph: Graph, node: str, around: str) -> None:
    draft.connect({"source": around, "target": node})
    join = graph.join_of.get(graph.index[around])
    if join is not None:
        draft.connect({"source": node, "target": graph.ids[join]})


def _end_rounds(draft: Draft, graph: Graph, node: str, around: str) -> None:
    shape = graph.loops[graph.index[around]]
    written = _written(draft, graph)
    ends = [written[number] for number in shape.back_edges if number < len(written)]
    if len(ends) == 1:
        put_on(draft, node, ends[0])
        return
    for edge in ends:
        edge["target"] = node
    if not ends:
        draft.connect({"source": around, "target": node, "mark": "body"})
    draft.connect({"source": node, "target": around})


def _ways_out(draft: Draft, graph: Graph, number: int) -> list[JsonObject]:
    """Return the edges that a loop or parallel takes after its end."""
    numbers = graph.loops[number].exit_edges if number in graph.loops else graph.forks[number].after
    written = _written(draft, graph)
    return [written[edge] for edge in numbers if edge < len(written)]


def _written(draft: Draft, graph: Graph) -> list[JsonObject]:
    """Return the document's edges in the order of their numbers in the graph. Edges with higher numbers are implied and
    not in the document."""
    edges = [edge for _, edge in draft.named_edges()]
    assert len(edges) <= len(graph.edges), "a workflow whose shape is right has objects for edges"
    return edges


def take_out(draft: Draft, node: str, *, bridge: bool, keeps_errors: bool = False) -> None:
    """Remove a node's edges and its entries in lists. `bridge` connects its predecessors with its successor.
    `keeps_errors` keeps its error edges."""
    into = [edge for edge in draft.ways_to(node) if edge.get("source") != node]
    out = draft.ways_from(node)
    if bridge:
        kept = [edge for edge in out if keeps_errors and is_condition(edge, "error")]
        _bridge(draft, node, into, [edge for edge in out if edge.get("target") != node])
        for edge in kept:
            draft.connect(edge)
    else:
        draft.drop([*into, *out])
    for one in draft.nodes:
        config = one.get("config") if isinstance(one, dict) else None
        if isinstance(config, dict):
            _unlist(config, node)


def _unlist(config: JsonObject, node: str) -> None:
    for key in LISTS:
        listed = config.get(key)
        if isinstance(listed, list):
            config[key] = [name for name in listed if name != node]


def _bridge(draft: Draft, node: str, into: Sequence[JsonObject], out: Sequence[JsonObject]) -> None:
    onward = [edge for edge in out if not is_condition(edge, "error")]
    if into and len(onward) > 1:
        raise OperationRefused(
            f"{node!r} is left by {len(onward)} edges: it is not said where what comes to it goes on",
            hint="Remove it without `bridge`, and connect what is left.",
        )
    if into and out and not onward:
        raise OperationRefused(
            f"{node!r} is left only where it fails: what comes to it leads nowhere else",
            hint="Remove it without `bridge`, and connect what is left.",
        )
    draft.drop(draft.ways_from(node))
    if not onward:
        draft.drop(into)
        return
    target = onward[0].get("target")
    for edge in into:
        edge["target"] = target
        twins = [other for other in draft.ways_from(str(edge["source"])) if other is not edge]
        own = edge["source"] == target and type_of(draft.node(str(target))) != "loop"
        plain = "condition" not in edge and "label" not in edge
        if own or (plain and any(other.get("target") == target and "condition" not in other for other in twins)):
            draft.drop([edge])
    if draft.document.get("entry") == node and isinstance(target, str):
        draft.document["entry"] = target


def must_be_movable(draft: Draft, node: str) -> None:
    """Raise `OperationRefused` for a node that determines the structure of others."""
    kind = type_of(draft.node(node))
    if kind in FIXED:
        raise OperationRefused(
            f"{node!r} is of type {kind!r}: what it holds together would fall apart",
            hint="Disconnect it and connect it again where it shall be.",
        )


def type_of(node: JsonObject) -> str:
    """Return the type of a node in its present spelling."""
    kind = str(node.get("type"))
    return TYPE_ALIASES.get(kind, kind)


def is_condition(edge: JsonObject, kind: str) -> bool:
    condition = edge.get("condition")
    return isinstance(condition, dict) and condition.get("type") == kind
