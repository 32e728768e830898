"""Documents in the older format of the native dialect, and the results of reading them."""

from __future__ import annotations

import json
from typing import Any

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.reading.documents import read_document
from pointsman.dialects.detect import ReadDocument, read_workflow
from pointsman.values import Json, JsonObject


def old(
    *nodes: JsonObject, edges: tuple[JsonObject, ...] = (), config: JsonObject | None = None, **more: Json
) -> JsonObject:
    """Return a document that is certainly in the older format."""
    return {"id": "w", "config": {"maxNodes": 50, **(config or {})}, "nodes": [*nodes], "edges": [*edges], **more}


def load(document: JsonObject) -> ReadDocument:
    read = read_workflow(read_document(json.dumps(document)))
    assert read.workflow is not None, read.problems
    assert read.dialect == "native"
    return read


def workflow_of(document: JsonObject) -> WorkflowDefinition:
    workflow = load(document).workflow
    assert workflow is not None
    return workflow


def node_of(document: JsonObject, node_id: str) -> dict[str, Any]:
    """Return the node in the current document."""
    nodes: Any = workflow_of(document).to_document()["nodes"]
    (found,) = [node for node in nodes if node["id"] == node_id]
    return found


def edges_of(document: JsonObject) -> set[tuple[str, str, str]]:
    return {(edge.source, edge.target, edge.mark or "") for edge in workflow_of(document).edges}


def codes(read: ReadDocument) -> list[tuple[str, str]]:
    return [(problem.code, problem.pointer) for problem in read.problems]


def node(node_id: str, kind: str, **config: Json) -> JsonObject:
    return {"id": node_id, "type": kind, "config": config}
