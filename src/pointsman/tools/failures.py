"""Errors of tools. `ToolFailed` carries the `Failure` that a step reports or a model receives."""

from __future__ import annotations

from typing import ClassVar

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, OperatorError


class ToolFailed(OperatorError):
    """Raised when a tool call fails. Tools may raise it to report a specific failure and whether to retry."""

    code: ClassVar[str] = "tool-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class ToolMisdefined(AuthorError):
    """Raised for a function that cannot become a tool because of its name, its parameters or their types."""

    code: ClassVar[str] = "tool-misdefined"


class ToolNameTaken(OperatorError):
    """Raised when two tools with the same name are registered."""

    code: ClassVar[str] = "tool-name-taken"


class ToolNotLoaded(OperatorError):
    """Raised when a tool of an installed package cannot be loaded."""

    code: ClassVar[str] = "tool-not-loaded"
