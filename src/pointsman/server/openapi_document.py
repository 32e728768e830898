"""The OpenAPI document: what the framework reads off the routes, with short names for operations, the shape of errors,
and an example for whatever is taken or given. Examples stand at the shapes (`examples=[…]` of a model); from there they
come to the operations by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from pointsman.server.middleware.security import READING
from pointsman.server.null_examples import unmarked
from pointsman.server.required_roles import described
from pointsman.server.routes.openai_errors import in_chat
from pointsman.server.routes.response_docs import refusal_of, refusals, with_code
from pointsman.server.schemas.requests import ProblemDocument

METHODS: Final = ("get", "put", "post", "delete", "patch")
TAGS: Final = {
    "workflows": "Saved workflows: written, checked, compared, run.",
    "executions": "What runs, waits or has ended, and what people do to it.",
    "files": "Files that executions are given and keep, and executions as files.",
    "sessions": "Conversations.",
    "agents": "Agents that are described once, for many workflows.",
    "tools": "Tools and models.",
    "memory": "What is remembered of whom.",
    "triggers": "What starts executions by itself.",
    "notifications": "Who is told of what, outside.",
    "people": "What waits for people.",
    "pipeline": "A command in, a document out.",
    "access": "Who is let in, and who sees what.",
    "openai": "Workflows as models, as clients of OpenAI speak and read errors.",
    "operations": "The server itself.",
}
BEFORE: Final[dict[int, str]] = {
    400: "host-invalid",
    403: "origin-refused",
    408: "request-too-slow",
    414: "address-too-long",
    431: "head-too-large",
    503: "too-many-connections",
}
"""Refusals of every operation, before it is found: by status, their codes."""
Described = dict[str, Any]  # A part of the document: the type is recursive, and FastAPI's own is no better.


def operation_id(route: APIRoute) -> str:
    """`tag_verb`, as generated clients call it."""
    tag = str(route.tags[0]) if route.tags else "api"
    return f"{tag}_{route.name.strip('_')}"


def document_of(api: FastAPI) -> Described:
    """Raises nothing; what an operation lacks, a test tells."""
    made = get_openapi(
        title=api.title,
        version=api.version,
        description=api.description,
        routes=api.routes,
        license_info=api.license_info,
        tags=[{"name": name, "description": told} for name, told in TAGS.items()],
        servers=[{"url": "/", "description": "This server."}],
    )
    schemas = cast("dict[str, Described]", made.setdefault("components", {}).setdefault("schemas", {}))
    schemas.update(_problem_shape())
    made["components"]["responses"] = {code: refusal_of(code) for code in BEFORE.values()}
    made = cast("Described", unmarked(made))
    schemas = cast("dict[str, Described]", made["components"]["schemas"])
    for route in described(api.state.routers):
        for method in route.methods or ():
            _announce(made["paths"][route.path_format][method.lower()], route, method)
    for operation in operations_of(made):
        for content in _contents(operation):
            _exemplify(content, schemas)
    return made


def operations_of(document: Described) -> Iterator[Described]:
    """Every operation, in the order of the document."""
    for methods in cast("dict[str, dict[str, Described]]", document["paths"]).values():
        yield from (methods[method] for method in METHODS if method in methods)


def _announce(operation: Described, route: APIRoute, method: str) -> None:
    """Its refusals: also those of the gate before it, and none that cannot be."""
    for parameter in operation.get("parameters", ()):
        _drop_null(parameter["schema"])
    said = cast("dict[str, Described]", operation["responses"])
    for status, code in BEFORE.items():
        known = said.get(str(status))
        if known is None and status not in (400, 403):
            told = refusal_of(code)["description"]
            said[str(status)] = {"$ref": f"#/components/responses/{code}", "description": told}
            continue
        announced: Described = {str(status): with_code(known or refusals(status)[status], status, code)}
        said |= cast("Described", unmarked(in_chat(announced) if "openai" in route.tags else announced))
    if method not in READING:
        said.setdefault("413", cast("Described", unmarked(refusals(413)[413])))
    if not operation.get("parameters") and "requestBody" not in operation:
        said.pop("422", None)
    if route.body_field is None:  # It reads what is sent as it comes, or nothing.
        said.pop("415", None)
    operation["responses"] = dict(sorted(said.items()))


def _drop_null(schema: Described) -> None:
    """A parameter is there or is not: it is never null."""
    options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) == 1:
        del schema["anyOf"]
        schema.update(options[0])
    elif options:
        schema["anyOf"] = options


def _problem_shape() -> dict[str, Described]:
    made = ProblemDocument.model_json_schema(by_alias=True, ref_template="#/components/schemas/{model}")
    inner = cast("dict[str, Described]", made.pop("$defs", {}))
    return {**inner, ProblemDocument.__name__: made}


def _contents(operation: Described) -> Iterator[Described]:
    """What an operation takes and gives, by type."""
    for part in (operation.get("requestBody", {}), *operation["responses"].values()):
        yield from cast("dict[str, Described]", cast("Described", part).get("content", {})).values()


def _exemplify(content: Described, schemas: dict[str, Described]) -> None:
    """Where nothing is shown, what its shape shows."""
    if "example" in content or "examples" in content:
        return
    schema: Described = content["schema"]
    options: list[Described] = [schema, *schema.get("anyOf", ())]
    for option in options:
        named = schemas.get(str(option.get("$ref", "")).rpartition("/")[2])
        shown = (named or option).get("examples")
        if shown:
            content["example"] = shown[0]
            return
