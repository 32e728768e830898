"""Reads of keys that a value does not have: in results whose schema the workflow declares, and in declared data.

outputSchema, form, input, state ─▶ schema of `nodes.<id>`, `result`, `input`, and of fields ─▶ each key of a read

JSON Schemas inside a workflow must be valid, and must not refer to anything outside themselves.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from pointsman.definition.checks.conflicts import dotted
from pointsman.definition.checks.formulas import FormulaRead, Formulas, Keys
from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.json_schema import JsonSchema, faults_of
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import HumanConfig, StartConfig
from pointsman.definition.model.nodes import Node, NodeConfig
from pointsman.definition.model.work import StructuredRecordConfig, ToolConfig
from pointsman.definition.problems import Problem, error, pointer_to, question, rename_key, replace_at, warning
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.paths import compile_path
from pointsman.expressions.types import Schemas, UnknownKey, ValueShape, shape_of
from pointsman.values import Json, JsonObject

OF_EVERY_NODE: Final = frozenset(
    {"action", "branch", "by", "comment", "error", "next", "response", "result", "round", "text"}
)
"""Keys that the engine adds to a result."""
_NOTHING: Final = frozenset({"null"})
_SCALARS: Final = frozenset({"boolean", "null", "number", "string"})


class Described(NamedTuple):
    """A value whose schema is known."""

    schema: JsonObject
    document: JsonObject
    """Document in which the references of the schema are resolved."""
    closed: bool = False
    """True if keys that the schema does not list count as missing, even where the schema allows them."""
    extra: frozenset[str] = frozenset()
    """Keys that the value has in addition to those of the schema."""


def check_results(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    values = _Values(subject, formulas)
    for reading in formulas.readings:
        if (described := values.of(reading)) is not None:
            yield from _unknown_fields(subject, reading, *described)


class _Values:
    """Values of a workflow whose schema is known."""

    def __init__(self, subject: Subject, formulas: Formulas) -> None:
        self.subject = subject
        self.formulas = formulas

    def of(self, reading: FormulaRead) -> tuple[Described, Keys, str] | None:
        """Return the described value at the start of a path, the
        rest of the path, and the name of the value for messages."""
        path, position = reading.read.path, reading.place.node
        match reading.read.root:
            case "result" if position is not None:
                node = self.subject.nodes[position]
                if isinstance(node.config, HumanConfig) and reading.place.edge is not None:
                    return None  # a gate passes on its input
                return self._below(self.results.get(node.id), path, self.subject.node(position))
            case "nodes" if path and isinstance(path[0], str) and path[0] in self.results:
                if position is not None and self.subject.nodes[position].id == path[0]:
                    return None  # a node may read its own earlier result, whatever it was
                name = self.subject.node(self.subject.graph.index[path[0]])
                return self._below(self.results[path[0]], path[1:], name)
            case "state" if path and isinstance(path[0], str):
                return self._below(self.fields.get(path[0]), path[1:], repr(path[0]))
            case "input" if (schema := self.subject.input_schema) is not None:
                return self._below(Described(schema, schema), path, "the input")
            case _:
                return None

    def _below(self, value: Described | None, path: Keys, name: str) -> tuple[Described, Keys, str] | None:
        return None if value is None or not path else (value, path, name)

    @cached_property
    def results(self) -> Mapping[str, Described]:
        """Results by the id of the node."""
        agents = {name: agent.output_schema for name, agent in (self.subject.workflow.agents or {}).items()}
        results: dict[str, Described] = {}
        for node in self.subject.nodes:
            schema = _schema_of(node, agents)
            if schema is not None:
                results[node.id] = Described(schema, schema, closed=True, extra=OF_EVERY_NODE)
        return results

    @cached_property
    def fields(self) -> Mapping[str, Described]:
        """Fields by name: declared ones, answers of gates, and fields that exactly one node writes."""
        workflow, fields = self.subject.workflow, dict[str, Described]()
        schema = workflow.input_schema or {}
        properties = schema.get("properties")
        for name, part in (properties if isinstance(properties, dict) else {}).items():
            if isinstance(part, dict):
                fields[name] = Described(part, schema)
        written = Counter(str(writing.keys[0]) for writing in self.formulas.writings)
        for name in [name for name in fields if written[name]]:
            del fields[name]
        for pattern, about in (workflow.state or {}).items():
            written[pattern.partition(".")[0]] += 1
            if about.schema_ is not None and "." not in pattern and "*" not in pattern:
                fields[pattern] = Described(about.schema_, about.schema_)
        gates = [node.id for node in self.subject.nodes if isinstance(node.config, HumanConfig)]
        answers = {
            f"humanResponse_{gate.replace('-', '_')}": self.results[gate] for gate in gates if gate in self.results
        }
        fields |= {name: answer for name, answer in answers.items() if not written[name]}
        fields |= {name: one for name, one in self._written() if written[name] == 1 and name not in fields}
        return fields

    def _written(self) -> Iterator[tuple[str, Described]]:
        for node in self.subject.nodes:
            value = self.results.get(node.id)
            if value is None:
                continue
            for name, source in (node.outputs or {}).items():
                if "." not in name and "[" not in name and (part := _part(value, source)) is not None:
                    yield name, part


def _schema_of(node: Node, agents: Mapping[str, JsonObject | None]) -> JsonObject | None:
    if node.execution is not None and node.execution.error_handler == "continue":
        return None  # a failure may take the place of the result
    match node.config:
        case AgentConfig(output_schema=schema) if schema is not None:
            return schema
        case AgentConfig(agent=name) if name is not None:
            return agents.get(name)
        case HumanConfig(editable=editable, form=form):
            data: JsonObject = {} if editable else form if form is not None else {"type": "null"}
            return {"type": "object", "properties": {"response": {"type": "string"}, "data": data, "votes": {}}}
        case _:
            return None


def _part(value: Described, source: str) -> Described | None:
    """Return the description of `result` or `result.a.b` of a described result."""
    if source != "result" and not source.startswith("result."):
        return None
    try:
        keys = compile_path(source).segments[1:]
    except ExpressionError:
        return None
    if not keys:
        return value._replace(extra=frozenset())
    if keys[0] in value.extra:
        return None
    shape = shape_of(value.schema, value.document)
    for key in keys:
        if not isinstance(key, str | int):
            return None
        shape, missing = _step(shape, key, value)
        if missing is not None or shape.schema is None:
            return None
    return Described(shape.schema or {}, value.document, value.closed)


def _step(shape: ValueShape, key: str | int | None, value: Described) -> tuple[ValueShape, tuple[str, ...] | None]:
    """Return the shape below a key; and, if the key is missing, the existing keys."""
    schema = shape.schema
    if shape.types and shape.types <= _SCALARS and not (isinstance(key, int | None) and "string" in shape.types):
        return shape, ()
    if schema is None or (key is None and "items" not in schema):
        return ValueShape(), None
    properties = schema.get("properties")
    if isinstance(key, str) and isinstance(properties, dict) and properties and key not in properties:
        is_open = "additionalProperties" in schema or "patternProperties" in schema
        if value.closed and not is_open:
            return shape, tuple(properties)
    try:
        return Schemas({"": value.document}).below(shape, key, ""), None
    except UnknownKey as why:
        return shape, why.known


def _unknown_fields(
    subject: Subject, reading: FormulaRead, value: Described, path: Keys, name: str
) -> Iterator[Problem]:
    shape = shape_of(value.schema, value.document)
    for depth, key in enumerate(path):
        if depth == 0 and key in value.extra and key not in _keys_of(shape.schema):
            return
        below, keys = _step(shape, key, value)
        if keys is not None:
            if not reading.read.guarded or not value.closed:
                yield _unknown(subject, reading, str(key), keys, f"{name}{_at(path[:depth])}", shape)
            return
        if below.schema is None:
            return
        shape = below
    if shape.types == _NOTHING and not reading.read.guarded:
        yield _unknown(subject, reading, str(path[-1]), (), f"{name}{_at(path[:-1])}", shape)


def _keys_of(schema: JsonObject | None) -> Mapping[str, Json]:
    properties = (schema or {}).get("properties")
    return properties if isinstance(properties, dict) else {}


def _at(path: Keys) -> str:
    return f" at {dotted(path)!r}" if path else ""


def _unknown(
    subject: Subject, reading: FormulaRead, key: str, keys: tuple[str, ...], name: str, shape: ValueShape
) -> Problem:
    place, read = reading.place, reading.read
    near = subject.nearest(key, keys)
    if keys:
        rest = f"It has {listed(keys)}."
    elif shape.types == _NOTHING:
        rest = "A gate without `form` collects no data. Add a `form`, or read `response`."
    else:
        rest = f"It is a {' or '.join(sorted(shape.types))}, which does not have keys."
    written = place.text[read.offset : read.offset + read.length]
    at = written.rfind(key)
    fix = None
    if near is not None and at >= 0:
        start = read.offset + at
        fix = replace_at(place.pointer, place.text[:start] + near + place.text[start + len(key) :])
    message = f"{name} has no {key!r}: {written!r} never has a value"
    return warning("unknown-path", place.pointer, message, hint=question(near, rest), fix=fix)


def check_arguments(subject: Subject) -> Iterator[Problem]:
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, ToolConfig):
            continue
        facts = (subject.known.tools or {}).get(node.config.tool)
        if facts is not None and facts.parameters is not None and not facts.off:
            yield from _arguments(subject, position, node.config, node.inputs, facts.parameters)


def _arguments(
    subject: Subject, position: int, config: ToolConfig, inputs: Mapping[str, Json] | None, schema: JsonObject
) -> Iterator[Problem]:
    """Check the parameters of a tool. `inputs` are the node's inputs, which are used if it names no parameters."""
    declared, required = schema.get("properties"), schema.get("required")
    properties = declared if isinstance(declared, dict) else {}
    from_inputs = config.parameters is None and inputs is not None
    arguments = (inputs if from_inputs else config.parameters) or {}
    at = subject.at_node(position, *(("inputs",) if from_inputs else ("config", "parameters")))
    refused, suggested = warning if subject.imported else error, set[str | None]()
    for name, value in (config.parameters or {}).items():
        if name in properties or not _is_closed(schema):
            continue
        near = subject.nearest(name, [one for one in properties if one not in arguments])
        suggested.add(near)
        takes = f"It takes {listed(properties)}." if properties else "It takes none: remove it."
        message = f"the tool {config.tool!r} has no parameter {name!r}"
        fix = None if near is None else rename_key(at, name, near, value)
        make = refused if schema.get("additionalProperties") is False else warning
        yield make("unknown-argument", at + pointer_to(name), message, hint=question(near, takes), fix=fix)
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in arguments and name not in suggested:
            message = (
                f"the tool {config.tool!r} needs the parameter {name!r}, which {subject.node(position)} does not set"
            )
            has_place = from_inputs or config.parameters is not None
            where = at if has_place else subject.at_node(position, "config")
            make = refused
            yield make("missing-argument", where, message, hint=f"Add {name!r} to `parameters`.")
    for name, value in (config.parameters or {}).items():
        part = properties.get(name)
        if isinstance(part, dict) and _is_fixed(value) and not refers(part):
            yield from _misfits(subject, config.tool, name, value, part, at + pointer_to(name))


def _misfits(subject: Subject, tool: str, name: str, value: Json, schema: JsonObject, at: str) -> Iterator[Problem]:
    if faults_of(schema):
        return
    make = warning if subject.imported else error
    for misfit in JsonSchema(schema).misfits(value, most=1):
        message = f"the tool {tool!r} refuses this {name!r}: {misfit.message}"
        yield make("argument-invalid", at + pointer_to(*misfit.path), message, hint="Use a value of that type.")


def _is_closed(schema: JsonObject) -> bool:
    """Return whether a parameter that the schema does not list is rejected or probably ignored."""
    if "properties" not in schema and "additionalProperties" not in schema:
        return False
    return "patternProperties" not in schema and schema.get("additionalProperties", False) is False


def _is_fixed(value: Json) -> bool:
    """Return whether a value is the same in every execution: a number, or a text without a template or a path."""
    if isinstance(value, str):
        return not any(mark in value for mark in ("{", "$", "secret."))
    return isinstance(value, int | float)


def check_schemas(subject: Subject) -> Iterator[Problem]:
    for pointer, schema in _schemas(subject):
        yield from _wrong(pointer, schema)
    for position, node in enumerate(subject.nodes):
        if isinstance(node.config, StartConfig) and node.config.defaults:
            at = subject.at_node(position, "config", "defaults")
            defaults = [name for name in node.config.defaults if name in subject.input_defaults]
            yield from _defaults(subject, {name: at + pointer_to(name) for name in defaults})
    yield from _defaults(subject, _described_defaults(subject))


def _described_defaults(subject: Subject) -> dict[str, str]:
    """Return field -> place of the default in its schema, unless the start node has another default."""
    at = "/input"
    if subject.workflow.input is None:
        starts = (
            n for n, node in enumerate(subject.nodes) if isinstance(node.config, StartConfig) and node.config.inputs
        )
        at = next((subject.at_node(position, "config", "inputs") for position in starts), "")
    properties = (subject.input_schema or {}).get("properties")
    return {
        name: at + pointer_to("properties", name, "default")
        for name, field in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(field, dict) and field.get("default") == subject.input_defaults.get(name, ...)
    }


def _schemas(subject: Subject) -> Iterator[tuple[str, JsonObject]]:
    workflow = subject.workflow
    if workflow.input is not None:
        yield "/input", workflow.input
    for pattern, described in (workflow.state or {}).items():
        if described.schema_ is not None:
            yield pointer_to("state", pattern, "schema"), described.schema_
    for name, agent in (workflow.agents or {}).items():
        if agent.output_schema is not None:
            yield pointer_to("agents", name, "outputSchema"), agent.output_schema
    for position, node in enumerate(subject.nodes):
        for key, schema in _schemas_of(node.config):
            yield subject.at_node(position, "config", key), schema


def _schemas_of(config: NodeConfig | None) -> Iterator[tuple[str, JsonObject]]:
    match config:
        case StartConfig(inputs=schema) if schema is not None:
            yield "inputs", schema
        case AgentConfig(output_schema=schema) if schema is not None:
            yield "outputSchema", schema
        case HumanConfig(form=schema) if schema is not None:
            yield "form", schema
        case StructuredRecordConfig(schema_=schema):
            yield "schema", schema
        case _:
            pass


def _wrong(pointer: str, schema: JsonObject) -> Iterator[Problem]:
    for fault in faults_of(schema):
        yield dataclasses.replace(fault, pointer=pointer + fault.pointer)


def _defaults(subject: Subject, pointers: Mapping[str, str]) -> Iterator[Problem]:
    """Report defaults of the input that its own schema rejects. `pointers`: field -> place of its default."""
    properties = (subject.input_schema or {}).get("properties")
    for name, pointer in pointers.items():
        value = subject.input_defaults[name]
        schema = properties.get(name) if isinstance(properties, dict) else None
        if not isinstance(schema, dict) or refers(schema) or faults_of(schema):
            continue
        for misfit in JsonSchema(schema).misfits(value):
            at = pointer + pointer_to(*misfit.path)
            advice = f"Give a {schema['type']}, or" if "type" in schema else "Correct it, or"
            message = f"the default of {name!r} breaks its schema: {misfit.message}"
            yield error("default-invalid", at, message, hint=f"{advice} change the type of {name!r}.")


def refers(schema: Json) -> bool:
    """Return whether the schema contains a `$ref`: its meaning depends on the schema around it."""
    match schema:
        case dict():
            return "$ref" in schema or any(map(refers, schema.values()))
        case list():
            return any(map(refers, schema))
        case _:
            return False
