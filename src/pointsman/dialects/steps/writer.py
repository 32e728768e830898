"""Writing of any workflow as steps: agents and tools execute, gates are checkpoints; the rest is listed as lost."""

from __future__ import annotations

from typing import Final

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import HumanConfig
from pointsman.definition.model.nodes import Always, Edge, Node, OnLabel, Otherwise
from pointsman.definition.model.work import ToolConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, pointer_to
from pointsman.dialects.readers import field_path, list_of, object_of
from pointsman.dialects.steps.keywords import ACTIONS, AGENT_WORDS, output_field
from pointsman.dialects.writers import (
    NEVER_LOST,
    Rendered,
    condition_text,
    document_of,
    edge_keys,
    extension_of,
    loss,
    lost_fields,
    node_keys,
    outgoing,
    type_of,
)
from pointsman.values import Json, JsonObject

_SAME: Final = ("name", "description", "version", "tags", "config", "agents")
_HEAD: Final = NEVER_LOST | {*_SAME, "entry", "input", "output"}
_NODE: Final = frozenset(("id", "type", "name", "description", "position", "inputs", "outputs", "routing", "config"))
_EDGE: Final = frozenset(("id", "source", "target", "condition", "label"))


def render(workflow: WorkflowDefinition) -> Rendered:
    writing = _StepsWriting(workflow)
    nodes = {key: writing.node(index) for index, key in enumerate(node_keys(workflow))}
    edges = {
        key: writing.edge(index)
        for index, key in enumerate(edge_keys(workflow))
        if not extension_of(workflow.edges[index], "steps").get("implied")
    }
    return Rendered(writing.head(), nodes, edges, tuple(writing.losses))


class _StepsWriting:
    def __init__(self, workflow: WorkflowDefinition) -> None:
        self.workflow = workflow
        self.out = outgoing(workflow)
        self.types = {node.id: node.type for node in workflow.nodes}
        self.losses: list[Problem] = list(lost_fields(workflow, _HEAD, "", "steps"))

    def head(self) -> JsonObject:
        fields = document_of(self.workflow)
        head: JsonObject = {"id": self.workflow.id, "name": fields.get("name", self.workflow.id)}
        head |= {field: fields[field] for field in _SAME if field in fields and field != "name"}
        reached = {edge.target for edge in self.workflow.edges}
        first = next((node.id for node in self.workflow.nodes if node.id not in reached), None)
        if (entry := self.workflow.entry or first) is not None:
            head["entry_node"] = entry
        if "input" in fields:
            head["input_schema"] = fields["input"]
        self._check_output()
        return {**head, **extension_of(self.workflow, "steps")}

    def _check_output(self) -> None:
        """Record a loss if the output is not the one that the shape implies: the dialect cannot express it."""
        output = self.workflow.output
        fields = {str(node.id): None if node.type == "human" else _field(node) for node in self.workflow.nodes}
        transitions = [
            (edge.source, edge.target, isinstance(edge.condition, Always | None)) for edge in self.workflow.edges
        ]
        implied = output_field(fields, transitions)
        if output is not None and output != (field_path(implied) if implied else None):
            self.losses.append(
                loss("/output", "this output", "steps", hint="Steps return the field that they write last.")
            )

    def node(self, index: int) -> JsonObject:
        node, at = self.workflow.nodes[index], f"/nodes/{index}"
        self.losses.extend(lost_fields(node, _NODE, at, "steps"))
        fields, extension = document_of(node), extension_of(node, "steps")
        result: JsonObject = {"id": node.id, "type": "checkpoint" if node.type == "human" else "execute"}
        result |= {field: fields[field] for field in ("name", "description", "position") if field in fields}
        step, gate = object_of(extension.pop("step", None)), object_of(extension.pop("checkpoint", None))
        match node.config:
            case HumanConfig() as config:
                result["checkpoint"] = {**self._checkpoint(config, at), **gate}
            case ToolConfig() as config if "execute_fn" in extension:
                result["execute_fn"] = config.tool
                del extension["execute_fn"]
            case AgentConfig() as config:
                result["step"] = {**self._agent(node, config, at), **step}
            case ToolConfig() as config:
                result["step"] = {**self._tool(node, config, at), **step}
            case _:
                hint = "The type is written, but the original runtime of steps does not support it."
                self.losses.append(loss(f"{at}/type", type_of(node), "steps", hint=hint))
                result["type"] = node.type
                result["config"] = document_of(node.config)
        self._check_routing(node, at)
        return {**result, **extension}

    def _check_routing(self, node: Node, at: str) -> None:
        if node.type == "human" or not self.out[node.id]:
            return
        if node.routing == "label" or node.type == "tool_executor":
            hint = "Steps follow conditions: the first that holds."
            self.losses.append(loss(f"{at}/routing", "choosing the next node by name", "steps", hint=hint))
        elif node.routing != "first" and len(self.out[node.id]) > 1:
            self.losses.append(loss(f"{at}/routing", "taking several edges at once", "steps"))

    def _named(self, node: Node) -> JsonObject:
        fields = document_of(node)
        return {field: fields[field] for field in ("name", "description") if field in fields}

    def _agent(self, node: Node, config: AgentConfig, at: str) -> JsonObject:
        fields = document_of(config)
        step = self._named(node)
        if (system := fields.get("system")) is not None:
            step["goal"] = system.replace("\\{", "{") if isinstance(system, str) else system
        schema = object_of(fields.get("outputSchema"))
        choices = list_of(schema.get("enum")) if schema.get("type") == "string" else []
        if choices:
            step |= {"step_type": "llm_decision", "choices": choices}
        for native, word in AGENT_WORDS.items():
            if native in fields and not (native == "outputSchema" and choices):
                step[word] = fields[native]
        step["input_fields"] = self._input_fields(node, at)
        step |= self._output_field(node, at)
        if "prompt" in fields:
            step["prompt_template"] = fields["prompt"]
        fields_written = (*AGENT_WORDS, "system", "prompt", "result")
        self.losses.extend(lost_fields(config, fields_written, f"{at}/config", "steps"))
        if config.result not in (None, "auto"):
            self.losses.append(loss(f"{at}/config/result", f"result {config.result!r}", "steps"))
        return step

    def _input_fields(self, node: Node, at: str) -> list[Json]:
        fields: list[Json] = []
        for name, expression in (node.inputs or {}).items():
            fields.append(name)
            if expression not in (name, field_path(name), f"state.{name}"):
                hint = "A step reads fields of the same name."
                self.losses.append(loss(f"{at}/inputs{pointer_to(name)}", f"{expression!r}", "steps", hint=hint))
        return fields

    def _output_field(self, node: Node, at: str) -> JsonObject:
        field = _field(node)
        for path, expression in (node.outputs or {}).items():
            if expression != "result" or path != field:
                hint = "A step writes its whole result into one field."
                self.losses.append(loss(f"{at}/outputs{pointer_to(path)}", f"{path!r}", "steps", hint=hint))
        return {"output_field": field} if field else {}

    def _tool(self, node: Node, config: ToolConfig, at: str) -> JsonObject:
        step: JsonObject = {**self._named(node), "step_type": "tool_call", "tool": config.tool}
        if config.parameters is not None:
            step["input_mapping"] = config.parameters
        self.losses.extend(lost_fields(config, ("tool", "parameters"), f"{at}/config", "steps"))
        return {**step, **self._output_field(node, at)}

    def _checkpoint(self, config: HumanConfig, at: str) -> JsonObject:
        fields = document_of(config)
        result: JsonObject = {}
        if "title" in fields:
            result["title"] = fields["title"]
        if (message := fields.get("message")) is not None:
            result["description"] = message.replace("\\{", "{") if isinstance(message, str) else message
        options = [object_of(option).get("value") for option in list_of(fields.get("options"))]
        result["allowed_actions"] = options or list_of(fields.get("actions")) or ["approve", "reject"]
        if any(option not in ACTIONS for option in options):
            hint = f"A checkpoint supports {', '.join(ACTIONS)}."
            self.losses.append(loss(f"{at}/config/options", "custom options", "steps", hint=hint))
        if "editable" in fields:
            result["editable_fields"] = fields["editable"]
        if config.auto_proceed:
            result["auto_proceed"] = True
        if config.timeout is not None and (config.auto_proceed or config.on_timeout in result["allowed_actions"]):
            result |= {"auto_proceed": True, "auto_proceed_timeout_seconds": config.timeout.seconds}
        elif config.timeout is not None:
            self.losses.append(loss(f"{at}/config/timeout", "failing after a timeout", "steps"))
        fields_written = (
            "title",
            "message",
            "actions",
            "options",
            "editable",
            "show",
            "autoProceed",
            "timeout",
            "onTimeout",
        )
        self.losses.extend(lost_fields(config, fields_written, f"{at}/config", "steps"))
        return result

    def edge(self, index: int) -> JsonObject:
        edge, at = self.workflow.edges[index], f"/edges/{index}"
        self.losses.extend(lost_fields(edge, _EDGE, at, "steps"))
        fields = document_of(edge)
        result: JsonObject = {"from": edge.source, "to": edge.target}
        result |= {field: fields[field] for field in ("id", "label") if field in fields}
        return {**result, **self._condition(edge, at), **extension_of(edge, "steps")}

    def _condition(self, edge: Edge, at: str) -> JsonObject:
        match edge.condition:
            case OnLabel(label=label) if self.types.get(edge.source) == "human":
                return {"label": label}
            case Otherwise() if self._is_last(edge):
                return {}
            case condition:
                text = condition_text(condition, edge.source)
        if text is None:
            kind = condition.type if condition is not None else ""
            hint = "The written edge is always taken."
            self.losses.append(loss(f"{at}/condition", f"a condition of type {kind!r}", "steps", hint=hint))
        return {"condition": text} if text else {}

    def _is_last(self, edge: Edge) -> bool:
        """Return whether an edge is its source's last: a default there equals an edge without condition."""
        return self.out[edge.source][-1] is edge


def _field(node: Node) -> str:
    """Return the field to which a step writes its whole result; empty: none."""
    return next((path for path, expression in (node.outputs or {}).items() if expression == "result"), "")
