"""Writing of any workflow as a graph: paths as outputs, marks as conditions; everything else is listed as lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pointsman.definition.model.control import ParallelConfig
from pointsman.definition.model.edges import Edge, OnLabel, Otherwise
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.quantities import Duration
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem
from pointsman.dialects.conditions import condition_text
from pointsman.dialects.foreign_fields import list_of, object_of
from pointsman.dialects.graph.keywords import LIMITS, NODE_TYPES, OUTPUT
from pointsman.dialects.graph.node_writer import CONFIG_WRITERS, GraphNode, is_branch
from pointsman.dialects.inline_agents import InlineAgents
from pointsman.dialects.losses import NEVER_LOST, document_of, extension_of, loss, lost_fields, outgoing, type_of
from pointsman.dialects.write_back import Rendered, edge_keys, node_keys
from pointsman.values import Json, JsonObject

_HEAD: Final = NEVER_LOST | {
    *("name", "description", "version", "enabled", "tags", "entry", "config", "input", "output", "state", "agents")
}
_NODE: Final = frozenset(
    ("id", "type", "name", "description", "position", "inputs", "outputs", "execution", "routing", "skipWhen", "config")
)
_EDGE: Final = frozenset(("id", "source", "target", "condition", "label", "mark"))
_WORD_OF: Final[Mapping[str, str]] = {native: word for word, native in NODE_TYPES.items()}
_MARKS: Final[Mapping[str, str]] = {
    "body": "loop_body",
    "continue": "loop_continue",
    "exit": "loop_exit",
    "break": "loop_exit",
}


def render(workflow: WorkflowDefinition) -> Rendered:
    writing = _GraphWriting(workflow)
    keys = node_keys(workflow)
    nodes = {key: writing.node(index) for index, key in enumerate(keys)}
    edges = {
        key: writing.edge(index)
        for index, key in enumerate(edge_keys(workflow))
        if "from" not in extension_of(workflow.edges[index], "graph")
    }
    head = writing.head()
    return Rendered(head, nodes, edges, tuple(writing.losses))


class _GraphWriting:
    def __init__(self, workflow: WorkflowDefinition) -> None:
        self.workflow = workflow
        self.out = outgoing(workflow)
        self.agents = InlineAgents(workflow)
        self.types = {node.id: node.type for node in workflow.nodes}
        self.deciding = {node.id: _branch_lists(node) for node in workflow.nodes if node.type == "decision"}
        self.losses: list[Problem] = list(lost_fields(workflow, _HEAD, "", "graph"))

    def head(self) -> JsonObject:
        workflow = self.workflow
        said = document_of(workflow)
        head: JsonObject = {"id": workflow.id}
        for native, word in {"name": "name", "description": "description", "version": "version"}.items():
            if native in said:
                head[word] = said[native]
        if "enabled" in said:
            head["is_active"] = said["enabled"]
        for field in ("tags", "state"):
            if field in said:
                head[field] = said[field]
        if workflow.entry is not None:
            head["entry_node_id"] = workflow.entry
        limits, config = self._config()
        head |= {"limits": limits} if limits else {}
        head |= {"config": config} if config else {}
        if "input" in said:
            head["input_schema"] = said["input"]
        if agents := self.agents.documents():
            head["agents"] = agents
        self._check_output()
        extension = extension_of(workflow, "graph")
        kept = object_of(extension.pop("limits", None))
        return {**head, **extension, **({"limits": {**limits, **kept}} if kept else {})}

    def _config(self) -> tuple[JsonObject, JsonObject]:
        """Return the limits for which the dialect has words, and the rest as a native `config`."""
        config = document_of(self.workflow.config)
        native = object_of(config.pop("limits", None))
        limits: JsonObject = {}
        for name, (word, _) in LIMITS.items():
            if (value := native.pop(name, None)) is not None:
                limits[word] = _milliseconds(self.workflow) if name == "executionTime" else value
        if native:
            config["limits"] = native
        if config.get("errorHandling") == "retry":
            del config["errorHandling"]
        return limits, config

    def _check_output(self) -> None:
        output = self.workflow.output
        configs = [node.config for node in self.workflow.nodes]
        branches = {name for config in configs if isinstance(config, ParallelConfig) for name in config.branches or ()}
        ends = [node.type for node in self.workflow.nodes if not self.out[node.id] and node.id not in branches]
        implied = "latest" if ends and all(kind == "join" for kind in ends) else OUTPUT
        if output is not None and output != implied:
            hint = "The graph gives back final, drafts or latest."
            self.losses.append(loss("/output", "this output", "graph", hint=hint))

    def node(self, index: int) -> JsonObject:
        node, at = self.workflow.nodes[index], f"/nodes/{index}"
        self.losses.extend(lost_fields(node, _NODE, at, "graph"))
        writing = GraphNode(node, at, self.agents, self.out[node.id], is_entry=node.id == self.workflow.entry)
        extension = extension_of(node, "graph")
        writing.params.update(object_of(extension.pop("params", None)))
        writing.prune_branches()
        word = _WORD_OF.get(node.type)
        write_config = CONFIG_WRITERS.get(node.type)
        if write_config is not None:
            write_config(writing)
        else:
            hint = "It is kept as a native type; other readers of graphs will not know it."
            self.losses.append(loss(f"{at}/type", type_of(node), "graph", hint=hint))
            writing.native_config()
        if node.routing == "label" or (node.routing == "first" and len(self.out[node.id]) > 1):
            hint = "Every edge whose condition holds is taken."
            self.losses.append(loss(f"{at}/routing", f"routing {node.routing!r}", "graph", hint=hint))
        made = writing.finished(word or node.type)
        self.losses.extend(writing.losses)
        return {**made, **extension}

    def edge(self, index: int) -> JsonObject:
        edge, at = self.workflow.edges[index], f"/edges/{index}"
        self.losses.extend(lost_fields(edge, _EDGE, at, "graph"))
        row: JsonObject = {"from_node": edge.source, "to_node": edge.target}
        said = document_of(edge)
        for field in ("id", "label"):
            if field in said:
                row[field] = said[field]
        condition = _MARKS[edge.mark] if edge.mark is not None else self._condition(edge, at)
        if condition:
            row["condition"] = condition
        return {**row, **extension_of(edge, "graph")}

    def _condition(self, edge: Edge, at: str) -> str:
        match edge.condition:
            case Otherwise() if self.types.get(edge.source) == "decision":
                return ""
            case _ if self.deciding.get(edge.source) and (is_branch(edge, "true") or is_branch(edge, "false")):
                return ""
            case OnLabel(label=label) if self.types.get(edge.source) == "decision" and label in ("true", "false"):
                told = f"{edge.source} condition result"
                return told if label == "true" else f"not ({told})"
            case condition:
                text = condition_text(condition, edge.source)
        if text is None:
            hint = "The edge is taken always."
            kind = condition.type if condition is not None else ""
            self.losses.append(loss(f"{at}/condition", f"a condition of type {kind!r}", "graph", hint=hint))
        return text or ""


def _branch_lists(node: Node) -> Collection[Json]:
    params = object_of(extension_of(node, "graph").get("params"))
    return [*list_of(params.get("true_nodes")), *list_of(params.get("false_nodes"))]


def _milliseconds(workflow: WorkflowDefinition) -> Json:
    limits = workflow.config.limits if workflow.config is not None else None
    time = limits.execution_time if limits is not None else None
    return round(time.seconds * 1000) if isinstance(time, Duration) else None
