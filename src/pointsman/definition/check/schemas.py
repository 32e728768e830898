"""JSON Schemas inside a workflow: each must be one, and refer to nothing outside itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from pointsman.definition.agents import AgentConfig
from pointsman.definition.check.subject import Subject
from pointsman.definition.control import HumanConfig, StartConfig
from pointsman.definition.nodes import NodeConfig
from pointsman.definition.problems import Problem, error, pointer_to
from pointsman.definition.work import StructuredRecordConfig
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
PROBLEMS_MAX: Final = 20
"""Findings shown of one schema."""


def check_schemas(subject: Subject) -> Iterator[Problem]:
    for pointer, schema in _schemas(subject):
        yield from _wrong(pointer, schema)
        yield from _elsewhere(pointer, schema)
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
    for number, objection in enumerate(_validator().iter_errors(schema)):
        if number == PROBLEMS_MAX:
            return
        at = pointer + pointer_to(*objection.instance_path)
        message = f"this is not JSON Schema: {objection.message}"
        yield error("schema-invalid", at, message, hint=f"The dialect is {DRAFT}.")


def _elsewhere(pointer: str, schema: JsonObject) -> Iterator[Problem]:
    """`$ref` to other documents: they would have to be fetched while a workflow runs."""
    waiting: list[tuple[str, Json]] = [(pointer, schema)]
    while waiting:
        at, here = waiting.pop()
        match here:
            case dict():
                target = here.get("$ref")
                if isinstance(target, str) and not target.startswith("#"):
                    message = f"a schema may only refer to itself (`#/…`), not to {target[:100]!r}"
                    hint = "Copy the part under `$defs` and refer to it there."
                    yield error("schema-remote-ref", at + "/$ref", message, hint=hint)
                waiting.extend((at + pointer_to(key), value) for key, value in here.items())
            case list():
                waiting.extend((at + pointer_to(index), value) for index, value in enumerate(here))
            case _:
                pass


def _defaults(subject: Subject, position: int, defaults: JsonObject) -> Iterator[Problem]:
    """Defaults of the input that the input's own schema refuses."""
    properties = (subject.workflow.input_schema or {}).get("properties")
    for name, value in defaults.items():
        schema = properties.get(name) if isinstance(properties, dict) else None
        if not isinstance(schema, dict) or not _validator().is_valid(schema) or _refers(schema):
            continue
        for objection in _compiled(schema).iter_errors(value):
            at = subject.at_node(position, "config", "defaults", name) + pointer_to(*objection.instance_path)
            yield error("default-invalid", at, f"the default of {name!r} breaks its schema: {objection.message}")


def _refers(schema: Json) -> bool:
    """Whether there is a `$ref` anywhere: what it means depends on the schema around it."""
    match schema:
        case dict():
            return "$ref" in schema or any(map(_refers, schema.values()))
        case list():
            return any(map(_refers, schema))
        case _:
            return False


@cache
def _validator() -> Draft202012Validator:
    """A schema for schemas. It comes with the library: nothing is fetched, whatever a schema says in `$schema`."""
    return _compiled({"$ref": DRAFT})


def _compiled(schema: JsonObject) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(schema)
