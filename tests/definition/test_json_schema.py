"""Hostile JSON Schemas: nothing is fetched, and neither a schema nor a value can make validation expensive."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import pytest

from pointsman.definition.json_schema import (
    APPLICATIONS_MAX,
    DRAFTS,
    SUBSCHEMAS_MAX,
    JsonSchema,
    JsonSchemaInvalid,
    faults_of,
)
from pointsman.values import Json, JsonObject

SECONDS_MAX: Final = 4.0


@contextmanager
def a_listener() -> Generator[tuple[str, list[object]]]:
    """Yield an address on loopback, and the list of connections to it."""
    made: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:
                    return
                made.append(address)
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", made


def remote(address: str) -> list[JsonObject]:
    """Return schemas that refer to another document at every place that a validator could follow."""
    return [
        {"$schema": f"{address}/schema"},
        {"$ref": f"{address}/ref"},
        {"$dynamicRef": f"{address}/dynamic"},
        {"$recursiveRef": f"{address}/recursive"},
        {"$id": f"{address}/base", "$ref": "other"},
        {"$id": f"{address}/base", "properties": {"a": {"$ref": "other#/x"}}},
        {"properties": {"a": {"$schema": f"{address}/inner", "$id": "urn:x"}}},
        {"items": {"anyOf": [{"not": {"$ref": f"{address}/deep"}}]}},
        {"$defs": {"a": {"$ref": f"{address}/unused"}}},
        {"$schema": DRAFTS[2], "definitions": {"a": {"$ref": f"{address}/seven"}}, "$ref": "#/definitions/a"},
        {"$schema": "file:///etc/passwd"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "//127.0.0.1/x"},
        {"x-other": {"$ref": f"{address}/hidden"}, "$ref": "#/x-other"},
    ]


@pytest.mark.integration
def test_schemas_that_name_other_documents_are_refused_and_nothing_is_fetched() -> None:
    with a_listener() as (address, made):
        for schema in remote(address):
            assert faults_of(schema), schema
            with pytest.raises(JsonSchemaInvalid):
                JsonSchema(schema)
        assert made == []


def test_an_unknown_draft_is_refused_with_the_known_ones() -> None:
    (fault,) = faults_of({"properties": {"a": {"$schema": "http://json-schema.org/draft-03/schema#"}}})
    assert (fault.code, fault.pointer) == ("schema-draft-unknown", "/properties/a/$schema")
    assert all(draft in fault.hint for draft in DRAFTS)


@pytest.mark.parametrize("draft", DRAFTS)
def test_known_drafts_are_compiled(draft: str) -> None:
    schema: JsonObject = {"$schema": draft, "type": "object", "required": ["a"]}
    assert faults_of(schema) == []
    assert JsonSchema(schema).fits({"a": 1})
    assert not JsonSchema(schema).fits({})
    assert faults_of({"$schema": draft, "type": "nothing"})


def test_a_property_may_be_named_like_a_keyword() -> None:
    schema: JsonObject = {"properties": {"$ref": {"type": "string"}, "$schema": {"const": "http://x"}}}
    assert faults_of(schema) == []
    assert JsonSchema(schema).fits({"$ref": "http://x", "$schema": "http://x"})
    assert not JsonSchema(schema).fits({"$ref": 1})


def doubling(levels: int, keyword: str) -> JsonObject:
    """Return a schema in which each level refers twice to the next one."""
    parts: JsonObject = {}
    for level in range(levels):
        below: list[Json] = [{"$ref": f"#/$defs/a{level + 1}"} for _ in range(2)]
        parts[f"a{level}"] = {keyword: below}
    parts[f"a{levels}"] = {"type": "integer"}
    return {"$defs": parts, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("levels", [24, 60, 2000])
def test_references_with_exponential_growth_are_refused(keyword: str, levels: int) -> None:
    found = JsonSchema(doubling(levels, keyword)).misfits("x")
    assert [one.path for one in found] == [()]
    assert str(APPLICATIONS_MAX) in found[0].message


def test_exponential_recursion_over_a_deep_value_is_refused() -> None:
    twice: JsonObject = {"properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
    value: Json = 1
    for _ in range(60):
        value = {"x": value}
    assert JsonSchema(twice).fits({"x": {"x": 1}})
    assert not JsonSchema(twice).fits(value)


def test_a_recursive_schema_validates_large_trees() -> None:
    tree: JsonObject = {
        "$defs": {"node": {"type": "object", "properties": {"children": {"items": {"$ref": "#/$defs/node"}}}}},
        "$ref": "#/$defs/node",
    }
    wide: Json = {"children": [{"children": [{} for _ in range(100)]} for _ in range(100)]}
    assert JsonSchema(tree).fits(wide)
    assert not JsonSchema(tree).fits({"children": [{"children": [1]}]})


def test_large_enumerations_of_strings_are_fast() -> None:
    schema: JsonObject = {"items": {"enum": [f"v{number}" for number in range(5000)]}}
    right: list[Json] = ["v4999"] * 5000
    assert JsonSchema(schema).fits(right)
    wrong: list[Json] = [f"w{number}" for number in range(5000)]
    (misfit,) = JsonSchema(schema).misfits(wrong)
    assert misfit.path == (0,)


def test_large_enumerations_of_objects_are_refused_over_large_values() -> None:
    schema: JsonObject = {"items": {"enum": [{"a": [number]} for number in range(5000)]}}
    value: Json = [{"a": [4999]} for _ in range(5000)]
    (misfit,) = JsonSchema(schema).misfits(value)
    assert str(APPLICATIONS_MAX) in misfit.message


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"propertyNames": {"enum": [f"v{n}" for n in range(3000)]}}, {f"q{n}": 1 for n in range(3000)}),
        (
            {"dependentRequired": {f"v{n}": [f"w{m}" for m in range(300)] for n in range(300)}},
            {f"v{n}": 1 for n in range(300)},
        ),
        ({"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "number"}}]}, [True] * 100_000),
        ({"items": {"type": "string"}}, [True] * 100_000),
        ({"pattern": "(a+)+$"}, "a" * 200_000 + "b"),
        ({"minLength": 10**18}, "x"),
        ({"multipleOf": 1e-300}, 1.5),
    ],
)
def test_many_violations_give_few_short_messages(schema: JsonObject, value: Json) -> None:
    found = JsonSchema(schema).misfits(value)
    assert len(found) <= 20
    assert sum(len(one.message) for one in found) < 10_000


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "(?=a)b"},
        {"pattern": "((\\w{100}){100}){100}"},
        {"pattern": "(" * 3000 + ")" * 3000},
        {"allOf": [{"pattern": f"a{number}"} for number in range(501)]},
        {"$ref": "#/nothing"},
        {"type": 5},
        [],
        "x",
        None,
    ],
)
def test_schemas_that_cannot_be_compiled_are_refused(schema: Json) -> None:
    assert faults_of(schema)
    with pytest.raises(JsonSchemaInvalid):
        JsonSchema(schema)


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: JsonObject = {}
    for _ in range(150):
        schema = {"properties": {"a": schema}}
    assert [fault.code for fault in faults_of(schema)] == ["schema-invalid"]


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, True, False])
def test_self_referencing_schemas_terminate(schema: Json) -> None:
    assert faults_of(schema) == []
    assert JsonSchema(schema).fits(1) is (schema is not False)


def test_violations_have_a_path() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
        "additionalProperties": False,
    }
    found = JsonSchema(schema).misfits({"a": [1, "2"], "b": 1, "c": 2})
    assert {one.path for one in found} == {("a", 1), ()}
    assert [one.unexpected for one in found if one.path == ()] == [("b", "c")]


def test_long_messages_are_cut() -> None:
    (misfit,) = JsonSchema({"type": "integer"}).misfits("x" * 100_000)
    assert len(misfit.message) <= 301


HOSTILE: dict[str, Callable[[], tuple[Json, Json]]] = {
    "drafts": lambda: (
        {"allOf": [{"$ref": DRAFTS[0]} for _ in range(5000)]},
        {"properties": {f"a{one}": {"type": "null"} for one in range(5000)}},
    ),
    "long texts": lambda: (
        {"items": {"allOf": [{"maxLength": 5} for _ in range(1000)]}},
        ["ü" * 100_000 for _ in range(10)],
    ),
    "patterns": lambda: ({"allOf": [{"pattern": f"x[a-z]+{one}$"} for one in range(400)]}, "xa" * 4_000_000),
    "long numbers": lambda: ({"items": {"multipleOf": 10**300}}, [10**4000 + one for one in range(16_000)]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_long_values_and_references_to_a_draft_are_bounded_too(name: str) -> None:
    schema, value = HOSTILE[name]()
    (misfit,) = JsonSchema(schema).misfits(value)
    assert "takes more than" in misfit.message


def test_a_value_may_be_required_to_be_a_schema() -> None:
    schema = JsonSchema({"properties": {"form": {"$ref": DRAFTS[0]}}})
    assert not schema.misfits({"form": {"properties": {"a": {"type": "string"}}}})
    (misfit,) = schema.misfits({"form": {"properties": {"a": {"type": 1}}}})
    assert misfit.path == ("form", "properties", "a", "type")


def nested_evaluation(levels: int, keyword: str, within: str) -> JsonObject:
    """Return a schema in which each level evaluates the value twice: by the keyword `within`, and for `keyword`."""
    found: Json = {"properties": {"a": True}, "prefixItems": [True]}
    for _ in range(levels):
        found = {within: [found] if within.endswith("Of") else found, keyword: False}
    return cast("JsonObject", found)


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
@pytest.mark.parametrize("within", ["allOf", "anyOf", "oneOf", "if"])
def test_nested_unevaluated_keywords_are_counted(keyword: str, within: str) -> None:
    value: Json = {"a": 1} if keyword == "unevaluatedProperties" else [1]
    assert JsonSchema(nested_evaluation(4, keyword, within)).fits(value)
    (misfit,) = JsonSchema(nested_evaluation(40, keyword, within)).misfits(value)
    assert str(APPLICATIONS_MAX) in misfit.message


def chain(length: int, **more: Json) -> JsonObject:
    """Return a schema in which each part refers to the next one."""
    parts: JsonObject = {f"a{level}": {"$ref": f"#/$defs/a{level + 1}"} for level in range(length)}
    return {"$defs": {**parts, f"a{length}": {"properties": {"a": True}}}, "$ref": "#/$defs/a0", **more}


def circle(length: int, **more: Json) -> JsonObject:
    parts: JsonObject = {f"a{level}": {"$ref": f"#/$defs/a{(level + 1) % length}"} for level in range(length)}
    return {"$defs": parts, "$ref": "#/$defs/a0", **more}


EXPENSIVE: Final[list[JsonObject]] = [
    {**doubling(30, "allOf"), "unevaluatedProperties": False},
    {**doubling(30, "anyOf"), "unevaluatedItems": False},
    chain(3000, unevaluatedProperties=False),
    circle(3000, unevaluatedProperties=False),
    chain(20_000),
    {"properties": {f"p{n}": {"$id": f"urn:{n}", "$ref": f"#/x{n}", f"x{n}": {}} for n in range(1000)}},
    {"properties": {f"p{n}": {"$id": f"urn:{n}", "$anchor": "n", "items": {"$ref": "#n"}} for n in range(1000)}},
]


@pytest.mark.parametrize("schema", EXPENSIVE)
def test_schemas_whose_compilation_is_expensive_are_refused_before_they_are_compiled(schema: JsonObject) -> None:
    """Compiling these took minutes, or overflowed the stack of the process."""
    began = time.process_time()
    assert faults_of(schema)
    with pytest.raises(JsonSchemaInvalid):
        JsonSchema(schema)
    assert time.process_time() - began < SECONDS_MAX


def test_unevaluated_keywords_beside_few_references_are_supported() -> None:
    schema: JsonObject = chain(20, unevaluatedProperties=False)
    assert faults_of(schema) == []
    assert JsonSchema(schema).fits({"a": 1})
    assert not JsonSchema(schema).fits({"a": 1, "b": 2})


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("name", ["id", "$id"])
@pytest.mark.parametrize("resource", ["", "x", "urn:x", "http://a/b", "./", "x#", "x#y", "?q"])
def test_references_that_an_id_leads_elsewhere_are_counted_in_every_resource(
    draft: str, name: str, resource: str
) -> None:
    """A decoy in the resource hid the expensive target, which the library found in another one."""
    schemas: list[JsonObject] = [
        {**doubling(40, "allOf"), "$ref": "#/x", "x": {name: resource, "$ref": "#/$defs/a0"}},
        {**doubling(40, "allOf"), "$ref": "#/x", "x": {name: resource, "$ref": "#/$defs/a0", "$defs": {"a0": {}}}},
        {
            "$ref": "#/x",
            "x": {name: resource, "$ref": "#/$defs/a0", "$defs": {"a0": {}}},
            "y": {**doubling(40, "allOf"), name: resource},
            "not": {"$ref": "#/y"},
        },
    ]
    for schema in schemas:
        with suppress(JsonSchemaInvalid):
            (misfit,) = JsonSchema({"$schema": draft, **schema}).misfits("x")
            assert str(APPLICATIONS_MAX) in misfit.message


@pytest.mark.parametrize("index", ["+1", "01", "0000000001", "-0", "1_0", "٣"])
def test_a_reference_with_an_unusual_index_is_refused(index: str) -> None:
    schema: JsonObject = {**doubling(40, "allOf"), "x": [True, {"$ref": "#/$defs/a0"}], "$ref": f"#/x/{index}"}
    with pytest.raises(JsonSchemaInvalid):
        JsonSchema(schema)
    assert faults_of(schema)


KEYS_AND_DIVISIONS: Final[list[tuple[JsonObject, Any]]] = [
    (
        {"patternProperties": {f"(a|ab){{1,100}}{n}": {} for n in range(100)}},
        {f"{'ab' * 50}{n}": n for n in range(9000)},
    ),
    ({"patternProperties": {f"(a|ab)+{n}": {} for n in range(400)}}, {f"{'ab' * 5000}{n}": n for n in range(500)}),
    ({"propertyNames": {"allOf": [{"pattern": f"(a|ab)+{n}"} for n in range(400)]}}, {"ab" * 500_000: 1}),
    ({"patternProperties": {f"^a{n}x": {} for n in range(499)}}, {f"k{n}": 1 for n in range(100_000)}),
    (
        {"allOf": [{"properties": {f"k{n}": {}}} for n in range(1000)], "patternProperties": {"a": {}}},
        {f"k{n}": 1 for n in range(20_000)},
    ),
    ({"items": {"multipleOf": 1e-300}}, [1e308] * 200_000),
]


@pytest.mark.parametrize(("schema", "value"), KEYS_AND_DIVISIONS)
def test_keys_and_divisions_are_counted(schema: JsonObject, value: Json) -> None:
    compared, began = JsonSchema(schema), time.process_time()
    (misfit,) = compared.misfits(value)
    assert time.process_time() - began < SECONDS_MAX
    assert str(APPLICATIONS_MAX) in misfit.message


@pytest.mark.parametrize("keyword", ["properties", "$defs", "anyOf"])
def test_a_schema_of_too_many_subschemas_is_refused_before_it_is_compiled(keyword: str) -> None:
    """Compiling 100 000 subschemas took more than 2 s, each time a value was validated."""
    size = SUBSCHEMAS_MAX - 10
    for count, is_refused in ((size, False), (2 * size, True)):
        inner: JsonObject = {f"k{n}": {"type": "string"} for n in range(count)}
        schema: JsonObject = {keyword: [*inner.values()] if keyword == "anyOf" else inner}
        messages = [problem.message for problem in faults_of(schema)]
        assert messages == ([f"the schema has more than {SUBSCHEMAS_MAX} subschemas"] if is_refused else [])
    with pytest.raises(JsonSchemaInvalid, match="subschemas"):
        JsonSchema(schema)
