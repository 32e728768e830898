"""Failures of executors: an exception from any depth, turned into the report of a failed attempt at the top."""

from __future__ import annotations

from typing import ClassVar

from pointsman.engine.commands import Execute
from pointsman.engine.failures import Failure, failure_by
from pointsman.engine.reports import Usage, WorkFailed
from pointsman.errors import EngineBug, OperatorError, Outage, PointsmanError
from pointsman.models.failures import ModelFailed
from pointsman.tools.tool import ToolFailed


class WorkRefused(OperatorError):
    """The attempt cannot succeed. `failure` is what it reports."""

    code: ClassVar[str] = "work-refused"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


def failure_of(why: PointsmanError) -> Failure:
    """Return an exception as a failure. `EngineBug` and `Outage` (a store that is not reachable) are raised again."""
    match why:
        case WorkRefused() | ModelFailed() | ToolFailed():
            return why.failure
        case EngineBug() | Outage():
            raise why
        case _:
            return failure_by(why)


def work_failed(command: Execute, failure: Failure, usage: Usage | None = None) -> WorkFailed:
    """Return the report of a failed attempt, with its usage."""
    return WorkFailed(step=command.step, attempt=command.attempt, failure=failure, usage=usage)
