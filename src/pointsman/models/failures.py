"""Errors of models. `ModelFailed` carries the `Failure` that a step reports."""

from __future__ import annotations

from typing import ClassVar

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, OperatorError


class ModelFailed(OperatorError):
    """Raised when a model call fails. `failure` is the failure of the step and states whether a retry may succeed."""

    code: ClassVar[str] = "model-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class ModelUnusable(OperatorError):
    """Raised for a model that cannot be called: unknown provider, no key, or package not installed."""

    code: ClassVar[str] = "model-unusable"


class ModelUnnamed(AuthorError):
    """Raised when neither agent nor workflow nor settings name a model."""

    code: ClassVar[str] = "model-unnamed"
