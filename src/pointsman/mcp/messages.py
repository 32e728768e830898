"""JSON-RPC messages of MCP clients, checked before the SDK reads them.

The SDK decodes without limits, takes the last of two equal keys, and ignores a request whose `id` it cannot read, so
that its sender waits for an answer until it gives up.
"""

from __future__ import annotations

import json
from typing import cast

from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)

from pointsman.json_meter import LESS, DuplicateKey, excess_of, unique_object
from pointsman.values import Json


def error_of(data: bytes) -> JSONRPCError | None:
    """Return the error that answers what a client sent; None: it is a message."""
    if excess := excess_of(data):
        return invalid(f"the message {excess}. {LESS}")
    try:
        value = cast("Json", json.loads(data, object_pairs_hook=unique_object))
    except DuplicateKey as why:
        return invalid(f"{why}. Keep one of them.")
    except ValueError:
        text = "this is not JSON. A message is one JSON object, on standard input in one line."
        return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message=text))
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        message = None
    if message is not None and not (isinstance(message, JSONRPCNotification) and _has_id(value)):
        return None
    about = value.get("id") if isinstance(value, dict) else None
    if isinstance(about, bool) or not isinstance(about, int | str) or not _is_encodable(about):
        about = None
    return invalid(
        "this is not a JSON-RPC 2.0 message. A request has `method`, and an `id` that is a text or an integer.", about
    )


def invalid(message: str, about: int | str | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=about, error=ErrorData(code=INVALID_REQUEST, message=message))


def _has_id(value: Json) -> bool:
    return isinstance(value, dict) and "id" in value


def _is_encodable(about: int | str) -> bool:
    """Return whether an id can be sent back: a text with a lone surrogate cannot be encoded."""
    return isinstance(about, int) or about.encode(errors="replace").decode() == about
