"""How operations describe their answers: the usual one, and the errors that callers should expect.

    responses=answers(ExecutionAnswer, "unknown-execution", "wrong-status", body=True)

An error is named by its code, which says its status; or by a status alone. What every operation may answer (no key, not
the role, parameters that are none, too often; with `body`: no JSON, too large, of another type) is there by itself.
What an operation cannot answer, as it takes no parameters or reads no JSON, the document leaves out again.
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
from pointsman.values import Json, JsonObject

Described: TypeAlias = dict[int | str, dict[str, Any]]

CODE: Final = re.compile(r"`([a-z0-9-]+)`")
_ANYBODY: Final = (403, 422)
"""By another name, with parameters that are none."""
_EVERYWHERE: Final = (*_ANYBODY, 401, 429)
"""And without a key, too often."""
_BAD_BODY: Final = (400, 413, 415)


def answers(
    shape: type[BaseModel], *errors: int | str, status: int = 200, body: bool = False, asks: bool = True
) -> Described:
    """The answers of an operation. `body`: it reads one. `asks`: for a key."""
    found: Described = {status: {"model": shape, "description": HTTPStatus(status).phrase}}
    return found | refusals(*errors, body=body, asks=asks)


def refusals(*errors: int | str, body: bool = False, asks: bool = True) -> Described:
    """The errors of an operation."""
    usual = _EVERYWHERE if asks else _ANYBODY
    codes: defaultdict[int, list[str]] = defaultdict(list)
    if "workflow-invalid" in errors:  # What may be found invalid is read.
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
    """The refusal of a status as described, with one more code."""
    made = _refusal(status, [*{*CODE.findall(str(described["description"])), code}])
    return {**made, "content": {**described.get("content", {}), **made["content"]}}


def refusal_of(code: str) -> dict[str, Any]:
    """The refusal of one code."""
    return _refusal(SAMPLES[code][0], [code])


def text_answer(media_type: str, example: str, *, status: int = 200) -> Described:
    """An answer that is no JSON."""
    content = {media_type: {"schema": {"type": "string"}, "example": example}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content}}


def bytes_answer(media_type: str = "application/octet-stream", *, status: int = 200) -> Described:
    """An answer that is a file."""
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
