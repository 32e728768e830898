"""`python -m tests.web.types`: generate the types of the web app's requests and answers from the server's OpenAPI
document.

It also writes the requests that the server accepts; the fake server of the component tests checks the app's requests
against them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, cast

from pointsman.server.application import openapi_document
from pointsman.values import Json

WEB: Final = Path(__file__).parents[2] / "web"
TYPES: Final = WEB / "src" / "api" / "schema.d.ts"
REQUESTS: Final = WEB / "src" / "testing" / "requests.json"
MAKER: Final = WEB / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
UNTYPED: Final = frozenset({"example", "examples", "title"})
"""Keywords that do not affect a type."""
RULES: Final = frozenset({"allOf", "anyOf", "not", "oneOf"})
"""Keywords beside the fields of an object that restrict combinations: TypeScript makes no useful type of them."""


def made_types() -> str:
    """Return the expected content of `TYPES`. Needs Node and the packages of the app."""
    document = without_failures(openapi_document())
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "openapi.json", Path(folder) / "schema.d.ts"
        source.write_text(json.dumps(lean(document), sort_keys=True), "utf-8")
        subprocess.run(
            ["node", MAKER, source, "-o", made, "--alphabetize"], check=True, capture_output=True, timeout=120
        )
        return made.read_text("utf-8")


def made_requests() -> str:
    """Return the expected content of `REQUESTS`: names of query parameters and the schema of a JSON body, by path and
    method."""
    document = lean(without_failures(openapi_document()))
    assert isinstance(document, dict)
    paths: Any = document["paths"]
    schemas: Any = cast("Any", document["components"])["schemas"]
    described = {
        path: {method: request_of(operation) for method, operation in operations.items()}
        for path, operations in paths.items()
    }
    needed: dict[str, Any] = {}
    wanted = referred(described)
    while missing := sorted(wanted - needed.keys()):
        needed |= {name: schemas[name] for name in missing}
        wanted = referred(needed)
    return json.dumps({"paths": described, "components": needed}, indent=1, sort_keys=True) + "\n"


def request_of(operation: Any) -> dict[str, Any]:
    query = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    content = operation.get("requestBody", {}).get("content", {})
    return {"query": query, "body": content.get("application/json", {}).get("schema")}


def referred(value: Any) -> set[str]:
    """Return the names of the schemas that it refers to."""
    return set(re.findall(r'"#/components/schemas/([^"/]+)"', json.dumps(value)))


def without_failures(document: dict[str, Json]) -> dict[str, Json]:
    """Remove failures: each is the same problem document."""
    paths = document["paths"]
    assert isinstance(paths, dict)
    for operations in paths.values():
        assert isinstance(operations, dict)
        for operation in operations.values():
            assert isinstance(operation, dict)
            answers = operation["responses"]
            assert isinstance(answers, dict)
            operation["responses"] = {status: told for status, told in answers.items() if status < "400"}
    return document


def lean(value: Json, *, are_names: bool = False) -> Json:
    """Remove everything that does not affect a type. `are_names`: the keys here are names of properties, not
    keywords."""
    if isinstance(value, list):
        return [lean(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: lean(told, are_names=name in ("properties", "schemas", "paths") and not are_names)
        for name, told in value.items()
        if are_names or not (name in UNTYPED or (name in RULES and "properties" in value))
    }


def main() -> None:
    for file, made in ((TYPES, made_types()), (REQUESTS, made_requests())):
        file.write_text(made, "utf-8")
        sys.stdout.write(f"{file.relative_to(WEB.parent)} is written.\n")


if __name__ == "__main__":
    main()
