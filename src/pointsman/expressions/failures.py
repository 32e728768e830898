"""Limits of formulas, and errors: in their text (`ExpressionError`) or in their data (`ExpressionFailed`).

Limits bound the size of a formula, its work and its result; each has its own error code.
"""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

from pointsman.errors import AuthorError

SOURCE_CHARS_MAX: Final = 4_096
TOKENS_MAX: Final = 512
DEPTH_MAX: Final = 32
"""Nesting of brackets, calls, prefix operators and conditionals in one expression."""

VISITS_MAX: Final = 20_000
"""Elements that one evaluation may visit, in any operation: lambdas, `==`, `in`, `+`, slices, wildcards."""

INTEGER_BITS_MAX: Final = 256
TEXT_CHARS_MAX: Final = 1_000_000
"""Characters of one text that a formula builds. Texts that it passes on unchanged are not counted."""

RESULT_NODES_MAX: Final = 50_000
RESULT_CHARS_MAX: Final = 10_000_000
"""Characters in all texts of a result that a formula built: a shared text may occur in it many times."""

TEMPLATE_CHARS_MAX: Final = 1_000_000

JSONPATH_SEGMENTS_MAX: Final = 32
JSONPATH_VISITS_MAX: Final = 200_000

COMPILED_MAX: Final = 4_096
"""Size of the cache of compiled formulas, per kind; a document repeats a few of them many times."""


class Spot(NamedTuple):
    """A part of a formula's text: characters `at` to `end`, counted from 0."""

    source: str
    at: int
    end: int


class ExpressionError(AuthorError):
    """The text of a formula is invalid; raised when it is compiled."""

    code: ClassVar[str] = "expression-syntax"

    def __init__(self, message: str, *, spot: Spot, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.source = spot.source
        self.offset = spot.at
        self.length = max(spot.end - spot.at, 1)
        self.pointer = ""
        """JSON pointer to the text inside a tree of parameters; "" for a formula on its own."""


class ExpressionTooLong(ExpressionError):
    """A formula has too many characters."""

    code: ClassVar[str] = "expression-too-long"


class TooManyTokens(ExpressionError):
    """A formula has too many tokens."""

    code: ClassVar[str] = "expression-too-many-tokens"


class ExpressionTooDeep(ExpressionError):
    """Brackets, calls or prefix operators are nested too deeply."""

    code: ClassVar[str] = "expression-too-deep"


class NumberTooLarge(ExpressionError):
    """A number in the text exceeds the range of the language."""

    code: ClassVar[str] = "expression-number-too-large"


class UnknownFunction(ExpressionError):
    """The called function does not exist."""

    code: ClassVar[str] = "expression-unknown-function"


class WrongArguments(ExpressionError):
    """A function has too few, too many or the wrong kind of arguments."""

    code: ClassVar[str] = "expression-arguments"


class BadPattern(ExpressionError):
    """The pattern of `matches` is not a regular expression that RE2 accepts."""

    code: ClassVar[str] = "expression-pattern"


class SecretNotAllowed(ExpressionError):
    """A secret is used outside of parameters, headers and settings."""

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
    """A valid formula cannot be evaluated with its data. The
    step or edge that evaluates it fails: no silent `false`."""

    code: ClassVar[str] = "expression-failed"

    def __init__(self, message: str, *, spot: Spot, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.source = spot.source
        self.offset = spot.at
        self.length = max(spot.end - spot.at, 1)
        self.pointer = ""
        """JSON pointer to the text inside a tree of parameters; "" for a formula on its own."""


class MixedTypes(ExpressionFailed):
    """An operator or function received values of types for which it is not defined."""

    code: ClassVar[str] = "expression-types"


class DividedByZero(ExpressionFailed):
    """The right side of a division was zero."""

    code: ClassVar[str] = "expression-division-by-zero"


class NumberOutOfRange(ExpressionFailed):
    """A result is an integer with too many bits, or not a finite number."""

    code: ClassVar[str] = "expression-number-range"


class TextTooLong(ExpressionFailed):
    """A formula built a text that is too long."""

    code: ClassVar[str] = "expression-text-too-long"


class ResultTooLarge(ExpressionFailed):
    """A formula built a value with too many parts."""

    code: ClassVar[str] = "expression-result-too-large"


class TooManyVisits(ExpressionFailed):
    """One evaluation visited too many elements."""

    code: ClassVar[str] = "expression-too-many-visits"


class DataTooDeep(ExpressionFailed):
    """A value is nested too deeply to be compared or written as text."""

    code: ClassVar[str] = "expression-data-too-deep"


class MissingValue(ExpressionFailed):
    """A path has no value where one is required."""

    code: ClassVar[str] = "missing-value"


class NoItem(ExpressionFailed):
    """A write through `current_fanout_item` happened outside the branches of a parallel."""

    code: ClassVar[str] = "no-item"
