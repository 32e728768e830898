"""Conversion of what programs pass as tools: functions, methods, partials, tools of `@tool` and of LangChain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import TypeAlias, cast

from pointsman.tools.functions import FunctionTool
from pointsman.tools.langchain import LangChainTool, is_langchain_tool, tool_of_langchain
from pointsman.tools.tool import Tool, ToolInvalid

ToolLike: TypeAlias = Tool | LangChainTool | Callable[..., object]
"""What `Pointsman(tools=[…])` takes."""


def is_tool_like(value: object) -> bool:
    """Return whether a value is meant as a tool; `as_tool` may still refuse it."""
    return callable(value) or is_langchain_tool(value) or isinstance(value, Tool)


def as_tool(value: object) -> Tool:
    """Return a tool, or make one of a function, a method, a partial or a tool of LangChain. Raises `ToolInvalid` for
    anything else, and for a method without its object."""
    made = _function_tool(value)
    if made is not None:
        made.must_be_bound()
        return made
    if is_langchain_tool(value):
        return tool_of_langchain(value)
    if isinstance(value, Tool) and not isinstance(value, type):
        return value
    what = f"the class {value.__name__!r}" if isinstance(value, type) else f"a {type(value).__name__!r} object"
    raise ToolInvalid(f"{what} is not a tool", hint=_advice(value))


def _advice(value: object) -> str:
    if hasattr(type(value), "aget_state"):
        return "Make it a tool: `tool_of_graph(graph, name=…)` of `pointsman.tools.langchain`."
    if hasattr(type(value), "call_tool"):
        return "Pass its tools: `tools=await tools_of_toolset(toolset)`, of `pointsman.tools.toolsets`."
    if hasattr(type(value), "function_schema"):  # a `Tool` of pydantic-ai
        return "Pass its function, or a toolset that contains it: `await tools_of_toolset(FunctionToolset([…]))`."
    if hasattr(type(value), "ainvoke"):
        return "Write a function that calls it, with annotated parameters."
    return "Pass functions, methods of objects, tools made by `@tool`, or tools of LangChain."


def _function_tool(value: object) -> FunctionTool[..., object] | None:
    """Return the tool of a callable; None: it is none, or a tool of another kind."""
    inner: object = getattr(value, "__func__", None) or getattr(value, "func", None)
    if isinstance(value, FunctionTool):
        return cast("FunctionTool[..., object]", value)
    if isinstance(inner, FunctionTool):
        made = cast("FunctionTool[..., object]", inner)
        if isinstance(value, partial):
            return made.with_arguments(cast("partial[object]", value))
        return made.__get__(cast("MethodType", value).__self__)  # a class method, from Python 3.13
    if isinstance(value, Tool | type) or not callable(value) or is_langchain_tool(value):
        return None
    return FunctionTool(value)
