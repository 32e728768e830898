"""Reference of the language's functions, their arguments and results: for people, and for completion in editors."""

from __future__ import annotations

from typing import Final, NamedTuple


class FunctionEntry(NamedTuple):
    """Description of one function."""

    signature: str
    about: str


MANUAL: Final[dict[str, FunctionEntry]] = {
    "abs": FunctionEntry("abs(x)", "The number without its sign."),
    "all": FunctionEntry(
        "all(list, x => …)", "Whether it holds for each element; without a lambda: whether each is true."
    ),
    "any": FunctionEntry(
        "any(list, x => …)", "Whether it holds for one element; without a lambda: whether one is true."
    ),
    "bool": FunctionEntry("bool(x)", "Whether it counts as true: not false, null, 0, empty."),
    "capitalize": FunctionEntry("capitalize(text)", "With a capital first letter, the rest in small letters."),
    "contains": FunctionEntry("contains(x, y)", "Whether y is in x: an element, a key, a piece of text."),
    "count": FunctionEntry(
        "count(list, x => …)", "For how many elements it holds; without a lambda: how many are true."
    ),
    "default": FunctionEntry("default(x, y)", "x, or y where x is null or missing. As `x ?? y`."),
    "empty": FunctionEntry("empty(x)", "Whether it is null, missing or without content."),
    "endsWith": FunctionEntry("endsWith(text, end)", "Whether the text ends so."),
    "exists": FunctionEntry("exists(path)", "Whether the path leads somewhere, also to null."),
    "filter": FunctionEntry("filter(list, x => …)", "The elements for which it holds."),
    "find": FunctionEntry("find(list, x => …)", "The first element for which it holds, or null."),
    "first": FunctionEntry("first(list)", "The first element, or the first character of a text; null of nothing."),
    "int": FunctionEntry("int(x, otherwise)", "As `number`, without what stands behind the point."),
    "join": FunctionEntry(
        "join(list, by)", 'The elements as one text, with `by` between them: ", " where it is left out.'
    ),
    "json": FunctionEntry("json(x, indent)", "As JSON text; with `indent` on several lines."),
    "keys": FunctionEntry("keys(object)", "The object's keys, in its order."),
    "last": FunctionEntry("last(list)", "The last element, or the last character of a text; null of nothing."),
    "len": FunctionEntry("len(x)", "How many characters, elements or keys; 0 of null."),
    "lines": FunctionEntry("lines(x)", "One line for each element, or `key: value` for each field."),
    "lower": FunctionEntry("lower(text)", "In small letters."),
    "map": FunctionEntry("map(list, x => …)", "What the lambda gives for each element."),
    "matches": FunctionEntry('matches(text, "pattern")', "Whether the regular expression (RE2) is found in the text."),
    "max": FunctionEntry(
        "max(list, x => …)", "The largest number or text; with a lambda the element that is largest by it."
    ),
    "min": FunctionEntry(
        "min(list, x => …)", "The smallest number or text; with a lambda the element that is smallest by it."
    ),
    "number": FunctionEntry("number(x, otherwise)", "A number read from a text; `otherwise` where it is none."),
    "replace": FunctionEntry("replace(text, old, new)", "The text with every `old` replaced by `new`."),
    "reverse": FunctionEntry("reverse(list)", "The elements, or the characters of a text, in reverse order."),
    "round": FunctionEntry("round(x, digits)", "Rounded; half goes to the even neighbour."),
    "sort": FunctionEntry("sort(list, x => …)", "The elements in order; with a lambda in the order of what it gives."),
    "split": FunctionEntry("split(text, by)", "The pieces of a text between `by`."),
    "startsWith": FunctionEntry("startsWith(text, start)", "Whether the text starts so."),
    "str": FunctionEntry("str(x)", "As text."),
    "sum": FunctionEntry("sum(list, x => …)", "The numbers added up; with a lambda what it gives for each element."),
    "title": FunctionEntry("title(text)", "Every word with a capital first letter."),
    "trim": FunctionEntry("trim(text)", "Without blanks at both ends."),
    "truncate": FunctionEntry("truncate(text, most)", "At most so many characters; `…` stands for what was cut."),
    "type": FunctionEntry("type(x)", '"null", "boolean", "number", "string", "array" or "object".'),
    "unique": FunctionEntry("unique(list, x => …)", "Each element once; with a lambda one of each that it gives."),
    "upper": FunctionEntry("upper(text)", "In capital letters."),
    "values": FunctionEntry("values(object)", "The object's values, in its order."),
}
"""By name, in alphabetical order. Functions whose lambda is optional also take the list alone."""
