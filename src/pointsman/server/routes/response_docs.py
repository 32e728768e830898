"""Documented responses of operations: the successful one, and the errors that callers should expect.

    responses=answers(ExecutionAnswer, "unknown-execution", "wrong-status", body=True)

An error is given by its code, which determines the status, or by a status alone. Errors of every operation are added:
missing key, missing role, invalid parameters, too many requests; with `body` also invalid JSON, too large, wrong type.
`openapi_document` removes errors that an operation without parameters or JSON body cannot return.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from pydantic import BaseModel

from pointsman.server.problems import MEDIA_TYPE
from pointsman.server.schemas.error_examples import SAMPLES, USUAL, sample_of
from pointsman.server.schemas.requests import ProblemDocument
from pointsman.server.schemas.views import reference_to
from pointsman.values import Json, JsonObject

Described: TypeAlias = dict[int | str, dict[str, Any]]

CODE: Final = re.compile(r"`([a-z0-9-]+)`")
_ANYBODY: Final = (403, 422)
"""Wrong host or origin (403), invalid parameters (422)."""
_EVERYWHERE: Final = (*_ANYBODY, 401, 429)
"""Also missing key (401), too many requests (429)."""
_BAD_BODY: Final = (400, 413, 415)


def answers(
    shape: type[Any], *errors: int | str, status: int = 200, body: bool = False, asks: bool = True
) -> Described:
    """Return the responses of an operation. `shape`: the view or model of its answer. `body`: it reads a JSON body.
    `asks`: it requires a key."""
    return answer(shape, HTTPStatus(status).phrase, status=status) | refusals(*errors, body=body, asks=asks)


def answer(shape: type[Any], description: str, *, status: int = 200) -> Described:
    """Return one response: the view or model of an answer."""
    described: dict[str, Any] = {"description": description}
    if issubclass(shape, BaseModel):
        described["model"] = shape
    else:
        described["content"] = {"application/json": {"schema": reference_to(shape)}}
    return {status: described}


def refusals(*errors: int | str, body: bool = False, asks: bool = True) -> Described:
    """Return the error responses of an operation; `body` and `asks` as in `answers`."""
    usual = _EVERYWHERE if asks else _ANYBODY
    codes: defaultdict[int, list[str]] = defaultdict(list)
    if "workflow-invalid" in errors:  # Such an operation reads a document.
        errors = (*errors, "document-too-expensive")
    for one in errors:
        if isinstance(one, str):
            codes[SAMPLES[one][0]].append(one)
    numbers = {one for one in errors if isinstance(one, int)}
    for status in {*usual, *numbers, *(_BAD_BODY if body else ())}:
        if USUAL[status] not in codes[status] and (status in usual or not codes[status]):
            codes[status].append(USUAL[status])
    return {status: _refusal(status, codes[status]) for status in sorted(codes)}


def with_code(described: dict[str, Any], status: int, code: str) -> dict[str, Any]:
    """Add an error code to an error response."""
    made = _refusal(status, [*{*CODE.findall(str(described["description"])), code}])
    return {**made, "content": {**described.get("content", {}), **made["content"]}}


def refusal_of(code: str) -> dict[str, Any]:
    """Return the error response of one code."""
    return _refusal(SAMPLES[code][0], [code])


def text_answer(media_type: str, example: str, *, status: int = 200) -> Described:
    """Return a text response."""
    content = {media_type: {"schema": {"type": "string"}, "example": example}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content}}


def bytes_answer(media_type: str = "application/octet-stream", *, status: int = 200) -> Described:
    """Return a binary response."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}, "example": "(the file)"}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content}}


def raw_body(content: Mapping[str, tuple[JsonObject, Json]]) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation that parses its body itself: by media type a schema and an example."""
    described = {media: {"schema": schema, "example": example} for media, (schema, example) in content.items()}
    return {"requestBody": {"required": True, "content": described}}


def _refusal(status: int, codes: list[str]) -> dict[str, Any]:
    named = ", ".join(f"`{code}`" for code in sorted(codes))
    return {
        "description": f"{HTTPStatus(status).phrase}: {named}",
        "content": {
            MEDIA_TYPE: {
                "schema": {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"},
                "examples": {code: {"value": sample_of(code)} for code in sorted(codes)},
            }
        },
    }
