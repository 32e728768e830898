"""Compiler from trees to closures: names are resolved once, so that evaluation only reads and computes.

An `Expression` is compiled once from text, and evaluated over an environment within limits.
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import Final

from pointsman.expressions.environment import MISSING, NATIVE, Environment, EvaluationFrame, Names
from pointsman.expressions.failures import (
    COMPILED_MAX,
    RESULT_CHARS_MAX,
    RESULT_NODES_MAX,
    DataTooDeep,
    MixedTypes,
    ResultTooLarge,
    Spot,
    UnknownFunction,
    WrongArguments,
)
from pointsman.expressions.functions import ALIASES, FUNCTIONS, INSTEAD, SPECIAL, Apply, Function, elements
from pointsman.expressions.name_resolution import Code, PathRead, PathReader
from pointsman.expressions.operators import (
    CHARS_PER_VISIT_BITS,
    add,
    arithmetic,
    is_number,
    member,
    ordered,
    parts,
    same_label,
    type_name,
    whole,
)
from pointsman.expressions.operators import equal as same
from pointsman.expressions.parser import parse_expression
from pointsman.expressions.patterns import compile_pattern
from pointsman.expressions.syntax_tree import (
    ADD,
    COALESCE,
    COMPARE,
    Chain,
    Comprehension,
    Conditional,
    Dollar,
    Each,
    FunctionCall,
    Get,
    Lambda,
    ListOf,
    Literal,
    Name,
    ObjectOf,
    Prefix,
    Slice,
    Tree,
    builds,
)
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
        values: list[Json] = []
        for element in elements("for", frame, spot, source(frame)):
            frame.slots[slot] = element
            if condition is None or condition(frame):
                values.append(body(frame))
        return values

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
            raise MixedTypes(f"matches() requires a text, not {type_name(value)}", spot=spot)
        frame.spend(len(value) >> CHARS_PER_PATTERN_VISIT_BITS, spot)
        return compiled.search(value) is not None

    return run


def cut(base: Code, start: Code | None, stop: Code | None, spot: Spot) -> Code:
    """Return the closure of a slice of a list or text; null for null. Bounds beyond the ends are cut to the ends."""

    def run(frame: EvaluationFrame) -> Json:
        value = base(frame)
        low, high = bound(start, frame, spot), bound(stop, frame, spot)
        if value is None:
            return None
        if isinstance(value, list):
            part = value[low:high]
            frame.spend(len(part), spot)
            return part
        if isinstance(value, str):
            piece = value[low:high]
            frame.spend(len(piece) >> CHARS_PER_VISIT_BITS, spot)
            return piece
        raise MixedTypes(f"only lists and texts can be sliced, not {type_name(value)}", spot=spot)

    return run


def bound(code: Code | None, frame: EvaluationFrame, spot: Spot) -> int | None:
    """Evaluate a bound of a slice; null and absent mean the end."""
    value = code(frame) if code else None
    if value is None:
        return None
    if whole(value):
        return int(value)
    raise MixedTypes(f"the bound of a slice must be a whole number, not {type_name(value)}", spot=spot)


CAMEL: Final = re.compile(r"_([a-z])")


class Compiler:
    """Compiler of one expression."""

    def __init__(self, source: str, names: Names) -> None:
        self.source = source
        self.paths = PathReader(source, names, self.code)

    def spot(self, tree: Tree | Lambda) -> Spot:
        return Spot(self.source, tree.at, tree.end)

    def code(self, tree: Tree, *, guarded: bool = False) -> Code:
        """Return the closure that computes `tree`; a missing path gives None."""
        match tree:
            case Literal(value=value):
                return lambda frame: value
            case Name() | Dollar() | Get() | Each():
                return self.paths.path(tree, guarded=guarded)
            case Slice():
                return self.slice(tree)
            case FunctionCall():
                return self.call(tree)
            case ListOf(items=items):
                return listed(tuple(self.code(item) for item in items))
            case ObjectOf(pairs=pairs):
                coded = tuple((key, self.code(value)) for key, value in pairs)
                return lambda frame: {key: value(frame) for key, value in coded}
            case Comprehension():
                return self.comprehension(tree)
            case Prefix():
                return self.prefix(tree)
            case Chain():
                return self.chain(tree, guarded=guarded)
            case Conditional():
                condition, yes, no = self.code(tree.condition), self.code(tree.yes), self.code(tree.no)
                return lambda frame: yes(frame) if condition(frame) else no(frame)

    def slice(self, tree: Slice) -> Code:
        base = self.code(tree.base)
        start = self.code(tree.start) if tree.start else None
        stop = self.code(tree.stop) if tree.stop else None
        return cut(base, start, stop, self.spot(tree))

    def prefix(self, tree: Prefix) -> Code:
        operand = self.code(tree.operand)
        if tree.sign in ("not", "!"):
            return lambda frame: not operand(frame)
        return negative(tree.sign, operand, self.spot(tree))

    def chain(self, tree: Chain, *, guarded: bool) -> Code:
        if tree.strength == COALESCE:
            last = tree.rest[-1][1]
            operands = (tree.first, *(operand for _, operand in tree.rest))
            return logic("??", tuple(self.code(x, guarded=guarded or x is not last) for x in operands))
        if tree.strength < COMPARE:
            return logic(tree.rest[0][0], (self.code(tree.first), *(self.code(operand) for _, operand in tree.rest)))
        if tree.strength == COMPARE:
            return self.comparison(tree)
        rest = tuple((sign, self.code(operand)) for sign, operand in tree.rest)
        return arithmetic_chain(self.code(tree.first), rest, self.spot(tree), additive=tree.strength == ADD)

    def comparison(self, tree: Chain) -> Code:
        sign, right = tree.rest[0]
        spot = self.spot(tree)
        if len(tree.rest) > 1 or sign not in ("==", "!="):
            rest = tuple((sign, self.code(operand)) for sign, operand in tree.rest)
            return compare(self.code(tree.first), rest, spot)
        sides = (self.code(tree.first), self.code(right))
        nulls = [x for x in (tree.first, right) if isinstance(x, Literal) and x.value is None]
        if not nulls and (self.paths.is_label(tree.first) or self.paths.is_label(right)):
            return compare_labels(*sides, equal=sign == "==")
        for literal, other in ((right, sides[0]), (tree.first, sides[1])):
            if isinstance(literal, Literal):
                return compare_literal(other, literal.value, equal=sign == "==")
        return compare(sides[0], ((sign, sides[1]),), spot)

    def call(self, tree: FunctionCall) -> Code:
        name = self.function(tree)
        least, most = SPECIAL[name] if name in SPECIAL else (FUNCTIONS[name].least, FUNCTIONS[name].most)
        if not least <= len(tree.arguments) <= most:
            expected = str(least) if least == most else f"{least} to {most}"
            raise WrongArguments(
                f"{tree.name}() takes {expected} argument{'s' * (most > 1)}, not {len(tree.arguments)}",
                spot=self.spot(tree),
            )
        if name in SPECIAL:
            return self.special(name, tree, [self.value(tree, argument) for argument in tree.arguments])
        function = FUNCTIONS[name]
        *values, last = tree.arguments
        apply: Apply | None = None
        if function.over and isinstance(last, Lambda):
            apply = self.apply(last)
        else:
            values.append(last)
        if function.needs_lambda and apply is None:
            raise WrongArguments(
                f"{tree.name}() requires a lambda", spot=self.spot(tree), hint=f"{tree.name}(list, x => x.field)"
            )
        if apply is not None and len(values) != 1:
            raise WrongArguments(
                f"{tree.name}() takes one list before the lambda",
                spot=self.spot(tree),
                hint=f"{tree.name}(list, x => x.field)",
            )
        codes = tuple(self.code(self.value(tree, value)) for value in values)
        return invoke(function, codes, apply, self.spot(tree))

    def function(self, tree: FunctionCall) -> str:
        """Return the canonical name of a function, for any of its spellings."""
        for name in (tree.name, ALIASES.get(tree.name, ""), CAMEL.sub(lambda m: m[1].upper(), tree.name)):
            if name in FUNCTIONS or name in SPECIAL:
                return name
        names = [*FUNCTIONS, *SPECIAL]
        near = difflib.get_close_matches(tree.name, names, 1, cutoff=0.7)
        suggestion = f"Did you mean {near[0]!r}?" if near else f"Known functions: {', '.join(sorted(names))}."
        raise UnknownFunction(
            f"there is no function {tree.name!r}",
            spot=Spot(self.source, tree.name_at, tree.name_at + len(tree.name)),
            hint=INSTEAD.get(tree.name, suggestion),
        )

    def value(self, call: FunctionCall, argument: Tree | Lambda) -> Tree:
        if isinstance(argument, Lambda):
            raise WrongArguments(f"{call.name}() does not take a lambda here", spot=self.spot(argument))
        return argument

    def special(self, name: str, tree: FunctionCall, arguments: list[Tree]) -> Code:
        """Compile the functions that inspect an argument's tree before evaluating it."""
        first = arguments[0]
        if name == "exists":
            return self.exists(tree, first)
        if name == "matches":
            pattern = arguments[1]
            if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
                raise WrongArguments(
                    "matches() requires its pattern as a quoted text",
                    spot=self.spot(pattern),
                    hint="A pattern cannot be computed.",
                )
            return matcher(self.code(first), pattern.value, self.spot(tree), self.spot(pattern))
        value = self.code(first, guarded=True)
        if name == "empty":
            return lambda frame: value(frame) in NOTHING
        return logic("??", (value, self.code(arguments[1])))

    def exists(self, tree: FunctionCall, argument: Tree) -> Code:
        if not isinstance(argument, Name | Dollar | Get | Each):
            raise WrongArguments("exists() requires a path", spot=self.spot(argument), hint="exists(state.a.b)")
        place = self.paths.place(argument, guarded=True)
        probe = self.paths.probe_of(place)
        if place.each:
            return lambda frame: probe(frame) not in (MISSING, [])
        return lambda frame: probe(frame) is not MISSING

    def apply(self, tree: Lambda) -> Apply:
        slot, outer = self.paths.bind(tree.variable)
        body = self.code(tree.body)
        self.paths.unbind(tree.variable, outer)

        def run(frame: EvaluationFrame, element: Json) -> Json:
            frame.slots[slot] = element
            return body(frame)

        return run

    def comprehension(self, tree: Comprehension) -> Code:
        source = self.code(tree.source)
        slot, outer = self.paths.bind(tree.variable)
        body = self.code(tree.body)
        condition = self.code(tree.condition) if tree.condition else None
        self.paths.unbind(tree.variable, outer)
        return comprehension(body, slot, source, condition, self.spot(tree))


NOTHING: Final[tuple[Json, ...]] = (None, "", [], {})


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
            raise MixedTypes(f"{sign!r} requires a number, not {type_name(value)}", spot=spot)
        return -value if sign == "-" else value

    return run


class Expression:
    """A compiled expression. Immutable; any number of plans may share it."""

    def __init__(self, source: str, tree: Tree, names: Names) -> None:
        compiler = Compiler(source, names)
        self.source = source
        self.tree = tree
        self.names = names
        self._code = compiler.code(tree)
        self._slots = compiler.paths.slots
        self._builds = builds(tree)
        self.reads: tuple[PathRead, ...] = tuple(compiler.paths.reads)

    def evaluate(self, env: Environment) -> Json:
        """Return the value; None for a missing path. Raises
        `ExpressionFailed`. The value may share parts with the data."""
        try:
            value = self._code(EvaluationFrame(env, self._slots))
        except RecursionError:
            raise self._too_deep() from None
        if self._builds and parts(value, RESULT_NODES_MAX, RESULT_CHARS_MAX) > RESULT_NODES_MAX:
            raise ResultTooLarge(
                f"the result has more than {RESULT_NODES_MAX} parts or {RESULT_CHARS_MAX} characters",
                spot=Spot(self.source, 0, len(self.source)),
                hint="Select fewer elements, or only the fields that you need.",
            )
        return value

    def holds(self, env: Environment) -> bool:
        """Return whether the value is truthy: not false, null, 0, "", [] or {}. Raises `ExpressionFailed`."""
        try:
            return bool(self._code(EvaluationFrame(env, self._slots)))
        except RecursionError:
            raise self._too_deep() from None

    def _too_deep(self) -> DataTooDeep:
        spot = Spot(self.source, 0, len(self.source))
        return DataTooDeep("a value is nested too deeply for this expression", spot=spot)

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"


@lru_cache(maxsize=COMPILED_MAX)
def compile_expression(source: str, *, names: Names = NATIVE) -> Expression:
    """Compile `source`. Raises `ExpressionError` with the offset.
    Cached: the same text and names give the same object."""
    return Expression(source, parse_expression(source), names)
