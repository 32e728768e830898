"""python -m tests.docs.http_reference: write docs/reference/http.md from the OpenAPI document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pointsman.server.application import openapi_document

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
HEAD: Final = """# HTTP API

Every operation of the server, generated from its OpenAPI document. A running server shows the same at `/api/docs`,
with a command to try each operation, and for programs at `/api/openapi.json`. *Errors* are [codes](errors.md) by
status; the lowest role for each operation is under [access by operation](access.md).
[Serve a team](../how-to/server.md) has examples.
"""
SHARED: Final = frozenset({"401", "408", "414", "429", "431"})
"""Statuses of the server itself, which any operation can have; they are described once."""


def page() -> str:
    """Return the page: a section for each tag, and within it the operations by path."""
    document: dict[str, Any] = openapi_document()
    operations = [
        (path, method.upper(), operation)
        for path, methods in sorted(document["paths"].items())
        for method, operation in methods.items()
    ]
    shared = shared_errors(operation for _, _, operation in operations)
    lines = [HEAD, "Any operation can also answer:\n", *(f"- {status} {text}" for status, text in shared.items()), ""]
    for tag in document["tags"]:
        lines += [f"## {tag['name'].capitalize()}\n", f"{tag['description']}\n"]
        for path, method, operation in operations:
            if tag["name"] in operation["tags"]:
                lines += [*section(document, path, method, operation), *answers_of(operation, shared), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def shared_errors(operations: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the most common description of each status that any operation can have."""
    counts: dict[str, Counter[str]] = {status: Counter() for status in SHARED}
    for operation in operations:
        for status in SHARED & operation["responses"].keys():
            counts[status][operation["responses"][status]["description"]] += 1
    return {status: counts[status].most_common(1)[0][0] for status in sorted(SHARED)}


def section(document: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> list[str]:
    """Return one operation: what it does, its parameters and its body."""
    lines = [f"### `{method} {path}`\n", f"**{operation['summary']}.** {operation['description'].strip()}\n"]
    if parameters := operation.get("parameters"):
        lines += ["| parameter | in | |", "|---|---|---|"]
        lines += [
            f"| `{one['name']}` | {one['in']}{', required' if one.get('required') else ''} "
            f"| {in_cell(one.get('description', ''))} |"
            for one in parameters
        ]
        lines.append("")
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines += body(document, kind, content)
    return lines


def answers_of(operation: dict[str, Any], shared: dict[str, str]) -> list[str]:
    """Return the statuses of an operation, without those that any operation has."""
    answers = {
        status: str(answer["description"])
        for status, answer in operation["responses"].items()
        if shared.get(status) != answer["description"]
    }
    success = " or ".join(f"{status} {text.rstrip('.')}" for status, text in answers.items() if status < "400")
    errors = [f"{status} {text.partition(': ')[2] or text}" for status, text in answers.items() if status >= "400"]
    return [f"Answer: {success}. Errors: {' · '.join(errors)}." if errors else f"Answer: {success}."]


def body(document: dict[str, Any], kind: str, content: dict[str, Any]) -> list[str]:
    """Return the fields of a body and its example."""
    schema = content.get("schema", {})
    references = [one["$ref"] for one in (schema, *schema.get("anyOf", ())) if "$ref" in one]
    for reference in references:
        schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    lines = [f"Body: `{kind}`\n"]
    required = schema.get("required", ())
    if fields := schema.get("properties"):
        lines += ["| field | |", "|---|---|"]
        lines += [
            f"| `{name}`{', required' if name in required else ''} | {in_cell(field.get('description', ''))} |"
            for name, field in fields.items()
        ]
        lines.append("")
    if kind == "application/json" and content.get("example"):
        lines += ["```json", json.dumps(content["example"], ensure_ascii=False, indent=2), "```", ""]
    return lines


def in_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
