"""Base of all models of the language: their configuration and the small words fields are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, Strict
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from pointsman.values import Json, JsonObject, NodeId

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
