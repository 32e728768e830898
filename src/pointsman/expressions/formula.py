"""Expressions: compiled once from text, evaluated over an environment within limits.

`canonical_text` writes a tree so that a diff does not show differences in style: `and or not == != null true false`,
double quotes, `a ? b : c`, bare names instead of `$.name`, one name per function.
"""

from __future__ import annotations

import json
from functools import cached_property, lru_cache
from typing import Final

from pointsman.expressions.compiler import Compiler
from pointsman.expressions.environment import NATIVE, ROOTS, Environment, EvaluationFrame, Names
from pointsman.expressions.failures import (
    COMPILED_MAX,
    RESULT_CHARS_MAX,
    RESULT_NODES_MAX,
    DataTooDeep,
    ResultTooLarge,
    Spot,
)
from pointsman.expressions.functions import ALIASES, FUNCTIONS, SPECIAL
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.operators import parts
from pointsman.expressions.parser import KEYWORDS, parse_expression
from pointsman.expressions.syntax_tree import (
    COALESCE,
    NOT,
    POSTFIX,
    UNARY,
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

__all__ = ["Expression", "PathRead", "compile_expression"]


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

    @cached_property
    def canonical(self) -> str:
        """The canonical text, the same for every style of writing the same expression; for diffs."""
        return canonical_text(self.tree, self.names)

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


CHOICE: Final = 0
TEXT_ROOTS: Final = {"nodes": "nodes", "state": "state", "config": "config"}


def canonical_text(tree: Tree, names: Names) -> str:
    """Return the canonical text of `tree`. It compiles to the
    same value and the same text, unless it exceeds a limit."""
    return CanonicalWriter(names).text(tree, CHOICE)


class CanonicalWriter:
    """Writer of a tree; `variables` are the lambda variables in scope."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.variables: list[str] = []

    def text(self, tree: Tree, weakest: int) -> str:
        """Return the text of `tree`, in parentheses if it binds less tightly than `weakest`."""
        strength, written = self.write(tree)
        return written if strength >= weakest else f"({written})"

    def write(self, tree: Tree) -> tuple[int, str]:
        match tree:
            case Literal(value=value):
                negative = isinstance(value, int | float) and str(value).startswith("-")
                return (UNARY if negative else POSTFIX), json.dumps(value, ensure_ascii=False)
            case Name(name=name):
                return POSTFIX, self.name(name)
            case Dollar():
                return POSTFIX, "$"
            case Get() | Each() | Slice():
                return POSTFIX, self.path(tree)
            case FunctionCall() | ListOf() | ObjectOf() | Comprehension():
                return POSTFIX, self.built(tree)
            case Prefix(sign=sign, operand=operand):
                if sign == "not":
                    return NOT, f"not {self.text(operand, NOT)}"
                return UNARY, f"{sign}{self.text(operand, UNARY)}"
            case Chain(strength=strength):
                pieces = [self.text(tree.first, strength + 1)]
                for sign, operand in tree.rest:
                    pieces += [sign, self.text(operand, strength + 1)]
                return strength, " ".join(pieces)
            case Conditional():
                condition = self.text(tree.condition, COALESCE)
                return CHOICE, f"{condition} ? {self.text(tree.yes, CHOICE)} : {self.text(tree.no, CHOICE)}"

    def built(self, tree: FunctionCall | ListOf | ObjectOf | Comprehension) -> str:
        match tree:
            case FunctionCall():
                return f"{function_name(tree.name)}({', '.join(self.argument(x) for x in tree.arguments)})"
            case ListOf():
                return f"[{', '.join(self.text(item, CHOICE) for item in tree.items)}]"
            case ObjectOf():
                return f"{{{', '.join(f'{quoted(key)}: {self.text(value, CHOICE)}' for key, value in tree.pairs)}}}"
            case Comprehension():
                return self.comprehension(tree)

    def name(self, name: str) -> str:
        if name in self.variables or name in self.names.as_names or name in self.names.fields_first:
            return name
        return TEXT_ROOTS.get(ROOTS.get(name, ""), name)

    def path(self, tree: Get | Each | Slice) -> str:
        if isinstance(tree, Get) and isinstance(tree.base, Dollar) and isinstance(tree.key, Literal):
            key = tree.key.value
            if isinstance(key, str) and is_word(key) and key not in self.variables:
                return self.name(key)
        base = self.text(tree.base, POSTFIX)
        match tree:
            case Each():
                return f"{base}[*]"
            case Slice():
                start = self.text(tree.start, CHOICE) if tree.start else ""
                stop = self.text(tree.stop, CHOICE) if tree.stop else ""
                return f"{base}[{start}:{stop}]"
            case Get(key=Literal(value=str(key)), dotted=dotted):
                special = key in ("length", "current_fanout_item")
                word = dotted or (not special and key.isidentifier() and key.isascii())
                return f"{base}.{key}" if word else f"{base}[{quoted(key)}]"
            case Get():
                return f"{base}[{self.text(tree.key, CHOICE)}]"

    def argument(self, tree: Tree | Lambda) -> str:
        if not isinstance(tree, Lambda):
            return self.text(tree, CHOICE)
        self.variables.append(tree.variable)
        body = self.text(tree.body, CHOICE)
        self.variables.pop()
        return f"{tree.variable} => {body}"

    def comprehension(self, tree: Comprehension) -> str:
        source = self.text(tree.source, COALESCE)
        self.variables.append(tree.variable)
        body = self.text(tree.body, CHOICE)
        condition = f" if {self.text(tree.condition, COALESCE)}" if tree.condition else ""
        self.variables.pop()
        return f"[{body} for {tree.variable} in {source}{condition}]"


def is_word(key: str) -> bool:
    """Return whether a key can be written as a bare name."""
    return key.isidentifier() and key.isascii() and key not in KEYWORDS


def quoted(text: str) -> str:
    """Return a text in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def function_name(name: str) -> str:
    """Return the canonical name of a function."""
    head, *tail = name.split("_")
    camel = head + "".join(part.capitalize() for part in tail)
    for known in (name, ALIASES.get(name, ""), camel):
        if known in FUNCTIONS or known in SPECIAL:
            return known
    return name
