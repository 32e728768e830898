"""The simplest value of a schema, for answers without a script."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.models.scripted import sample
from pointsman.values import JsonObject


def number(kind: str, low: int, span: int, step: int) -> JsonObject:
    return {"type": kind, "minimum": low, "maximum": low + span * step, "multipleOf": step}


def string(least: int, more: int) -> JsonObject:
    return {"type": "string", "minLength": least, "maxLength": least + more}


def closed(members: dict[str, JsonObject]) -> JsonObject:
    return {"type": "object", "required": [*members], "properties": {**members}, "additionalProperties": False}


def asking_for_more(members: dict[str, JsonObject]) -> JsonObject:
    return {"properties": {**members}, "required": ["z"]}


def listed(items: JsonObject, least: int) -> JsonObject:
    return {"type": "array", "items": items, "minItems": least}


def either(one: JsonObject, other: JsonObject) -> JsonObject:
    return {"anyOf": [one, other]}


FIXED: list[JsonObject] = [
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["null", "string"]},
    {"enum": ["b", "a", 3]},
    {"const": {"x": 1}},
    {"type": "integer", "exclusiveMinimum": 3},
    {"type": "integer", "exclusiveMaximum": 3},
    {"type": "number", "minimum": 0.5},
    {"type": "string", "format": "date"},
]
leaves = st.one_of(
    st.sampled_from(FIXED),
    st.builds(string, st.integers(0, 40), st.integers(0, 9)),
    st.builds(
        number, st.sampled_from(["integer", "number"]), st.integers(-50, 50), st.integers(1, 50), st.integers(1, 7)
    ),
)


def inner(schemas: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    members = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), schemas, max_size=3)
    return st.one_of(
        st.builds(closed, members),
        st.builds(asking_for_more, members),
        st.builds(listed, schemas, st.integers(0, 3)),
        st.builds(either, schemas, schemas),
    )


@given(st.recursive(leaves, inner, max_leaves=6))
def test_a_sample_satisfies_its_schema(schema: JsonObject) -> None:
    assert list(jsonschema_rs.validator_for(schema).iter_errors(sample(schema, "text"))) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "default": "given"}, "given"),
        ({"type": "string", "examples": ["for instance"]}, "for instance"),
        ({"type": "integer", "minimum": 0, "maximum": 100}, 100),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "string"}, "text"),
    ],
)
def test_gates_open_and_lists_of_complaints_are_empty(schema: JsonObject, value: object) -> None:
    assert sample(schema, "text") == value


def test_references_and_parts_are_followed() -> None:
    parts: JsonObject = {
        "allOf": [{"$ref": "#/$defs/named"}, {"required": ["age"], "properties": {"age": {"const": 3}}}]
    }
    schema: JsonObject = {**parts, "$defs": {"named": {"required": ["name"], "properties": {"name": {"enum": ["a"]}}}}}
    assert sample(schema, "x") == {"name": "a", "age": 3}


def test_a_schema_that_contains_itself_ends() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"child": {"$ref": "#"}, "name": {"type": "string"}},
        "required": ["name"],
    }
    assert list(jsonschema_rs.validator_for(schema).iter_errors(sample(schema, "x"))) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 10**18},
        {"type": "array", "minItems": 10**18, "items": {"type": "string", "minLength": 10**6}},
        {"type": "array", "minItems": 10**4, "items": {"type": "array", "minItems": 10**4}},
        {"properties": {f"p{number}": {"$ref": "#"} for number in range(20)}},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}], "anyOf": [{"$ref": "#"}]},
        {"type": "integer", "maximum": 1e308, "multipleOf": 1e-300},
        {"type": "number", "maximum": 10**400, "multipleOf": 0.5},
    ],
)
def test_a_sample_for_a_hostile_schema_is_small(schema: JsonObject) -> None:
    assert len(json.dumps(sample(schema, "text"))) < 5_000_000
