"""Python functions as tools: the signature becomes the schema, the docstring the description.

    @tool
    async def web_search(query: str, limit: int = 5) -> list[dict]:
        \"\"\"Search the web.

        Args:
            query: The words to search for.
        \"\"\"

The engine fills in a parameter with the annotation `ToolContext`, and the parameter `idempotency_key`, and hides them
from models. Functions that are not async run in a thread, so that they do not block other steps. A thread cannot be
stopped: a function that exceeds its timeout continues, and its result is dropped.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cache, cached_property, partial
from typing import (
    TYPE_CHECKING,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from msgspec.structs import replace

from pointsman.arguments import checks_call, described
from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.adapter import NO_LIMITS, result_as_json
from pointsman.tools.tool import OUTPUT_BYTES_MAX, RESERVED, ToolContext, ToolFailed, ToolInvalid, ToolLimits
from pointsman.values import Bytes, Json, JsonObject

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ArgsKwargs
from types import CodeType, FunctionType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

KEY: Final = "idempotency_key"
CONTEXT: Final = "context"
LAMBDA: Final = "<lambda>"


class CallableSignature:
    """The signature of a function, method, partial or object with `__call__`."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._source = source_function(function)

    @cached_property
    def name(self) -> str:
        """The name of the tool. Raises `ToolInvalid` for a lambda."""
        name = str(getattr(self._source, "__name__", ""))
        if name == "__call__" or not name:
            return type(innermost(self._function)).__name__
        if name == LAMBDA:
            raise ToolInvalid(
                "a lambda has no name by which a workflow could call it",
                hint='Name it: `tool(name="double")(lambda number: 2 * number)`, or write a function with `def`.',
            )
        return name

    def must_be_bound(self) -> None:
        """Raise `ToolInvalid` for a method that lacks its object."""
        named = getattr(self._source, "__qualname__", "")
        first = next(iter(self._parameters), None)
        if first in ("self", "cls") and "." in named:
            owner, _, method = named.removesuffix(LAMBDA).rpartition(".")
            owner = owner.rpartition(".")[2]
            raise ToolInvalid(
                f"{named!r} is a method without its object: nothing can fill in `{first}`",
                hint=f"Register the method of an object: `tools=[{owner.lower()}.{method}]` with "
                f"`{owner.lower()} = {owner}(…)`.",
            )

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self._source)

    @cached_property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        """All parameters that a call can give."""
        try:
            return dict(inspect.signature(self._function).parameters)
        except (TypeError, ValueError) as why:
            raise ToolInvalid(
                f"{self._function!r} cannot be a tool: {why}",
                hint="Wrap it in a function of its own, with annotated parameters.",
            ) from why

    @cached_property
    def _bound(self) -> frozenset[str]:
        """The keywords that a partial has bound."""
        function = self._function
        return frozenset(function.keywords) if isinstance(function, partial) else frozenset()

    @cached_property
    def _hints(self) -> dict[str, object]:
        return get_type_hints(self._source, include_extras=True)

    @cached_property
    def context_name(self) -> str | None:
        """The parameter that receives the `ToolContext` of a call."""
        for name in self._parameters:
            if _is_context(self._hints.get(name)) or (name == CONTEXT and name not in self._hints):
                return name
        return None

    @cached_property
    def takes_key(self) -> bool:
        """Whether the function receives the idempotency key of a call."""
        return KEY in self._parameters and KEY not in self._bound

    @cached_property
    def visible(self) -> list[inspect.Parameter]:
        """The parameters that callers give, with their types as annotations. Raises `NameError` for an unknown type."""
        hidden = {*self._bound, KEY, self.context_name}
        return [
            parameter.replace(annotation=self._hints.get(name, object))
            for name, parameter in self._parameters.items()
            if name not in hidden
        ]

    @cached_property
    def _docstring(self) -> tuple[str, dict[str, str]]:
        """The description, and the descriptions of parameters by name."""
        text = inspect.getdoc(self._source)
        if text is None and self._source is not innermost(self._function):
            text = inspect.getdoc(innermost(self._function))
        if not text or "\n" not in text:
            return text or "", {}
        import docstring_parser  # Deferred: most processes describe no tool.

        docstring = docstring_parser.parse(text)
        named = {parameter.arg_name: " ".join((parameter.description or "").split()) for parameter in docstring.params}
        if not named:
            return text, {}
        parts = (docstring.short_description, docstring.long_description)
        return "\n\n".join(part for part in parts if part), named

    @property
    def description(self) -> str:
        """The docstring without its list of parameters; the whole docstring if it has none."""
        return self._docstring[0]

    @property
    def parameter_descriptions(self) -> dict[str, str]:
        """The descriptions in the docstring (`Args:`, `:param x:`, `Parameters`), by parameter."""
        return self._docstring[1]

    @cached_property
    def version(self) -> str:
        """The name and source code of the function, or its bytecode if there is no source, and bound arguments.
        Excludes functions that it calls."""
        function = inspect.unwrap(self._source)
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            code = getattr(function, "__code__", None)
            source = code.co_code.hex() if isinstance(code, CodeType) else ""
        named = getattr(function, "__qualname__", type(function).__qualname__)
        outer = self._function
        bound = f"\n{outer.args!r} {outer.keywords!r}" if isinstance(outer, partial) else ""
        return f"{getattr(function, '__module__', '')}.{named}\n{source}{bound}"


def innermost(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function inside partials."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return function


def source_function(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function that has the annotations, the docstring and the source code."""
    function = innermost(function)
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    called: Callable[..., object] = cast("FunctionType", type(function).__call__).__get__(function)
    return called


def _is_context(hint: object) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return ToolContext in get_args(hint)
    return hint is ToolContext


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
Obj = TypeVar("Obj")

THREADS_MAX: Final = 32
"""Maximum number of functions that run in threads at once; more wait for their turn."""


class FunctionTool(Generic[P, R]):
    """A function that is also a tool. Calling it calls the function; as an attribute of a class it is a method."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        limits: ToolLimits = NO_LIMITS,
        side: Literal["server", "client"] = "server",
        idempotent: bool = False,
        requires_approval: bool = False,
    ) -> None:
        if not callable(function):  # Callers without a type checker may pass anything.
            raise ToolInvalid(
                f"{described(function)} is not a function",
                hint="Write `@tool` above a function, or pass a function without calling it.",
            )
        self._signature = CallableSignature(function)
        self.name = name if name is not None else self._signature.name
        if self.name in RESERVED:
            raise ToolInvalid(
                f"{self.name!r} is the name of a tool of the engine", hint="Choose another name: @tool(name=…)."
            )
        self.__doc__ = function.__doc__
        self.__name__ = self.name
        self.limits = limits
        self._function = function
        self._description = description
        self._side: Literal["server", "client"] = side
        self._idempotent = idempotent
        self._requires_approval = requires_approval

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(
        self: FunctionTool[Concatenate[Obj, Q], R], instance: Obj, owner: type | None = None
    ) -> FunctionTool[Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[..., R]:
        """Return the tool of a method of an object."""
        bind = getattr(self._function, "__get__", None)
        bound = self._function if bind is None else bind(instance, owner)
        return self if bound is self._function else self.with_function(bound)

    def with_function(self, function: Callable[Q, R]) -> FunctionTool[Q, R]:
        """Return this tool with another function, such as one with bound arguments."""
        return FunctionTool(
            function,
            name=self.name,
            description=self._description,
            limits=self.limits,
            side=self._side,
            idempotent=self._idempotent,
            requires_approval=self._requires_approval,
        )

    def with_arguments(self, bound: partial[object]) -> FunctionTool[..., R]:
        """Return this tool with the arguments that a partial of it binds."""
        return self.with_function(partial(self._function, *bound.args, **bound.keywords))

    def must_be_bound(self) -> None:
        """Raise `ToolInvalid` for a method without its object."""
        self._signature.must_be_bound()

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
            description=self._description if self._description is not None else self._signature.description,
            parameters=self._schema(),
            side=self._side,
            idempotent=self._idempotent,
            requires_approval=self._requires_approval,
            timeout_s=self.limits.timeout_s,
            bytes_max=self.limits.output_bytes_max,
        )

    @property
    def version(self) -> str:
        """See `CallableSignature.version`."""
        return self._signature.version

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Convert the arguments to the declared types, call the function, and convert its result to JSON."""
        args, kwargs = self._typed(arguments)
        if self._is_injected:
            self._inject(kwargs, context)
        if self._as_async is not None:
            result = await self._as_async(*args, **kwargs)
        else:
            result, wrong = await _in_thread(self._function, args, kwargs)
            if wrong is not None:
                raise wrong
            if hasattr(result, "__await__"):  # A function that is not async may return the coroutine of another one.
                result = await cast("Awaitable[object]", result)
        return result_as_json(self.name, result)

    @cached_property
    def _as_async(self) -> Callable[..., Awaitable[object]] | None:
        """The function if it is async; else None."""
        return cast("Callable[..., Awaitable[object]]", self._function) if self._signature.is_async else None

    @cached_property
    def _is_injected(self) -> bool:
        """Whether the engine fills in parameters."""
        return self._signature.takes_key or self._signature.context_name is not None

    def _inject(self, kwargs: dict[str, object], context: ToolContext) -> None:
        """Fill in the parameters of the engine."""
        if self._signature.takes_key:
            kwargs[KEY] = context.idempotency_key
        if (name := self._signature.context_name) is not None:
            in_thread = self._as_async is None
            kwargs[name] = replace(context, loop=asyncio.get_running_loop()) if in_thread else context

    @cached_property
    def _adapter(self) -> TypeAdapter[tuple[tuple[object, ...], dict[str, object]]]:
        """Checks and converts arguments. It wraps a function that only returns them: the tool's function runs later."""
        from pydantic import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, TypeAdapter

        def twin(*args: object, **kwargs: object) -> tuple[tuple[object, ...], dict[str, object]]:
            return args, kwargs

        try:
            typed = self._signature.visible
            vars(twin)["__signature__"] = inspect.Signature(typed)
            twin.__annotations__ = {it.name: it.annotation for it in typed}
            return TypeAdapter(cast("type[tuple[tuple[object, ...], dict[str, object]]]", twin))
        except (NameError, PydanticSchemaGenerationError, PydanticUndefinedAnnotation) as why:
            raise ToolInvalid(
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
            raise ToolInvalid(
                f"the tool {self.name!r} takes arguments without names",
                hint="Name the arguments: models call tools by parameter name.",
            )
        described = self._signature.parameter_descriptions
        for name, field in properties.items():
            if isinstance(field, dict):
                field.pop("title", None)
                if described.get(name):
                    field.setdefault("description", described[name])
        return schema

    def _typed(self, arguments: JsonObject) -> tuple[tuple[object, ...], dict[str, object]]:
        try:
            validate, typed = self._validation
            return validate(typed((), cast("dict[str, object]", arguments)))
        except ValueError as why:
            from pydantic import ValidationError

            if not isinstance(why, ValidationError):
                raise
            reasons = "; ".join(
                f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" for wrong in why.errors(include_url=False)
            )
            message = f"arguments of {self.name!r}: {reasons}"
            raise ToolFailed(Failure(code="tool-arguments", message=message)) from why


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

    # A loop of tests whose time leaps while nothing happens must wait for threads that it does not start itself.
    hold_time = cast("Callable[[object], None] | None", getattr(loop, "hold_time_until", None))
    if hold_time is not None:
        hold_time(future)
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


@checks_call
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
            name=name,
            description=description,
            limits=ToolLimits(timeout_s=timeout_s, output_bytes_max=Bytes(output_bytes_max)),
            side=side,
            idempotent=idempotent,
            requires_approval=requires_approval,
        )

    return made if function is None else made(function)
