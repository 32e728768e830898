"""The JSON Schema (2020-12) of the native format, made of the models: one truth for validation, editors and people."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, cast

from pydantic.json_schema import models_json_schema

from pointsman.definition.model.base import TAG, Model, descriptions_of
from pointsman.definition.model.nodes import CONDITIONS, CONFIG_OF, TYPE_ALIASES
from pointsman.definition.model.work import OPERATIONS
from pointsman.definition.model.workflow import FORMAT, WorkflowDefinition
from pointsman.values import Json, JsonObject

SCHEMA_ID: Final = f"urn:pointsman:workflow:{FORMAT}"
_ANY_OF: Final = "x-any-of"
"""Where a model left the names of a union's members."""


def native_schema() -> JsonObject:
    """A fresh copy, for the caller to keep. `x-kind` names the syntax of a text: expression, template, path …"""
    return _copy(_schema())


@lru_cache(maxsize=1)
def _schema() -> JsonObject:
    models: list[type[Model]] = [WorkflowDefinition, *CONFIG_OF.values(), *CONDITIONS.values(), *OPERATIONS.values()]
    _, made = models_json_schema([(model, "validation") for model in dict.fromkeys(models)], by_alias=True)
    definitions = cast(dict[str, JsonObject], made["$defs"])
    for name in CONDITIONS.values():
        definitions[name.__name__]["required"] = [TAG, *_texts(definitions[name.__name__].get("required"))]
    for model in Model.__subclasses__():
        if model.__name__ in definitions:
            _describe(definitions[model.__name__], model)
    _link(cast(JsonObject, definitions))
    _say_configs(definitions["Node"])
    workflow = definitions.pop(WorkflowDefinition.__name__)
    head: JsonObject = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID}
    return {**head, **workflow, "title": "Workflow", "$defs": cast(Json, dict(sorted(definitions.items())))}


def _describe(made: JsonObject, model: type[Model]) -> None:
    """The docstring of each field, from the source."""
    properties = made.get("properties")
    descriptions = descriptions_of(model)
    for name, field in model.model_fields.items():
        if name in descriptions and isinstance(properties, dict):
            shown = properties[field.alias or name]
            assert isinstance(shown, dict)
            shown["description"] = descriptions[name]


def _texts(value: Json | None) -> list[Json]:
    return [text for text in value if text != TAG] if isinstance(value, list) else []


def _link(here: Json) -> None:
    """The names of a union's members become references; defaults that only mean `absent` are removed."""
    if isinstance(here, list):
        for inner in here:
            _link(inner)
    elif isinstance(here, dict):
        if here.get("default", 0) is None:
            del here["default"]
        names = here.pop(_ANY_OF, None)
        if isinstance(names, list):
            here["anyOf"] = [_reference(str(name)) for name in names]
        for inner in here.values():
            _link(inner)


def _say_configs(node: JsonObject) -> None:
    """A node's `type` decides what its `config` is; with required keys in it the configuration itself is required."""
    cases: list[Json] = []
    for kind, model in CONFIG_OF.items():
        names: list[Json] = [kind, *(alias for alias, type_name in TYPE_ALIASES.items() if type_name == kind)]
        nullable: list[Json] = [_reference(model.__name__), {"type": "null"}]
        needs_config = any(field.is_required() for field in model.model_fields.values())
        config: JsonObject = _reference(model.__name__) if needs_config else {"anyOf": nullable}
        then: JsonObject = {"properties": {"config": config}, **({"required": ["config"]} if needs_config else {})}
        cases.append({"if": {"properties": {TAG: {"enum": names}}, "required": [TAG]}, "then": then})
    node["allOf"] = cases
    properties = node["properties"]
    assert isinstance(properties, dict)
    properties["config"] = {"type": ["object", "null"], "description": "Configuration of the node type."}


def _reference(name: str) -> JsonObject:
    return {"$ref": f"#/$defs/{name}"}


def _copy(value: JsonObject) -> JsonObject:
    return {key: _copied(inner) for key, inner in value.items()}


def _copied(value: Json) -> Json:
    match value:
        case dict():
            return _copy(value)
        case list():
            return [_copied(inner) for inner in value]
        case _:
            return value
