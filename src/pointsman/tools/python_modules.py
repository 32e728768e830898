"""Tools in Python modules that the operator names: `[tools] python = ["shop.tools"]`, or `--tools shop.tools`.

module ─▶ import ─▶ its objects made by `@tool`, and the functions that its `__all__` names ─▶ registry
             └─ fails: the failure is reported; the other modules are loaded
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import ClassVar, cast

from pointsman.errors import OperatorError, PointsmanError
from pointsman.tool_output import printing
from pointsman.tools.functions import as_tool
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import Tool, traceback_of


class ToolModuleFailed(OperatorError):
    """A module of tools cannot be used: its import raised an error, it has no tools, or a name is taken."""

    code: ClassVar[str] = "tool-module-failed"


def add_tools_of(registry: ToolRegistry, module: str) -> None:
    """Add the tools of a module, all or none. Raises `ToolModuleFailed`. What the import prints goes where the output
    of tools goes."""
    try:
        with printing():
            tools = [*_tools_in(import_module(module))]
        if not tools:
            raise ToolModuleFailed(
                f"the module {module!r} has no tools",
                hint="Decorate its functions with `@tool`, or name them in its `__all__`.",
            )
        registry.add_all(tools)
    except ToolModuleFailed:
        raise
    except PointsmanError as why:
        raise ToolModuleFailed(f"the tools of the module {module!r} cannot be used: {why}", hint=why.hint) from why
    except (Exception, SystemExit) as why:
        message = f"the module {module!r} of [tools] python, or of --tools, cannot be imported"
        hint = "Correct the module, or its name. It is imported from the working directory or from installed packages."
        raise ToolModuleFailed(f"{message}:\n{traceback_of(why)}", hint=hint) from why


def _tools_in(module: ModuleType) -> Iterator[Tool]:
    """Yield each tool of a module once, also if it has several names there."""
    seen: set[int] = set()
    named = cast("tuple[str, ...]", getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        if id(value) in seen or isinstance(value, type):
            continue
        if isinstance(value, Tool) or (name in named and callable(value)):
            seen.add(id(value))
            yield as_tool(value)
