"""Compares answers of a server with the OpenAPI document: every answer that a test receives is checked."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Final

import httpx2
from jsonschema import Draft202012Validator

from tests.server.documented_operations import DOCUMENT, OPERATIONS, Operation

OPEN: Final = {"SessionRecords", "EventView"}
"""Views with further members, which a workflow or the kind of an event determines."""
UNDESCRIBED: Final = (405, 500)
"""Statuses of methods that do not exist, and of bugs."""
SENT_AS_JSON: Final = ("application/json", "application/problem+json")


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """The document without undescribed members in answers."""
    found = json.loads(json.dumps(document))
    for name, schema in found["components"]["schemas"].items():
        if schema.get("additionalProperties") is True and name not in OPEN:
            schema["additionalProperties"] = False
    return found


ANSWERS: Final[dict[str, Any]] = closed(DOCUMENT)


@cache
def pattern_of(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]*\})", path)
    return re.compile("".join("[^/]+" if part.startswith("{") else re.escape(part) for part in parts))


def operation_of(method: str, path: str) -> Operation | None:
    """The operation that answers, the one with the fewest parameters if several fit."""
    fitting = [one for one in OPERATIONS if one.method == method and pattern_of(one.path).fullmatch(path)]
    return min(fitting, key=lambda one: one.path.count("{"), default=None)


@cache
def validator_for(method: str, path: str, status: str, media: str) -> Any:
    """The validator of an answer (a `Draft202012Validator`); None: the document does not describe the answer."""
    described = ANSWERS["paths"][path][method.lower()]["responses"].get(status, {})
    schema = described.get("content", {}).get(media, {}).get("schema")
    return None if schema is None else Draft202012Validator({**schema, "components": ANSWERS["components"]})


def faults(method: str, path: str, status: int, media: str, body: bytes) -> list[str]:
    """Return the differences between an answer and the document."""
    operation = operation_of(method, path)
    if operation is None or media not in SENT_AS_JSON or status in UNDESCRIBED:
        return []
    check = validator_for(method, operation.path, str(status), media)
    if check is None:
        described = operation.said["responses"].get(str(status), {})
        return [] if described else [f"{operation.name}: {status} is not described"]
    return [
        f"{operation.name} {status}: {one.json_path}: {one.message[:300]}"
        for one in check.iter_errors(json.loads(body))
    ]


async def check_answer(reply: httpx2.Response) -> None:
    """Hook of a client: fail if an answer is not as the document describes it."""
    media = reply.headers.get("content-type", "").partition(";")[0]
    if media in SENT_AS_JSON and reply.request.method != "HEAD":
        found = faults(reply.request.method, reply.request.url.path, reply.status_code, media, await reply.aread())
        assert not found, found
