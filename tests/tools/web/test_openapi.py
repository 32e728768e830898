"""OpenAPI documents become tools with checked arguments; unsupported parts are reported; hostile documents are
refused."""

from __future__ import annotations

import msgspec
import pytest

from pointsman.definition.json_schema import JsonSchema
from pointsman.tools.http.openapi import OpenApiUnreadable, read_openapi
from pointsman.tools.http.tool import HttpToolDescription
from pointsman.values import Json, JsonObject

PETS: JsonObject = {
    "openapi": "3.0.3",
    "servers": [{"url": "https://{region}.example.org/v1/", "variables": {"region": {"default": "eu"}}}],
    "security": [{"api_key": []}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "showPet",
                "summary": "One pet.",
                "parameters": [
                    {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}},
                ],
            },
            "delete": {"security": [{}]},
        },
        "/pets": {
            "post": {
                "operationId": "add pet",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
                },
                "security": [{"login": []}],
            },
            "put": {"operationId": "upload", "requestBody": {"content": {"multipart/form-data": {}}}},
        },
    },
    "components": {
        "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}},
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "nullable": True},
                    "age": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
                    "parent": {"$ref": "#/components/schemas/Pet"},
                },
            }
        },
        "securitySchemes": {
            "api_key": {"type": "apiKey", "in": "query", "name": "key"},
            "login": {"type": "http", "scheme": "bearer"},
        },
    },
}


def checker(described: JsonObject) -> JsonSchema:
    schema = HttpToolDescription.model_validate(described).schema_of_arguments
    return JsonSchema(schema)


def test_each_operation_becomes_a_tool() -> None:
    found = read_openapi(PETS)
    assert [*found.tools] == ["showPet", "delete_pets_id", "add_pet"]
    show = found.tools["showPet"]
    assert show["url"] == "https://eu.example.org/v1/pets/{id}"
    assert show["query"] == {"fields": "{fields}", "key": "{secret.API_KEY}"}
    assert show["headers"] == {"X-Trace": "{X-Trace}"}
    assert found.tools["add_pet"]["headers"] == {
        "Content-Type": "application/json",
        "Authorization": "Bearer {secret.LOGIN}",
    }
    assert "query" not in found.tools["delete_pets_id"]
    (loss,) = found.losses
    assert loss == "PUT /pets: omitted: its body is multipart/form-data, not JSON or text"


def test_arguments_are_checked_against_the_document() -> None:
    tools = read_openapi(PETS).tools
    show, add = checker(tools["showPet"]), checker(tools["add_pet"])
    assert show.correction({"id": 1, "fields": ["a"]}) == ""
    assert "0 is less than" in show.correction({"id": 0})
    assert "id" in show.correction({})
    assert "extra" in show.correction({"id": 1, "extra": 2})
    assert add.correction({"body": {"name": None, "parent": {"name": "x", "age": 0.5}}}) == ""
    assert "body/parent/age" in add.correction({"body": {"name": "x", "parent": {"name": "x", "age": 0}}})
    assert "body/parent/parent" in add.correction({"body": {"name": "x", "parent": {"name": "x", "parent": {}}}})


@pytest.mark.parametrize(
    ("servers", "source", "given", "url"),
    [
        ([{"url": "/api"}], "https://example.org/docs/openapi.json", "", "https://example.org/api/a"),
        ([], "https://example.org/docs/openapi.json", "", "https://example.org/a"),
        ([{"url": "https://one.example/v1"}], "", "https://other.example/v2/", "https://other.example/v2/a"),
        ([{"url": "https://one.example/v1"}], "", "", "https://one.example/v1/a"),
    ],
)
def test_the_server_address_is_read_from_the_document(servers: Json, source: str, given: str, url: str) -> None:
    document: JsonObject = {"openapi": "3.1.0", "servers": servers, "paths": {"/a": {"get": {}}}}
    assert read_openapi(document, source=source, server=given).tools["get_a"]["url"] == url


def around(**more: Json) -> JsonObject:
    return {"openapi": "3.1.0", "servers": [{"url": "https://example.org"}], **more}


def test_equal_names_are_numbered_and_long_ones_are_truncated() -> None:
    paths: JsonObject = {f"/{letter}": {"get": {"operationId": "same/" + "x" * 80}} for letter in "abc"}
    names = [*read_openapi(around(paths=paths), prefix="pet_").tools]
    assert len(set(names)) == 3
    assert all(name.startswith("pet_same_xx") and len(name) <= 64 for name in names)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (None, "not an OpenAPI"),
        ([], "not an OpenAPI"),
        ({"swagger": "2.0", "paths": {}}, "not an OpenAPI"),
        ({"openapi": "3.0.0"}, "no operation"),
        ({"openapi": "3.0.0", "paths": {"/a": {"get": {}}}}, "the address of its server"),
        (around(paths={"/a": {"$ref": "#/paths/~1a"}}), "refers to itself"),
        (around(paths={"/a": {"$ref": "other.yaml#/a"}}), "refers to another document"),
        (around(paths={"/a": {"get": {"parameters": [{"$ref": "#/components/nowhere"}]}}}), "refers to nothing"),
        (around(paths={"/a": {"get": {"parameters": [{"name": "s", "in": "cookie", "required": True}]}}}), "cookie"),
        (around(servers=[{"url": "file:///etc"}], paths={"/a": {"get": {}}}), "the address of its server"),
    ],
)
def test_an_unreadable_openapi_document_is_reported(document: Json, why: str) -> None:
    with pytest.raises(OpenApiUnreadable, match=why):
        read_openapi(document)


def test_mutually_recursive_schemas_are_resolved() -> None:
    schemas: JsonObject = {
        f"S{n}": {"type": "object", "properties": {f"p{m}": {"$ref": f"#/components/schemas/S{m}"} for m in range(60)}}
        for n in range(60)
    }
    schema: JsonObject = {"$ref": "#/components/schemas/S0"}
    body: JsonObject = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    found = read_openapi(around(paths={"/a": {"post": body}}, components={"schemas": schemas}))
    tool = found.tools["post_a"]
    assert len(msgspec.json.encode(tool)) < 400_000
    assert checker(tool).correction({"body": {"p1": {"p2": {"p3": {}}}}}) == ""
    assert "p2" in checker(tool).correction({"body": {"p1": {"p2": 7}}})


def test_an_endlessly_nested_document_is_refused() -> None:
    schema: JsonObject = {}
    for _ in range(5000):
        schema = {"not": schema}
    paths: JsonObject = {"/a": {"get": {"parameters": [{"name": "q", "in": "query", "schema": schema}]}}}
    with pytest.raises(OpenApiUnreadable, match="too deep"):
        read_openapi(around(paths=paths))


def test_the_number_of_imported_tools_is_limited() -> None:
    paths: JsonObject = {f"/{n}": {"get": {}} for n in range(1200)}
    found = read_openapi(around(paths=paths))
    assert len(found.tools) == 1000
    assert found.losses == ["only the first 1000 operations were read"]
