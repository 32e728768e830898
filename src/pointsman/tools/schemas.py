"""JSON Schemas as checks that tell a model, in a sentence, what to correct."""

from __future__ import annotations

from typing import Final

from pointsman.definition.json_schema import JsonSchema, SchemaWrong
from pointsman.values import Json, JsonObject

__all__ = ["Checker", "SchemaWrong"]

_SHOWN_MAX: Final = 5
"""Problems reported at once: more would not be read."""


class Checker:
    """A compiled schema. Raises `SchemaWrong` when made of something else."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = JsonSchema(schema)

    def problems(self, value: Json) -> str:
        """What is wrong, for a reader; empty if nothing is."""
        found = self._schema.misfits(value, most=_SHOWN_MAX)
        return "; ".join(f"at {'/'.join(map(str, one.path)) or 'the top'}: {one.message}" for one in found)
