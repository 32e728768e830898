"""JSON Schemas inside a workflow: each must be valid, and must not refer to anything outside itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pointsman.definition.checks.repairs import question, rename
from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.json_schema import JsonSchema, faults_of
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import HumanConfig, StartConfig
from pointsman.definition.model.nodes import NodeConfig
from pointsman.definition.model.work import StructuredRecordConfig, ToolConfig
from pointsman.definition.problems import Problem, error, pointer_to, warning
from pointsman.values import Json, JsonObject


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
    given = (inputs if from_inputs else config.parameters) or {}
    at = subject.at_node(position, *(("inputs",) if from_inputs else ("config", "parameters")))
    refused, meant = warning if subject.imported else error, set[str | None]()
    for name, value in (config.parameters or {}).items():
        if name in properties or not _is_closed(schema):
            continue
        near = subject.nearest(name, [one for one in properties if one not in given])
        meant.add(near)
        takes = f"It takes {listed(properties)}." if properties else "It takes none: remove it."
        message = f"the tool {config.tool!r} has no parameter {name!r}"
        fix = None if near is None else rename(at, name, near, value)
        make = refused if schema.get("additionalProperties") is False else warning
        yield make("unknown-argument", at + pointer_to(name), message, hint=question(near, takes), fix=fix)
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in given and name not in meant:
            message = f"the tool {config.tool!r} needs the parameter {name!r}, and {subject.node(position)} gives none"
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
        yield make("argument-invalid", at + pointer_to(*misfit.path), message, hint="Give a value of that kind.")


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
            yield from _defaults(subject, position, node.config.defaults)


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
        yield replace(fault, pointer=pointer + fault.pointer)


def _defaults(subject: Subject, position: int, defaults: JsonObject) -> Iterator[Problem]:
    """Report defaults of the input that the input's own schema rejects."""
    properties = (subject.input_schema or {}).get("properties")
    for name, value in defaults.items():
        schema = properties.get(name) if isinstance(properties, dict) else None
        if not isinstance(schema, dict) or refers(schema) or faults_of(schema):
            continue
        for misfit in JsonSchema(schema).misfits(value):
            at = subject.at_node(position, "config", "defaults", name) + pointer_to(*misfit.path)
            wanted = f"Give a {schema['type']}, or" if "type" in schema else "Correct it, or"
            message = f"the default of {name!r} breaks its schema: {misfit.message}"
            yield error("default-invalid", at, message, hint=f"{wanted} change the type of {name!r}.")


def refers(schema: Json) -> bool:
    """Return whether the schema contains a `$ref`: its meaning depends on the schema around it."""
    match schema:
        case dict():
            return "$ref" in schema or any(map(refers, schema.values()))
        case list():
            return any(map(refers, schema))
        case _:
            return False
