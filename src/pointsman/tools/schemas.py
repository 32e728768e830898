"""JSON Schemas as checks that tell a model, in a sentence, what to correct."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import ClassVar, Final, NoReturn

import jsonschema_rs

from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject

_TOLD_MAX: Final = 5
"""Problems told at once: more would not be read."""

_PROBLEM_CHARS_MAX: Final = 300


class SchemaWrong(AuthorError):
    """A JSON Schema is not one."""

    code: ClassVar[str] = "schema-wrong"


class Checker:
    """A compiled schema. Raises `SchemaWrong` when made of something else."""

    def __init__(self, schema: JsonObject) -> None:
        try:
            self._validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as why:
            told = str(why).partition("\n")[0]
            raise SchemaWrong(f"this is not a JSON Schema: {told}", hint="Write it by draft 2020-12.") from why

    def problems(self, value: Json) -> str:
        """What is wrong, for a reader; empty if nothing is."""
        return "; ".join(_told(self._validator.iter_errors(value)))


def _told(wrongs: Iterable[jsonschema_rs.ValidationError]) -> list[str]:
    return [
        f"at {'/'.join(map(str, wrong.instance_path)) or 'the top'}: {wrong.message[:_PROBLEM_CHARS_MAX]}"
        for wrong in islice(wrongs, _TOLD_MAX)
    ]


def _refuse(uri: str) -> NoReturn:
    # A schema comes from a document or a model: it must not make us open files or connections.
    raise ValueError(f"{uri!r} is outside this schema")
