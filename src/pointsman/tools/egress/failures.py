"""Errors of outgoing HTTP calls."""

from __future__ import annotations

from typing import ClassVar

from pointsman.errors import OperatorError


class AddressRefused(OperatorError):
    """Raised for an address that is not a web address, or that is internal and not allowed. Nothing was sent."""

    code: ClassVar[str] = "address-refused"


class RedirectRefused(OperatorError):
    """Raised for a redirect that this call must not follow."""

    code: ClassVar[str] = "redirect-refused"


class NotReached(OperatorError):
    """Raised when no complete response arrives in time: unknown host, no connection, or timeout."""

    code: ClassVar[str] = "not-reached"


class AnswerTooLarge(OperatorError):
    """Raised when the response exceeds the size limit. The rest is not read."""

    code: ClassVar[str] = "answer-too-large"


class AnswerUnreadable(OperatorError):
    """Raised for a response in an unrequested encoding or an unexpected format."""

    code: ClassVar[str] = "answer-unreadable"
