"""Evaluation of a JSONPath query (RFC 9535) within limits: every visit is counted.

The library's own evaluator keeps the location of every node and cannot be bounded; its tree is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, cast

from iregexp_check import check
from jsonpath_rfc9535 import JSONPathQuery
from jsonpath_rfc9535.filter_expressions import (
    ComparisonExpression,
    Expression,
    FilterExpression,
    FilterExpressionLiteral,
    FilterQuery,
    FunctionExtension,
    LogicalExpression,
    PrefixExpression,
    RootFilterQuery,
)
from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment
from jsonpath_rfc9535.selectors import (
    FilterSelector,
    IndexSelector,
    JSONPathSelector,
    NameSelector,
    SliceSelector,
    WildcardSelector,
)

from pointsman.expressions.environment import MISSING, Missing
from pointsman.expressions.failures import (
    COMPILED_MAX,
    JSONPATH_SEGMENTS_MAX,
    JSONPATH_VISITS_MAX,
    BadPattern,
    DataTooDeep,
    Spot,
    TooManyVisits,
)
from pointsman.expressions.operators import is_number
from pointsman.expressions.patterns import Pattern, compile_pattern
from pointsman.values import Json


class JsonPath:
    """A compiled query. Immutable and shareable."""

    def __init__(self, source: str, query: JSONPathQuery) -> None:
        self.source = source
        self._query = query

    def find(self, value: Json) -> list[Json]:
        """Return the values that the query selects, in the order of the RFC. Raises `TooManyVisits`."""

        spot = Spot(self.source, 0, len(self.source))
        try:
            return QueryEvaluation(value, JSONPATH_VISITS_MAX).select(self._query, value)
        except BudgetSpent:
            raise TooManyVisits(
                f"the query visits more than {JSONPATH_VISITS_MAX} nodes",
                spot=spot,
                hint="Start deeper in the data, or avoid `..`.",
            ) from None
        except RecursionError:
            raise DataTooDeep("the data is nested too deeply for this query", spot=spot) from None

    def __repr__(self) -> str:
        return f"JsonPath({self.source!r})"


CHARS_PER_VISIT: Final = 256


class BudgetSpent(Exception):
    """The evaluation visited too many values."""


class QueryEvaluation:
    """One evaluation over one document."""

    def __init__(self, root: Json, visits: int) -> None:
        self.root = root
        self.visits_left = visits

    def spend(self, visits: int = 1) -> None:
        self.visits_left -= visits
        if self.visits_left < 0:
            raise BudgetSpent

    def select(self, query: JSONPathQuery, start: Json) -> list[Json]:
        """Return the values that `query` selects from `start`."""
        values = [start]
        for segment in query.segments:
            sources: Iterable[Json] = values
            if isinstance(segment, JSONPathRecursiveDescentSegment):
                sources = (below for value in values for below in self.descendants(value))
            values = [
                part for value in sources for selector in segment.selectors for part in self.parts(selector, value)
            ]
        return values

    def descendants(self, value: Json) -> Iterator[Json]:
        """Yield a value and all lists and objects below it, parents first."""
        waiting = [value]
        while waiting:
            part = waiting.pop()
            self.spend()
            yield part
            below = children(part)
            waiting.extend(child for child in reversed(below) if isinstance(child, list | dict))

    def parts(self, selector: JSONPathSelector, value: Json) -> list[Json]:
        self.spend()
        match selector:
            case NameSelector():
                return [value[selector.name]] if isinstance(value, dict) and selector.name in value else []
            case IndexSelector():
                inside = isinstance(value, list) and -len(value) <= selector.index < len(value)
                return [value[selector.index]] if inside and isinstance(value, list) else []
            case SliceSelector():
                selected = value[selector.slice] if isinstance(value, list) and selector.slice.step != 0 else []
            case WildcardSelector():
                selected = children(value)
            case FilterSelector():
                selected = [child for child in children(value) if self.keeps(selector.expression, child)]
            case _:
                raise TypeError(f"unknown selector {selector!r}")
        self.spend(len(selected))
        return selected

    def keeps(self, expression: Expression, current: Json) -> bool:
        """Return whether a filter is true for one child."""
        self.spend()
        match expression:
            case FilterExpression():
                return self.keeps(expression.expression, current)
            case LogicalExpression():
                left = self.keeps(expression.left, current)
                # The sides have no side effects, so the right one is only evaluated if the left one does not decide.
                if left is (expression.operator == "||"):
                    return left
                return self.keeps(expression.right, current)
            case PrefixExpression():
                return not self.keeps(expression.right, current)
            case ComparisonExpression():
                left, right = self.operand(expression.left, current), self.operand(expression.right, current)
                return self.compare(expression.operator, left, right)
            case FilterQuery():
                return bool(self.query(expression, current))
            case FunctionExtension():
                return self.call(expression, current) is True
            case _:
                raise TypeError(f"unknown filter {expression!r}")

    def query(self, expression: FilterQuery, current: Json) -> list[Json]:
        start = self.root if isinstance(expression, RootFilterQuery) else current
        return self.select(expression.query, start)

    def operand(self, expression: Expression, current: Json) -> Json | Missing:
        """Return one side of a comparison; MISSING is what the RFC calls Nothing."""
        match expression:
            case FilterExpressionLiteral():
                return cast("Json", expression.value)  # pyright: ignore[reportUnknownMemberType]  # a JSON scalar
            case FilterQuery():
                values = self.query(expression, current)
                return values[0] if len(values) == 1 else MISSING
            case FunctionExtension():
                return self.call(expression, current)
            case _:
                raise TypeError(f"unknown operand {expression!r}")

    def compare(self, operator: str, left: Json | Missing, right: Json | Missing) -> bool:
        match operator:
            case "==":
                return self.same(left, right)
            case "!=":
                return not self.same(left, right)
            case "<":
                return less(left, right)
            case ">":
                return less(right, left)
            case "<=":
                return less(left, right) or self.same(left, right)
            case _:
                return less(right, left) or self.same(left, right)

    def same(self, left: Json | Missing, right: Json | Missing) -> bool:
        """Return deep equality, without conversion between JSON types."""
        self.spend()
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(self.same, left, right))
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(self.same(value, right[key]) for key, value in left.items())
        if isinstance(left, bool) or isinstance(right, bool):
            return left is right
        return left == right

    def call(self, expression: FunctionExtension, current: Json) -> Json | Missing:
        """Call one of the five functions of the RFC; the parser of the query has checked the arguments."""
        first = expression.args[0]
        if expression.name == "count" and isinstance(first, FilterQuery):
            return len(self.query(first, current))
        value = self.operand(first, current)
        match expression.name:
            case "value":
                return value
            case "length":
                return len(value) if isinstance(value, str | list | dict) else MISSING
            case name:
                return self.matches(name, value, self.operand(expression.args[1], current))

    def matches(self, name: str, text: Json | Missing, pattern: Json | Missing) -> bool:
        """Evaluate `match` (the whole text) or `search` (anywhere in it)."""
        if not isinstance(text, str) or not isinstance(pattern, str):
            return False
        self.spend(1 + len(text) // CHARS_PER_VISIT)
        compiled = portable_pattern(pattern)
        if compiled is None:
            return False
        return (compiled.fullmatch(text) if name == "match" else compiled.search(text)) is not None


def children(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def less(left: Json | Missing, right: Json | Missing) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    return is_number(left) and is_number(right) and left < right


@lru_cache(maxsize=COMPILED_MAX)
def portable_pattern(pattern: str) -> Pattern | None:
    """Translate an I-Regexp (RFC 9485) to RE2; None if it is not a valid one: it matches nothing."""
    if not check(pattern):
        return None
    pieces: list[str] = []
    escaped = inside = False
    for character in pattern:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "[]":
            inside = character == "["
        elif character == "." and not inside:
            character = r"[^\r\n]"
        pieces.append(character)
    try:
        return compile_pattern("".join(pieces), Spot(pattern, 0, len(pattern)))
    except BadPattern:
        return None


def check_query(query: JSONPathQuery, *, inside_filter: bool = False) -> str:
    """Return why a well-formed query is not allowed; "" if it is."""
    if len(query.segments) > JSONPATH_SEGMENTS_MAX:
        return f"a query has at most {JSONPATH_SEGMENTS_MAX} segments"
    for segment in query.segments:
        if inside_filter and isinstance(segment, JSONPathRecursiveDescentSegment):
            return "`..` is not allowed inside a filter"
        for selector in segment.selectors:
            if isinstance(selector, FilterSelector):
                for inner in queries_in(selector.expression):
                    if reason := check_query(inner, inside_filter=True):
                        return reason
    return ""


def queries_in(expression: Expression) -> Iterator[JSONPathQuery]:
    """Yield the queries inside a filter."""
    waiting: list[Expression] = [expression]
    while waiting:
        match part := waiting.pop():
            case FilterExpression():
                waiting.append(part.expression)
            case LogicalExpression() | ComparisonExpression():
                waiting += [part.left, part.right]
            case PrefixExpression():
                waiting.append(part.right)
            case FunctionExtension():
                waiting += part.args
            case FilterQuery():
                yield part.query
            case _:
                pass
