"""What can be wrong with a formula: in its text (`ExpressionError`) or when it meets data (`ExpressionFailed`)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from pointsman.errors import AuthorError


class Spot(NamedTuple):
    """A piece of a formula's text: characters `at` to `end`, counted from 0."""

    source: str
    at: int
    end: int


class ExpressionError(AuthorError):
    """The text of a formula is wrong; found when it is compiled."""

    code: ClassVar[str] = "expression-syntax"

    def __init__(self, message: str, *, spot: Spot, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.source = spot.source
        self.offset = spot.at
        self.length = max(spot.end - spot.at, 1)
        self.pointer = ""
        """JSON pointer to the text inside a tree of parameters; "" when the formula stands alone."""


class ExpressionTooLong(ExpressionError):
    """More characters than one formula may have."""

    code: ClassVar[str] = "expression-too-long"


class TooManyTokens(ExpressionError):
    """More words and signs than one formula may have."""

    code: ClassVar[str] = "expression-too-many-tokens"


class ExpressionTooDeep(ExpressionError):
    """Brackets, calls or prefix operators nested too deeply."""

    code: ClassVar[str] = "expression-too-deep"


class NumberTooLarge(ExpressionError):
    """A number in the text is outside what the language can hold."""

    code: ClassVar[str] = "expression-number-too-large"


class UnknownFunction(ExpressionError):
    """A function of this name does not exist."""

    code: ClassVar[str] = "expression-unknown-function"


class WrongArguments(ExpressionError):
    """A function was given too few, too many or the wrong kind of arguments."""

    code: ClassVar[str] = "expression-arguments"


class BadPattern(ExpressionError):
    """The pattern of `matches` is not a regular expression that RE2 accepts."""

    code: ClassVar[str] = "expression-pattern"


class SecretNotAllowed(ExpressionError):
    """Secrets stand in parameters, headers and settings only."""

    code: ClassVar[str] = "secret-not-allowed"


class BadPath(ExpressionError):
    """The text is not a path into data."""

    code: ClassVar[str] = "path-syntax"


class BadTemplate(ExpressionError):
    """A block of a template is malformed, unclosed or closed twice."""

    code: ClassVar[str] = "template-syntax"


class BadJsonPath(ExpressionError):
    """The text is not a JSONPath query, or not one that is allowed."""

    code: ClassVar[str] = "jsonpath-syntax"


class ExpressionFailed(AuthorError):
    """A sound formula met data it cannot work with. The step or edge that asked fails; never silently false."""

    code: ClassVar[str] = "expression-failed"

    def __init__(self, message: str, *, spot: Spot, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.source = spot.source
        self.offset = spot.at
        self.length = max(spot.end - spot.at, 1)
        self.pointer = ""
        """JSON pointer to the text inside a tree of parameters; "" when the formula stands alone."""


class MixedTypes(ExpressionFailed):
    """An operator or function got values of types it is not defined for."""

    code: ClassVar[str] = "expression-types"


class DividedByZero(ExpressionFailed):
    """The right side of a division was zero."""

    code: ClassVar[str] = "expression-division-by-zero"


class NumberOutOfRange(ExpressionFailed):
    """A result is an integer of too many bits, or no finite number."""

    code: ClassVar[str] = "expression-number-range"


class TextTooLong(ExpressionFailed):
    """A formula built a text longer than allowed."""

    code: ClassVar[str] = "expression-text-too-long"


class ResultTooLarge(ExpressionFailed):
    """A formula built a value with more parts than allowed."""

    code: ClassVar[str] = "expression-result-too-large"


class TooManyVisits(ExpressionFailed):
    """One evaluation touched more elements than allowed."""

    code: ClassVar[str] = "expression-too-many-visits"


class DataTooDeep(ExpressionFailed):
    """A value is nested too deeply to be compared or written as text."""

    code: ClassVar[str] = "expression-data-too-deep"


class MissingValue(ExpressionFailed):
    """A path leads nowhere, and this place insists on a value."""

    code: ClassVar[str] = "missing-value"


class NoItem(ExpressionFailed):
    """A write through `current_fanout_item` happened outside the branches of a parallel."""

    code: ClassVar[str] = "no-item"
