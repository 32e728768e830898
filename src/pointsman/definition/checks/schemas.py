"""JSON Schemas inside a workflow: each must be one, and refer to nothing outside itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pointsman.definition.checks.subject import Subject
from pointsman.definition.json_schema import JsonSchema, faults_of
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import HumanConfig, StartConfig
from pointsman.definition.model.nodes import NodeConfig
from pointsman.definition.model.work import StructuredRecordConfig
from pointsman.definition.problems import Problem, error, pointer_to
from pointsman.values import Json, JsonObject


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
    """Defaults of the input that the input's own schema refuses."""
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
    """Whether there is a `$ref` anywhere: what it means depends on the schema around it."""
    match schema:
        case dict():
            return "$ref" in schema or any(map(refers, schema.values()))
        case list():
            return any(map(refers, schema))
        case _:
            return False
