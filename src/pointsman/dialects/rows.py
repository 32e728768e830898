"""The rows dialect: a workflow as rows of database tables; agents name the row that runs next. Reading and writing.

    {id, name, isConversational, entrypointNodeId, nodes: [{id, nodeType, nodeName, agentId}],
     edges: [{id, sourceNodeId, targetNodeId, conditionType, conditionValue}]}

Also in snake_case, and as sets of tables. Rows may contain native fields without a column (`config`, `position`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import Text, write_text
from pointsman.definition.model.nodes import Always, Edge, Node, OnLabel, Otherwise
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, did_you_mean
from pointsman.dialects.readers import (
    AGENT_FIELDS,
    FieldWords,
    ForeignReader,
    ImportedDocument,
    Record,
    WrittenDocument,
    agents_of,
    key_of,
    list_of,
    mixed_spellings,
    object_of,
    records,
    text_of,
    workflow_id,
)
from pointsman.dialects.writers import (
    NEVER_LOST,
    Dialect,
    InlineAgents,
    Layout,
    Rendered,
    document_of,
    edge_keys,
    extension_of,
    flat_layout,
    labels_of,
    loss,
    lost_fields,
    node_keys,
    outgoing,
    type_of,
    write_with,
)
from pointsman.values import END, Json, JsonObject

WORDS: Final = FieldWords(
    {
        "isConversational": ("isConversational", "is_conversational"),
        "entrypointNodeId": ("entrypointNodeId", "entrypoint_node_id"),
        "workflowId": ("workflowId", "workflow_id"),
        "nodeType": ("nodeType", "node_type"),
        "nodeName": ("nodeName", "node_name"),
        "agentId": ("agentId", "agent_id"),
        "sourceNodeId": ("sourceNodeId", "source_node_id"),
        "targetNodeId": ("targetNodeId", "target_node_id"),
        "conditionType": ("conditionType", "condition_type"),
        "conditionValue": ("conditionValue", "condition_value"),
    }
)

NODE_TYPES: Final[Mapping[str, str]] = {
    "AGENT": "agent",
    "TOOL_EXECUTOR": "tool_executor",
    "HUMAN": "human",
    "HUMAN_HANDOFF": "human",
}

HANDOFF: Final = "human_handoff"
"""Reserved name of the node to which execution continues after a limit is exceeded."""

LIMITS: Final[Mapping[str, int | str]] = {"steps": 15, "executionTime": "90s"}
"""The dialect's default limits."""


_TYPES: Final = {"agent": "AGENT", "tool_executor": "TOOL_EXECUTOR", "human": "HUMAN"}
_HEAD: Final = NEVER_LOST | {"name", "description", "entry", "config", "agents"}
_NODE: Final = frozenset(("id", "type", "name", "description", "position", "config", "routing"))
_EDGE: Final = frozenset(("id", "source", "target", "condition"))


def render(workflow: WorkflowDefinition) -> Rendered:
    writing = _RowsWriting(workflow)
    nodes = {key: writing.node(index) for index, key in enumerate(node_keys(workflow))}
    edges = {key: writing.edge(index, key) for index, key in enumerate(edge_keys(workflow))}
    head = writing.head()
    return Rendered(head, nodes, edges, tuple(writing.losses))


class _RowsWriting:
    def __init__(self, workflow: WorkflowDefinition) -> None:
        self.workflow = workflow
        self.names = labels_of(workflow)
        self.out = outgoing(workflow)
        self.agents = InlineAgents(workflow)
        self.losses: list[Problem] = list(lost_fields(workflow, _HEAD, "", "rows"))

    def head(self) -> JsonObject:
        workflow = self.workflow
        config = workflow.config
        head: JsonObject = {"id": workflow.id, "name": write_text(workflow.name or Text(workflow.id))}
        if workflow.description is not None:
            head["description"] = write_text(workflow.description)
        head["isConversational"] = bool(config is not None and config.conversational)
        entry = workflow.entry or _first(workflow)
        if entry is not None:
            head["entrypointNodeId"] = entry
        if own := self._config():
            head["config"] = own
        if agents := self.agents.documents():
            head["agents"] = [{"id": name, **_agent_row(agent)} for name, agent in agents.items()]
        return {**head, **extension_of(workflow, "rows")}

    def _config(self) -> JsonObject:
        """Return the settings that differ from the dialect's defaults."""
        config = document_of(self.workflow.config)
        config.pop("conversational", None)
        handoff = next((node.id for node in self.workflow.nodes if _is_handoff_node(node)), None)
        if config.get("onLimit") == handoff:
            config.pop("onLimit", None)
        limits = config.pop("limits", None)
        if isinstance(limits, dict):
            own_limits: JsonObject = {key: value for key, value in limits.items() if _is_own_limit(key, value)}
            config.update({"limits": own_limits} if own_limits else {})
        return config

    def node(self, index: int) -> JsonObject:
        node, at = self.workflow.nodes[index], f"/nodes/{index}"
        extension = extension_of(node, "rows")
        self.losses.extend(lost_fields(node, _NODE, at, "rows"))
        if node.type not in _TYPES:
            hint = "The type is written, but the original runtime of rows does not support it."
            self.losses.append(loss(f"{at}/type", type_of(node), "rows", hint=hint))
        row: JsonObject = {
            "id": node.id,
            "workflowId": self.workflow.id,
            "nodeType": _TYPES.get(node.type, node.type.upper()),
            "nodeName": write_text(node.name or Text(node.id)),
            "agentId": self._agent(node, at),
        }
        for field in ("description", "position"):
            if (value := document_of(node).get(field)) is not None:
                row[field] = value
        return {**row, **extension}

    def _agent(self, node: Node, at: str) -> str | None:
        """Return the agent's id; an agent defined in the node becomes a row of its own."""
        config = node.config
        if not isinstance(config, AgentConfig):
            self.losses.extend(self._lost_config(node, at))
            return None
        return self.agents.name_for(config, node.id)

    def _lost_config(self, node: Node, at: str) -> Iterator[Problem]:
        labels = [{"value": edge.condition.label} for edge in self.out[node.id] if isinstance(edge.condition, OnLabel)]
        for key, value in document_of(node.config).items():
            if not (node.type == "human" and key == "options" and value == labels):
                yield loss(f"{at}/config/{key}", f"{key!r} of {node.label!r}", "rows")

    def edge(self, index: int, key: str) -> JsonObject:
        edge, at = self.workflow.edges[index], f"/edges/{index}"
        self.losses.extend(lost_fields(edge, _EDGE, at, "rows"))
        kind, label = self._condition(edge, at)
        row: JsonObject = {
            "id": edge.id or key,
            "workflowId": self.workflow.id,
            "sourceNodeId": edge.source,
            "targetNodeId": None if edge.target == END else edge.target,
            "conditionType": kind,
            "conditionValue": label,
        }
        return {**row, **extension_of(edge, "rows")}

    def _condition(self, edge: Edge, at: str) -> tuple[str, Json]:
        match edge.condition:
            case OnLabel(label=label):
                return "CONDITIONAL", label
            case None | Always() | Otherwise():
                return ("ON_COMPLETE" if edge.target == END else "ALWAYS"), None
            case other:
                label = END if edge.target == END else self.names.get(edge.target, edge.target)
                hint = f"The agent must choose {label!r} by itself."
                self.losses.append(loss(f"{at}/condition", f"a condition of type {other.type!r}", "rows", hint=hint))
                return "CONDITIONAL", label


def _agent_row(agent: Json) -> JsonObject:
    """Convert native keys to those of the row, and add the values that the reader kept."""
    row = object_of(agent)
    words = {native: word for native, word in AGENT_FIELDS.items() if native != word}
    extension = object_of(row.pop("x-rows", None))
    return {**{words.get(key, key): value for key, value in row.items()}, **extension}


def _is_handoff_node(node: Node) -> bool:
    return node.label == HANDOFF or extension_of(node, "rows").get("nodeType") == "HUMAN_HANDOFF"


def _is_own_limit(key: str, value: Json) -> bool:
    default = LIMITS.get(key)
    return value != default and not (key == "executionTime" and str(value) in ("90s", "90000", "1m30s"))


def _first(workflow: WorkflowDefinition) -> str | None:
    reached = {edge.target for edge in workflow.edges}
    return next((node.id for node in workflow.nodes if node.id not in reached), None)


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
    handoff = next((row for row in nodes if _is_handoff_row(row)), None)
    if handoff is not None and "onLimit" not in config:
        reading.put(config, "/config", "onLimit", handoff.value.get("id"), handoff.at("id"))
    native["config"] = config


def _is_handoff_row(row: Record) -> bool:
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
