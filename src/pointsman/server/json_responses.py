"""JSON responses: encoded once, like the journal (integers keep all digits)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from fastapi import Response

from pointsman.values import Json, JsonView

_ENCODER = msgspec.json.Encoder()


class JsonReply(Response):
    """Response with a JSON value."""

    def __init__(
        self,
        value: Json | JsonView,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> None:
        super().__init__(_ENCODER.encode(value), status, headers, media_type)
