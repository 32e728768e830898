"""Answers: JSON as the journal writes it (integers keep all their digits), encoded once."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from fastapi import Response

from pointsman.values import Json

_ENCODER = msgspec.json.Encoder()


class JsonReply(Response):
    """A JSON value."""

    def __init__(
        self,
        value: Json,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> None:
        super().__init__(_ENCODER.encode(value), status, headers, media_type)
