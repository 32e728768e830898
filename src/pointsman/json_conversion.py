"""Conversion of Python values to JSON: dataclasses, pydantic models, dates, sets; and the position of a value that JSON
does not have."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import ClassVar, Final, Generic, TypeVar, cast
from uuid import UUID

from pointsman.errors import CallerError
from pointsman.values import Json, JsonObject

T = TypeVar("T")

LEAVES: Final[frozenset[type]] = frozenset({str, bool, int, float, type(None)})
TEXTS: Final[frozenset[type]] = frozenset({str})
KEYS: Final = (str, int, float, Decimal, Enum, UUID, date, time)
"""Types allowed for keys; they are written as strings."""
DEPTH_MAX: Final = 50
PLACES_MAX: Final = 10_000
"""Maximum number of values to examine."""


class NotJson(CallerError):
    """A Python value cannot be written as JSON. `details`: path and type of the first such value inside it."""

    code: ClassVar[str] = "not-json"

    def __init__(self, message: str, *, hint: str = "", details: JsonObject | None = None) -> None:
        super().__init__(message, hint=hint)
        self.details = details


def as_json(value: object, *, what: str, path: str) -> Json:
    """Return a value as JSON. `what` begins the message of an error: "the result of the tool 'x'"; `path` is the path
    of the value itself. Raises `NotJson`."""
    try:
        return cast("Json", _copied(value, 0))
    except (_UncommonType, UnicodeEncodeError):
        pass  # pydantic converts it, or names what is wrong.
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        _must_have_json_keys(value, what)
        return cast("Json", to_jsonable_python(value, inf_nan_mode="constants"))
    except (PydanticSerializationError, ValueError, RecursionError) as why:
        raise not_json(value, why, what=what, path=path) from why


class _UncommonType(Exception):
    """A value has another type than those that `json.loads` returns, or is nested deeply."""


def _copied(value: object, depth: int) -> object:
    """Return a copy of a value of plain JSON types, as pydantic does in ten times the time. Raises `_UncommonType`, and
    `UnicodeEncodeError` for keys that are not Unicode."""
    kind = type(value)
    if kind in LEAVES:
        return value
    if depth == DEPTH_MAX:
        raise _UncommonType
    if kind is dict:
        known = cast("dict[str, object]", value)
        if not set(map(type, known)) <= TEXTS:
            raise _UncommonType
        "".join(known).encode()
        if set(map(type, known.values())) <= LEAVES:
            return known.copy()
        return {key: one if type(one) in LEAVES else _copied(one, depth + 1) for key, one in known.items()}
    if kind is list or kind is tuple:
        elements = cast("list[object]", value)
        if set(map(type, elements)) <= LEAVES:
            return [*elements]
        return [one if type(one) in LEAVES else _copied(one, depth + 1) for one in elements]
    raise _UncommonType


def not_json(value: object, why: Exception, *, what: str, path: str) -> NotJson:
    """Return the error for a value that cannot be encoded for the reason `why`."""
    error_place = _first(value, path)
    if error_place is None:
        return NotJson(f"{what} is not JSON: {why}")
    at, wrong = error_place
    if isinstance(wrong, list | tuple | Mapping | AbstractSet):
        message = f"{what} is not JSON: it is nested more than {DEPTH_MAX} levels deep, or contains itself"
        return NotJson(message, hint="Nest it less.")
    described = repr(wrong) if isinstance(wrong, float) else f"a value of type {_type_of(wrong)}"
    hint = "Use texts, numbers, lists, objects with text keys, dataclasses or pydantic models."
    return NotJson(f"{what} is not JSON: {at} is {described}", hint=hint, details={"path": at, "type": _type_of(wrong)})


def _must_have_json_keys(value: object, what: str) -> None:
    """Raise `NotJson` for objects with keys that JSON does not allow, or with keys that are equal in JSON."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        inside = _values(one) if depth < DEPTH_MAX else ()
        if isinstance(one, Mapping):
            _check_keys(what, cast("Mapping[object, object]", one))
        waiting += [(value, depth + 1) for value in inside if type(value) not in LEAVES]


def _check_keys(what: str, mapping: Mapping[object, object]) -> None:
    if set(map(type, mapping)) <= TEXTS:
        return
    from pydantic_core import to_jsonable_python

    known: dict[str, object] = {}
    for key in mapping:
        if not isinstance(key, KEYS):
            raise _bad_key(what, f"an object has a key of type {_type_of(key)}")
        (written,) = cast("dict[str, None]", to_jsonable_python({key: None}))
        if written in known:
            raise _bad_key(
                what, f"an object has the keys {known[written]!r} and {key!r}, which are the same key in JSON"
            )
        known[written] = key


def _bad_key(what: str, why: str) -> NotJson:
    return NotJson(f"{what} is not JSON: {why}", hint="Use texts as keys of objects.")


def _values(value: object) -> Iterable[object]:
    """Return the values inside a value."""
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    if isinstance(value, list | tuple):
        return cast("Iterable[object]", value)
    inside = _inside("", value)
    return () if inside is None else (one for _, one in inside)


def _type_of(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _first(value: object, path: str) -> tuple[str, object] | None:
    """Return the first value that is neither JSON nor a container, and its path."""
    waiting: list[tuple[str, object, int]] = [(path, value, 0)]
    for _ in range(PLACES_MAX):
        if not waiting:
            return None
        path, value, depth = waiting.pop()
        inside = _inside(path, value) if depth < DEPTH_MAX else None
        if inside is None:
            if not _is_json(value):
                return path, value
        else:
            waiting += [(place, one, depth + 1) for place, one in reversed([*inside])]
    return None


def _inside(path: str, value: object) -> Iterator[tuple[str, object]] | None:
    """Return the values inside a value with their paths; None: it is not a container."""
    if isinstance(value, Mapping):
        known = cast("Mapping[object, object]", value)
        return ((f"{path}.{key}", one) for key, one in known.items())
    if isinstance(value, list | tuple | AbstractSet):
        return ((f"{path}[{number}]", element) for number, element in enumerate(cast("list[object]", value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ((f"{path}.{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value))
    fields = getattr(type(value), "model_fields", None)
    if isinstance(fields, dict):
        return ((f"{path}.{name}", getattr(value, name)) for name in cast("dict[str, object]", fields))
    return None


def _is_json(value: object) -> bool:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    if isinstance(value, float):
        return math.isfinite(value)
    try:
        to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, RecursionError):
        return False
    return True


class TypeUnsupported(CallerError):
    """A Python type cannot describe JSON."""

    code: ClassVar[str] = "type-unsupported"


class TypeMismatch(CallerError):
    """A JSON value does not fit the Python type that the caller declared for it."""

    code: ClassVar[str] = "type-mismatch"


class JsonType(Generic[T]):
    """A Python type whose values are sent as JSON: a pydantic model, a dataclass, a TypedDict, a list of them."""

    def __init__(self, type: type[T], *, what: str) -> None:
        """`what` begins messages: "the input of the workflow 'desk'". Raises `TypeUnsupported`."""
        from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

        self.what = what
        self.name = getattr(type, "__name__", str(type))
        try:
            self._adapter = TypeAdapter(type)
        except (PydanticSchemaGenerationError, PydanticUserError, NameError) as why:
            raise self._unusable(str(why).partition("\n")[0]) from why

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema. Raises `TypeUnsupported`."""
        from pydantic import PydanticInvalidForJsonSchema

        try:
            return cast("JsonObject", self._adapter.json_schema())
        except PydanticInvalidForJsonSchema as why:
            raise self._unusable(str(why).partition("\n")[0]) from why

    def _unusable(self, why: str) -> TypeUnsupported:
        return TypeUnsupported(
            f"the type {self.name!r} of {self.what} cannot be described in JSON: {why}",
            hint="Use pydantic models, dataclasses, TypedDicts, lists of them, or JSON types.",
        )

    def read(self, value: Json) -> T:
        """Return a value of the type. Raises `TypeMismatch`, naming every field that does not fit."""
        return self._checked(value)

    def write(self, value: object) -> Json:
        """Check a value, and return it as JSON. Raises `TypeMismatch`, `NotJson`."""
        checked = self._checked(value)
        try:
            return cast("Json", self._adapter.dump_python(checked, mode="json", by_alias=True))
        except ValueError as why:  # pydantic raises its subclasses
            raise not_json(value, why, what=self.what, path="value") from why

    def _checked(self, value: object) -> T:
        from pydantic import ValidationError

        try:
            return self._adapter.validate_python(value)
        except ValidationError as why:
            wrong = "; ".join(
                f"{'.'.join(map(str, error['loc'])) or 'the value'}: {error['msg']}"
                for error in why.errors(include_url=False, include_context=False, include_input=False)
            )
            raise TypeMismatch(
                f"{self.what} does not fit {self.name!r}: {wrong}", hint="Correct the value, or the declared type."
            ) from why
