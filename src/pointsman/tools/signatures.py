"""Signatures of functions as tools: which parameters a caller gives, their types, and their descriptions.

    def     ┐                    ┌─ bound by `functools.partial` or by the object of a method: hidden
    method  ├─▶ parameters ─▶ ───┼─ `context: ToolContext`, `idempotency_key: str`: hidden, given by the engine
    partial ┘                    └─ all others: the schema, with the descriptions of the docstring

Everything is read once for each function, when it is first needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property, partial
from types import CodeType, FunctionType, UnionType
from typing import Final, Union, cast, get_args, get_origin, get_type_hints

from pointsman.tools.tool import ToolContext, ToolMisdefined

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
        """The name of the tool. Raises `ToolMisdefined` for a lambda."""
        found = str(getattr(self._source, "__name__", ""))
        if found == "__call__" or not found:
            return type(innermost(self._function)).__name__
        if found == LAMBDA:
            raise ToolMisdefined(
                "a lambda has no name by which a workflow could call it",
                hint='Name it: `tool(name="double")(lambda number: 2 * number)`, or write a function with `def`.',
            )
        return found

    def must_be_bound(self) -> None:
        """Raise `ToolMisdefined` for a method that lacks its object."""
        named = getattr(self._source, "__qualname__", "")
        first = next(iter(self._parameters), None)
        if first in ("self", "cls") and "." in named:
            owner, _, method = named.removesuffix(LAMBDA).rpartition(".")
            owner = owner.rpartition(".")[2]
            raise ToolMisdefined(
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
            raise ToolMisdefined(
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
            one.replace(annotation=self._hints.get(name, object))
            for name, one in self._parameters.items()
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

        found = docstring_parser.parse(text)
        named = {one.arg_name: " ".join((one.description or "").split()) for one in found.params}
        if not named:
            return text, {}
        parts = (found.short_description, found.long_description)
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
