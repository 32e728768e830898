"""Check of the arguments of public methods against their annotations.

    @checks_arguments
    class Storage:
        async def delete(self, *executions: str) -> list[ExecutionId]: ...

    await app.storage.delete(7)      CallInvalid, raised at the call: nothing has been done

The check is shallow where it would be slow: it looks into lists, tuples, sets and mappings, not into iterators. Values
of parameters annotated `Json` are written as JSON, so that dataclasses and pydantic models can be passed. The
annotations are evaluated at the first call; a name that exists only for type checkers accepts any value.
"""

from __future__ import annotations

import builtins
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from functools import cached_property, partial, wraps
from types import CoroutineType, FunctionType, UnionType
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pointsman.errors import CallerError
from pointsman.json_conversion import as_json

C = TypeVar("C")

Test = Callable[[object], bool]
CALLABLE: Final[object] = get_origin(Callable[..., object])
HINT: Final = "__argument_hint__"
"""Attribute of a class: how a caller gets an object of it."""


class CallInvalid(CallerError):
    """An argument of a call has the wrong type, is missing, or does not exist. The call has done nothing."""

    code: ClassVar[str] = "call-invalid"


class JsonValue:
    """Stands for `Json` in evaluated annotations."""


class _Unknown:
    """Stands for names that exist only for type checkers."""

    def __class_getitem__(cls, _: object) -> type[_Unknown]:
        return cls


class _Names(Mapping[str, object]):
    """The names of a module, for annotations."""

    STANDS_FOR: Final[Mapping[str, object]] = {
        "Json": JsonValue,
        "JsonObject": dict[str, JsonValue],
        # What reads these refuses other values itself, and names what it accepts.
        "WorkflowLike": _Unknown,
        "Untyped": _Unknown,
        "Tool": _Unknown,
        "ToolLike": _Unknown,
    }

    def __init__(self, module: Mapping[str, object]) -> None:
        self._module = module

    def __getitem__(self, name: str) -> object:
        for names in (self.STANDS_FOR, self._module, vars(builtins)):
            if name in names:
                return names[name]
        return _Unknown

    def __iter__(self) -> Iterator[str]:
        return iter(self._module)

    def __len__(self) -> int:
        return len(self._module)


def checks_arguments(cls: type[C], *, when: Callable[[object], bool] | None = None) -> type[C]:
    """Check the arguments of all public methods of a class, and of its constructor.

    `when`: which objects are used by programs; others pass arguments that are checked already.
    """
    for name, member in [*vars(cls).items()]:
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, FunctionType) and _has_parameters(member):
            setattr(cls, name, _checked(member, cls.__name__, when=None if name == "__init__" else when))
        elif isinstance(member, classmethod):
            function = cast("classmethod[object, ..., object]", member).__func__
            setattr(cls, name, classmethod(_checked(cast("FunctionType", function), cls.__name__)))
        elif isinstance(member, staticmethod):
            function = cast("staticmethod[..., object]", member).__func__
            setattr(cls, name, staticmethod(_checked(cast("FunctionType", function), cls.__name__, has_owner=False)))
    return cls


F = TypeVar("F", bound=Callable[..., object])


def checks_call(function: F) -> F:
    """Check the arguments of a function."""
    return cast("F", _checked(cast("FunctionType", function), "", has_owner=False))


def _has_parameters(function: FunctionType) -> bool:
    code = function.__code__
    flags = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code.co_argcount + code.co_kwonlyargcount > 1 or bool(code.co_flags & flags)


def _checked(
    function: FunctionType, owner: str, *, has_owner: bool = True, when: Callable[[object], bool] | None = None
) -> Callable[..., object]:
    """`has_owner`: the first parameter is the object or the class."""
    check = _Check(function, owner, has_owner=has_owner)

    @wraps(function)
    def call(*args: object, **options: object) -> object:
        if when is not None and not when(args[0]):
            return function(*args, **options)
        given, named = check.checked(args, options)
        return function(*given, **named)

    return call


class _Check:
    """The check of the calls of one function."""

    def __init__(self, function: FunctionType, owner: str, *, has_owner: bool) -> None:
        self._function = function
        self._owner = owner
        self._first = 1 if has_owner else 0

    @cached_property
    def _name(self) -> str:
        name = self._function.__name__
        return self._owner if name == "__init__" else f"{self._owner}.{name}".removeprefix(".")

    @cached_property
    def _signature(self) -> inspect.Signature:
        """The signature, with evaluated annotations, without the object."""
        function = inspect.unwrap(self._function)
        hints = get_type_hints(function, localns=_Names(function.__globals__))
        signature = inspect.signature(function)
        parameters = [*signature.parameters.values()][self._first :]
        return signature.replace(
            parameters=[one.replace(annotation=hints.get(one.name, object)) for one in parameters],
            return_annotation=signature.empty,
        )

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Parameter -> its annotation, as it is written."""
        parameters = inspect.signature(inspect.unwrap(self._function)).parameters.values()
        texts = {one.name: str(one.annotation) for one in parameters}
        return texts | {name: str(getattr(hint, "__forward_arg__", hint)) for name, hint in self._raw_options.items()}

    @cached_property
    def _options_type(self) -> type[object] | None:
        """The `TypedDict` of the keyword arguments."""
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD and get_origin(parameter.annotation) is typing.Unpack:
                (options,) = get_args(parameter.annotation)
                return options if options is not _Unknown else None
        return None

    @cached_property
    def _raw_options(self) -> dict[str, object]:
        options = self._options_type
        if options is None:
            return {}
        return {name: hint for base in reversed(options.__mro__) for name, hint in _annotations(base).items()}

    @cached_property
    def _options(self) -> dict[str, _Type] | None:
        """Keyword arguments of the `TypedDict` -> types; None: there is none."""
        options = self._options_type
        if options is None:
            return None
        module = vars(inspect.getmodule(options) or typing)
        hints = get_type_hints(options, localns=_Names(module))
        return {name: _type_of(hint) for name, hint in hints.items()}

    def checked(
        self, args: tuple[object, ...], options: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return the arguments, those of JSON written as JSON. Raises `CallInvalid`, `NotJson`."""
        by_place, by_name, required = self._parameters
        given = args[self._first :]
        names = [name for name, _ in by_place[: len(given)]]
        if (
            len(given) <= len(by_place)
            and options.keys() <= by_name.keys()
            and options.keys().isdisjoint(names)
            and required <= {*names, *options}
        ):  # The usual call: binding it to the signature takes longer than all checks.
            checked = [self._value(*place, value=value) for place, value in zip(by_place, given, strict=False)]
            options = {name: self._value(name, by_name[name], value=value) for name, value in options.items()}
            return (*args[: self._first], *checked), options
        return self._bound(args, options)

    @cached_property
    def _parameters(self) -> tuple[tuple[tuple[str, _Type], ...], dict[str, _Type], frozenset[str]]:
        """The parameters that a place can give, with their types; those that a name can give; and the names of those
        that have no default."""
        parameters = self._signature.parameters.values()
        single = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        types = {one.name: _type_of(one.annotation) for one in single}
        return (
            tuple((one.name, types[one.name]) for one in single if one.kind is not one.KEYWORD_ONLY),
            {one.name: types[one.name] for one in single if one.kind is not one.POSITIONAL_ONLY}
            | (self._options or {}),
            frozenset(one.name for one in single if one.default is one.empty),
        )

    def _bound(
        self, args: tuple[object, ...], options: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Check a call with open lists of arguments, or one that does not fit the signature."""
        try:
            bound = self._signature.bind(*args[self._first :], **options)
        except TypeError as why:
            text = str(self._signature.replace(parameters=self._parameters_as_written))
            raise CallInvalid(f"{self._name}(): {why}", hint=f"The call is `{self._name}{text}`.") from None
        for name, value in bound.arguments.items():
            parameter = self._signature.parameters[name]
            match parameter.kind:
                case parameter.VAR_POSITIONAL:
                    items, kind = cast("tuple[object, ...]", value), _type_of(parameter.annotation)
                    bound.arguments[name] = tuple(self._value(name, kind, value=one) for one in items)
                case parameter.VAR_KEYWORD:
                    bound.arguments[name] = self._checked_options(cast("dict[str, object]", value), parameter)
                case _:
                    bound.arguments[name] = self._value(name, _type_of(parameter.annotation), value=value)
        return (*args[: self._first], *bound.args), bound.kwargs

    @property
    def _parameters_as_written(self) -> list[inspect.Parameter]:
        parameters = self._signature.parameters.values()
        return [one.replace(annotation=one.empty, default=one.default) for one in parameters]

    def _checked_options(self, given: dict[str, object], parameter: inspect.Parameter) -> dict[str, object]:
        known = self._options
        if known is None:
            kind = _type_of(object if get_origin(parameter.annotation) is typing.Unpack else parameter.annotation)
            return {name: self._value(name, kind, value=value) for name, value in given.items()}
        for name in given:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                meant = f"Did you mean {near[0]!r}? " if near else ""
                raise CallInvalid(
                    f"{self._name}() has no argument {name!r}", hint=f"{meant}It takes {', '.join(sorted(known))}."
                )
        return {name: self._value(name, known[name], value=value) for name, value in given.items()}

    def _value(self, name: str, kind: _Type, *, value: object) -> object:
        """Return the value of a parameter. Raises `CallInvalid`, `NotJson`."""
        if not kind.has(value):
            advice = _advice(value, kind.hint)
            raise CallInvalid(
                f"{self._name}(): {name!r} is {described(value)}; expected {self._texts.get(name, kind.hint)}",
                hint=advice,
            )
        if kind.as_json(value):
            return as_json(value, what=f"{self._name}(): {name!r}", path=name)
        return value


def _annotations(cls: type[object]) -> dict[str, object]:
    return cast("dict[str, object]", vars(cls).get("__annotations__", {}))


class _Type(NamedTuple):
    """The tests of an evaluated annotation. Looking at the annotation again at each call would take longer than they
    take."""

    hint: object
    has: Test
    """Whether a value has the type; true for types that cannot be checked."""
    as_json: Test
    """Whether a value that has the type is given as JSON: not as another type that the annotation allows."""


def _type_of(hint: object) -> _Type:
    return _Type(hint, _test_of(hint), _json_test_of(hint))


def _json_test_of(hint: object) -> Test:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        types = [_type_of(one) for one in args]
        return lambda value: all(one.as_json(value) for one in types if one.has(value))
    is_json = hint is JsonValue or (origin in (dict, Mapping, list, Sequence) and args[-1] == JsonValue)
    return lambda _: is_json


def _test_of(hint: object) -> Test:
    """Return the test for values of an evaluated annotation."""
    hint = getattr(hint, "__supertype__", hint)  # NewType
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        tests = [_test_of(one) for one in args]
        return lambda value: any(test(value) for test in tests)
    if origin is Literal:
        return lambda value: any(type(value) is type(one) and value == one for one in args)
    if origin is type or hint is type:
        return lambda value: isinstance(value, type) or get_origin(value) is not None
    if hint is None or hint is type(None):
        return lambda value: value is None
    if hint is float:
        return lambda value: isinstance(value, int | float)
    if hint is JsonValue:
        return lambda value: not isinstance(value, type | CoroutineType)
    if origin is CALLABLE:
        return callable
    if isinstance(origin, type):
        return _test_of_generic(origin, args)
    if hasattr(hint, "__total__"):  # A TypedDict.
        return lambda value: isinstance(value, Mapping)
    if getattr(hint, "_is_protocol", False):
        return partial(_has_members, [*_members(cast("type", hint))])
    if not isinstance(hint, type) or hint in (object, Any, _Unknown):
        return lambda _: True
    return lambda value: isinstance(value, hint)


def _test_of_generic(origin: type[object], args: tuple[object, ...]) -> Test:
    """Return the test for objects of a generic class and the types of their elements."""
    is_of_texts = args in ((str,), (bytes,))
    tests = [_test_of(one) for one in args if one is not ...]

    def has(value: object) -> bool:
        if not isinstance(value, origin) or (is_of_texts and isinstance(value, str | bytes)):
            return False  # A text as a list of texts would be a list of its letters.
        if isinstance(value, Mapping) and len(args) == 2:
            items = cast("Mapping[object, object]", value).items()
            return all(tests[0](key) and tests[1](one) for key, one in items)
        if isinstance(value, list | tuple | AbstractSet) and len(args) == 1:
            return all(tests[0](one) for one in cast("list[object]", value))
        return True

    return has


def _has_members(names: list[str], value: object) -> bool:
    return not isinstance(value, type) and all(hasattr(type(value), name) or hasattr(value, name) for name in names)


def _members(protocol: type[object]) -> Iterator[str]:
    """Yield the public members of a protocol."""
    for base in protocol.__mro__:
        if getattr(base, "_is_protocol", False):
            yield from (name for name in {*vars(base), *_annotations(base)} if not name.startswith("_"))


def described(value: object) -> str:
    """Return what a value is, without its content, which may be secret."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__!r}"
    if isinstance(value, CoroutineType):
        return f"a coroutine of {value.__qualname__!r}"
    kind = type(value)
    if kind.__module__ == "builtins":
        return f"{'an' if kind.__name__[0] in 'aeio' else 'a'} {kind.__name__}"
    return f"an object of {kind.__name__!r}"


def _advice(value: object, hint: object) -> str:
    if isinstance(value, CoroutineType):
        value.close()  # Otherwise Python would warn that it was never awaited, at another line.
        return "Write `await` before the call that makes the coroutine."
    if isinstance(value, type):
        return f"Pass an object: `{value.__name__}(…)`."
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    advice = [str(getattr(get_origin(kind) or kind, HINT, "")) for kind in kinds]
    return " ".join(filter(None, advice)) or "Pass a value of that type."
