"""Regular expressions by RE2: time linear in the text, whatever the pattern."""

from __future__ import annotations

from typing import Protocol, cast

from pointsman.expressions.failures import BadPattern, Spot


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> object | None:
        """The first match anywhere in `text`."""
        ...

    def fullmatch(self, text: str, /) -> object | None:
        """The match of all of `text`."""
        ...


def compile_pattern(pattern: str, spot: Spot) -> Pattern:
    """Compile `pattern`. Raises `BadPattern`."""
    import re2  # late: most workflows have no pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return cast("Pattern", re2.compile(pattern, options))  # pyright: ignore[reportUnknownMemberType]  # re2 has no types
    except re2.error as why:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # re2 has no types
        raise BadPattern(
            f"the pattern is not legal: {explained(cast('Exception', why))}", spot=spot, hint="The syntax is RE2's."
        ) from None


def explained(why: Exception) -> str:
    """RE2 explains itself in bytes."""
    detail = cast("object", why.args[0] if why.args else "")
    return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
