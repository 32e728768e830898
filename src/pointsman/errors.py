"""Every exception, sorted by who must act: the author, the caller, the operator, or us.

A failure of a node is not here: it is data (`engine.failures`). An exception says that a call could not be
done at all. `code` is stable and documented in `docs/reference/errors.md`.
"""

from __future__ import annotations

from typing import ClassVar


class PointsmanError(Exception):
    """Something could not be done. `str(error)` names the thing; `hint` says what to do next."""

    code: ClassVar[str] = "pointsman"

    def __init__(self, message: str, *, hint: str = "", needs: str = "") -> None:
        """`needs`: what this process lacks, as in `Failure.needs`."""
        super().__init__(message)
        self.hint = hint
        self.needs = needs


class AuthorError(PointsmanError):
    """A definition, an expression or a template is wrong; its author must change it."""

    code: ClassVar[str] = "author"


class CallerError(PointsmanError):
    """This call is wrong here or now; whoever called must call differently."""

    code: ClassVar[str] = "caller"


class OperatorError(PointsmanError):
    """The installation cannot do this: settings, store, network, missing part."""

    code: ClassVar[str] = "operator"


class Outage(OperatorError):
    """The store cannot be used for a while. No step fails by it: what was under way is performed again by whoever takes
    the execution up once the store is back."""

    code: ClassVar[str] = "outage"


class EngineBug(PointsmanError):
    """An impossible thing happened. Nobody outside can repair it; please report it."""

    code: ClassVar[str] = "engine-bug"
