"""Cache basis: the models and tools of this installation that a step's result depends on.

The definition only names models and tools; settings and code determine what they are. The step cache reuses a result
only if the basis is equal, so that one model's answer is never used for another model.
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
"""Kinds of work that call no model. All other kinds, including those of packages, may call any model of the
installation."""


class CacheBasis:
    """Describes models and tools for the step cache."""

    def __init__(self, models: PydanticModels, tools: ToolRegistry) -> None:
        self._models = models
        self._tools = tools

    def __call__(self, command: Execute, spec: WorkSpec) -> Json:
        """Return the basis of an attempt."""
        models = None if spec.kind in WITHOUT_MODEL else self._models.basis
        return [models, {name: self._tools.identity(name) for name in sorted({*_tools_of(command, spec)})}]


def _tools_of(command: Execute, spec: WorkSpec) -> Iterator[str]:
    """Yield the names of the tools that an attempt may call."""
    listed, one, calls = spec.config.get("tools"), spec.config.get("tool"), command.input.get("calls")
    yield from (name for name in [*(listed if isinstance(listed, list) else []), one] if isinstance(name, str))
    for said in calls if isinstance(calls, list) else []:
        if (call := read_call(said)) is not None:
            yield call.name
