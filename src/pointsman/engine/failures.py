"""A failure of a step is data: it is journaled, shown, retried, routed. It is never an exception across a boundary."""

from __future__ import annotations

from msgspec import Struct

from pointsman.errors import PointsmanError
from pointsman.values import JsonObject


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why an attempt did not succeed. `code` is stable; `retryable` says whether the same again could help."""

    code: str
    message: str
    retryable: bool = False
    hint: str = ""
    retry_after_s: float | None = None
    """How long the other side asked us to wait, in seconds."""
    details: JsonObject | None = None
    needs: str = ""
    """What this process lacks to perform the step, as `kind:name` (`tool:search`, `model:openai`, `secret:KEY`,
    `executor:kind`); empty: nothing. A worker that has it can perform the step."""


def failure_by(why: PointsmanError) -> Failure:
    """An exception as the failure of the step that met it."""
    return Failure(code=why.code, message=str(why), hint=why.hint, needs=why.needs)
