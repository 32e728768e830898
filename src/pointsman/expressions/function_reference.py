"""What each function of the language is called with, and gives: for people, and for editors that complete."""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """One function."""

    signature: str
    about: str


MANUAL: Final[dict[str, Entry]] = {
    "abs": Entry("abs(x)", "The number without its sign."),
    "all": Entry("all(list, x => …)", "Whether it holds for each element; without a lambda: whether each is true."),
    "any": Entry("any(list, x => …)", "Whether it holds for one element; without a lambda: whether one is true."),
    "bool": Entry("bool(x)", "Whether it counts as true: not false, null, 0, empty."),
    "capitalize": Entry("capitalize(text)", "With a capital first letter, the rest in small letters."),
    "contains": Entry("contains(x, y)", "Whether y is in x: an element, a key, a piece of text."),
    "count": Entry("count(list, x => …)", "For how many elements it holds; without a lambda: how many are true."),
    "default": Entry("default(x, y)", "x, or y where x is null or missing. As `x ?? y`."),
    "empty": Entry("empty(x)", "Whether it is null, missing or without content."),
    "endsWith": Entry("endsWith(text, end)", "Whether the text ends so."),
    "exists": Entry("exists(path)", "Whether the path leads somewhere, also to null."),
    "filter": Entry("filter(list, x => …)", "The elements for which it holds."),
    "find": Entry("find(list, x => …)", "The first element for which it holds, or null."),
    "first": Entry("first(list)", "The first element, or the first character of a text; null of nothing."),
    "int": Entry("int(x, otherwise)", "As `number`, without what stands behind the point."),
    "join": Entry("join(list, by)", 'The elements as one text, with `by` between them: ", " where it is left out.'),
    "json": Entry("json(x, indent)", "As JSON text; with `indent` on several lines."),
    "keys": Entry("keys(object)", "The object's keys, in its order."),
    "last": Entry("last(list)", "The last element, or the last character of a text; null of nothing."),
    "len": Entry("len(x)", "How many characters, elements or keys; 0 of null."),
    "lines": Entry("lines(x)", "One line for each element, or `key: value` for each field."),
    "lower": Entry("lower(text)", "In small letters."),
    "map": Entry("map(list, x => …)", "What the lambda gives for each element."),
    "matches": Entry('matches(text, "pattern")', "Whether the regular expression (RE2) is found in the text."),
    "max": Entry("max(list, x => …)", "The largest number or text; with a lambda the element that is largest by it."),
    "min": Entry("min(list, x => …)", "The smallest number or text; with a lambda the element that is smallest by it."),
    "number": Entry("number(x, otherwise)", "A number read from a text; `otherwise` where it is none."),
    "replace": Entry("replace(text, old, new)", "The text with every `old` replaced by `new`."),
    "reverse": Entry("reverse(list)", "The elements, or the characters of a text, in reverse order."),
    "round": Entry("round(x, digits)", "Rounded; half goes to the even neighbour."),
    "sort": Entry("sort(list, x => …)", "The elements in order; with a lambda in the order of what it gives."),
    "split": Entry("split(text, by)", "The pieces of a text between `by`."),
    "startsWith": Entry("startsWith(text, start)", "Whether the text starts so."),
    "str": Entry("str(x)", "As text."),
    "sum": Entry("sum(list, x => …)", "The numbers added up; with a lambda what it gives for each element."),
    "title": Entry("title(text)", "Every word with a capital first letter."),
    "trim": Entry("trim(text)", "Without blanks at both ends."),
    "truncate": Entry("truncate(text, most)", "At most so many characters; `…` stands for what was cut."),
    "type": Entry("type(x)", '"null", "boolean", "number", "string", "array" or "object".'),
    "unique": Entry("unique(list, x => …)", "Each element once; with a lambda one of each that it gives."),
    "upper": Entry("upper(text)", "In capital letters."),
    "values": Entry("values(object)", "The object's values, in its order."),
}
"""By name, in the order of the alphabet. Functions without the lambda that is shown take the list alone."""
