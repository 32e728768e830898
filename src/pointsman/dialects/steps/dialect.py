"""The steps dialect: nodes keyed by id that execute a step or wait at a checkpoint; the first edge whose condition
holds is taken.

    {id, name, entry_node, nodes: {id: {id, type, step: {goal, tools, input_fields, output_field, prompt_template}
                                               | checkpoint: {title, description, allowed_actions}}},
     edges: [{from, to, condition, label}]}

Three spellings: `type/step/from`, `node_type/checkpoint_config/from_node`, `step_definition/condition_expr`.
"""

from __future__ import annotations

from typing import Final

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import pointer_to
from pointsman.dialects.foreign_fields import (
    ForeignReader,
    Record,
    agents_of,
    key_of,
    mixed_spellings,
    object_of,
    records,
    workflow_id,
)
from pointsman.dialects.results import ImportedDocument, WrittenDocument
from pointsman.dialects.steps.edges import StepsEdgeReader
from pointsman.dialects.steps.keywords import WORDS
from pointsman.dialects.steps.nodes import StepsNodeReader
from pointsman.dialects.steps.writer import render
from pointsman.dialects.write_back import Dialect, write_with
from pointsman.values import Json, JsonObject


def read(document: JsonObject, *, name: str) -> ImportedDocument:
    """Return the native document of steps in any of the spellings."""
    reading = ForeignReader("steps")
    head = Record(document, "", WORDS)
    nodes = _nodes(head, reading)
    edges = records(head.take("edges"), "/edges", WORDS, reading)
    native: JsonObject = {"pointsman": 1}
    workflow_id(head, reading, native, name=name, names=("id",))
    native["dialect"] = "steps"
    for field in ("name", "description", "tags", "config"):
        reading.move(native, "", field, head, field)
    reading.version(native, head)
    reading.move(native, "", "entry", head, "entry_node")
    agents = agents_of(head.take("agents"), "/agents", reading)
    if agents is not None:
        native["agents"] = agents
    edge_reader = StepsEdgeReader(nodes, edges, reading)
    reader = StepsNodeReader(edge_reader.checkpoints, nodes, edges, reading)
    made: list[Json] = [reader.read(index, key, record) for index, (key, record) in enumerate(nodes.items())]
    native["input"] = _input(head, reader, reading)
    native["output"] = reader.output()
    native["nodes"] = made
    native["edges"] = edge_reader.read()
    if (mixed := mixed_spellings((*nodes.values(), *edges))) is not None:
        reading.problems.append(mixed)
    reading.keep(native, "", head)
    return reading.done({key: value for key, value in native.items() if value is not None})


def write(workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
    """Return the workflow as steps, with a list of losses."""
    return write_with(DIALECT, workflow, original)


def _nodes(head: Record, reading: ForeignReader) -> dict[str, Record]:
    """Return the nodes by id. A list of nodes is also accepted. If key and id of a node differ, the key is used."""
    said = head.take("nodes")
    if not isinstance(said, dict):
        found = records(said, "/nodes", WORDS, reading)
        return {key_of(record.value.get("id")): record for record in found}
    nodes: dict[str, Record] = {}
    for key, value in said.items():
        pointer = pointer_to("nodes", key)
        if not isinstance(value, dict):
            reading.error("wrong-type", pointer, f"the node {key!r} must be an object")
            continue
        nodes[key] = Record(value, pointer, WORDS)
        inner = value.get("id")
        if inner is not None and inner != key:
            fix: JsonObject = {"op": "replace", "path": f"{pointer}/id", "value": key}
            message = f"the node under {key!r} calls itself {inner!r}"
            reading.error("id-mismatch", f"{pointer}/id", message, "The key is its id; edges refer to it.", fix)
    return nodes


def _input(head: Record, reader: StepsNodeReader, reading: ForeignReader) -> Json:
    """Return the declared input; else an input with every field that is read and that no step writes."""
    said = head.take("input_schema")
    if said is not None:
        reading.origin["/input"] = head.at("input_schema")
        return said
    wanted = [field for field in reader.fields_read if field not in reader.fields_made]
    if not wanted:
        return None
    properties: JsonObject = {field: object_of(None) for field in wanted}
    return {"type": "object", "properties": properties, "required": [*wanted]}


def _read(document: JsonObject, name: str) -> ImportedDocument:
    return read(document, name=name)


DIALECT: Final = Dialect("steps", WORDS, _read, render, nodes_by_id=True)
