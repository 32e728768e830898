"""A lone surrogate in a pattern is refused with a code; in a text it counts as one character."""

from __future__ import annotations

import pytest

from pointsman.expressions.compiler import compile_expression
from pointsman.expressions.environment import Environment
from pointsman.expressions.failures import BadPattern
from pointsman.values import Json


def value(formula: str, text: str) -> Json:
    return compile_expression(formula).evaluate(Environment(state={"text": text}, names={}))


def test_a_pattern_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(BadPattern, match="half a character"):
        value("matches(text, '^a\ud800+b')", "ab")


@pytest.mark.parametrize(("pattern", "matches"), [("^a.b$", True), ("^a[a-z]b$", False), ("b", True)])
def test_a_text_with_a_lone_surrogate_is_searched(pattern: str, matches: bool) -> None:
    assert value(f"matches(text, '{pattern}')", "a\ud800b") is matches
