"""Why a tool call gave nothing: one exception that carries the `Failure` which a step reports or a model is told."""

from __future__ import annotations

from typing import ClassVar

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, OperatorError


class ToolFailed(OperatorError):
    """A tool call failed. A tool may raise it itself, to say exactly what happened and whether to try again."""

    code: ClassVar[str] = "tool-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class ToolMisdefined(AuthorError):
    """A Python function cannot become a tool: its name, its parameters or their types."""

    code: ClassVar[str] = "tool-misdefined"


class ToolNameTaken(OperatorError):
    """Two tools of one name are registered; which one an agent means would be chance."""

    code: ClassVar[str] = "tool-name-taken"


class ToolNotLoaded(OperatorError):
    """An installed package announces a tool that cannot be loaded."""

    code: ClassVar[str] = "tool-not-loaded"
