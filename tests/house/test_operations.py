"""Every operation of the server documents its purpose, parameters and answers, so that a client can be generated."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import jsonschema_rs
import pytest

from pointsman.definition.model.workflow import RESERVED_IDS
from pointsman.server.application import METHODS, openapi_document
from pointsman.server.problems import MEDIA_TYPE, STATUS_OF, status_of
from pointsman.server.schemas.answers import SAMPLES, sample_of
from pointsman.server.streaming.sse import MEDIA_TYPE as STREAM
from tests.house.test_errors import error_classes

DOCUMENT: Final[dict[str, Any]] = openapi_document()
OPERATIONS: Final = {
    f"{method.upper()} {path}": methods[method]
    for path, methods in DOCUMENT["paths"].items()
    for method in METHODS
    if method in methods
}
LINE: Final = re.compile(r"^(\w+): (.+)$", re.MULTILINE)
REFERENCE: Final = re.compile(r'"#/components/schemas/([^"]+)"')
each: Final = pytest.mark.parametrize("name", OPERATIONS)


@each
def test_an_operation_has_a_name_a_summary_a_description_and_a_tag_that_is_explained(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"]
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    assert operation["tags"][0] in tags, "describe the tag in server/application.py"
    assert operation["operationId"].isidentifier()


def test_no_two_operations_have_the_same_name() -> None:
    names = Counter(operation["operationId"] for operation in OPERATIONS.values())
    twice = [name for name, count in names.items() if count > 1]
    assert twice == [], "rename one of the route functions: their names are the `operationId`s"


@each
def test_a_parameter_is_described_and_bounded(name: str) -> None:
    wrong = [
        parameter["name"]
        for parameter in OPERATIONS[name].get("parameters", ())
        if not parameter.get("description") or not all(map(is_bounded, choices(parameter["schema"])))
    ]
    assert wrong == [], "give it a `description`, and `max_length`, or `ge` and `le`"


def choices(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from schema.get("anyOf", (schema,))


def is_bounded(schema: dict[str, Any]) -> bool:
    match schema.get("type"):
        case "string":
            return bool({"maxLength", "enum", "const", "pattern"} & schema.keys())
        case "integer" | "number":
            return {"minimum", "maximum"} <= schema.keys()
        case "array":
            return "maxItems" in schema
        case _:
            return True


def test_no_workflow_can_be_named_as_an_operation_beside_it_is() -> None:
    """It could be saved but never read: the operation would answer instead."""
    words = {
        path.removeprefix("/api/workflows/")
        for path, methods in DOCUMENT["paths"].items()
        if re.fullmatch(r"/api/workflows/\w+", path) and methods.keys() & DOCUMENT["paths"]["/api/workflows/{id}"]
    }
    assert words == {"executions", "operations", "schema"}
    assert words <= set(RESERVED_IDS)


@each
def test_every_operation_has_examples_of_request_and_response(name: str) -> None:
    operation = OPERATIONS[name]
    parts = [("body", operation.get("requestBody", {})), *operation["responses"].items()]
    bare = [
        f"{part} {media}"
        for part, said in parts
        for media, content in said.get("content", {}).items()
        if "example" not in content and not content.get("examples")
    ]
    assert bare == [], "give the shape `model_config = sample(…)`"
    assert all(said["description"] for said in operation["responses"].values())


@each
def test_every_example_matches_its_schema(name: str) -> None:
    operation = OPERATIONS[name]
    wrong = [
        f"{part} {media}: {why}"
        for part, said in (("body", operation.get("requestBody", {})), *operation["responses"].items())
        for media, content in said.get("content", {}).items()
        for example in examples_of(media, content)
        for why in faults(example, content["schema"])
    ]
    assert wrong == [], "correct the example: `sample(…)` of a body, `example(View, …)` of an answer"


@each
def test_json_body_is_not_described_as_a_string(name: str) -> None:
    """A generated client would send JSON in a JSON string, which no operation reads."""
    content = OPERATIONS[name].get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return
    assert content["schema"].get("type") != "string"
    assert not isinstance(content["example"], str)


@pytest.mark.parametrize("path", ["/api/workflows", "/api/workflows/{id}"])
def test_document_body_is_an_object_or_its_text(path: str) -> None:
    method = OPERATIONS[f"{'PUT' if '{' in path else 'POST'} {path}"]
    content = method["requestBody"]["content"]
    assert list(faults({"id": "hello"}, content["application/json"]["schema"])) == []
    assert list(faults({"id": "hello"}, content["application/yaml"]["schema"])) == []
    assert list(faults("id: hello", content["application/yaml"]["schema"])) == []


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_example_of_a_schema_is_valid(name: str) -> None:
    shape = DOCUMENT["components"]["schemas"][name]
    assert [why for example in shape.get("examples", ()) for why in faults(example, shape)] == []


def examples_of(media: str, content: dict[str, Any]) -> Iterator[Any]:
    shown = [content["example"]] if "example" in content else [one["value"] for one in content["examples"].values()]
    for example in shown:
        if media == STREAM and content["schema"]["type"] == "object":  # The schema is that of one event.
            yield from (dict(LINE.findall(event)) for event in example.strip().split("\n\n"))
        else:
            yield example


def faults(example: Any, schema: dict[str, Any]) -> Iterator[str]:
    """Yield the positions of errors, with descriptions."""
    for error in validator(json.dumps(schema)).iter_errors(example):
        yield f"{'/'.join(map(str, error.instance_path))}: {error.message}"


@cache
def validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a schema as text, with the shared schemas that it refers to. Refusals share theirs."""
    schemas: dict[str, Any] = DOCUMENT["components"]["schemas"]
    used: dict[str, Any] = {}
    texts = [schema]
    while texts:
        names = {name for name in REFERENCE.findall(texts.pop()) if name not in used}
        used |= {name: schemas[name] for name in names}
        texts += [json.dumps(schemas[name]) for name in names]
    return jsonschema_rs.Draft202012Validator({**json.loads(schema), "components": {"schemas": used}})


@each
def test_an_operation_announces_its_errors_as_problem_documents(name: str) -> None:
    operation = OPERATIONS[name]
    refusals = {status: said for status, said in operation["responses"].items() if int(status) >= 400}
    if operation.get("security"):
        assert refusals.keys() >= {"401", "403", "429"}
    assert ("422" in refusals) is bool(operation.get("parameters") or "requestBody" in operation)
    for status, said in refusals.items():
        if "$ref" in said:  # It is refused before routing, so the answer is the same for all operations.
            shared = DOCUMENT["components"]["responses"][said["$ref"].rpartition("/")[2]]
            assert said["description"] == shared["description"]
            assert MEDIA_TYPE in shared["content"]
            continue
        if operation["tags"] == ["openai"]:  # Its clients read errors in OpenAI's format.
            assert set(said["content"]["application/json"]["example"]["error"]) >= {"message", "type", "code"}
            continue
        problems = said["content"].get(MEDIA_TYPE)
        if problems is None:
            assert status == "503", "only readiness says it in its own words"
            continue
        assert problems["schema"] == {"$ref": "#/components/schemas/ProblemDocument"}
        assert {one["value"]["status"] for one in problems["examples"].values()} == {int(status)}


def test_the_sample_of_an_error_has_its_status() -> None:
    raised = {error.code: int(status_of(error.__new__(error))) for error in error_classes() if error.code in SAMPLES}
    known = {code: int(status) for code, status in STATUS_OF.items() if code in SAMPLES} | raised
    assert {code: status for code, status in known.items() if sample_of(code)["status"] != status} == {}
