"""The rows dialect: a workflow as rows of database tables; agents name the row that runs next.

    {id, name, isConversational, entrypointNodeId, nodes: [{id, nodeType, nodeName, agentId}],
     edges: [{id, sourceNodeId, targetNodeId, conditionType, conditionValue}]}

Also in snake_case, and as sets of tables. Rows may contain native fields without a column (`config`, `position`).
"""

from __future__ import annotations

from typing import Final

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import did_you_mean
from pointsman.dialects.readers import (
    FieldWords,
    ForeignReader,
    ImportedDocument,
    Record,
    WrittenDocument,
    agents_of,
    key_of,
    list_of,
    mixed_spellings,
    records,
    text_of,
    workflow_id,
)
from pointsman.dialects.rows.writer import HANDOFF, LIMITS, NODE_TYPES, WORDS, render
from pointsman.dialects.writers import Dialect, Layout, flat_layout, write_with
from pointsman.values import END, Json, JsonObject

_TABLES: Final = FieldWords(
    {
        "workflows": ("agent_workflows", "agentWorkflows"),
        "nodes": ("agent_workflow_nodes", "agentWorkflowNodes"),
        "edges": ("agent_workflow_edges", "agentWorkflowEdges"),
    }
)
_CONDITIONS: Final = ("CONDITIONAL", "ALWAYS", "ON_COMPLETE")


def read(document: JsonObject, *, name: str) -> ImportedDocument:
    """Return the native document of rows in either case, in one document or as a set of tables."""
    reading = ForeignReader("rows")
    tables = _Tables.of(document, reading, name)
    head = tables.head
    native: JsonObject = {"pointsman": 1}
    workflow_id(head, reading, native, name=name, names=("id",))
    native["dialect"] = "rows"
    for field in ("name", "description"):
        reading.move(native, "", field, head, field)
    reading.move(native, "", "entry", head, "entrypointNodeId")
    agents = agents_of(*tables.agents, reading)
    if agents is not None:
        native["agents"] = agents
    nodes = tables.rows("nodes", reading)
    edges = tables.rows("edges", reading)
    _read_config(native, head, nodes, reading)
    reader = _Rows(reading, native, nodes, edges)
    native["nodes"] = [reader.node(index, row) for index, row in enumerate(nodes)]
    native["edges"] = [reader.edge(index, row) for index, row in enumerate(edges)]
    _check_names(nodes, reading)
    if (mixed := mixed_spellings((head, *nodes, *edges))) is not None:
        reading.problems.append(mixed)
    head.taken.update(("nodes", "edges", "agents"))
    reading.keep(native, "", head)
    return reading.done(native)


def write(workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
    """Return the workflow as rows, with a list of losses."""
    return write_with(DIALECT, workflow, original)


class _Tables:
    """The source of the rows: one document, or one table for each kind."""

    def __init__(self, document: JsonObject, head: Record, *, index: int | None) -> None:
        self.document = document
        self.head = head
        self.index = index

    @classmethod
    def of(cls, document: JsonObject, reading: ForeignReader, name: str) -> _Tables:
        tables = Record(document, "", _TABLES)
        workflows = list_of(tables.take("workflows"))
        rows = {index: row for index, row in enumerate(workflows) if isinstance(row, dict)}
        if not rows:
            if workflows:
                reading.error("wrong-type", tables.at("workflows"), "must be a list of objects")
            return cls(document, Record(document, "", WORDS), index=None)
        index = next((index for index, row in rows.items() if row.get("id") == name), next(iter(rows)))
        if len(rows) > 1:
            ids = ", ".join(repr(row.get("id")) for row in rows.values())
            message = f"only {rows[index].get('id')!r} was read"
            reading.warning("several-workflows", tables.at("workflows"), message, f"Name one of {ids}.")
        pointer = f"{tables.at('workflows')}/{index}"
        reading.origin[""] = pointer
        return cls(document, Record(rows[index], pointer, WORDS), index=index)

    @property
    def agents(self) -> tuple[Json, str]:
        return self.document.get("agents"), "/agents"

    def table(self, kind: str) -> str:
        return Record(self.document, "", _TABLES).said(kind)

    def rows(self, kind: str, reading: ForeignReader) -> list[Record]:
        """Return the rows of this workflow; rows of other workflows in the same tables are ignored."""
        table = kind if self.index is None else self.table(kind)
        rows = records(self.document.get(table), f"/{table}", WORDS, reading)
        return rows if self.index is None else [row for row in rows if self._is_own(row)]

    def _is_own(self, row: Record) -> bool:
        owner = row.value.get(row.said("workflowId"))
        return owner is None or owner == self.head.value.get("id")


def _read_config(native: JsonObject, head: Record, nodes: list[Record], reading: ForeignReader) -> None:
    """Set the dialect's limits, unless the rows contain a native `config` that overrides them."""
    settings = head.take("config")
    own: JsonObject = settings if isinstance(settings, dict) else {}
    said_limits = own.get("limits")
    limits: Json = {**LIMITS, **said_limits} if isinstance(said_limits, dict) else said_limits or dict(LIMITS)
    config: JsonObject = {"conversational": False, **own, "limits": limits}
    reading.move(config, "/config", "conversational", head, "isConversational")
    handoff = next((row for row in nodes if _is_handoff(row)), None)
    if handoff is not None and "onLimit" not in config:
        reading.put(config, "/config", "onLimit", handoff.value.get("id"), handoff.at("id"))
    native["config"] = config


def _is_handoff(row: Record) -> bool:
    return row.value.get(row.said("nodeName")) == HANDOFF or row.value.get(row.said("nodeType")) == "HUMAN_HANDOFF"


class _Rows:
    """Reads the rows of one workflow."""

    def __init__(self, reading: ForeignReader, workflow: JsonObject, nodes: list[Record], edges: list[Record]) -> None:
        self.reading = reading
        self.workflow = workflow
        self.labels: dict[str, list[str]] = {}
        for edge in edges:
            source, label = edge.value.get(edge.said("sourceNodeId")), edge.value.get(edge.said("conditionValue"))
            if isinstance(label, str) and label:
                self.labels.setdefault(key_of(source), []).append(label)
        self.names = {key_of(row.value.get("id")): text_of(row.value.get(row.said("nodeName"))) for row in nodes}
        self.types = {key_of(row.value.get("id")): row.value.get(row.said("nodeType")) for row in nodes}

    def node(self, index: int, row: Record) -> JsonObject:
        at = f"/nodes/{index}"
        self.reading.origin[at] = row.pointer
        node: JsonObject = {}
        self.reading.move(node, at, "id", row, "id")
        kind = row.take("nodeType")
        native_type = NODE_TYPES.get(kind) if isinstance(kind, str) else None
        if isinstance(kind, str) and native_type is None:
            hint = f"{did_you_mean(kind, NODE_TYPES)} Known are {', '.join(NODE_TYPES)}.".strip()
            self.reading.error("unknown-node-type", row.at("nodeType"), f"has the unknown node type {kind!r}", hint)
        self.reading.put(node, at, "type", native_type or kind, row.at("nodeType"))
        self.reading.move(node, at, "name", row, "nodeName")
        for field in ("description", "position"):
            self.reading.move(node, at, field, row, field)
        self._workflow_id(row)
        self._agent(node, at, row, kind)
        if native_type == "agent":
            node["routing"] = "label"
        if native_type == "human" and (options := self._options(row)):
            node["config"] = {"options": options}
        self.reading.keep(node, at, row, nodeType=kind if kind == "HUMAN_HANDOFF" else None)
        return node

    def _agent(self, node: JsonObject, at: str, row: Record, kind: Json) -> None:
        agent = row.take("agentId")
        label = self.names.get(key_of(row.value.get("id"))) or row.value.get("id")
        if kind == "AGENT":
            if agent is None:
                hint = "Give the id of an agent."
                self.reading.error("agent-missing", row.at("agentId"), f"the agent node {label!r} names no agent", hint)
            config: JsonObject = {}
            self.reading.put(config, f"{at}/config", "agent", agent, row.at("agentId"))
            node["config"] = config
        elif agent is not None:
            fix: JsonObject = {"op": "replace", "path": row.at("agentId"), "value": None}
            message = f"the node {label!r} of type {kind!r} has an agent"
            self.reading.error("agent-not-allowed", row.at("agentId"), message, "Only AGENT nodes have one.", fix)
            row.taken.discard(row.said("agentId"))

    def _options(self, row: Record) -> list[Json]:
        """Return the options of a human task: the labels of its edges. If there are none, built-in actions apply."""
        labels = self.labels.get(key_of(row.value.get("id")), ())
        return [{"value": label} for label in labels]

    def _workflow_id(self, row: Record) -> None:
        named_id, own = row.take("workflowId"), self.workflow.get("id")
        if named_id is not None and named_id != own:
            fix: JsonObject = {"op": "replace", "path": row.at("workflowId"), "value": own}
            message = f"belongs to the workflow {named_id!r}, not to {own!r}"
            self.reading.error(
                "workflow-id-mismatch", row.at("workflowId"), message, "One document, one workflow.", fix
            )
            row.taken.discard(row.said("workflowId"))

    def edge(self, index: int, row: Record) -> JsonObject:
        at = f"/edges/{index}"
        self.reading.origin[at] = row.pointer
        edge: JsonObject = {}
        self.reading.move(edge, at, "id", row, "id")
        self.reading.move(edge, at, "source", row, "sourceNodeId")
        self._workflow_id(row)
        kind, label, target = row.take("conditionType"), row.take("conditionValue"), row.take("targetNodeId")
        label = None if label == "" else label
        self._check_condition(row, kind, label, target)
        ends = target is None and (label == END or kind == "ON_COMPLETE")
        self.reading.put(edge, at, "target", END if ends else target, row.at("targetNodeId"))
        if label is not None and kind != "ALWAYS" and kind != "ON_COMPLETE":
            self.reading.put(edge, at, "condition", {"type": "label", "label": label}, row.at("conditionValue"))
            self.reading.origin[f"{at}/condition/label"] = row.at("conditionValue")
        self._check_label(row, label, target)
        self.reading.keep(edge, at, row, conditionType=kind if kind == "ON_COMPLETE" else None)
        return edge

    def _check_condition(self, row: Record, kind: Json, label: Json, target: Json) -> None:
        reading, which = self.reading, f"the edge {row.value.get('id')!r}"
        if kind is not None and kind not in _CONDITIONS:
            hint = f"{did_you_mean(str(kind), _CONDITIONS)} Known are {', '.join(_CONDITIONS)}.".strip()
            reading.error("unknown-condition-type", row.at("conditionType"), f"{which} has the type {kind!r}", hint)
        if kind == "CONDITIONAL" and label is None:
            hint = "Write the name of the node it leads to (or of the tool), or make it ALWAYS."
            reading.error("condition-without-value", row.at("conditionValue"), f"{which} has no value to match", hint)
        if kind in ("ALWAYS", "ON_COMPLETE") and label is not None and not (label == END and target is None):
            fix: JsonObject = {"op": "replace", "path": row.at("conditionValue"), "value": None}
            message = f"{which} is taken always, so its value {label!r} has no effect"
            reading.error("always-with-value", row.at("conditionValue"), message, "Remove it, or use CONDITIONAL.", fix)
        if target is None and label != END and kind != "ON_COMPLETE":
            hint = f"Name a node, or use the value {END!r} to end the execution."
            reading.error("null-target", row.at("targetNodeId"), f"{which} leads nowhere", hint)
        if target is not None and target != END and label == END:
            hint = f"{END!r} is reserved: its target is null."
            reading.error(
                "reserved-label",
                row.at("conditionValue"),
                f"{which} leads to {target!r}, but its value ends the execution",
                hint,
            )

    def _check_label(self, row: Record, label: Json, target: Json) -> None:
        source = key_of(row.value.get(row.said("sourceNodeId")))
        target_name = self.names.get(key_of(target))
        if (
            self.types.get(source) == "AGENT"
            and isinstance(label, str)
            and target_name is not None
            and label != target_name
        ):
            message = f"the edge {row.value.get('id')!r} waits for {label!r}, but its target is named {target_name!r}"
            self.reading.note(
                "label-differs", row.at("conditionValue"), message, "This is valid. Check that it is intended."
            )


def _check_names(nodes: list[Record], reading: ForeignReader) -> None:
    rows_by_name: dict[str, Record] = {}
    for row in nodes:
        name = text_of(row.value.get(row.said("nodeName")))
        if name is None:
            continue
        if name in rows_by_name:
            hint = "Agents route by name: give each node its own."
            reading.error("duplicate-name", row.at("nodeName"), f"a second node is called {name!r}", hint)
        rows_by_name.setdefault(name, row)


def _layout(document: JsonObject) -> Layout:
    """Return the layout of a document; in a set of tables, the workflow's row is one of several."""
    reading = ForeignReader("rows")
    tables = _Tables.of(document, reading, "")
    index = tables.index
    if index is None:
        return flat_layout(document)

    def assemble(head: JsonObject, nodes: Json, edges: Json) -> JsonObject:
        workflows = tables.table("workflows")
        rows: list[Json] = [head if at == index else row for at, row in enumerate(list_of(document[workflows]))]
        parts: JsonObject = {workflows: rows, tables.table("nodes"): nodes, tables.table("edges"): edges}
        return {**document, **{table: value for table, value in parts.items() if table in document or value}}

    nodes, edges = document.get(tables.table("nodes")), document.get(tables.table("edges"))
    return Layout(tables.head.value, nodes, edges, assemble)


def _read(document: JsonObject, name: str) -> ImportedDocument:
    return read(document, name=name)


DIALECT: Final = Dialect("rows", WORDS, _read, render, _layout)
