"""Expressions: compiled once from text, evaluated over an environment within limits."""

from __future__ import annotations

from functools import lru_cache

from pointsman.expressions.compiler import Compiler
from pointsman.expressions.environment import NATIVE, Environment, EvaluationFrame, Names
from pointsman.expressions.failures import (
    COMPILED_MAX,
    RESULT_CHARS_MAX,
    RESULT_NODES_MAX,
    DataTooDeep,
    ResultTooLarge,
    Spot,
)
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.operators import parts
from pointsman.expressions.parser import parse_expression
from pointsman.expressions.syntax_tree import (
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
