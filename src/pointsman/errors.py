"""Base exceptions, sorted by who must act: the author, the caller, the operator, or the developers.

A failure of a node is not an exception but data (`engine.failures`). An exception means that a call could not be
performed at all. `code` is stable and documented in `docs/reference/errors.md`.
"""

from __future__ import annotations

from typing import ClassVar, Final


class PointsmanError(Exception):
    """An operation failed. `str(error)` names the thing; `hint` says what to do next."""

    code: ClassVar[str] = "pointsman"

    def __init__(self, message: str, *, hint: str = "", needs: str = "") -> None:
        """`needs` names what this process lacks, as in `Failure.needs`."""
        super().__init__(message)
        self.hint = hint
        self.needs = needs


class AuthorError(PointsmanError):
    """A definition, an expression or a template is wrong; its author must change it."""

    code: ClassVar[str] = "author"


class CallerError(PointsmanError):
    """The call is wrong, or not possible now; the caller must change it."""

    code: ClassVar[str] = "caller"


class FieldInvalid(CallerError):
    """A field of a request is missing or invalid, for a reason that the schema of the request cannot state."""

    code: ClassVar[str] = "field-invalid"

    def __init__(self, message: str, *, hint: str = "", field: str = "") -> None:
        """`field`: its name in the body of the request, or `name` for the name in its address; empty: none alone."""
        super().__init__(message, hint=hint)
        self.field = field


class OperatorError(PointsmanError):
    """The app cannot do this because of its settings, store, network or a missing part."""

    code: ClassVar[str] = "operator"


class Outage(OperatorError):
    """The store is temporarily unavailable. No step fails because of it: steps in progress are performed again when the
    execution is resumed after the outage."""

    code: ClassVar[str] = "outage"


class EngineBug(PointsmanError):
    """An internal invariant is broken. Users cannot repair it; please report it."""

    code: ClassVar[str] = "engine-bug"


FORMER_CODES: Final = {
    "address-unreachable": "not-reached",
    "config-invalid": "config-wrong",
    "external-call-refused": "outside-refused",
    "output-schema-invalid": "output-schema-wrong",
    "request-invalid": "request-wrong",
    "sql-role-privileged": "sql-role-too-mighty",
    "tool-disabled": "tool-off",
}
"""Code of a failure -> its former name, which `retryOn` and error edges of documents may still list."""


def sentences(*texts: str) -> str:
    """Join a message and its hint into one text: a full stop ends each of them that has no mark at its end."""
    parts = [text.strip() for text in texts if text.strip()]
    return " ".join(text if text[-1] in ".!?:…" or text == parts[-1] else f"{text}." for text in parts)
