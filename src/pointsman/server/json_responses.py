"""JSON responses: encoded once, like the journal (integers keep all digits)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from fastapi import Response
from starlette.types import Receive, Scope, Send

from pointsman.server.middleware.audit import note_answer
from pointsman.values import Json, JsonView

_ENCODER = msgspec.json.Encoder()
ERRORS: Final = 400


class JsonReply(Response):
    """Response with a JSON value; reports successful answers to the audit middleware."""

    def __init__(
        self,
        value: Json | JsonView,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> None:
        super().__init__(_ENCODER.encode(value), status, headers, media_type)
        self._value = value

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.status_code < ERRORS:
            note_answer(scope, self._value)
        await super().__call__(scope, receive, send)
