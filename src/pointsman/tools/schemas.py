"""JSON Schema checks whose messages tell a model what to correct."""

from __future__ import annotations

from typing import Final

from pointsman.definition.json_schema import JsonSchema, SchemaWrong
from pointsman.values import Json, JsonObject

__all__ = ["Checker", "SchemaWrong"]

_SHOWN_MAX: Final = 5
"""Maximum number of problems in one message."""


class Checker:
    """A compiled JSON Schema. The constructor raises `SchemaWrong` for an invalid schema."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = JsonSchema(schema)

    def problems(self, value: Json) -> str:
        """Return the problems as text; empty if the value is valid."""
        found = self._schema.misfits(value, most=_SHOWN_MAX)
        return "; ".join(f"at {'/'.join(map(str, one.path)) or 'the top'}: {one.message}" for one in found)
