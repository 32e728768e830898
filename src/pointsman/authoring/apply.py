"""Application of operations to a native document: all in order, or none."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Final, assert_never

from pointsman.authoring.draft import Draft, change
from pointsman.authoring.operations import (
    AddNode,
    AnyOperation,
    ChangeEdge,
    ChangeNode,
    ChangeWorkflow,
    Connect,
    Disconnect,
    MoveNode,
    OperationRefused,
    OrderEdges,
    OrderNodes,
    RemoveNode,
    RenameNode,
)
from pointsman.authoring.placement import must_be_movable, put_after, put_on, put_within, take_out
from pointsman.authoring.renaming import must_be_free, rename
from pointsman.values import END, Json, JsonObject

NOT_HERE: Final = ("nodes", "edges", "id", "pointsman")
"""Members of a document that `change_workflow` may not change."""


def apply_operations(document: JsonObject, operations: Sequence[AnyOperation]) -> JsonObject:
    """Return the document after the operations; the given one is not changed. Raises `OperationRefused` naming the
    first operation that cannot be applied."""
    draft = Draft(document)
    for number, operation in enumerate(operations, start=1):
        try:
            _apply(draft, operation)
        except OperationRefused as why:
            name = operation.__struct_config__.tag
            raise OperationRefused(f"operation {number} ({name}): {why}", hint=why.hint) from None
    return draft.document


def _apply(draft: Draft, operation: AnyOperation) -> None:
    match operation:
        case AddNode() | RemoveNode() | ChangeNode() | RenameNode() | MoveNode() | OrderNodes():
            _apply_to_nodes(draft, operation)
        case Connect(edge=edge):
            _connect(draft, edge)
        case Disconnect(edge=edge):
            draft.drop([draft.edge(edge)])
        case ChangeEdge(edge=edge, set=put, remove=remove):
            changed = draft.edge(edge)
            change(changed, put, remove, what=f"edge {edge!r}")
            draft.must_lead_somewhere(changed)
        case ChangeWorkflow(set=put, remove=remove):
            change(draft.document, put, remove, kept=NOT_HERE, what="the workflow")
        case OrderEdges(edges=edges):
            names = [name for name, _ in draft.named_edges()]
            _order(draft.edges, names, edges, "edge")
        case _:
            assert_never(operation)


def _apply_to_nodes(
    draft: Draft, operation: AddNode | RemoveNode | ChangeNode | RenameNode | MoveNode | OrderNodes
) -> None:
    match operation:
        case AddNode(node=node):
            _add(draft, node, operation)
        case RemoveNode(node=node, bridge=bridge):
            gone = draft.node(node)
            take_out(draft, node, bridge=bridge)
            if draft.document.get("entry") == node:
                del draft.document["entry"]
            draft.nodes[:] = [one for one in draft.nodes if one is not gone]
        case ChangeNode(node=node, set=put, remove=remove):
            change(draft.node(node), put, remove, kept=("id",), what=f"node {node!r}")
        case RenameNode(node=node, to=to):
            draft.node(node)
            if to != node:
                must_be_free(draft, to)
                _must_be_an_id(to)
                rename(draft, node, to)
        case MoveNode(node=node):
            _move(draft, node, operation)
        case OrderNodes(nodes=nodes):
            _order(draft.nodes, draft.ids(), nodes, "node")
        case _:
            assert_never(operation)


def _add(draft: Draft, node: JsonObject, where: AddNode) -> None:
    name = node.get("id")
    if not isinstance(name, str) or not name:
        raise OperationRefused("the node has no id", hint='A node is {"id": …, "type": …, "config": …}.')
    _must_be_an_id(name)
    must_be_free(draft, name)
    # Find the edge before the node is added, so that the node's own edges are not found.
    on = draft.edge(where.on) if where.on else None
    draft.nodes.append(copy.deepcopy(node))
    _place(draft, name, where, on)


def _move(draft: Draft, node: str, where: MoveNode) -> None:
    must_be_movable(draft, node)
    if node in (where.after, where.within):
        raise OperationRefused(f"{node!r} cannot be put behind or into itself", hint="Name another node.")
    if not (where.after or where.on or where.within):
        raise OperationRefused(f"it is not said where {node!r} goes", hint="Say `after`, `on` or `within`.")
    on = draft.edge(where.on) if where.on else None
    if on is not None and node in (on.get("source"), on.get("target")):
        raise OperationRefused(f"{where.on!r} is an edge of {node!r} itself", hint="Name another edge.")
    take_out(draft, node, bridge=True, keeps_errors=True)
    _place(draft, node, where, on)


def _place(draft: Draft, node: str, where: AddNode | MoveNode, on: JsonObject | None) -> None:
    said = [name for name in ("after", "on", "within") if getattr(where, name)]
    if len(said) > 1:
        raise OperationRefused(f"{' and '.join(said)} are both said", hint="Say one of them.")
    if on is not None:
        put_on(draft, node, on)
    elif where.after:
        put_after(draft, node, where.after)
    elif where.within:
        put_within(draft, node, where.within)


def _connect(draft: Draft, edge: JsonObject) -> None:
    draft.must_lead_somewhere(edge)
    name = edge.get("id")
    if name is not None and any(known == name for known, _ in draft.named_edges()):
        raise OperationRefused(f"there is an edge {name!r} already", hint="Choose another id, or leave it out.")
    draft.connect(copy.deepcopy(edge))


def _must_be_an_id(name: str) -> None:
    if name == END:
        raise OperationRefused(f"{END!r} is no node: as a target it ends the execution", hint="Choose another id.")


def _order(parts: list[Json], names: Sequence[str], wanted: Sequence[str], kind: str) -> None:
    named = iter(names)
    known: dict[str, Json] = {}
    others: list[Json] = []
    for part in parts:
        name = next(named) if isinstance(part, dict) and (kind == "edge" or "id" in part) else None
        if name is None or name in known:
            others.append(part)
        else:
            known[name] = part
    missing = next((name for name in wanted if name not in known), None)
    if missing is not None:
        raise OperationRefused(
            f"there is no {kind} {missing!r}", hint=f"There is {', '.join(map(repr, known)) or 'none'}."
        )
    first = dict.fromkeys(wanted)
    rest = [part for name, part in known.items() if name not in first]
    parts[:] = [*(known[name] for name in first), *rest, *others]
