"""Where control reaches a node: put behind another, onto an edge, into a loop or parallel; and taken out again.

a ──▶ b      on a->b:  a ──▶ n ──▶ b        within a loop:      its rounds end with n
             bridged:  a ─────────▶ b       within a parallel:  n is a branch, which its join waits for
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
"""Types whose edges shape what is around them, or where it begins and ends."""
LISTS: Final = ("branches", "body")
"""Lists of nodes in the configuration of loops and parallels."""


def put_on(draft: Draft, node: str, edge: JsonObject) -> None:
    """The edge leads to the node, and the node to where the edge led."""
    onward: JsonObject = {"source": node, "target": edge["target"]}
    if "targetHandle" in edge:
        onward["targetHandle"] = edge.pop("targetHandle")
    if edge.get("mark") == "continue":
        onward["mark"] = edge.pop("mark")
    edge["target"] = node
    draft.connect(onward, behind=edge)


def put_after(draft: Draft, node: str, after: str) -> None:
    """What followed `after` follows the node. Behind a loop or parallel: when that is over."""
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
    """The rounds of a loop end with the node; of a parallel it is a branch."""
    kind = type_of(draft.node(around))
    if kind not in ("loop", "parallel"):
        raise OperationRefused(f"{around!r} is a {kind}: nothing is within it", hint="Name a loop or a parallel.")
    config = draft.node(around).get("config")
    listed = config.get("body" if kind == "loop" else "branches") if isinstance(config, dict) else None
    if isinstance(listed, list):
        listed.append(node)
        if kind == "loop":
            return  # What is listed runs in order and comes back.
    graph = analyse(_without(draft, node).workflow())
    if kind == "parallel":
        _branch(draft, graph, node, around)
    else:
        _end_rounds(draft, graph, node, around)


def _without(draft: Draft, node: str) -> Draft:
    """The shape before the node came: lists that name it already would confuse it."""
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
    """The edges that a loop or parallel takes when it is over."""
    numbers = graph.loops[number].exit_edges if number in graph.loops else graph.forks[number].after
    written = _written(draft, graph)
    return [written[edge] for edge in numbers if edge < len(written)]


def _written(draft: Draft, graph: Graph) -> list[JsonObject]:
    """The edges of the document by number; those behind them are implied, and stand nowhere."""
    edges = [edge for _, edge in draft.named_edges()]
    assert len(edges) <= len(graph.edges), "a workflow whose shape is right has objects for edges"
    return edges


def take_out(draft: Draft, node: str, *, bridge: bool, keeps_errors: bool = False) -> None:
    """Remove a node's edges and what lists it; `bridge` leads what came to it on to where it led. `keeps_errors`: what
    happens when it fails stays its own."""
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
    """Raises `OperationRefused` for what shapes others."""
    kind = type_of(draft.node(node))
    if kind in FIXED:
        raise OperationRefused(
            f"{node!r} is of type {kind!r}: what it holds together would fall apart",
            hint="Disconnect it and connect it again where it shall be.",
        )


def type_of(node: JsonObject) -> str:
    """In today's spelling."""
    kind = str(node.get("type"))
    return TYPE_ALIASES.get(kind, kind)


def is_condition(edge: JsonObject, kind: str) -> bool:
    condition = edge.get("condition")
    return isinstance(condition, dict) and condition.get("type") == kind
