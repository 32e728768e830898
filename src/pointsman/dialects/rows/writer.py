"""Writing of any workflow as rows. Rows express agents, tool executors, human tasks, and edges by label; the rest is
lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import Text, write_text
from pointsman.definition.model.nodes import Always, Edge, Node, OnLabel, Otherwise
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.dialects.readers import AGENT_FIELDS, FieldWords, object_of
from pointsman.dialects.writers import (
    NEVER_LOST,
    InlineAgents,
    Rendered,
    document_of,
    edge_keys,
    extension_of,
    labels_of,
    loss,
    lost_fields,
    node_keys,
    outgoing,
    type_of,
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
        handoff = next((node.id for node in self.workflow.nodes if _is_handoff(node)), None)
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


def _is_handoff(node: Node) -> bool:
    return node.label == HANDOFF or extension_of(node, "rows").get("nodeType") == "HUMAN_HANDOFF"


def _is_own_limit(key: str, value: Json) -> bool:
    default = LIMITS.get(key)
    return value != default and not (key == "executionTime" and str(value) in ("90s", "90000", "1m30s"))


def _first(workflow: WorkflowDefinition) -> str | None:
    reached = {edge.target for edge in workflow.edges}
    return next((node.id for node in workflow.nodes if node.id not in reached), None)
