"""Losses of a conversion: problems that a dialect's writer reports, with pointers into the native document."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast

from pointsman.definition.model.base import EXTENSION_PREFIX, Model, written
from pointsman.definition.model.edges import Edge
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_to, warning
from pointsman.values import Json, JsonObject

NEVER_LOST: Final = frozenset(("pointsman", "dialect", "id", "nodes", "edges"))


def loss(pointer: str, what: str, dialect: str, *, hint: str = "") -> Problem:
    return warning("not-in-dialect", pointer, f"{what} cannot be said in {dialect!r}", hint=hint)


def lost_fields(part: Model, known: Collection[str], at: str, dialect: str) -> Iterator[Problem]:
    """Yield a loss for each field that is set and that the dialect cannot express. `x-*` keys belong to the author."""
    for key in document_of(part):
        if key not in known and not key.startswith(EXTENSION_PREFIX):
            yield loss(at + pointer_to(key), f"{key!r}", dialect)


def document_of(part: Model | None) -> JsonObject:
    """Return a part of a workflow as JSON, without unset fields; of a workflow without nodes and edges."""
    if isinstance(part, WorkflowDefinition):
        found = as_json(part.model_dump(by_alias=True, exclude_unset=True, exclude={"nodes", "edges"}))
    else:
        found = as_json(written(part))
    return {key: value for key, value in found.items() if value is not None} if isinstance(found, dict) else {}


def as_json(value: object) -> Json:
    """Return a value as JSON. Tuples of the frozen models become lists; raises TypeError for values that models cannot
    hold."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {key: as_json(inner) for key, inner in cast(Mapping[str, object], value).items()}
        case list() | tuple():
            return [as_json(inner) for inner in cast(Sequence[object], value)]
        case _:
            raise TypeError(f"not JSON: {type(value).__name__}")


def extension_of(part: Model, dialect: str) -> JsonObject:
    """Return the values that the reader of the dialect kept for its writer, and the author's other `x-*` keys."""
    extra = part.__pydantic_extra__ or {}
    own = as_json(extra.get(f"x-{dialect}"))
    others = {key: as_json(value) for key, value in extra.items() if key != f"x-{dialect}"}
    return {**others, **(own if isinstance(own, dict) else {})}


def labels_of(workflow: WorkflowDefinition) -> dict[str, str]:
    return {node.id: node.label for node in workflow.nodes}


def outgoing(workflow: WorkflowDefinition) -> dict[str, list[Edge]]:
    found: dict[str, list[Edge]] = {node.id: [] for node in workflow.nodes}
    for edge in workflow.edges:
        found.setdefault(edge.source, []).append(edge)
    return found


def type_of(node: Node) -> str:
    return f"a node of type {node.type!r}"
