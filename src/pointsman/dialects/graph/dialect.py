"""The graph dialect: snake_case nodes and edges, state paths as inputs and outputs, fan-outs, loops and merges.

{name, entry_node_id, nodes: [{id, type, agent_id, inputs, outputs, params}],
 edges: [{from_node, to_node, condition}], limits: {max_steps, timeout_ms, max_parallel, max_iters}}
"""

from __future__ import annotations

from typing import Final

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.dialects.foreign_fields import (
    ForeignReader,
    Record,
    agents_of,
    key_of,
    list_of,
    object_of,
    records,
    workflow_id,
)
from pointsman.dialects.graph.data import DataFlow, data_flow, state_of
from pointsman.dialects.graph.keywords import ITERATIONS, LIMITS, OUTPUT, WORDS
from pointsman.dialects.graph.links import GraphEdgeReader, GraphShape, shape_of
from pointsman.dialects.graph.nodes import GraphNodeReader
from pointsman.dialects.graph.writer import render
from pointsman.dialects.results import ImportedDocument, WrittenDocument
from pointsman.dialects.write_back import Dialect, write_with
from pointsman.values import Json, JsonObject


def read(document: JsonObject, *, name: str) -> ImportedDocument:
    """Return the native document of a graph, with the dialect's defaults written out."""
    reading = ForeignReader("graph")
    head = Record(document, "", WORDS)
    shape = shape_of(
        records(head.take("nodes"), "/nodes", WORDS, reading), records(head.take("edges"), "/edges", WORDS, reading)
    )
    flow = data_flow(shape)
    native: JsonObject = {"pointsman": 1}
    workflow_id(head, reading, native, name=name, names=("workflow_id", "id"))
    native["dialect"] = "graph"
    _read_head(native, head, reading)
    limits = reading.inside(head, "limits")
    native["config"] = _config(head, limits, reading)
    entry = native.get("entry")
    native["input"] = _input(head, shape, flow, reading, entry=entry)
    native["output"] = _output(shape)
    ids = [str(record.value.get("id")) for record in shape.nodes if record.value.get("type") in ("agent", "merge")]
    native["state"] = {**state_of(flow, ids), **object_of(head.take("state"))}
    reader = GraphNodeReader(
        shape, flow, reading, entry=entry, iterations=reading.count(limits, "max_iters") or ITERATIONS
    )
    native["nodes"] = [reader.read(index, record) for index, record in enumerate(shape.nodes)]
    native["edges"] = GraphEdgeReader(shape, reading, entry).read()
    reading.keep(native, "", head, limits=limits.left() or None)
    return reading.done(native)


def write(workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
    """Return the workflow as a graph, with a list of losses."""
    return write_with(DIALECT, workflow, original)


def _read_head(native: JsonObject, head: Record, reading: ForeignReader) -> None:
    for field in ("name", "description"):
        reading.move(native, "", field, head, field)
    reading.version(native, head)
    reading.move(native, "", "enabled", head, "is_active")
    reading.move(native, "", "tags", head, "tags")
    reading.move(native, "", "entry", head, "entry_node_id")
    agents = agents_of(head.take("agents"), "/agents", reading)
    if agents is not None:
        native["agents"] = agents


def _config(head: Record, limits: Record, reading: ForeignReader) -> JsonObject:
    """Return the dialect's limits and its three retries, unless the document or its native `config` overrides them."""
    made: JsonObject = {}
    for native, (word, default) in LIMITS.items():
        made[native] = default
        reading.move(made, "/config/limits", native, limits, word)
    strategy = head.value.get("error_strategy")
    config: JsonObject = {"errorHandling": "retry"}
    if strategy in ("fail", "stop"):
        head.taken.add("error_strategy")
        config["errorHandling"] = "fail"
    own = object_of(head.take("config"))
    limits_said: JsonObject = {**made, **object_of(own.get("limits"))}
    return {**config, **own, "limits": limits_said}


def _input(head: Record, shape: GraphShape, flow: DataFlow, reading: ForeignReader, *, entry: Json) -> JsonObject:
    said = head.take("input_schema")
    if isinstance(said, dict):
        reading.origin["/input"] = head.at("input_schema")
        return said
    head.taken.discard("input_schema")
    chained = any(
        record.value.get("type") in ("agent", "start") and not record.value.get("inputs") for record in shape.nodes
    )
    schema: JsonObject = {"type": "object", "properties": {"goal": {"type": "string"}}}
    if chained or flow.reads_state("goal"):
        schema["required"] = ["goal"]
    return schema


def _output(shape: GraphShape) -> str:
    """Return the output: of a graph that ends in merges their result, of any other graph the first present of final,
    drafts, latest."""
    going_on = {key_of(link.source) for link in shape.links}
    for record in shape.nodes:
        going_on.update(key_of(branch) for branch in list_of(record.value.get("branches")))
    ends = [record.value.get("type") for record in shape.nodes if key_of(record.value.get("id")) not in going_on]
    return "latest" if ends and all(kind == "merge" for kind in ends) else OUTPUT


def _read(document: JsonObject, name: str) -> ImportedDocument:
    return read(document, name=name)


DIALECT: Final = Dialect("graph", WORDS, _read, render)
