"""Operations on JSON values: truth, equality, order, arithmetic, membership, text.

They never convert types. An operation that is not defined for its operands fails, and the message names both types.

Conditions of edges have two equalities: `equals` by type for values, `same_label` by text for branch labels.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Final, TypeGuard

from pointsman.expressions.environment import EvaluationFrame
from pointsman.expressions.failures import (
    INTEGER_BITS_MAX,
    TEXT_CHARS_MAX,
    DividedByZero,
    MixedTypes,
    NumberOutOfRange,
    Spot,
    TextTooLong,
)
from pointsman.json_meter import LEVELS_MAX, is_deeper
from pointsman.values import Json

CHARS_PER_VISIT_BITS: Final = 12
"""Scanning or copying 4 096 characters of text costs as much as visiting one element."""
CHARS_PER_CHANGE_BITS: Final = 8
"""Changing the case of 256 characters, or writing them as JSON, costs as much as visiting one element."""
PARTS_PER_VISIT_BITS: Final = 5
"""Counting and writing 32 parts of a value costs as much as visiting one element."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether the value is a JSON number: Python's `bool` is an `int`, JSON's is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: Json) -> TypeGuard[int | float]:
    """Return whether the value is a number without a fraction."""
    return is_number(value) and (isinstance(value, int) or value.is_integer())


def type_name(value: Json) -> str:
    """Return the type of a value as JSON Schema names it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def equal(left: Json, right: Json, frame: EvaluationFrame, spot: Spot) -> bool:
    """Return deep equality without coercion: `1 == 1.0`, but `true != 1` and `"1" != 1`."""
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        frame.spend(len(left), spot)
        return all(equal(a, b, frame, spot) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        frame.spend(len(left), spot)
        return all(equal(value, right[key], frame, spot) for key, value in left.items())
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str):
        frame.spend(len(left) >> CHARS_PER_VISIT_BITS, spot)
    return left == right


def ordered(sign: str, left: Json, right: Json, spot: Spot) -> bool:
    """Evaluate `<`, `<=`, `>` or `>=`: numbers with numbers, texts with texts; false if a side is null or missing."""
    if left is None or right is None:
        return False
    if is_number(left) and is_number(right):
        return ORDER[sign](left, right)
    if isinstance(left, str) and isinstance(right, str):
        return TEXT_ORDER[sign](left, right)
    raise mixed(sign, left, right, spot)


ORDER: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
TEXT_ORDER: Final[dict[str, Callable[[str, str], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def member(needle: Json, hay: Json, frame: EvaluationFrame, spot: Spot) -> bool:
    """Evaluate `in`: element of a list, key of an object, part of a text; false for null."""
    if hay is None:
        return False
    if isinstance(hay, list):
        frame.spend(len(hay), spot)
        return any(equal(needle, element, frame, spot) for element in hay)
    if isinstance(hay, dict):
        return isinstance(needle, str) and needle in hay
    if isinstance(hay, str) and isinstance(needle, str):
        frame.spend(len(hay) >> CHARS_PER_VISIT_BITS, spot)
        return needle in hay
    raise mixed("in", needle, hay, spot)


def add(left: Json, right: Json, frame: EvaluationFrame, spot: Spot) -> Json:
    """Evaluate `+` for numbers, texts or lists."""
    if isinstance(left, str) and isinstance(right, str):
        bounded_text(len(left) + len(right), frame, spot)
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        frame.spend(len(left) + len(right), spot)
        return left + right
    if is_number(left) and is_number(right):
        return calculated(lambda: left + right, spot)
    hint = "Convert a value to text with `str(x)`." if isinstance(left, str) or isinstance(right, str) else ""
    raise mixed("+", left, right, spot, hint)


def arithmetic(sign: str, left: Json, right: Json, spot: Spot) -> Json:
    """Evaluate `- * / // %` on numbers. `/` of integers stays an integer if it divides evenly; `//` and `%` floor."""
    if not is_number(left) or not is_number(right):
        raise mixed(sign, left, right, spot)
    match sign:
        case "-":
            return calculated(lambda: left - right, spot)
        case "*":
            return calculated(lambda: left * right, spot)
        case _ if right == 0:
            raise DividedByZero(
                f"{left!r} {sign} 0 has no value", spot=spot, hint="Check first that the divisor is not 0."
            )
        case "/":
            if isinstance(left, int) and isinstance(right, int) and left % right == 0:
                return left // right
            return calculated(lambda: left / right, spot)
        case "//":
            return calculated(lambda: left // right, spot)
        case _:
            return calculated(lambda: left % right, spot)


def calculated(compute: Callable[[], int | float], spot: Spot) -> int | float:
    """Return a number that JSON and the language can represent. Raises the matching failure."""
    try:
        number = compute()
    except OverflowError:
        number = math.inf
    if isinstance(number, int):
        if number.bit_length() <= INTEGER_BITS_MAX:
            return number
        raise NumberOutOfRange(f"integers have at most {INTEGER_BITS_MAX} bits", spot=spot)
    if math.isfinite(number):
        return number
    raise NumberOutOfRange("the result is not a finite number", spot=spot)


def text_of(value: Json, frame: EvaluationFrame, spot: Spot) -> str:
    """Return a value as text: a text unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        frame.spend(parts(value, frame.visits_left), spot)
    text = json_text(value)
    bounded_text(len(text), frame, spot)
    return text


def json_text(value: Json, indent: int | None = None) -> str:
    """Return a value as JSON. Raises `RecursionError` if it nests too deeply, in every version of Python alike."""
    if type(value) is int:
        return int.__repr__(value)
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.count("[") + text.count("{") > LEVELS_MAX and is_deeper(text.encode(errors="replace"), LEVELS_MAX):
        raise RecursionError
    return text


def parts(value: Json, most: int, chars: int | None = None) -> int:
    """Count the values that `value` consists of; a shared one counts as often as it occurs.

    Stops above `most`; with `chars`, also above that many characters (the result is then more than `most`).
    """
    count = 0
    waiting: list[Json] = [value]
    while waiting and count <= most:
        part = waiting.pop()
        count += 1
        if isinstance(part, list):
            if count + len(waiting) + len(part) > most:
                return most + 1
            waiting.extend(part)
        elif isinstance(part, dict):
            if count + len(waiting) + len(part) > most:
                return most + 1
            waiting.extend(part.values())
            if chars is not None:
                chars -= sum(map(len, part))
        elif isinstance(part, str) and chars is not None:
            chars -= len(part)
        if chars is not None and chars < 0:
            return most + 1
    return count


def bounded_text(chars: int, frame: EvaluationFrame, spot: Spot) -> None:
    """Deduct the cost of a text of `chars` characters. Raises `TextTooLong`."""
    if chars > TEXT_CHARS_MAX:
        raise TextTooLong(f"a formula can build texts of at most {TEXT_CHARS_MAX} characters", spot=spot)
    frame.spend(chars >> CHARS_PER_VISIT_BITS, spot)


def mixed(sign: str, left: Json, right: Json, spot: Spot, hint: str = "") -> MixedTypes:
    """Return the failure of an operator for two types."""
    if not hint and (left is None or right is None):
        hint = "A missing value is null; give it one with `??`."
    return MixedTypes(f"{sign!r} is not defined between {type_name(left)} and {type_name(right)}", spot=spot, hint=hint)


def equals(value: Json, literal: Json) -> bool:
    """Return deep equality with types: `1` equals `1.0`; `true` equals neither `1` nor `"true"`."""
    if isinstance(value, list):
        if not isinstance(literal, list) or len(value) != len(literal):
            return False
        return all(equals(a, b) for a, b in zip(value, literal, strict=True))
    if isinstance(value, dict):
        if not isinstance(literal, dict) or value.keys() != literal.keys():
            return False
        return all(equals(part, literal[key]) for key, part in value.items())
    if isinstance(value, bool) or isinstance(literal, bool):
        return value is literal
    return value == literal


def label_of(value: Json) -> str | None:
    """Return a branch label as text: `true` is "true", `2` is "2". Null, lists and objects are not labels."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value)


def same_label(left: Json, right: Json) -> bool:
    """Return whether two values name the same branch. Null names no branch."""
    label = label_of(left)
    return label is not None and label == label_of(right)
