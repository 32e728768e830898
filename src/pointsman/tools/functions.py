"""Python functions as tools: the signature becomes the schema, the docstring the description.

    @tool
    async def web_search(query: str, limit: int = 5) -> list[dict]:
        \"\"\"Search the web.\"\"\"

The engine fills in a parameter `context: ToolContext` or `idempotency_key: str` and hides it from models. Functions
that are not async run in a thread, so that they do not block other steps. A thread cannot be stopped: a function that
exceeds its timeout continues, and its result is dropped.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import date, time
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property
from types import CodeType
from typing import TYPE_CHECKING, Final, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast, get_type_hints, overload
from uuid import UUID

from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.tool import OUTPUT_BYTES_MAX, RESERVED, ToolContext, ToolFailed, ToolLimits, ToolMisdefined
from pointsman.values import Bytes, Json, JsonObject

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ArgsKwargs


P = ParamSpec("P")
R = TypeVar("R")

_FILLED_IN: Final = ("context", "idempotency_key")
THREADS_MAX: Final = 32
"""Maximum number of functions that run in threads at once; more wait for their turn."""
LEAVES: Final[frozenset[type]] = frozenset({str, bool, int, float, type(None)})
TEXTS: Final[frozenset[type]] = frozenset({str})
PLAIN: Final = frozenset({bool, int, float})
"""Types of results that are JSON as they are."""


class FunctionTool(Generic[P, R]):
    """A function that is also a tool. Calling it calls the function."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str,
        description: str,
        limits: ToolLimits,
        side: Literal["server", "client"] = "server",
        idempotent: bool = False,
        requires_approval: bool = False,
    ) -> None:
        if name in RESERVED:
            raise ToolMisdefined(
                f"{name!r} is the name of a tool of the engine", hint="Choose another name: @tool(name=…)."
            )
        self.__doc__ = function.__doc__
        self.__name__ = name
        self.limits = limits
        self._function = function
        self.name = name
        self._description = description
        self._side: Literal["server", "client"] = side
        self._idempotent = idempotent
        self._requires_approval = requires_approval

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name!r}>"

    @property
    def spec(self) -> ToolSpec:
        """The description for models."""
        return self._spec

    @cached_property
    def _spec(self) -> ToolSpec:
        # Built on first use, so that importing a module of tools stays cheap.
        return ToolSpec(
            name=self.name,
            description=self._description,
            parameters=self._schema(),
            side=self._side,
            idempotent=self._idempotent,
            requires_approval=self._requires_approval,
            timeout_s=self.limits.timeout_s,
            bytes_max=self.limits.output_bytes_max,
        )

    @cached_property
    def version(self) -> str:
        """The name and source code of the function, or its bytecode if there is no source. Excludes functions that it
        calls."""
        function = inspect.unwrap(self._function)
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            code = getattr(function, "__code__", None)
            source = code.co_code.hex() if isinstance(code, CodeType) else ""
        named = getattr(function, "__qualname__", type(function).__qualname__)
        return f"{getattr(function, '__module__', '')}.{named}\n{source}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Convert the arguments to the declared types, call the function, and convert its result to JSON."""
        args, kwargs = self._typed(arguments)
        for name in self._filled_in:
            kwargs[name] = context if name == "context" else context.key
        if self._as_async is not None:
            result = await self._as_async(*args, **kwargs)
        else:
            result, wrong = await _in_thread(self._function, args, kwargs)
            if wrong is not None:
                raise wrong
        return _as_json(self.name, result)

    @cached_property
    def _as_async(self) -> Callable[..., Awaitable[object]] | None:
        """The function if it is async; else None."""
        is_async = inspect.iscoroutinefunction(self._function)
        return cast("Callable[..., Awaitable[object]]", self._function) if is_async else None

    @cached_property
    def _filled_in(self) -> tuple[str, ...]:
        """The parameters that the engine fills in."""
        return tuple(name for name in _FILLED_IN if name in self._signature.parameters)

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self._function)

    @cached_property
    def _adapter(self) -> TypeAdapter[tuple[tuple[object, ...], dict[str, object]]]:
        """Checks and converts arguments. It wraps a function that only returns them: the tool's function runs later."""
        from pydantic import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeAdapter

        def twin(*args: object, **kwargs: object) -> tuple[tuple[object, ...], dict[str, object]]:
            return args, kwargs

        try:
            hints = get_type_hints(self._function, include_extras=True)
            visible = [it for name, it in self._signature.parameters.items() if name not in _FILLED_IN]
            typed = [it.replace(annotation=hints.get(it.name, object)) for it in visible]
            vars(twin)["__signature__"] = inspect.Signature(typed)
            twin.__annotations__ = {it.name: it.annotation for it in typed}
            return TypeAdapter(cast("type[tuple[tuple[object, ...], dict[str, object]]]", twin))
        except (NameError, PydanticSchemaGenerationError, PydanticUndefinedAnnotation) as why:
            raise ToolMisdefined(
                f"the parameters of the tool {self.name!r} cannot be described: {why}",
                hint="Use JSON types, dataclasses or pydantic models that are defined at the top of a module.",
            ) from why

    @cached_property
    def _validation(self) -> tuple[Callable[..., tuple[tuple[object, ...], dict[str, object]]], type[ArgsKwargs]]:
        """The validation of arguments, and the type in which it takes them."""
        from pydantic_core import ArgsKwargs

        return self._adapter.validator.validate_python, ArgsKwargs

    def _schema(self) -> JsonObject:
        schema = cast("JsonObject", self._adapter.json_schema())
        properties = schema.setdefault("properties", {})
        if not isinstance(properties, dict) or schema.get("type") != "object":
            raise ToolMisdefined(
                f"the tool {self.name!r} takes arguments without names",
                hint="Name the arguments: models call tools by parameter name.",
            )
        for field in properties.values():
            if isinstance(field, dict):
                field.pop("title", None)
        return schema

    def _typed(self, arguments: JsonObject) -> tuple[tuple[object, ...], dict[str, object]]:
        try:
            validate, typed = self._validation
            return validate(typed((), cast("dict[str, object]", arguments)))
        except ValueError as why:
            from pydantic import ValidationError

            if not isinstance(why, ValidationError):
                raise
            told = "; ".join(
                f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in why.errors(include_url=False)
            )
            message = f"arguments of {self.name!r}: {told}"
            raise ToolFailed(Failure(code="tool-arguments", message=message)) from why


def _as_json(name: str, result: object) -> Json:
    """Return the result of a tool as JSON. Raises `ToolFailed`."""
    if result is None or type(result) in PLAIN:
        return result  # pyright: ignore[reportReturnType] - it is one of these types
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        must_have_json_keys(name, result)
        return cast("Json", to_jsonable_python(result, inf_nan_mode="constants"))
    except (PydanticSerializationError, ValueError, RecursionError) as why:
        raise ToolFailed(not_json(name, result, why)) from why


Outcome: TypeAlias = tuple[object, BaseException | None]
"""Result and exception of a call. A future hangs on some exceptions, such as `StopIteration`."""


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="pointsman-tool")


def _in_thread(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> asyncio.Future[Outcome]:
    """Call a function in a thread, with the context variables of the caller.

    `asyncio.to_thread` has a second future and two more callbacks for each call: half of its cost. A call that is
    cancelled before a thread is free is not made.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outcome] = loop.create_future()

    def perform() -> None:
        if future.cancelled():
            return
        try:
            outcome = function(*args, **kwargs), None
        except BaseException as why:
            outcome = None, why
        with suppress(RuntimeError):  # The loop is closed: no task waits for the outcome.
            loop.call_soon_threadsafe(_settle, future, outcome)

    _threads().submit(copy_context().run, perform)
    return future


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
    side: Literal["server", "client"] = "server",
    idempotent: bool = False,
    requires_approval: bool = False,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout_s: float | None = None,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
    side: Literal["server", "client"] = "server",
    idempotent: bool = False,
    requires_approval: bool = False,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function. `idempotent`: it can be called twice safely; `client`: the API caller runs it."""

    def made(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(
            function,
            name=name or function.__name__,
            description=description if description is not None else inspect.getdoc(function) or "",
            limits=ToolLimits(timeout_s=timeout_s, output_bytes_max=Bytes(output_bytes_max)),
            side=side,
            idempotent=idempotent,
            requires_approval=requires_approval,
        )

    return made if function is None else made(function)


KEYS: Final = (str, int, float, Decimal, Enum, UUID, date, time)
"""Types allowed for keys; they are written as strings."""
DEPTH_MAX: Final = 50
PLACES_MAX: Final = 10_000
"""Maximum number of values to examine."""


def not_json(name: str, result: object, why: Exception) -> Failure:
    """Return the failure of a tool whose result cannot be written as JSON."""
    found = _first(result)
    if found is None:
        return Failure(code="tool-failed", message=f"the result of the tool {name!r} is not JSON: {why}")
    path, value = found
    if isinstance(value, list | tuple | Mapping | AbstractSet):
        message = (
            f"the result of the tool {name!r} is not JSON: it is nested more than {DEPTH_MAX} levels "
            "deep, or contains itself"
        )
        return Failure(code="tool-failed", message=message)
    what = repr(value) if isinstance(value, float) else f"a value of type {_type_of(value)}"
    message = f"the result of the tool {name!r} is not JSON: {path} is {what}"
    hint = "Return texts, numbers, lists, objects with text keys, dataclasses or pydantic models."
    return Failure(code="tool-failed", message=message, hint=hint, details={"path": path, "type": _type_of(value)})


def must_have_json_keys(name: str, result: object) -> None:
    """Raise `ToolFailed` for objects with keys that JSON does not allow, or with keys that are equal in JSON."""
    waiting: list[tuple[object, int]] = [(result, 0)]
    while waiting:
        value, depth = waiting.pop()
        inside = _values(value) if depth < DEPTH_MAX else ()
        if isinstance(value, Mapping):
            _check_keys(name, cast("Mapping[object, object]", value))
        waiting += [(one, depth + 1) for one in inside if type(one) not in LEAVES]


def _check_keys(name: str, found: Mapping[object, object]) -> None:
    if set(map(type, found)) <= TEXTS:
        return
    from pydantic_core import to_jsonable_python

    known: dict[str, object] = {}
    for key in found:
        if not isinstance(key, KEYS):
            raise _bad_key(name, f"an object has a key of type {_type_of(key)}")
        (written,) = cast("dict[str, None]", to_jsonable_python({key: None}))
        if written in known:
            raise _bad_key(
                name, f"an object has the keys {known[written]!r} and {key!r}, which are the same key in JSON"
            )
        known[written] = key


def _bad_key(name: str, why: str) -> ToolFailed:
    message = f"the result of the tool {name!r} is not JSON: {why}"
    return ToolFailed(Failure(code="tool-failed", message=message, hint="Use texts as keys of objects."))


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


def _first(result: object) -> tuple[str, object] | None:
    """Return the first value that is neither JSON nor a container, and its path."""
    waiting: list[tuple[str, object, int]] = [("result", result, 0)]
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
        return ((f"{path}[{number}]", one) for number, one in enumerate(cast("list[object]", value)))
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
