"""Operations that change a definition. An editor performs them, a model proposes them, and a comparison returns them.

Each is a value with a JSON Schema; a list of them is applied as a whole or not at all (`apply`). Nodes are named by
their
ids; edges by their ids, or as `source->target` (`source->target 2` if there are several). Members of a node, an edge or
the workflow are named by a JSON pointer into it: `/config/prompt`, `/config/tools/0`; `/config/tools/-` is the position
behind the last item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, TypeAlias, cast

import msgspec
from msgspec import Meta, Struct

from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject

OPERATIONS_MAX: Final = 2000
"""Operations in one list."""

NodeName: TypeAlias = Annotated[str, Meta(description="The id of a node.", min_length=1)]
EdgeName: TypeAlias = Annotated[str, Meta(description="The id of an edge, or `source->target`.", min_length=1)]
Changes: TypeAlias = Annotated[
    JsonObject, Meta(description="JSON pointer -> its new value: {'/config/prompt': 'Write.', '/config/tools/-': 'x'}")
]
Pointers: TypeAlias = Annotated[tuple[str, ...], Meta(description="JSON pointers of the members to remove.")]
After: TypeAlias = Annotated[
    str, Meta(description="The node after which it is inserted; its successors become those of the new node.")
]
On: TypeAlias = Annotated[str, Meta(description="The edge on which it is inserted.")]
Within: TypeAlias = Annotated[
    str, Meta(description="The loop at whose end it is inserted, or the parallel of which it becomes a new branch.")
]


class OperationRefused(AuthorError):
    """An operation cannot be applied to the definition. Nothing was changed."""

    code: ClassVar[str] = "operation-refused"


class Operation(Struct, frozen=True, kw_only=True, rename="camel", tag_field="op", omit_defaults=True):
    """One change."""


class AddNode(Operation, frozen=True, tag="add_node", forbid_unknown_fields=True):
    """Add a node. `after`, `on` or `within` says where control reaches it; without one, connect it."""

    node: Annotated[JsonObject, Meta(description="The node: {id, type, config, …}.")]
    after: After = ""
    on: On = ""
    within: Within = ""


class RemoveNode(Operation, frozen=True, tag="remove_node", forbid_unknown_fields=True):
    """Remove a node and its edges."""

    node: NodeName
    bridge: Annotated[bool, Meta(description="Connect its predecessors with its successor.")] = False


class ChangeNode(Operation, frozen=True, tag="change_node", forbid_unknown_fields=True):
    """Change what is inside a node; its id by `rename_node`."""

    node: NodeName
    set: Changes = {}
    remove: Pointers = ()


class RenameNode(Operation, frozen=True, tag="rename_node", forbid_unknown_fields=True):
    """Give a node another id, everywhere it is named: edges, lists of nodes, expressions, templates."""

    node: NodeName
    to: NodeName


class MoveNode(Operation, frozen=True, tag="move_node", forbid_unknown_fields=True):
    """Take a node out of its place, which closes behind it, and put it elsewhere: into a loop or parallel, out of one
    (`after` it), or onto an edge."""

    node: NodeName
    after: After = ""
    on: On = ""
    within: Within = ""


class Connect(Operation, frozen=True, tag="connect", forbid_unknown_fields=True):
    """Add an edge."""

    edge: Annotated[JsonObject, Meta(description="The edge: {source, target, condition, label, …}.")]


class Disconnect(Operation, frozen=True, tag="disconnect", forbid_unknown_fields=True):
    """Remove an edge."""

    edge: EdgeName


class ChangeEdge(Operation, frozen=True, tag="change_edge", forbid_unknown_fields=True):
    """Change what an edge says: `/condition`, `/label`, `/source`, `/target` …"""

    edge: EdgeName
    set: Changes = {}
    remove: Pointers = ()


class ChangeWorkflow(Operation, frozen=True, tag="change_workflow", forbid_unknown_fields=True):
    """Change what the workflow says beside its nodes and edges: `/name`, `/input`, `/state`, `/config/limits` …"""

    set: Changes = {}
    remove: Pointers = ()


class OrderNodes(Operation, frozen=True, tag="order_nodes", forbid_unknown_fields=True):
    """Put nodes into another order. Those that are not named follow as they were."""

    nodes: Annotated[tuple[str, ...], Meta(description="Ids of nodes.")]


class OrderEdges(Operation, frozen=True, tag="order_edges", forbid_unknown_fields=True):
    """Put edges into another order: of those that hold, the first is asked first. The others follow as they were."""

    edges: Annotated[tuple[str, ...], Meta(description="Names of edges.")]


AnyOperation: TypeAlias = (
    AddNode
    | RemoveNode
    | ChangeNode
    | RenameNode
    | MoveNode
    | Connect
    | Disconnect
    | ChangeEdge
    | ChangeWorkflow
    | OrderNodes
    | OrderEdges
)


def read_operations(value: Json) -> tuple[AnyOperation, ...]:
    """Return the operations of a JSON list. Raises `OperationRefused` naming the first invalid one."""
    if not isinstance(value, list):
        raise OperationRefused("operations must be a list", hint='As in [{"op": "remove_node", "node": "draft"}].')
    if len(value) > OPERATIONS_MAX:
        raise OperationRefused(
            f"there are {len(value)} operations; the maximum is {OPERATIONS_MAX}", hint="Apply them in several calls."
        )
    operations: list[AnyOperation] = []
    for number, element in enumerate(value, start=1):
        try:
            operations.append(msgspec.convert(element, cast("type[AnyOperation]", AnyOperation)))
        except msgspec.ValidationError as why:
            raise OperationRefused(
                f"operation {number} is invalid: {why}", hint="`pointsman schema --operations` describes them."
            ) from None
    return tuple(operations)


def written_operations(operations: Sequence[AnyOperation]) -> list[JsonObject]:
    """Return operations as JSON."""
    return cast("list[JsonObject]", msgspec.to_builtins([*operations]))


def operations_schema() -> JsonObject:
    """Return the JSON Schema of a list of operations."""
    schema = cast("JsonObject", msgspec.json.schema(list[AnyOperation]))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:pointsman:operations:1",
        "title": "Operations on a workflow",
        **schema,
        "maxItems": OPERATIONS_MAX,
    }
