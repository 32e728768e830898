"""Base of all models of the language: their configuration, texts for people, durations, sizes, field descriptions.

A text is one text, or one per language. Durations and sizes are read with or without a unit and always written with
one. Descriptions of fields are docstrings, read from the source on demand: pydantic can do this for every class at
import, which takes longer than everything else an import does.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, Strict
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from pointsman.values import Bytes, Json, JsonObject, NodeId, Seconds

T = TypeVar("T")
V = TypeVar("V")

EXTENSION_PREFIX: Final = "x-"
"""Keys of the author's own: kept, never read."""

ExtensionKey: TypeAlias = Annotated[str, Field(pattern=f"^{EXTENSION_PREFIX}")]

Many: TypeAlias = Annotated[tuple[T, ...], Strict(strict=False)]
"""A JSON list. Strictness would ask for a Python tuple; the items stay strict."""

if TYPE_CHECKING:
    AnyJson: TypeAlias = Json
    AnyObject: TypeAlias = JsonObject
else:
    # The reader of documents already made JSON of it: walking and copying every value again would buy nothing.
    AnyJson = object
    AnyObject = dict[str, object]


TAG: Final = "type"
"""The key that distinguishes the members of a union."""


class Model(BaseModel):
    """The base of every model: frozen, strict, camelCase in documents; unknown keys are errors, except `x-…`."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",  # only what `ExtensionKey` admits: this way the wrong keys are reported with all other problems
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,  # importing the language stays cheap; each model is built when first needed
        allow_inf_nan=False,
    )
    __pydantic_extra__: dict[ExtensionKey, object] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]  # pydantic reads it so

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        """Say `x-*` in JSON Schema's own words, and drop the titles that only repeat the key."""
        made = handler(schema)
        body = handler.resolve_ref_schema(made)
        body["additionalProperties"] = False
        body["patternProperties"] = {f"^{EXTENSION_PREFIX}": {}}
        for field in body.get("properties", {}).values():
            field.pop("title", None)
        return made


@dataclass(frozen=True, slots=True)
class Spelled:
    """Marks what a text in a document is written in, so that editors, checks and renames can find it."""

    kind: Literal["expression", "path", "template", "jsonpath", "node", "agent", "tool", "workflow", "model"]

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {**handler(schema), "x-kind": self.kind}


Expression: TypeAlias = Annotated[str, Spelled("expression")]
Path: TypeAlias = Annotated[str, Spelled("path")]
Template: TypeAlias = Annotated[str, Spelled("template")]
NodeRef: TypeAlias = Annotated[NodeId, Spelled("node")]
Name: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=1)]
Expressions: TypeAlias = dict[str, Expression]
"""Name (or state path) -> expression."""


def value_schema(kind: type[V], read: Callable[[object], V], write: Callable[[V], object]) -> CoreSchema:
    """How pydantic reads and writes a value class: `read` gets the JSON value or an instance and raises ValueError."""

    def accept(value: object) -> V:
        return value if isinstance(value, kind) else read(value)

    return core_schema.no_info_plain_validator_function(
        accept, serialization=core_schema.plain_serializer_function_ser_schema(write)
    )


@dataclass(frozen=True, slots=True)
class ChosenBy:
    """Annotates a closed union whose member a function of the JSON value chooses.

    Unlike a pydantic union it leaves no trace in error locations: they stay paths of the author's document.
    """

    choose: Callable[[Mapping[str, object]], type[Model]]
    """Raises ValueError where nothing fits."""
    members: tuple[type[Model], ...]

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.read, serialization=core_schema.plain_serializer_function_ser_schema(written)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"x-any-of": [member.__name__ for member in self.members]}

    def read(self, value: object) -> Model:
        if isinstance(value, self.members):
            return value
        if not isinstance(value, dict):
            raise ValueError("must be an object")
        document = cast(dict[str, object], value)
        return read_as(self.choose(document), document)


def read_as(member: type[Model], value: object) -> Model:
    """Validate in the document's spelling alone: `snake_case` keys are Python's and no one else's."""
    return member.model_validate(value, by_alias=True, by_name=False)


def written(value: object) -> object:
    """Return the document of a model as an author writes it: set fields, and keys that distinguish unions."""
    if not isinstance(value, Model):
        return value
    document = value.model_dump(by_alias=True, exclude_unset=True)
    tag = type(value).model_fields.get(TAG)
    if tag is not None and isinstance(tag.default, str) and TAG not in document:
        return {TAG: tag.default, **document}
    return document


FALLBACK_LANGUAGE: Final = "en"


@dataclass(frozen=True, slots=True)
class Text:
    """A text as its author wrote it: plain, or `{language: text}`."""

    value: str | Mapping[str, str]

    def in_(self, language: str = FALLBACK_LANGUAGE) -> str:
        """The text in this language, else in its main language (`de-AT` → `de`), else English, else the first."""
        if isinstance(self.value, str):
            return self.value
        for tag in (language, language.partition("-")[0], FALLBACK_LANGUAGE):
            if tag in self.value:
                return self.value[tag]
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


_MS_OF: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_CHARS_MAX: Final = 100
_DURATION: Final = r"(?:[0-9]{1,15}(?:\.[0-9]{1,6})?\s*(?:ms|s|min|m|h|d)\s*)+"
_DURATION_PART: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*(ms|s|min|m|h|d)\s*")
_WHOLE_DURATION: Final = re.compile(_DURATION)
_NUMBER_AND_WORD: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)")
_DURATION_MS_MAX: Final = 100 * 366 * 86_400_000
"""A hundred years; what is longer is a slip of the unit."""
_FINE_S: Final = 100.0
"""Lengths below it are kept to the nanosecond, others to the millisecond: what is written is read again as it was."""

_BYTES_OF: Final = {
    "B": 1,
    "KB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
}
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*([kKMG]?i?B)")
_SIZE_MAX: Final = 1 << 50


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time. In documents `30s`, `300000ms`, `1h30m`; a bare number is milliseconds."""

    seconds: Seconds

    def __str__(self) -> str:
        return write_duration(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return value_schema(cls, read_duration, write_duration)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        number = {"type": "number", "minimum": 0, "maximum": _DURATION_MS_MAX, "description": "Milliseconds."}
        return {"anyOf": [{"type": "string", "maxLength": _CHARS_MAX, "pattern": f"^\\s*{_DURATION}$"}, number]}


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """A size. In documents `50MB`, `64KiB`; a bare number is bytes."""

    bytes: Bytes

    def __str__(self) -> str:
        return write_size(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return value_schema(cls, read_size, write_size)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        number = {"type": "integer", "minimum": 0, "maximum": _SIZE_MAX, "description": "Bytes."}
        return {"anyOf": [{"type": "string", "maxLength": _CHARS_MAX, "pattern": f"^\\s*{_SIZE.pattern}\\s*$"}, number]}


def read_duration(value: object) -> Duration:
    """Raises ValueError with the spellings that would do."""
    if isinstance(value, str) and len(value) <= _CHARS_MAX and _WHOLE_DURATION.fullmatch(value.lstrip()):
        amount_ms = sum(float(number) * _MS_OF[unit] for number, unit in _DURATION_PART.findall(value))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and math.isfinite(value):
        amount_ms = value
    else:
        raise ValueError("must be a length of time such as '30s', '5m' or '1h30m' (a bare number is milliseconds)")
    if amount_ms > _DURATION_MS_MAX:
        raise ValueError("must not be longer than a hundred years")
    seconds = amount_ms / 1000
    return Duration(Seconds(round(seconds, 9 if seconds < _FINE_S else 3)))


_UNIT_WORDS: Final = {"milli": "ms", "ms": "ms", "sec": "s", "min": "m", "hour": "h", "hr": "h", "day": "d"}


def near_duration(text: str) -> str | None:
    """Return the duration that a text such as `5 minutes` means, as `5m`; None if it means none."""
    parts: list[str] = []
    for number, word in _NUMBER_AND_WORD.findall(text[:_CHARS_MAX].lower()):
        unit = next((unit for start, unit in _UNIT_WORDS.items() if word.startswith(start)), None)
        parts.append(f"{number}{unit or word}")
    short = "".join(parts)
    return short if short and _WHOLE_DURATION.fullmatch(short) else None


def write_duration(duration: Duration) -> str:
    """The largest unit that divides it: `5m`, `90s`, `1500ms`."""
    amount_ms = duration.seconds * 1000
    whole = round(amount_ms)
    if not math.isclose(amount_ms, whole, rel_tol=1e-12, abs_tol=1e-9):
        return f"{amount_ms:.6f}".rstrip("0") + "ms"
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if whole % _MS_OF[unit] == 0) if whole else "s"
    return f"{whole // _MS_OF[unit]}{unit}"


def read_size(value: object) -> Size:
    """Raises ValueError with the spellings that would do."""
    if isinstance(value, str) and len(value) <= _CHARS_MAX and (match := _SIZE.fullmatch(value.strip())):
        size = round(float(match[1]) * _BYTES_OF[match[2].upper()])
    elif isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        size = value
    else:
        raise ValueError("must be a size such as '50MB' or '64KiB' (a bare number is bytes)")
    if size > _SIZE_MAX:
        raise ValueError("must not be larger than 1024 TiB")
    return Size(Bytes(size))


def write_size(size: Size) -> str:
    unit = next(
        unit for unit in ("GiB", "GB", "MiB", "MB", "KiB", "KB", "B") if size.bytes % _BYTES_OF[unit.upper()] == 0
    )
    return f"{size.bytes // _BYTES_OF[unit.upper()]}{unit}" if size.bytes else "0B"


def descriptions_of(model: type[Model]) -> Mapping[str, str]:
    """Python field name -> description, for the fields that have one."""
    return _in_module(sys.modules[model.__module__]).get(model.__name__, {})


@lru_cache(maxsize=64)
def _in_module(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(module))
    except OSError:  # installed without its source: the models work, only their descriptions are missing
        return {}
    return {statement.name: _fields(statement) for statement in tree.body if isinstance(statement, ast.ClassDef)}


def _fields(made: ast.ClassDef) -> Mapping[str, str]:
    result: dict[str, str] = {}
    for field, below in zip(made.body, made.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    result[field.target.id] = inspect.cleandoc(text)
                case _:
                    pass
    return result
