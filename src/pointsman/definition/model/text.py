"""Texts for people: one text, or one per language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from pointsman.definition.model.base import value_schema
from pointsman.values import Json

FALLBACK_LANGUAGE: Final = "en"


@dataclass(frozen=True, slots=True)
class Text:
    """A text as its author wrote it: plain, or `{language: text}`."""

    value: str | Mapping[str, str]

    def in_(self, language: str = FALLBACK_LANGUAGE) -> str:
        """The text in this language, else in its main language (`de-AT` → `de`), else English, else the first."""
        if isinstance(self.value, str):
            return self.value
        for wanted in (language, language.partition("-")[0], FALLBACK_LANGUAGE):
            if wanted in self.value:
                return self.value[wanted]
        return next(iter(self.value.values()), "")

    def languages(self) -> Mapping[str, str]:
        """Every spelling; a plain text is there in the language `""`, which means any."""
        return {"": self.value} if isinstance(self.value, str) else self.value

    def __str__(self) -> str:
        return self.in_()

    def __hash__(self) -> int:
        return hash(self.value if isinstance(self.value, str) else tuple(self.value.items()))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return value_schema(cls, read_text, write_text)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}


def read_text(value: object) -> Text:
    """Raises ValueError where it is neither a text nor `{language: text}`."""
    match value:
        case str():
            return Text(value)
        case dict():
            texts = cast(dict[object, object], value)
            if all(isinstance(text, str) for text in texts.values()):
                return Text({str(language): str(text) for language, text in texts.items()})
        case _:
            pass
    raise ValueError("must be a text, or an object {language: text}")


def write_text(text: Text) -> Json:
    return text.value if isinstance(text.value, str) else dict(text.value)
