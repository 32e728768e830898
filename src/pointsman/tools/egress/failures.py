"""Why a call went nowhere, or its answer was not taken."""

from __future__ import annotations

from typing import ClassVar

from pointsman.errors import OperatorError


class AddressRefused(OperatorError):
    """Nothing is sent to this address: it is no web address, or inside this network and not said to be meant."""

    code: ClassVar[str] = "address-refused"


class RedirectRefused(OperatorError):
    """The answer leads on to where this call does not follow."""

    code: ClassVar[str] = "redirect-refused"


class NotReached(OperatorError):
    """Nobody took the call: no such name, no connection, no whole answer in time."""

    code: ClassVar[str] = "not-reached"


class AnswerTooLarge(OperatorError):
    """The answer has more bytes than this call may take in. It was left at that."""

    code: ClassVar[str] = "answer-too-large"


class AnswerUnreadable(OperatorError):
    """The answer is encoded in a way that was not asked for, or is not what it should be."""

    code: ClassVar[str] = "answer-unreadable"
