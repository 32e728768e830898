"""Functions of the language. List functions accept null as an empty list, because a missing path is null."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from pointsman.expressions.environment import EvaluationFrame
from pointsman.expressions.failures import TEXT_CHARS_MAX, MixedTypes, Spot, TextTooLong
from pointsman.expressions.operators import (
    CHARS_PER_CHANGE_BITS,
    CHARS_PER_VISIT_BITS,
    PARTS_PER_VISIT_BITS,
    bounded_text,
    calculated,
    is_number,
    json_text,
    member,
    ordered,
    parts,
    text_of,
    type_name,
)
from pointsman.values import Json


class FunctionEntry(NamedTuple):
    """Description of one function."""

    signature: str
    about: str


MANUAL: Final[dict[str, FunctionEntry]] = {
    "abs": FunctionEntry("abs(x)", "The absolute value of a number."),
    "all": FunctionEntry(
        "all(list, x => …)", "True if the lambda is true for every element; without a lambda, if every element is true."
    ),
    "any": FunctionEntry(
        "any(list, x => …)",
        "True if the lambda is true for at least one element; without a lambda, if one element is true.",
    ),
    "bool": FunctionEntry("bool(x)", "The value as a boolean: false, null, 0 and empty values are false."),
    "capitalize": FunctionEntry("capitalize(text)", "The text with a capital first letter and the rest in lower case."),
    "contains": FunctionEntry("contains(x, y)", "True if x contains y: an element, a key or a part of a text."),
    "count": FunctionEntry(
        "count(list, x => …)",
        "The number of elements for which the lambda is true; without a lambda, of elements that are true.",
    ),
    "default": FunctionEntry("default(x, y)", "x, or y if x is null or missing. Same as `x ?? y`."),
    "empty": FunctionEntry("empty(x)", "True if the value is null, missing or empty."),
    "endsWith": FunctionEntry("endsWith(text, end)", "True if the text ends with `end`."),
    "exists": FunctionEntry("exists(path)", "True if the path has a value, which may be null."),
    "filter": FunctionEntry("filter(list, x => …)", "The elements for which the lambda is true."),
    "find": FunctionEntry("find(list, x => …)", "The first element for which the lambda is true, or null."),
    "first": FunctionEntry("first(list)", "The first element, or the first character of a text; null if it is empty."),
    "int": FunctionEntry("int(x, otherwise)", "As `number`, without the decimal places."),
    "join": FunctionEntry("join(list, by)", 'The elements as one text, separated by `by`; default: ", ".'),
    "json": FunctionEntry("json(x, indent)", "The value as JSON; with `indent` on several lines."),
    "keys": FunctionEntry("keys(object)", "The keys of an object, in their order."),
    "last": FunctionEntry("last(list)", "The last element, or the last character of a text; null if it is empty."),
    "len": FunctionEntry("len(x)", "The number of characters, elements or keys; 0 for null."),
    "lines": FunctionEntry("lines(x)", "One line for each element, or `key: value` for each field."),
    "lower": FunctionEntry("lower(text)", "The text in lower case."),
    "map": FunctionEntry("map(list, x => …)", "The list of the lambda's results, one for each element."),
    "matches": FunctionEntry(
        'matches(text, "pattern")', "True if the text contains a match of the regular expression (RE2)."
    ),
    "max": FunctionEntry(
        "max(list, x => …)", "The largest number or text; with a lambda, the element with the largest result."
    ),
    "min": FunctionEntry(
        "min(list, x => …)", "The smallest number or text; with a lambda, the element with the smallest result."
    ),
    "number": FunctionEntry(
        "number(x, otherwise)", "The number that a text contains; `otherwise` if it is not a number."
    ),
    "replace": FunctionEntry("replace(text, old, new)", "The text with every `old` replaced by `new`."),
    "reverse": FunctionEntry("reverse(list)", "The elements, or the characters of a text, in reverse order."),
    "round": FunctionEntry(
        "round(x, digits)", "The number rounded to `digits` decimal places; a half is rounded to the even neighbour."
    ),
    "sort": FunctionEntry(
        "sort(list, x => …)", "The elements in ascending order; with a lambda, in the order of its results."
    ),
    "split": FunctionEntry("split(text, by)", "The parts of a text, split at `by`."),
    "startsWith": FunctionEntry("startsWith(text, start)", "True if the text starts with `start`."),
    "str": FunctionEntry("str(x)", "The value as text."),
    "sum": FunctionEntry("sum(list, x => …)", "The sum of the numbers; with a lambda, of its results."),
    "title": FunctionEntry("title(text)", "The text with a capital first letter in every word."),
    "trim": FunctionEntry("trim(text)", "The text without spaces at both ends."),
    "truncate": FunctionEntry("truncate(text, most)", "At most `most` characters; `…` replaces the rest."),
    "type": FunctionEntry("type(x)", '"null", "boolean", "number", "string", "array" or "object".'),
    "unique": FunctionEntry(
        "unique(list, x => …)", "Each element once; with a lambda, one element for each of its results."
    ),
    "upper": FunctionEntry("upper(text)", "The text in upper case."),
    "values": FunctionEntry("values(object)", "The values of an object, in their order."),
}
"""By name, in alphabetical order. Functions whose lambda is optional also take the list alone."""


Apply: TypeAlias = Callable[[EvaluationFrame, Json], Json]
"""A compiled lambda."""
Plain: TypeAlias = Callable[[EvaluationFrame, Spot, list[Json]], Json]
Over: TypeAlias = Callable[[EvaluationFrame, Spot, list[Json], Apply | None], Json]

JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,80})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
ROUND_DIGITS_MAX: Final = 15
TITLE_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Function:
    """Signature of a function: number of arguments, and whether the last may (or must) be a lambda."""

    least: int
    most: int
    plain: Plain | None = None
    over: Over | None = None
    """Implementation of a function that takes a list and possibly a lambda."""
    needs_lambda: bool = False


def wrong(name: str, expected: str, got: Json, spot: Spot) -> MixedTypes:
    """Return the failure of a function that expects another type."""
    return MixedTypes(f"{name}() requires {expected}, not {type_name(got)}", spot=spot)


def length(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value = arguments[0]
    if value is None:
        return 0
    if isinstance(value, str | list | dict):
        return len(value)
    raise wrong("len", "a text, list or object", value, spot)


def on_text(name: str, change: Callable[[str], str]) -> Plain:
    """Make a function from text to text; null stays null."""

    def run(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
        value = arguments[0]
        if value is None:
            return None
        if not isinstance(value, str):
            raise wrong(name, "a text", value, spot)
        bounded_text(len(value), frame, spot)
        frame.spend(len(value) >> CHARS_PER_CHANGE_BITS, spot)
        changed = change(value)
        bounded_text(len(changed), frame, spot)
        return changed

    return run


def on_start(name: str, test: Callable[[str, str], bool]) -> Plain:
    """Make a test of two texts; false if one is null."""

    def run(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
        value, piece = arguments
        if value is None or piece is None:
            return False
        if isinstance(value, str) and isinstance(piece, str):
            return test(value, piece)
        raise wrong(name, "two texts", piece if isinstance(value, str) else value, spot)

    return run


def contains(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    return member(arguments[1], arguments[0], frame, spot)


def text(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    return text_of(arguments[0], frame, spot)


def number(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value = arguments[0]
    if isinstance(value, bool):
        return int(value)
    if is_number(value):
        return value
    if isinstance(value, str):
        digits = value.strip() if len(value) <= 400 else ""
        if JSON_NUMBER.fullmatch(digits):
            parsed = int(digits) if digits.lstrip("-").isdigit() else float(digits)
            return calculated(lambda: parsed, spot)
    if len(arguments) == 2:
        return arguments[1]
    if value is None:
        return None
    raise MixedTypes(
        f"number() cannot read this {type_name(value)} as a number",
        spot=spot,
        hint="A second argument is used instead: `number(x, 0)`.",
    )


def absolute(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value = arguments[0]
    if value is None:
        return None
    if is_number(value):
        return abs(value)
    raise wrong("abs", "a number", value, spot)


def rounded(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    """Round; half goes to the even neighbour, as in IEEE 754 and Python."""
    value = arguments[0]
    if value is None:
        return None
    if not is_number(value):
        raise wrong("round", "a number", value, spot)
    if len(arguments) == 1:
        return round(value)
    digits = arguments[1]
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > ROUND_DIGITS_MAX:
        raise wrong("round", f"0 to {ROUND_DIGITS_MAX} digits", digits, spot)
    return calculated(lambda: round(value, digits), spot)


def type_of(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    return type_name(arguments[0])


def keys(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value = fields("keys", frame, spot, arguments[0])
    return list[Json](value)


def values(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    return list(fields("values", frame, spot, arguments[0]).values())


def fields(name: str, frame: EvaluationFrame, spot: Spot, value: Json) -> dict[str, Json]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(name, "an object", value, spot)
    frame.spend(len(value), spot)
    return value


def join(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    separator = arguments[1] if len(arguments) == 2 else ", "
    if not isinstance(separator, str):
        raise wrong("join", "a text between the elements", separator, spot)
    pieces: list[str] = []
    chars = 0
    for element in elements("join", frame, spot, arguments[0]):
        piece = text_of(element, frame, spot)
        chars += len(piece) + len(separator)
        if chars > TEXT_CHARS_MAX:
            break
        pieces.append(piece)
    bounded_text(chars, frame, spot)
    return separator.join(pieces)


def split(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value, separator = arguments
    if value is None:
        return []
    if not isinstance(value, str):
        raise wrong("split", "a text", value, spot)
    if not isinstance(separator, str) or not separator:
        raise wrong("split", "a separator that is not empty", separator, spot)
    bounded_text(len(value), frame, spot)
    frame.spend(value.count(separator) + 1, spot)
    return list[Json](value.split(separator))


def elements(name: str, frame: EvaluationFrame, spot: Spot, value: Json) -> list[Json]:
    """Return the elements of a list, after deducting them from the budget."""
    if value is None:
        return []
    if not isinstance(value, list):
        hint = "For an object use `values(x)`." if isinstance(value, dict) else ""
        raise MixedTypes(f"{name}() requires a list, not {type_name(value)}", spot=spot, hint=hint)
    frame.spend(len(value), spot)
    return value


def extreme(name: str, sign: str) -> Over:
    """Make `min` or `max` of a list, or of several arguments; null for an empty list."""

    def run(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
        result: Json = None
        best: Json = None
        for element in elements(name, frame, spot, arguments[0] if len(arguments) == 1 else arguments):
            weight = apply(frame, element) if apply else element
            if weight is None or isinstance(weight, bool | list | dict):
                raise wrong(name, "numbers or texts", weight, spot)
            if best is None or ordered(sign, weight, best, spot):
                best, result = weight, element
        return result

    return run


def total(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    running: int | float = 0
    for element in elements("sum", frame, spot, arguments[0]):
        value = apply(frame, element) if apply else element
        if not is_number(value):
            raise wrong("sum", "numbers", value, spot)
        before = running
        running = calculated(lambda a=before, b=value: a + b, spot)
    return running


def any_of(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    return any(apply(frame, x) if apply else x for x in elements("any", frame, spot, arguments[0]))


def all_of(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    return all(apply(frame, x) if apply else x for x in elements("all", frame, spot, arguments[0]))


def filtered(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    return [x for x in elements("filter", frame, spot, arguments[0]) if (apply(frame, x) if apply else x)]


def mapped(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    return [apply(frame, x) if apply else x for x in elements("map", frame, spot, arguments[0])]


def found_in(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    return next((x for x in elements("find", frame, spot, arguments[0]) if (apply(frame, x) if apply else x)), None)


def counted(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    listed = elements("count", frame, spot, arguments[0])
    return sum(1 for x in listed if apply(frame, x)) if apply else len(listed)


def arranged(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    listed = elements("sort", frame, spot, arguments[0])
    weights = [apply(frame, x) for x in listed] if apply else listed
    numbers = [w for w in weights if is_number(w)]
    texts = [w for w in weights if isinstance(w, str)]
    order: Iterable[int]
    if len(numbers) == len(weights):
        order = sorted(range(len(listed)), key=numbers.__getitem__)
    elif len(texts) == len(weights):
        order = sorted(range(len(listed)), key=texts.__getitem__)
    else:
        kinds = " and ".join(sorted({type_name(weight) for weight in weights}))
        raise MixedTypes(f"sort() requires only numbers or only texts to sort by, not {kinds}", spot=spot)
    return [listed[i] for i in order]


def distinct(frame: EvaluationFrame, spot: Spot, arguments: list[Json], apply: Apply | None) -> Json:
    first: dict[Hashable, Json] = {}
    for element in elements("unique", frame, spot, arguments[0]):
        weight = apply(frame, element) if apply else element
        if isinstance(weight, list | dict):
            frame.spend(parts(weight, frame.visits_left), spot)
        first.setdefault(frozen(weight), element)
    return list(first.values())


def frozen(value: Json) -> Hashable:
    """Return a hash key that is equal exactly if the values are: it includes types that Python would confuse."""
    if isinstance(value, list):
        return ("array", tuple(frozen(part) for part in value))
    if isinstance(value, dict):
        return ("object", frozenset((key, frozen(part)) for key, part in value.items()))
    return (type_name(value), value)


def titled(text: str) -> str:
    return TITLE_WORD.sub(lambda match: match[0][0].upper() + match[0][1:].lower(), text)


def first_of(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    return end_of("first", arguments[0], 0, spot)


def last_of(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    return end_of("last", arguments[0], -1, spot)


def end_of(name: str, value: Json, at: int, spot: Spot) -> Json:
    """Return one end of a list or text; null if it is empty."""
    if value is None or value in ("", []):
        return None
    if not isinstance(value, str | list):
        raise wrong(name, "a list or text", value, spot)
    return value[at]


def reverse(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value = arguments[0]
    if isinstance(value, str):
        bounded_text(len(value), frame, spot)
        return value[::-1]
    return elements("reverse", frame, spot, value)[::-1]


def replace(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value, old, new = arguments
    if value is None:
        return None
    if not isinstance(value, str) or not isinstance(old, str) or not isinstance(new, str):
        raise wrong(
            "replace", "three texts", next(argument for argument in arguments if not isinstance(argument, str)), spot
        )
    if not old:
        return value
    frame.spend(len(value) >> CHARS_PER_VISIT_BITS, spot)
    bounded_text(len(value) + value.count(old) * max(len(new) - len(old), 0), frame, spot)
    return value.replace(old, new)


def truncate(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value, most = arguments[0], arguments[1]
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong("truncate", "a text", value, spot)
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise wrong("truncate", "a number of characters, 1 or more,", most, spot)
    if len(value) <= most:
        return value
    frame.spend(most >> CHARS_PER_VISIT_BITS, spot)
    return value[: most - 1] + "…"


def whole_number(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value = number(frame, spot, arguments)
    return int(value) if isinstance(value, float) else value


def as_json(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value, indent = arguments[0], arguments[1] if len(arguments) == 2 else None
    if indent is not None and (not isinstance(indent, int) or isinstance(indent, bool) or not 0 <= indent <= 8):
        raise wrong("json", "an indent from 0 to 8", indent, spot)
    return written_json(value, frame, spot, indent)


def lines(frame: EvaluationFrame, spot: Spot, arguments: list[Json]) -> Json:
    value = arguments[0]
    if not isinstance(value, list | dict):
        return shown(value, frame, spot)
    frame.spend(len(value), spot)
    rows = value.items() if isinstance(value, dict) else [("", element) for element in value]
    room(value, frame, spot)
    written = "\n".join((f"{key}: " if key else "") + shown(part, frame, spot) for key, part in rows)
    bounded_text(len(written), frame, spot)
    return written


def shown(value: Json, frame: EvaluationFrame, spot: Spot) -> str:
    """Return a value as a template writes it: text unchanged, null as nothing, anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return written_json(value, frame, spot)


def written_json(value: Json, frame: EvaluationFrame, spot: Spot, indent: int | None = None) -> str:
    """Return a value as JSON of a bounded length."""
    room(value, frame, spot)
    written = json_text(value, indent)
    frame.spend(len(written) >> CHARS_PER_CHANGE_BITS, spot)
    bounded_text(len(written), frame, spot)
    return written


def room(value: Json, frame: EvaluationFrame, spot: Spot) -> None:
    """Raise `TextTooLong` before a value is written whose text
    would be too long: every part takes at least two characters."""
    count = parts(value, TEXT_CHARS_MAX // 2, TEXT_CHARS_MAX)
    if count > TEXT_CHARS_MAX // 2:
        raise TextTooLong(f"a text can have at most {TEXT_CHARS_MAX} characters", spot=spot)
    frame.spend(count >> PARTS_PER_VISIT_BITS, spot)


FUNCTIONS: Final[dict[str, Function]] = {
    "len": Function(1, 1, length),
    "lower": Function(1, 1, on_text("lower", str.lower)),
    "upper": Function(1, 1, on_text("upper", str.upper)),
    "trim": Function(1, 1, on_text("trim", str.strip)),
    "title": Function(1, 1, on_text("title", titled)),
    "capitalize": Function(1, 1, on_text("capitalize", str.capitalize)),
    "replace": Function(3, 3, replace),
    "truncate": Function(2, 2, truncate),
    "first": Function(1, 1, first_of),
    "last": Function(1, 1, last_of),
    "reverse": Function(1, 1, reverse),
    "json": Function(1, 2, as_json),
    "lines": Function(1, 1, lines),
    "int": Function(1, 2, whole_number),
    "startsWith": Function(2, 2, on_start("startsWith", lambda value, piece: value.startswith(piece))),
    "endsWith": Function(2, 2, on_start("endsWith", lambda value, piece: value.endswith(piece))),
    "contains": Function(2, 2, contains),
    "str": Function(1, 1, text),
    "number": Function(1, 2, number),
    "bool": Function(1, 1, lambda frame, spot, arguments: bool(arguments[0])),
    "abs": Function(1, 1, absolute),
    "round": Function(1, 2, rounded),
    "type": Function(1, 1, type_of),
    "keys": Function(1, 1, keys),
    "values": Function(1, 1, values),
    "join": Function(1, 2, join),
    "split": Function(2, 2, split),
    "min": Function(1, 64, over=extreme("min", "<")),
    "max": Function(1, 64, over=extreme("max", ">")),
    "sum": Function(1, 2, over=total),
    "any": Function(1, 2, over=any_of),
    "all": Function(1, 2, over=all_of),
    "count": Function(1, 2, over=counted),
    "sort": Function(1, 2, over=arranged),
    "unique": Function(1, 2, over=distinct),
    "filter": Function(2, 2, over=filtered, needs_lambda=True),
    "map": Function(2, 2, over=mapped, needs_lambda=True),
    "find": Function(2, 2, over=found_in, needs_lambda=True),
}
"""All functions except `exists`, `empty`, `default` and `matches`: the compiler inspects the arguments of those."""

SPECIAL: Final = {"exists": (1, 1), "empty": (1, 1), "default": (2, 2), "matches": (2, 2)}

ALIASES: Final = {
    "length": "len",
    "starts_with": "startsWith",
    "startswith": "startsWith",
    "ends_with": "endsWith",
    "endswith": "endsWith",
    "includes": "contains",
    "toLowerCase": "lower",
    "to_lower_case": "lower",
    "toUpperCase": "upper",
    "to_upper_case": "upper",
    "strip": "trim",
    "toString": "str",
    "to_string": "str",
    "string": "str",
    "float": "number",
    "tojson": "json",
    "to_json": "json",
    "toJson": "json",
    "uppercase": "upper",
    "lowercase": "lower",
    "size": "len",
    "d": "default",
    "uniq": "unique",
    "capfirst": "capitalize",
    "some": "any",
    "every": "all",
}
"""Spellings of other languages, so that a copied condition keeps its meaning."""

INSTEAD: Final = {
    "safe": "Values are inserted unchanged: remove it.",
    "escape": "Values are inserted unchanged, and cannot be escaped.",
    "e": "Values are inserted unchanged, and cannot be escaped.",
    "selectattr": "Write `filter(x => x.name)`.",
    "rejectattr": "Write `filter(x => not x.name)`.",
    "attr": "Write `x.name`.",
    "list": "Remove it, or use `keys(x)` or `values(x)` for an object.",
    "items": "Write `{{#each x}}{{@key}}: {{this}}{{/each}}`, or `lines(x)`.",
    "dictsort": "Write `lines(x)`, or `sort(keys(x))`.",
    "date": "Dates are texts: take `truncate(x, 10)`, or format them in a code node.",
    "format": "Join texts with `+`.",
}
"""Functions of other template languages that do not exist here, and what to write instead."""
