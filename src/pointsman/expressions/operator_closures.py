"""Closures for operators, with fast variants for the most common uses."""

from __future__ import annotations

from pointsman.expressions.environment import EvaluationFrame
from pointsman.expressions.failures import MixedTypes, Spot
from pointsman.expressions.label_equality import same_label
from pointsman.expressions.operators import add, arithmetic, is_number, member, ordered, type_name
from pointsman.expressions.operators import equal as same
from pointsman.expressions.path_access import Code
from pointsman.values import Json


def logic(sign: str, operands: tuple[Code, ...]) -> Code:
    """Return the closure of `and`, `or`, `??`: the first operand that decides; later ones are not evaluated."""
    *early, last = operands
    if sign == "??":
        return coalesce(early, last)
    if len(early) == 1:
        left = early[0]
        if sign == "and":
            return lambda frame: left(frame) and last(frame)
        return lambda frame: left(frame) or last(frame)
    decides = sign == "or"

    def run(frame: EvaluationFrame) -> Json:
        for operand in early:
            value = operand(frame)
            if bool(value) is decides:
                return value
        return last(frame)

    return run


def coalesce(early: list[Code], last: Code) -> Code:
    """Return the closure for the first operand that is not null."""

    def run(frame: EvaluationFrame) -> Json:
        for operand in early:
            value = operand(frame)
            if value is not None:
                return value
        return last(frame)

    return run


def compare_literal(side: Code, literal: Json, *, equal: bool) -> Code:
    """Return the closure of `path == "text"` and similar: comparing with a scalar needs no walk through the data."""
    if literal is None or isinstance(literal, bool):
        if equal:
            return lambda frame: side(frame) is literal
        return lambda frame: side(frame) is not literal
    if isinstance(literal, str):
        if equal:
            return lambda frame: side(frame) == literal
        return lambda frame: side(frame) != literal

    def run(frame: EvaluationFrame) -> Json:
        value = side(frame)
        return (value == literal and not isinstance(value, bool)) is equal

    return run


def compare_labels(left: Code, right: Code, *, equal: bool) -> Code:
    """Return the closure that compares branch labels as text: `true` equals `"true"`."""
    return lambda frame: same_label(left(frame), right(frame)) is equal


def compare(first: Code, rest: tuple[tuple[str, Code], ...], spot: Spot) -> Code:
    """Return the closure of comparisons; `a < b < c` computes `b` once, and `c` only if `a < b`."""
    if len(rest) == 1:
        sign, right = rest[0]
        return lambda frame: related(sign, first(frame), right(frame), frame, spot)

    def run(frame: EvaluationFrame) -> Json:
        left = first(frame)
        for sign, operand in rest:
            value = operand(frame)
            if not related(sign, left, value, frame, spot):
                return False
            left = value
        return True

    return run


def related(sign: str, left: Json, right: Json, frame: EvaluationFrame, spot: Spot) -> bool:
    """Compare two values."""
    match sign:
        case "==":
            return same(left, right, frame, spot)
        case "!=":
            return not same(left, right, frame, spot)
        case "in":
            return member(left, right, frame, spot)
        case "not in":
            return not member(left, right, frame, spot)
        case _:
            return ordered(sign, left, right, spot)


def arithmetic_chain(first: Code, rest: tuple[tuple[str, Code], ...], spot: Spot, *, additive: bool) -> Code:
    """Return the closure of `a + b - c`, one loop: a long chain nests no deeper than a short one."""

    def run(frame: EvaluationFrame) -> Json:
        value = first(frame)
        for sign, operand in rest:
            right = operand(frame)
            if additive and sign == "+":
                value = add(value, right, frame, spot)
            else:
                value = arithmetic(sign, value, right, spot)
        return value

    return run


def negative(sign: str, operand: Code, spot: Spot) -> Code:
    """Return the closure of `-x` or `+x` for numbers."""

    def run(frame: EvaluationFrame) -> Json:
        value = operand(frame)
        if not is_number(value):
            raise MixedTypes(f"{sign!r} wants a number, not {type_name(value)}", spot=spot)
        return -value if sign == "-" else value

    return run
