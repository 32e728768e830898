"""Comparison of two definitions: the operations that lead from one to the other.

Applied to the first definition, the operations give the second, up to the order of keys. So a difference can be shown,
stored, reverted and replayed as an edit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from pointsman.authoring.apply import apply_operations
from pointsman.authoring.draft import edge_names, is_at_one_of
from pointsman.authoring.operations import (
    AddNode,
    AnyOperation,
    ChangeEdge,
    ChangeNode,
    ChangeWorkflow,
    Connect,
    Disconnect,
    OperationRefused,
    OrderEdges,
    OrderNodes,
    RemoveNode,
    RenameNode,
)
from pointsman.definition.problems import pointer_to
from pointsman.values import Json, JsonObject


class DocumentDifference(NamedTuple):
    """Changes of an object by JSON pointers: values to set, and members to remove."""

    put: dict[str, Json]
    remove: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.put or self.remove)


def operations_between(before: JsonObject, after: JsonObject) -> tuple[AnyOperation, ...]:
    """Return the operations that lead from one document to the other. Nodes and edges need distinct names."""
    renames, before = _renames(before, after)
    new_nodes, new_edges = _nodes(after), _edges(after)
    leaves = dict.fromkeys(name for name in _nodes(before) if name not in new_nodes)
    removals = [
        *(Disconnect(edge=name) for name in reversed([*_going(before, new_edges, leaves)])),
        *(RemoveNode(node=name) for name in leaves),
    ]
    # Compare with the document after the removals, because they also remove nodes from the lists that name them.
    left = apply_operations(before, removals)
    return (*renames, *removals, *_come(left, after, new_nodes, new_edges))


def _renames(before: JsonObject, after: JsonObject) -> tuple[list[RenameNode], JsonObject]:
    """Return renames of nodes that differ from a removed node only in the id, and the document after these renames."""
    old, new = _nodes(before), _nodes(after)
    free: dict[object, list[str]] = {}
    for name, node in reversed(new.items()):
        if name not in old:
            free.setdefault(_content(node), []).append(name)
    nodes: list[RenameNode] = []
    for name, node in old.items() if free else ():
        names = free.get(_content(node)) if name not in new else None
        if names:
            nodes.append(RenameNode(node=name, to=names.pop()))
    try:
        return nodes, apply_operations(before, nodes)
    except OperationRefused:
        return [], before  # The document has structural errors, so references to the nodes cannot be determined.


def _content(node: JsonObject) -> object:
    """Return a value that is equal for nodes that differ only in the id."""
    return comparable({key: value for key, value in node.items() if key != "id"})


def _come(
    left: JsonObject, after: JsonObject, new_nodes: Mapping[str, JsonObject], new_edges: Mapping[str, JsonObject]
) -> Iterator[AnyOperation]:
    head = difference(_head(left), _head(after))
    if head:
        yield ChangeWorkflow(set=head.put, remove=head.remove)
    old_nodes = _nodes(left)
    for name, node in new_nodes.items():
        if name not in old_nodes:
            yield AddNode(node=node)
        elif changed := difference(old_nodes[name], node):
            yield ChangeNode(node=name, set=changed.put, remove=changed.remove)
    old_edges = _edges(left)
    for name, edge in old_edges.items():
        if changed := difference(edge, new_edges[name]):
            yield ChangeEdge(edge=name, set=changed.put, remove=changed.remove)
    yield from (Connect(edge=edge) for name, edge in new_edges.items() if name not in old_edges)
    yield from _orders(old_nodes, new_nodes, [*old_edges], new_edges)


def _going(before: JsonObject, new_edges: Mapping[str, JsonObject], leaves: Collection[str]) -> Iterator[str]:
    """Yield the edges to remove. Of several between two nodes the caller removes the last ones first, so that the
    others keep their names. Edges of removed nodes (`leaves`) are omitted, because they are removed with the node."""
    for name, edge in _edges(before).items():
        if not is_at_one_of(leaves, edge) and not _stays(name, edge, new_edges):
            yield name


def _stays(name: str, edge: JsonObject, now: Mapping[str, JsonObject]) -> bool:
    """Return whether an edge can be changed in place under its name; otherwise it is removed and added again."""
    new = now.get(name)
    if new is None or (edge.get("id") is None) != (new.get("id") is None):
        return False
    return all(edge.get(end) == new.get(end) for end in ("source", "target"))


def _orders(
    old_nodes: Mapping[str, JsonObject],
    new_nodes: Mapping[str, JsonObject],
    kept_edges: list[str],
    new_edges: Mapping[str, JsonObject],
) -> Iterator[AnyOperation]:
    come = [*(name for name in old_nodes if name in new_nodes), *(name for name in new_nodes if name not in old_nodes)]
    if come != [*new_nodes]:
        yield OrderNodes(nodes=tuple(new_nodes))
    keys = [*dict.fromkeys((*kept_edges, *new_edges))]
    if keys != [*new_edges]:
        called = dict(zip(keys, edge_names([new_edges[key] for key in keys]), strict=True))
        yield OrderEdges(edges=tuple(called[key] for key in new_edges))


def _head(document: JsonObject) -> JsonObject:
    return {key: value for key, value in document.items() if key not in ("nodes", "edges", "id", "pointsman")}


def _nodes(document: JsonObject) -> dict[str, JsonObject]:
    nodes = document.get("nodes")
    listed = nodes if isinstance(nodes, list) else []
    return {str(node["id"]): node for node in listed if isinstance(node, dict) and "id" in node}


def _edges(document: JsonObject) -> dict[str, JsonObject]:
    edges = document.get("edges")
    listed = [edge for edge in edges if isinstance(edge, dict)] if isinstance(edges, list) else []
    return dict(zip(edge_names(listed), listed, strict=True))


def difference(before: JsonObject, after: JsonObject) -> DocumentDifference:
    """Compare objects member by member; other values are replaced as a whole."""
    put: dict[str, Json] = {}
    remove: list[str] = []
    waiting: list[tuple[tuple[str, ...], JsonObject, JsonObject]] = [((), before, after)]
    while waiting:
        path, old, new = waiting.pop()
        for key in old.keys() | new.keys():
            at = (*path, key)
            if key not in new:
                remove.append(pointer_to(*at))
            elif key not in old:
                put[pointer_to(*at)] = new[key]
            else:
                was, now = old[key], new[key]
                if isinstance(was, dict) and isinstance(now, dict):
                    waiting.append((at, was, now))
                elif not same(was, now):
                    put[pointer_to(*at)] = now
    return DocumentDifference(dict(sorted(put.items())), tuple(sorted(remove)))


def comparable(value: Json) -> object:
    """Return a hashable value that is equal for values that are `same`."""
    match value:
        case bool():
            return (bool, value)
        case dict():
            return frozenset((key, comparable(member)) for key, member in value.items())
        case list():
            return tuple(map(comparable, value))
        case _:
            return value


def same(one: Json, other: Json) -> bool:
    """Return whether two values are equal as JSON: `1` and `true` are not."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other
