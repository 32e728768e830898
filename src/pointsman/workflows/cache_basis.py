"""What the result of work depends on in this installation: the models that answer, and the tools that are called.

The definition names them, the settings and the code decide what they are. The cache of steps counts only steps as equal
whose basis is equal, so that an answer of one model never serves another.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.models.transcript import read_call
from pointsman.models.transport import PydanticModels
from pointsman.tools.registry import ToolRegistry
from pointsman.values import Json

WITHOUT_MODEL: Final = frozenset({"tool", "tool_executor", "memory", "code", "http", "structured-record"})
"""Kinds of work that call no model. All others, those of packages too, may call any model of the installation."""


class CacheBasis:
    """Describes models and tools, for the cache of steps."""

    def __init__(self, models: PydanticModels, tools: ToolRegistry) -> None:
        self._models = models
        self._tools = tools

    def __call__(self, command: Execute, spec: WorkSpec) -> Json:
        """Return the basis of an attempt."""
        models = None if spec.kind in WITHOUT_MODEL else self._models.basis
        return [models, {name: self._tools.identity(name) for name in sorted({*_tools_of(command, spec)})}]


def _tools_of(command: Execute, spec: WorkSpec) -> Iterator[str]:
    """The names of the tools that an attempt may call."""
    listed, one, calls = spec.config.get("tools"), spec.config.get("tool"), command.input.get("calls")
    yield from (name for name in [*(listed if isinstance(listed, list) else []), one] if isinstance(name, str))
    for said in calls if isinstance(calls, list) else []:
        if (call := read_call(said)) is not None:
            yield call.name
