"""Closures for calls, comprehensions and patterns."""

from __future__ import annotations

from typing import Final

from pointsman.expressions.environment import EvaluationFrame
from pointsman.expressions.failures import MixedTypes, Spot
from pointsman.expressions.functions import Apply, Function, elements
from pointsman.expressions.operators import type_name
from pointsman.expressions.path_access import Code
from pointsman.expressions.patterns import compile_pattern
from pointsman.values import Json

CHARS_PER_PATTERN_VISIT_BITS: Final = 8
"""Matching 256 characters costs as much as visiting one element: RE2 is linear, but slower than a scan."""


def invoke(function: Function, codes: tuple[Code, ...], apply: Apply | None, spot: Spot) -> Code:
    """Return the closure of a call; its arguments are evaluated in order."""
    if plain := function.plain:
        if len(codes) == 1:
            only = codes[0]
            return lambda frame: plain(frame, spot, [only(frame)])
        return lambda frame: plain(frame, spot, [code(frame) for code in codes])
    over = function.over
    assert over is not None
    return lambda frame: over(frame, spot, [code(frame) for code in codes], apply)


def listed(items: tuple[Code, ...]) -> Code:
    """Return the closure of `[a, b]`."""
    return lambda frame: [item(frame) for item in items]


def comprehension(body: Code, slot: int, source: Code, condition: Code | None, spot: Spot) -> Code:
    """Return the closure of `[body for slot in source if condition]`; null counts as an empty list."""

    def run(frame: EvaluationFrame) -> Json:
        made: list[Json] = []
        for element in elements("for", frame, spot, source(frame)):
            frame.slots[slot] = element
            if condition is None or condition(frame):
                made.append(body(frame))
        return made

    return run


def matcher(subject: Code, pattern: str, spot: Spot, pattern_spot: Spot) -> Code:
    """Return the closure of `matches(text, "pattern")`: true if the pattern
    is found anywhere in the text. It uses RE2: linear, no backtracking."""
    compiled = compile_pattern(pattern, pattern_spot)

    def run(frame: EvaluationFrame) -> Json:
        value = subject(frame)
        if value is None:
            return False
        if not isinstance(value, str):
            raise MixedTypes(f"matches() wants a text, not {type_name(value)}", spot=spot)
        frame.spend(len(value) >> CHARS_PER_PATTERN_VISIT_BITS, spot)
        return compiled.search(value) is not None

    return run
