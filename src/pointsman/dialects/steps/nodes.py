"""Reading of the nodes of the steps dialect: steps become agents or tools, checkpoints become gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pointsman.definition.problems import did_you_mean
from pointsman.dialects.foreign_fields import (
    ForeignReader,
    Record,
    field_path,
    key_of,
    list_of,
    literal_text,
    number_of,
    object_of,
    text_of,
)
from pointsman.dialects.steps.edges import is_checkpoint
from pointsman.dialects.steps.keywords import AGENT_WORDS, NODE_TYPES, STEP_TYPES, fields_in, native_template
from pointsman.dialects.steps.output import fields_before, output_field, predecessors
from pointsman.values import Json, JsonObject


class StepsNodeReader:
    """Reads nodes one by one and records the fields of the context that they read and write."""

    def __init__(
        self,
        checkpoints: Mapping[str, list[Json]],
        nodes: Mapping[str, Record],
        edges: Sequence[Record],
        reading: ForeignReader,
    ) -> None:
        self.checkpoints = checkpoints
        self.nodes = nodes
        self.reading = reading
        self.ways = [
            (
                key_of(edge.value.get(edge.said("from"))),
                key_of(edge.value.get(edge.said("to"))),
                edge.value.get(edge.said("condition")) in (None, "", True),
            )
            for edge in edges
        ]
        self.before = predecessors(self.ways)
        self.fields = {
            key: None if is_checkpoint(record) else _output_field(record) or "" for key, record in nodes.items()
        }
        self.fields_read: dict[str, None] = {}
        self.fields_made: set[str] = {field for field in self.fields.values() if field}

    def read(self, index: int, key: str, record: Record) -> JsonObject:
        at = f"/nodes/{index}"
        self.reading.origin[at] = record.pointer
        node: JsonObject = {}
        said_id = record.take("id")
        self.reading.put(node, at, "id", key if isinstance(said_id, str | None) else said_id, record.pointer)
        kind = record.take("type")
        step = self.reading.inside(record, "step")
        gate = self.reading.inside(record, "checkpoint")
        for field in ("name", "description"):
            self._text(node, at, field, record, step)
        self.reading.move(node, at, "position", record, "position")
        if isinstance(kind, str) and kind not in NODE_TYPES:
            hint = f"{did_you_mean(kind, NODE_TYPES)} Known are {', '.join(NODE_TYPES)}.".strip()
            self.reading.error("unknown-node-type", record.at("type"), f"has the unknown node type {kind!r}", hint)
        if is_checkpoint(record):
            self._checkpoint(node, at, key, record, gate)
        else:
            self._execute(node, at, record, step)
        function = record.value.get("execute_fn") if node.get("type") == "tool" and not step.value else None
        self.reading.keep(
            node, at, record, step=step.left() or None, checkpoint=gate.left() or None, execute_fn=function
        )
        return node

    def _text(self, node: JsonObject, at: str, field: str, record: Record, step: Record) -> None:
        """Copy a text of the node, else that of its step. Both are kept if they differ."""
        own, inner = record.take(field), step.value.get(field)
        if own is not None:
            self.reading.put(node, at, field, own, record.at(field))
        elif inner is not None:
            self.reading.put(node, at, field, inner, step.at(field))
        if own == inner or own is None:
            step.taken.add(field)

    def _execute(self, node: JsonObject, at: str, record: Record, step: Record) -> None:
        if step.value.get("id") in (None, record.value.get("id")):
            step.taken.add("id")
        node["routing"] = "first"
        function = record.take("execute_fn")
        kind = step.take("step_type")
        if kind is not None and kind not in STEP_TYPES:
            hint = f"{did_you_mean(str(kind), STEP_TYPES)} Known are {', '.join(STEP_TYPES)}.".strip()
            self.reading.error("unknown-step-type", step.at("step_type"), f"has the unknown step type {kind!r}", hint)
        if not step.value and function is not None:
            self.reading.put(node, at, "type", "tool", record.at("type"))
            config: JsonObject = {}
            self.reading.put(config, f"{at}/config", "tool", function, record.at("execute_fn"))
            node["config"] = config
            return
        if not step.value:
            message = "has neither a step nor a function to execute"
            self.reading.error("step-missing", record.pointer, message, "Give it a 'step' with a goal and a prompt.")
        if kind == "tool_call":
            self._tool(node, at, step)
        else:
            self._agent(node, at, record, step, decides=kind == "llm_decision")
        field = step.take("output_field")
        if field is None:
            return
        outputs: JsonObject = {}
        self.reading.put(outputs, f"{at}/outputs", str(field), "result", step.at("output_field"))
        node["outputs"] = outputs

    def _tool(self, node: JsonObject, at: str, step: Record) -> None:
        self.reading.put(node, at, "type", "tool", step.at("step_type"))
        config: JsonObject = {}
        self.reading.move(config, f"{at}/config", "tool", step, "tool")
        self.reading.move(config, f"{at}/config", "parameters", step, "input_mapping")
        if "tool" not in config:
            hint = "Name the tool."
            self.reading.error("tool-missing", step.pointer, "a tool_call step names no tool", hint)
        self._reads(*fields_in(config.get("parameters")))
        node["config"] = config

    def _agent(self, node: JsonObject, at: str, record: Record, step: Record, *, decides: bool) -> None:
        self.reading.put(node, at, "type", "agent", record.at("type"))
        inputs: JsonObject = {}
        fields = [field for field in list_of(step.take("input_fields")) if isinstance(field, str)]
        for index, field in enumerate(fields):
            source = f"{step.at('input_fields')}/{index}"
            self.reading.put(inputs, f"{at}/inputs", field, field_path(field), source)
        self._reads(*fields)
        if inputs:
            node["inputs"] = inputs
        config: JsonObject = {"result": "auto"}
        self._prompt(config, at, step, fields)
        for native, word in AGENT_WORDS.items():
            self.reading.move(config, f"{at}/config", native, step, word)
        if decides:
            self._choices(config, at, step)
        node["config"] = config

    def _prompt(self, config: JsonObject, at: str, step: Record, fields: list[str]) -> None:
        """Read the prompts: the goal becomes the system prompt, the template the prompt; instructions are appended to
        the prompt, or to the system prompt if there is no template."""
        goal, instructions = text_of(step.value.get("goal")), text_of(step.value.get("instructions"))
        template = text_of(step.value.get("prompt_template"))
        step.taken.update(("goal", "instructions", "prompt_template"))
        more = literal_text(instructions) if instructions else None
        system = [literal_text(goal) if goal else None, more if template is None else None]
        if any(system):
            source = step.at("goal" if goal else "instructions")
            self.reading.put(config, f"{at}/config", "system", "\n\n".join(filter(None, system)), source)
        if template is None:
            return
        self._check_fields(template, fields, step)
        prompt = "\n\n".join(filter(None, (native_template(template, fields), more)))
        self.reading.put(config, f"{at}/config", "prompt", prompt, step.at("prompt_template"))

    def _check_fields(self, template: str, fields: list[str], step: Record) -> None:
        for field in dict.fromkeys(fields_in(native_template(template, fields))):
            if field not in fields:
                fix: JsonObject = {"op": "add", "path": f"{step.at('input_fields')}/-", "value": field}
                message = f"the prompt asks for {field!r}, which is not one of the step's input_fields"
                hint = "A step reads its input_fields alone: add it there."
                has_fields = isinstance(step.value.get("input_fields"), list)
                pointer = step.at("prompt_template")
                self.reading.error("field-not-readable", pointer, message, hint, fix if has_fields else None)

    def _choices(self, config: JsonObject, at: str, step: Record) -> None:
        choices = step.take("choices")
        if len(list_of(choices)) < 2:
            hint = "Name at least two."
            self.reading.error("too-few-choices", step.at("choices"), "a decision needs something to choose from", hint)
        schema: JsonObject = {"type": "string", "enum": choices}
        self.reading.put(config, f"{at}/config", "outputSchema", schema, step.at("choices"))

    def _reads(self, *fields: str) -> None:
        for field in fields:
            self.fields_read.setdefault(field)

    def _checkpoint(self, node: JsonObject, at: str, key: str, record: Record, gate: Record) -> None:
        self.reading.put(node, at, "type", "human", record.at("type"))
        config: JsonObject = {}
        inside = f"{at}/config"
        self.reading.move(config, inside, "title", gate, "title")
        message = gate.take("description")
        text = literal_text(message) if isinstance(message, str) else message
        self.reading.put(config, inside, "message", text, gate.at("description"))
        self._actions(config, inside, key, gate)
        near = [field for field in dict.fromkeys(fields_before(key, self.fields, self.before)) if field]
        editable = gate.take("editable_fields")
        if list_of(editable) or (editable is not None and not isinstance(editable, list)):
            self.reading.put(config, inside, "editable", editable, gate.at("editable_fields"))
        elif near and "edit" in self.checkpoints[key]:
            self.reading.put(config, inside, "editable", [*near], gate.at("editable_fields"))
        if near:
            config["show"] = [field_path(field) for field in near]
        self._auto_proceed(config, inside, gate, self.checkpoints[key])
        node["config"] = config
        if "name" not in node and (title := gate.value.get("title")) is not None:
            self.reading.put(node, at, "name", title, gate.at("title"))

    def _actions(self, config: JsonObject, inside: str, key: str, gate: Record) -> None:
        gate.taken.add("allowed_actions")
        self.reading.put(config, inside, "actions", [*self.checkpoints[key]], gate.at("allowed_actions"))

    def _auto_proceed(self, config: JsonObject, inside: str, gate: Record, actions: list[Json]) -> None:
        auto = gate.take("auto_proceed")
        if auto in (None, False):
            return
        seconds = number_of(gate.take("auto_proceed_timeout_seconds"))
        first = next((action for action in actions if action != "reject"), "approve")
        if seconds is None:
            self.reading.put(config, inside, "autoProceed", auto, gate.at("auto_proceed"))
            return
        self.reading.put(config, inside, "timeout", f"{seconds:g}s", gate.at("auto_proceed_timeout_seconds"))
        self.reading.put(config, inside, "onTimeout", first, gate.at("auto_proceed"))

    def output(self) -> str | None:
        """Return the expression of the workflow's output, if the shape determines the field."""
        field = output_field(self.fields, self.ways)
        return field_path(field) if field else None


def _output_field(record: Record) -> str | None:
    return text_of(object_of(record.value.get(record.said("step"))).get("output_field"))
