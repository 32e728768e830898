"""Pointsman: a durable engine for declarative agentic workflows.

This module exports the public API; everything else is in its own module. Names are imported when they are first used,
so that importing the package costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module

from pointsman.version import VERSION

__version__ = VERSION

TYPE_CHECKING = False  # Type checkers take it for true; importing `typing` would double the time of this import.
if TYPE_CHECKING:
    from typing import Final

    from pointsman.app import Execution, Pointsman, Workflow
    from pointsman.client.client import Client
    from pointsman.errors import PointsmanError
    from pointsman.executions.execution import Gate
    from pointsman.tools.functions import tool
    from pointsman.tools.tool import ToolContext

_WHERE: Final = {
    "Pointsman": "pointsman.app",
    "Workflow": "pointsman.app",
    "Execution": "pointsman.app",
    "Gate": "pointsman.executions.execution",
    "Client": "pointsman.client.client",
    "PointsmanError": "pointsman.errors",
    "tool": "pointsman.tools.functions",
    "ToolContext": "pointsman.tools.tool",
}

__all__ = [
    "Client",
    "Execution",
    "Gate",
    "Pointsman",
    "PointsmanError",
    "ToolContext",
    "Workflow",
    "__version__",
    "tool",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'pointsman' has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
