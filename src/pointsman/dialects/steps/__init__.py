"""The steps dialect: nodes keyed by id that execute a step or wait at a checkpoint; the first edge whose condition
holds is taken.

    {id, name, entry_node, nodes: {id: {id, type, step: {goal, tools, input_fields, output_field, prompt_template}
                                               | checkpoint: {title, description, allowed_actions}}},
     edges: [{from, to, condition, label}]}

Three spellings: `type/step/from`, `node_type/checkpoint_config/from_node`, `step_definition/condition_expr`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import did_you_mean, pointer_to
from pointsman.dialects.readers import (
    ForeignReader,
    ImportedDocument,
    Record,
    WrittenDocument,
    agents_of,
    field_path,
    key_of,
    list_of,
    literal_text,
    mixed_spellings,
    number_of,
    object_of,
    records,
    text_of,
    workflow_id,
)
from pointsman.dialects.steps.keywords import (
    AGENT_WORDS,
    DEFAULT_ACTIONS,
    NODE_TYPES,
    STEP_TYPES,
    WORDS,
    action_of,
    fields_before,
    fields_in,
    native_template,
    output_field,
    predecessors,
)
from pointsman.dialects.steps.writer import render
from pointsman.dialects.writers import Dialect, write_with
from pointsman.values import END, Json, JsonObject


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
    values: list[Json] = [reader.read(index, key, record) for index, (key, record) in enumerate(nodes.items())]
    native["input"] = _input(head, reader, reading)
    native["output"] = reader.output()
    native["nodes"] = values
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
    listed = head.take("nodes")
    if not isinstance(listed, dict):
        rows = records(listed, "/nodes", WORDS, reading)
        return {key_of(record.value.get("id")): record for record in rows}
    nodes: dict[str, Record] = {}
    for key, value in listed.items():
        pointer = pointer_to("nodes", key)
        if not isinstance(value, dict):
            reading.error("wrong-type", pointer, f"the node {key!r} must be an object")
            continue
        nodes[key] = Record(value, pointer, WORDS)
        inner = value.get("id")
        if inner is not None and inner != key:
            fix: JsonObject = {"op": "replace", "path": f"{pointer}/id", "value": key}
            message = f"the node under {key!r} has the id {inner!r}"
            reading.error("id-mismatch", f"{pointer}/id", message, "The key is its id; edges refer to it.", fix)
    return nodes


def _input(head: Record, reader: StepsNodeReader, reading: ForeignReader) -> Json:
    """Return the declared input; else an input with every field that is read and that no step writes."""
    schema = head.take("input_schema")
    if schema is not None:
        reading.origin["/input"] = head.at("input_schema")
        return schema
    fields = [field for field in reader.fields_read if field not in reader.fields_made]
    if not fields:
        return None
    properties: JsonObject = {field: object_of(None) for field in fields}
    return {"type": "object", "properties": properties, "required": [*fields]}


def _read(document: JsonObject, name: str) -> ImportedDocument:
    return read(document, name=name)


DIALECT: Final = Dialect("steps", WORDS, _read, render, nodes_by_id=True)


class StepsEdgeReader:
    def __init__(self, nodes: Mapping[str, Record], edges: Sequence[Record], reading: ForeignReader) -> None:
        self.edges = edges
        self.reading = reading
        self.checkpoints: dict[str, list[Json]] = {
            key: actions_of(record) for key, record in nodes.items() if is_checkpoint(record)
        }
        self.plain = self._plain()
        self.made: list[Json] = []

    def read(self) -> list[Json]:
        always: set[str] = set()
        for record in self.edges:
            source = key_of(record.value.get(record.said("from")))
            edge = self._edge(record, source)
            plain = object_of(edge.get("condition")).get("type", "always") == "always"
            if source in always and (plain or source not in self.checkpoints):
                self._warn_never(record)
            if plain:
                always.add(source)
        leaving = {key_of(object_of(edge).get("source")) for edge in self.made}
        for checkpoint in self.checkpoints:
            if checkpoint in leaving and checkpoint not in always:
                self._completes(checkpoint)
        return self.made

    def _edge(self, record: Record, source: str) -> JsonObject:
        at = f"/edges/{len(self.made)}"
        self.reading.origin[at] = record.pointer
        edge: JsonObject = {}
        for native, word in {"id": "id", "source": "from", "target": "to"}.items():
            self.reading.move(edge, at, native, record, word)
        label, condition = record.take("label"), record.take("condition")
        actions = self.checkpoints.get(source)
        if actions is not None and self._gate(edge, at, record, actions, label, condition):
            label = None
        elif condition not in (None, "", True):
            text: JsonObject = {"type": "expression", "expression": condition}
            self.reading.put(edge, at, "condition", text, record.at("condition"))
            self.reading.origin[f"{at}/condition/expression"] = record.at("condition")
        elif actions is not None and label is not None:
            edge["condition"] = {"type": "always"}
        if label is not None:
            self.reading.put(edge, at, "label", label, record.at("label"))
        self.reading.keep(edge, at, record)
        self.made.append(edge)
        return edge

    def _gate(
        self, edge: JsonObject, at: str, record: Record, actions: list[Json], label: Json, condition: Json
    ) -> bool:
        """Make the edge of a checkpoint conditional on one action, and return whether it is. If the only edge is drawn
        for `approve`, it also applies to edit."""
        action = action_of(label, condition, actions)
        bare = condition in (None, "")
        if action is None or (bare and action == "approve" and not self._has_plain(record)):
            return False
        source = "label" if bare else "condition"
        self.reading.put(edge, at, "condition", {"type": "label", "label": action}, record.at(source))
        if label != action or not bare:
            record.taken.difference_update(("label", record.said("condition")))
        return True

    def _has_plain(self, record: Record) -> bool:
        """Return whether the same checkpoint has another edge without condition and action."""
        source = key_of(record.value.get(record.said("from")))
        return any(other is not record for other in self.plain.get(source, ()))

    def _plain(self) -> dict[str, list[Record]]:
        """Return checkpoint -> its edges without condition and action, or for approval only."""
        groups: dict[str, list[Record]] = {}
        for edge in self.edges:
            source = key_of(edge.value.get(edge.said("from")))
            bare = edge.value.get(edge.said("condition")) in (None, "")
            if source in self.checkpoints and bare:
                action = action_of(edge.value.get("label"), None, self.checkpoints[source])
                if action in (None, "approve"):
                    groups.setdefault(source, []).append(edge)
        return groups

    def _warn_never(self, record: Record) -> None:
        message = (
            "is never taken: an edge before it has no condition, and the first edge whose condition holds is taken"
        )
        self.reading.warning("edge-never-taken", record.pointer, message, "Move it up, or remove it.")

    def _completes(self, checkpoint: str) -> None:
        """Add an edge to the end: an action other than reject completes the workflow if no other edge applies."""
        implied: JsonObject = {"implied": True}
        edge: JsonObject = {"source": checkpoint, "target": END, "condition": {"type": "default"}}
        self.made.append({**edge, "x-steps": implied})


def is_checkpoint(record: Record) -> bool:
    kind = record.value.get(record.said("type"))
    return kind == "checkpoint" or (kind is None and record.has("checkpoint"))


def actions_of(record: Record) -> list[Json]:
    checkpoint = object_of(record.value.get(record.said("checkpoint"))).get("allowed_actions")
    return list_of(checkpoint) or [*DEFAULT_ACTIONS]


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
        self.transitions = [
            (
                key_of(edge.value.get(edge.said("from"))),
                key_of(edge.value.get(edge.said("to"))),
                edge.value.get(edge.said("condition")) in (None, "", True),
            )
            for edge in edges
        ]
        self.before = predecessors(self.transitions)
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
                message = f"the prompt uses {field!r}, which is not one of the step's input_fields"
                hint = "A step reads only its input_fields: add the field there."
                has_fields = isinstance(step.value.get("input_fields"), list)
                pointer = step.at("prompt_template")
                self.reading.error("field-not-readable", pointer, message, hint, fix if has_fields else None)

    def _choices(self, config: JsonObject, at: str, step: Record) -> None:
        choices = step.take("choices")
        if len(list_of(choices)) < 2:
            hint = "Name at least two."
            self.reading.error("too-few-choices", step.at("choices"), "a decision needs options", hint)
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
        field = output_field(self.fields, self.transitions)
        return field_path(field) if field else None


def _output_field(record: Record) -> str | None:
    return text_of(object_of(record.value.get(record.said("step"))).get("output_field"))
