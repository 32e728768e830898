"""Search for every text of a workflow that has a syntax: expressions, paths, templates, names of things.

The models declare the syntax of their fields (`Spelled`) and this module walks the models, so that it finds new fields
and node types without a change here. Only fields that hold a whole JSON tree (parameters, bodies) are listed by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias, Union, cast, get_args, get_origin

from pointsman.definition.model.base import Model, Spelled, Text
from pointsman.definition.model.control import (
    AGGREGATES,
    EmitConfig,
    HumanConfig,
    JoinConfig,
    LoopConfig,
    StartConfig,
    WaitRule,
)
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.work import (
    Append,
    ArrayGet,
    Choose,
    CopyValue,
    Evaluate,
    HttpAuth,
    HttpConfig,
    Increment,
    LengthOf,
    Merge,
    Push,
    ReadMemorySection,
    SetValue,
    StructuredRecordConfig,
    ToolConfig,
    TransformConfig,
)
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import pointer_to
from pointsman.values import Json

Kind: TypeAlias = Literal[
    "expression", "path", "template", "jsonpath", "node", "agent", "tool", "workflow", "model", "parameters"
]

TREES: Final[Mapping[type[Model], frozenset[str]]] = {
    ToolConfig: frozenset({"parameters"}),
    EmitConfig: frozenset({"data"}),
    HttpConfig: frozenset({"url", "headers", "query", "body"}),
    HttpAuth: frozenset({"token", "username", "password", "key"}),
    SetValue: frozenset({"value"}),
    Choose: frozenset({"then", "else_"}),
}
"""Fields with a JSON tree whose texts are templates, or with one such text. They may contain secrets."""


WRITES: Final[Mapping[type[Model], frozenset[str]]] = {
    Node: frozenset({"outputs"}),
    StartConfig: frozenset({"set"}),
    TransformConfig: frozenset({"set"}),
    SetValue: frozenset({"set"}),
    **{kind: frozenset({"to"}) for kind in (CopyValue, LengthOf, ArrayGet, Push, Append, Choose, Evaluate)},
    ReadMemorySection: frozenset({"to"}),
    Merge: frozenset({"into"}),
    Increment: frozenset({"increment"}),
    LoopConfig: frozenset({"collect", "count_into", "failures_into"}),
    StructuredRecordConfig: frozenset({"records"}),
    HumanConfig: frozenset({"editable"}),
}
"""Fields that name the place where something is written. In an object, its keys do."""


Parts: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the workflow to a value."""


class TextLocation(NamedTuple):
    """One text and its syntax. `parts` lead to it from the workflow; `tree` is set for `parameters`."""

    kind: Kind
    text: str
    parts: Parts
    tree: Json = None
    writes: bool = False
    """True for a path that is written, not read."""

    @property
    def pointer(self) -> str:
        return pointer_to(*self.parts)


class _Field(NamedTuple):
    """A field to visit. `spelled` is the syntax of its own text; None if only the values inside it matter."""

    name: str
    key: str
    spelled: Kind | None
    inner: Kind | None
    """Syntax of the texts inside its list or object."""
    writes: bool


def text_locations_of(workflow: WorkflowDefinition) -> list[TextLocation]:
    """Return every text location, in the order of each model's fields."""
    locations: list[TextLocation] = []
    _add_model(locations, workflow, ())
    return locations


def _add_model(locations: list[TextLocation], model: Model, parts: Parts) -> None:
    """Add the text locations of a model and of everything inside it. `parts` is the position of the model."""
    for field in _fields_of(type(model)):
        value: object = getattr(model, field.name)
        if value is None:
            continue
        at = (*parts, field.key)
        if field.spelled == "parameters":
            locations.append(TextLocation("parameters", "", at, cast(Json, value)))
        elif field.writes:
            _add_written(locations, value, at, field)
        elif not (field.key == "aggregate" and isinstance(model, JoinConfig) and value in AGGREGATES):
            _add_value(locations, value, at, field.spelled, field.inner)


def _add_written(locations: list[TextLocation], value: object, at: Parts, field: _Field) -> None:
    """Add the text locations of a field that names the place where something is written."""
    if isinstance(value, dict):
        locations += [
            TextLocation("path", path, (*at, path), writes=True) for path in cast(Mapping[str, object], value)
        ]
    inside: list[TextLocation] = []
    _add_value(inside, cast(object, value), at, field.spelled, field.inner)
    locations += [location._replace(writes=True) if location.kind == "path" else location for location in inside]


def _add_value(
    locations: list[TextLocation], value: object, at: Parts, spelled: Kind | None, inner: Kind | None
) -> None:
    if isinstance(value, str):
        if spelled is not None:
            locations.append(TextLocation(spelled, value, at))
    elif isinstance(value, Model):
        _add_model(locations, value, at)
    elif isinstance(value, Text):
        if spelled is not None:
            for language, text in value.languages().items():
                locations.append(TextLocation(spelled, text, (*at, language) if language else at))
    elif isinstance(value, tuple | list):
        for index, element in enumerate(cast(Sequence[object], value)):
            _add_value(locations, element, (*at, index), inner, None)
    elif isinstance(value, dict):
        for key, member in cast(Mapping[str, object], value).items():
            _add_value(locations, member, (*at, key), inner, None)
    elif isinstance(value, WaitRule) and value.kind == "expression":
        locations.append(TextLocation("expression", value.expression, at))


@cache
def _fields_of(model: type[Model]) -> tuple[_Field, ...]:
    fields: list[_Field] = []
    for name, field in model.model_fields.items():
        key, writes = field.alias or name, name in WRITES.get(model, ())
        if name in TREES.get(model, ()):
            fields.append(_Field(name, key, "parameters", None, writes))
            continue
        if model is JoinConfig and name == "aggregate":
            fields.append(_Field(name, key, "expression", None, writes))
            continue
        own = _mark(field.metadata)
        spelled, inner = _spelled(field.annotation)
        shapes = _has_shapes(field.annotation) or WaitRule in get_args(field.annotation)
        if own or spelled or inner or shapes:
            fields.append(_Field(name, key, own or spelled, inner, writes))
    return tuple(fields)


def _mark(metadata: Sequence[object]) -> Kind | None:
    return next((mark.kind for mark in metadata if isinstance(mark, Spelled)), None)


def _spelled(annotation: object) -> tuple[Kind | None, Kind | None]:
    """Return the syntax of a text of this type, and of the texts in a list or object of this type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        spelled, inner = _spelled(arguments[0])
        return _mark(arguments[1:]) or spelled, inner
    if origin in (Union, UnionType):
        pairs = [_spelled(argument) for argument in arguments if argument is not NoneType]
        return next((own for own, _ in pairs if own), None), next((inner for _, inner in pairs if inner), None)
    if origin in (tuple, list):
        return None, _spelled(arguments[0])[0]
    if origin is dict:
        return None, _spelled(arguments[1])[0]
    return None, None


def _has_shapes(annotation: object) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return True
    return any(_has_shapes(argument) for argument in get_args(annotation))
