"""Regular expressions by RE2: their time is linear in the text for every pattern."""

from __future__ import annotations

from typing import Protocol, cast

from pointsman.expressions.failures import BadPattern, Spot


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> object | None:
        """Return the first match anywhere in `text`."""
        ...

    def fullmatch(self, text: str, /) -> object | None:
        """Return the match of the whole of `text`."""
        ...


class SurrogatePattern:
    """A pattern for texts with lone surrogates, which RE2 cannot read: they are replaced by U+FFFD."""

    __slots__ = ("_pattern",)

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern

    def search(self, text: str, /) -> object | None:
        try:
            return self._pattern.search(text)
        except UnicodeEncodeError:
            return self._pattern.search(whole(text))

    def fullmatch(self, text: str, /) -> object | None:
        try:
            return self._pattern.fullmatch(text)
        except UnicodeEncodeError:
            return self._pattern.fullmatch(whole(text))


def whole(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


def compile_pattern(pattern: str, spot: Spot) -> Pattern:
    """Compile `pattern`. Raises `BadPattern`."""
    import re2  # imported here because most workflows have no pattern

    options = re2.Options()
    options.log_errors = False
    try:
        pattern_of_re2 = re2.compile(pattern, options)  # pyright: ignore[reportUnknownMemberType]  # re2 has no types
        return SurrogatePattern(cast("Pattern", pattern_of_re2))
    except re2.error as why:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # re2 has no types
        raise BadPattern(
            f"the pattern is not valid: {explained(cast('Exception', why))}", spot=spot, hint="The syntax is RE2's."
        ) from None
    except UnicodeEncodeError:
        raise BadPattern(
            "the pattern contains half a character (a lone surrogate)", spot=spot, hint="Write the whole character."
        ) from None


def explained(why: Exception) -> str:
    """Return the message of RE2, which is in bytes."""
    detail = cast("object", why.args[0] if why.args else "")
    return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
