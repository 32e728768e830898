"""Errors in the format of OpenAI, for all paths under `/v1`, including unknown ones."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pointsman.errors import sentences
from pointsman.server import problems
from pointsman.server.json_responses import JsonReply
from pointsman.server.null_examples import marked
from pointsman.server.routes.response_docs import Described
from pointsman.server.streaming.sse import MEDIA_TYPE
from pointsman.values import JsonObject

TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
DOOR: Final = "v1"
"""First path segment of these operations."""
OF_THE_BODY: Final = frozenset({"content-type", "content-length"})
"""Headers that describe the replaced body, and are not kept."""
SHAPE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "additionalProperties": False,
            "properties": {
                "message": {"type": "string"},
                "type": {
                    "enum": [
                        "authentication_error",
                        "invalid_request_error",
                        "permission_error",
                        "rate_limit_error",
                        "server_error",
                    ]
                },
                "param": {"type": "null"},
                "code": {"type": "string"},
            },
        }
    },
}
EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["data"],
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}
"""Schema of an event: `data` is JSON; after the last chunk of a chat completion it is `[DONE]`."""


def error_told(status: int, code: str, detail: str, hint: str) -> JsonObject:
    """Return the body of an error."""
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": sentences(detail, hint), "type": kind, "param": None, "code": code}}


def in_chat(described: Described) -> Described:
    """Return documented responses with errors in the format of OpenAI."""
    return {status: _in_chat(int(status), one) for status, one in described.items()}


def also_streamed(described: Described, example: str) -> Described:
    """Add an event stream to the documented response of status 200."""
    content = {MEDIA_TYPE: {"schema": EVENT, "example": example}}
    return described | {200: {**described[200], "content": content}}


def _in_chat(status: int, one: dict[str, Any]) -> dict[str, Any]:
    if status < HTTPStatus.BAD_REQUEST:
        return one
    example = marked(error_told(status, "a-code", "What is wrong.", "What to do next."))
    content = {"application/json": {"schema": SHAPE, "example": example}}
    return {"description": one["description"], "content": content}


class InTheirWords:
    """ASGI middleware that converts every problem document under `/v1` to an error of OpenAI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or str(scope["path"]).split("/")[1:2] != [DOOR]:
            await self._app(scope, receive, send)
            return
        begun: Message | None = None
        said = b""

        async def retold(message: Message) -> None:
            """Collect a problem document until it is complete, then convert it; pass on all other messages."""
            nonlocal begun, said
            if message["type"] == "http.response.start" and _is_problem(message):
                begun = message
            elif begun is None:
                await send(message)
            else:
                said += message.get("body", b"")
                if not message.get("more_body"):
                    await in_their_words(int(begun["status"]), Headers(raw=begun["headers"]), said)(
                        scope, receive, send
                    )

        await self._app(scope, receive, retold)


def in_their_words(status: int, headers: Headers, problem: bytes) -> JsonReply:
    """Convert a problem document to an error of OpenAI."""
    said = msgspec.json.decode(problem)
    kept = {name: value for name, value in headers.items() if name not in OF_THE_BODY}
    if status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        kept["x-should-retry"] = "false"  # Otherwise the clients of OpenAI retry twice.
    told = error_told(status, said["code"], said["detail"], said.get("hint", ""))
    return JsonReply(told, status=status, headers=kept)


def _is_problem(begun: Message) -> bool:
    return Headers(raw=begun["headers"]).get("content-type", "") == problems.MEDIA_TYPE
