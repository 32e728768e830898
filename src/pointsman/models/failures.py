"""Why a model did not answer: one exception that carries the `Failure` a step will report."""

from __future__ import annotations

from typing import ClassVar

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, OperatorError


class ModelFailed(OperatorError):
    """A call of a model failed. `failure` is what the step reports; it says whether the same again could help."""

    code: ClassVar[str] = "model-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class ModelUnusable(OperatorError):
    """A model is named that this installation cannot speak to: no such provider, no key, a part not installed."""

    code: ClassVar[str] = "model-unusable"


class ModelUnnamed(AuthorError):
    """Neither the agent nor the workflow nor the installation says which model to ask."""

    code: ClassVar[str] = "model-unnamed"
